/*
 * worker.h: one thread beside the collector's, for what is not needed at once: the program waits for the collector
 * while its own core is idle, and that core does this meanwhile. Works run one at a time, in the order in which they
 * were posted; one of many steps lets the others go before each. All calls come from one thread, the one that opened
 * the worker.
 */
#ifndef MEMPROF_WORKER_H
#define MEMPROF_WORKER_H

enum work_state { WORK_IDLE, WORK_WAITING, WORK_RUNNING, WORK_STOPPED, WORK_DONE };

struct work { /* zeroed: idle. The caller's; it stays where it is until it is idle again */
    /* On the worker's thread, or in worker_wait on the caller's. 1: a step, to go on behind what waits; 0: all. */
    int (*run)(void *arg);
    void *arg;
    struct work *next; /* under the worker's lock */
    int state;         /* enum work_state; written under the lock */
};

struct worker;
struct worker *worker_open(void);    /* its thread begins with the first work */
void worker_close(struct worker *w); /* after what was posted is done; NULL does nothing */

/* An idle work. Without a thread (none can be made) it runs here. */
void worker_post(struct worker *w, struct work *work);
/* Whether a posted work is done; worker_wait then returns at once. */
static inline int work_is_done(const struct work *work)
{
    return __atomic_load_n(&work->state, __ATOMIC_ACQUIRE) == WORK_DONE;
}
/* Until the work is done, and idle again. One that has not begun is done here: the caller would only wait. */
void worker_wait(struct worker *w, struct work *work);
/* The same for a result that nobody wants: steps that have not begun are not done at all. */
void worker_cancel(struct worker *w, struct work *work);

#endif
