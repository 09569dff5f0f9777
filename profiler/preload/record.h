/*
 * record.h: the records of allocations and their stacks. Only between thread_enter and thread_leave.
 */
#ifndef MEMPROF_RECORD_H
#define MEMPROF_RECORD_H

#include "record_ring.h"

/* The stack's id, defined to the collector when it is new; 0: unknown. May wait for room. */
uint32_t record_stack(struct thread *t, struct unwind_state s) HIDDEN;

/* The two ways of record_alloc: a signal handler's may run on a small stack, so it does not go through the other's
 * frame. */
void record_alloc_plain(struct thread *t, struct unwind_state s, const void *p, size_t size_bytes,
                        unsigned hook) HIDDEN;
void record_alloc_nested(struct thread *t, struct unwind_state s, const void *p, size_t size_bytes,
                         unsigned hook) HIDDEN;

/* Stamped after the real call. */
static inline __attribute__((always_inline)) void record_alloc(struct thread *t, struct unwind_state s, const void *p,
                                                               size_t size_bytes, unsigned hook)
{
    if (likely(t->depth == 1))
        record_alloc_plain(t, s, p, size_bytes, hook);
    else
        record_alloc_nested(t, s, p, size_bytes, hook);
}
/* Stamped before the real call. */
static inline __attribute__((always_inline)) void record_free(struct thread *t, const void *p, unsigned hook)
{
    if (!record_room(t, 2))
        return;
    uint64_t stamp = record_begin(t);
    uint64_t at = record_reserve(t, 2);
    record_word(t, at, stamp);
    record_word(t, at + 1, WIRE_WORD1(WIRE_FREE, hook, (uint64_t)p));
    record_end(t);
}
void record_oom(struct thread *t, struct unwind_state s, size_t size_bytes, unsigned hook) HIDDEN;

#endif
