/*
 * record_trail.h: the stacks of a thread in the order in which they came first, with their ids. A program that does the
 * same again, as a training does at each step, meets them in the same order: the next one lies in the next place, which
 * the processor has fetched by then, where the table of all stacks is in no cache. The rules that the unwinder will
 * want for it are asked for ahead.
 */
#ifndef MEMPROF_RECORD_TRAIL_H
#define MEMPROF_RECORD_TRAIL_H

#include "unwind/unwind.h"

#include <stdint.h>

#define TRAIL_BITS   13
#define TRAIL_STACKS (1u << TRAIL_BITS)

/* One thread's; zeroed memory at first. A signal handler may leave a change of it by longjmp. */
struct trail {
    uint32_t at;  /* the stack that was met last */
    uint32_t end; /* counts those that were new */
    struct trail_stack {
        uint64_t hash; /* 0: none, or it is being changed */
        uint32_t id;
        struct unwind_ahead ahead;
    } stacks[TRAIL_STACKS];
    uint16_t places[TRAIL_STACKS]; /* of a hash, by its high bits */
};

/* The id that the hash was added with; 0: it is not on the trail (any more). */
static inline uint32_t trail_find(struct trail *r, uint64_t hash)
{
    uint32_t at = (r->at + 1) % TRAIL_STACKS;
    if (__builtin_expect(r->stacks[at].hash != hash, 0)) {
        at = r->places[hash >> (64 - TRAIL_BITS)];
        if (r->stacks[at].hash != hash)
            return 0;
    }
    r->at = at;
    unwind_ask_ahead(&r->stacks[(at + 1) % TRAIL_STACKS].ahead);
    __builtin_prefetch(&r->stacks[(at + 5) % TRAIL_STACKS]);
    return r->stacks[at].id;
}

/* Takes the place of the oldest. u: has just unwound that stack. */
void trail_add(struct trail *r, uint64_t hash, uint32_t id, const struct unwind_thread *u)
    __attribute__((visibility("hidden")));

#endif
