/*
 * blocks.h: the blocks that live while events are replayed.
 */
#ifndef MEMPROF_BLOCKS_H
#define MEMPROF_BLOCKS_H

#include "../../common/chunk.h"
#include "../../common/map.h"

struct blocks {                 /* all zero: empty */
    struct chunk_event *births; /* of op CHUNK_free: a hole */
    uint32_t count, capacity;   /* holes too */
    uint64_t hole;    /* index + 1 of one that the next birth fills; its address is that of the next; 0: none */
    struct map index; /* (address, space) -> births, plus 1 */
};

/* Of blocks at one address that differ in space several may live. */
void blocks_put(struct blocks *b, const struct chunk_event *birth, uint64_t space);
/* Takes a block out; 0 when it is not there. */
int blocks_take(struct blocks *b, uint64_t address, uint64_t space, struct chunk_event *birth);
void blocks_free(struct blocks *b);

#endif
