/*
 * thin.h: a thinned recording (run --sample, run --min-size): of the heap's blocks some are chosen, and recorded with
 * their stacks; of the others neither birth nor death is. All else is recorded whole. Where the recording is not
 * thinned no hook looks here.
 */
#ifndef MEMPROF_THIN_H
#define MEMPROF_THIN_H

#include "../wire.h"
#include "chosen.h"

struct thin {             /* written while attaching only, but for what chosen points to */
    uint64_t least_bytes; /* smaller blocks are left out, and counted */
    uint64_t span_bytes;  /* blocks below least + span are left to chance; 0: all are chosen */
    struct chosen chosen;
    uint64_t mean_bytes; /* between two samples; 0: there is no chance in it */
    uint32_t is_on;
};
extern struct thin thin HIDDEN;

struct thread;
/* As the process attaches, with its session. 0: there is no memory for it. */
int thin_start(const struct wire_control *control) HIDDEN;
/* Of a birth that is entered: whether it is recorded. Else it was counted, or goes into the thread's gap. */
int thin_chooses(struct thread *t, uint64_t size_bytes) HIDDEN;
/* Of a chosen block, before its birth hook returns. */
void thin_lives(const void *p) HIDDEN;
/* Of a block about to be freed: whether that is recorded. It is no chosen one any more. */
int thin_dies(const void *p) HIDDEN;

#endif
