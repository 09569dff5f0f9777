/*
 * figures.h: what the calling thread allocated since it opened a scope whose figures may be asked (memprof.h). They are
 * read from the thread's own ring, where its records still are: before the ring comes round to them, and when somebody
 * asks. So hooks do nothing for it. All of it this thread only, between thread_enter and thread_leave, and never in a
 * hook of a signal handler that interrupted another one.
 */
#ifndef MEMPROF_FIGURES_H
#define MEMPROF_FIGURES_H

#include "thread.h"

struct figures_scope { /* as memprof.h has them, in this order */
    uint64_t alloc_count, alloc_bytes, free_count, live_bytes, live_count, peak_bytes;
};

void figures_begin(struct thread *t) HIDDEN;
void figures_end(struct thread *t) HIDDEN;
/* Of the innermost scope. 0: there is none, or not all of its records were seen. */
int figures_ask(struct thread *t, struct figures_scope *scope) HIDDEN;
/* After the thread had to ask for room in its ring; has_room 0: a record is lost. Nothing of ours may be open. */
void figures_keep_up(struct thread *t, int has_room) HIDDEN;
/* The thread's end: gives the memory back. */
void figures_close(struct thread *t) HIDDEN;

#endif
