#include "record_trail.h"

void trail_add(struct trail *r, uint64_t hash, uint32_t id, const struct unwind_thread *u)
{
    uint32_t at = r->end++ % TRAIL_STACKS;
    struct trail_stack *s = &r->stacks[at];
    s->hash = 0;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    s->id = id;
    unwind_keep_ahead(u, &s->ahead);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    s->hash = hash;
    r->places[hash >> (64 - TRAIL_BITS)] = (uint16_t)at;
    r->at = at;
}
