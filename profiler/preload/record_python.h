/*
 * record_python.h: stacks with Python frames. Only between thread_enter and thread_leave, and record_stack first: it
 * takes the native stack that the frames are joined to.
 */
#ifndef MEMPROF_RECORD_PYTHON_H
#define MEMPROF_RECORD_PYTHON_H

#include "python/python_join.h"
#include "record_trail.h"
#include "thread.h"

/* A thread's memory for it; this thread only. */
struct python_work {
    struct python_frame frames[WIRE_STACK_MAX];
    uint64_t sps[WIRE_STACK_MAX];
    uint64_t joined[WIRE_STACK_MAX];
    struct python_memory memory;
    struct python_seam seam; /* of the stack that was told last, */
    uint64_t seam_number;    /* as t->told_number was then; 0: none */
    uint32_t ids_attached;   /* the thread's, when the ids of code in memory were told */
    struct trail trail;
};

/* The id of the native stack joined with the Python frames that run now, whose hash is python; 0: unknown. The native
 * stack's id, when one is kept, is not this one's: the same native frames run any Python. */
uint32_t record_python_stack(struct thread *t, struct unwind_state s, const struct unwind_stack *native,
                             uint64_t python) HIDDEN;

/* Whether the caller is Python, which takes an arena of small objects. After record_stack. */
int record_python_is_arena(const struct thread *t, struct unwind_state s, size_t length) HIDDEN;

/* From a hook that is about to be entered, where python_is_ending(): tells that the program's interpreter takes itself
 * down, once. */
void record_python_teardown(struct thread *t, struct unwind_state s) HIDDEN;

/* A thread ends: its t->python goes. */
void record_python_unmap(struct python_work *work) HIDDEN;

#endif
