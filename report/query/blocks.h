/*
 * blocks.h: the blocks that live while events are replayed. A table of its own, not common/map.h: it is looked at for
 * every event, and with the blocks in an array next to a map a replay took 40 % longer.
 */
#ifndef MEMPROF_BLOCKS_H
#define MEMPROF_BLOCKS_H

#include "../../common/chunk.h"

struct blocks { /* all zero: empty */
    struct block {
        uint64_t address; /* 0: free slot */
        uint64_t size_bytes, time_ns;
        uint32_t site_id, thread_id, space;
        uint32_t forks; /* of a forked child's (inherited.h): between it and who allocated it; 0: it did itself */
    } * slots;          /* open addressing, linear probing */
    uint64_t mask, count;
};

/* Has the place where it would be fetched while other work is done. */
void blocks_foresee(const struct blocks *b, uint64_t address, uint32_t space);
/* Of blocks at one address (not 0) that differ in space several may live. */
void blocks_put(struct blocks *b, const struct chunk_event *birth, uint32_t space);
/* Takes a block out; 0 when it is not there. */
int blocks_take(struct blocks *b, uint64_t address, uint32_t space, struct block *block);

#endif
