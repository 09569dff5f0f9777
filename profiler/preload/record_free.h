/*
 * record_free.h: deaths that say who frees (run --free-stacks). None of this is on the way of a free while that is not
 * asked for: the gate is watched for it, so that frees leave the fast way before they come here.
 */
#ifndef MEMPROF_RECORD_FREE_H
#define MEMPROF_RECORD_FREE_H

#include "record.h"

/* thread_enter_death off the fast way, with the record where its stack is asked for: then ENTERED_PAUSED, as there is
 * nothing more to record. */
enum thread_entry record_free_enter(struct thread *t, struct unwind_state s, const void *p, unsigned hook) HIDDEN;

/* Enters a hook for the death at p, with its record where that is made here: hook is of no cost to the fast way. */
static inline __attribute__((always_inline)) enum thread_entry
record_enter_death(struct thread *t, struct unwind_state s, const void *p, unsigned hook)
{
    if (thread_enter_fast(t, s))
        return ENTERED;
    if (!thread_leaves_out_death(t, p))
        return record_free_enter(t, s, p, hook);
    thread_enter_thinned(t, s.sp);
    return ENTERED_LEFT_OUT;
}

/* The same where the gate is open. */
static inline __attribute__((always_inline)) enum thread_entry
record_enter_death_open(struct thread *t, struct unwind_state s, const void *p, unsigned hook)
{
    return thread_enter_open(t, s) ? ENTERED : record_free_enter(t, s, p, hook);
}

/* The end of a block with a stack that is known anyway; stamp: from record_begin, with room for 3 words. */
void record_free_at(struct thread *t, uint64_t stamp, const void *p, uint32_t stack, unsigned hook) HIDDEN;

/* The stack of what takes memory away that is no block of a heap; 0 where nobody asks for it. */
static inline uint32_t record_free_stack(struct thread *t, struct unwind_state s)
{
    return process.free_stacks ? record_stack(t, s) : 0;
}

#endif
