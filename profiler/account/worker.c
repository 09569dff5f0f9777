#include "worker.h"

#include "../../common/error.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

struct worker {
    pthread_mutex_t lock;
    pthread_cond_t posted, done;
    struct work *first, *last; /* waiting */
    const struct work *wanted; /* the caller waits for it: no further step of it begins here */
    pthread_t thread;
    int has_thread; /* the caller's; -1: there can be none */
    int is_closing;
};

static void set_state(struct work *work, int state)
{
    __atomic_store_n(&work->state, state, __ATOMIC_RELEASE);
}

static int is_idle(const struct work *work)
{
    return __atomic_load_n(&work->state, __ATOMIC_ACQUIRE) == WORK_IDLE;
}

static void run_all(const struct work *work)
{
    while (work->run(work->arg))
        ;
}

/* Under the lock. */
static void queue(struct worker *w, struct work *work)
{
    work->next = NULL;
    if (w->first)
        w->last->next = work;
    else
        w->first = work;
    w->last = work;
    set_state(work, WORK_WAITING);
}

static void *thread_main(void *arg)
{
    struct worker *w = arg;
    pthread_mutex_lock(&w->lock);
    for (;;) {
        struct work *work = w->first;
        if (!work && w->is_closing)
            break;
        if (!work) {
            pthread_cond_wait(&w->posted, &w->lock);
            continue;
        }
        w->first = work->next;
        set_state(work, WORK_RUNNING);
        pthread_mutex_unlock(&w->lock);
        int goes_on = work->run(work->arg);
        pthread_mutex_lock(&w->lock);
        if (goes_on && work != w->wanted)
            queue(w, work);
        else
            set_state(work, goes_on ? WORK_STOPPED : WORK_DONE);
        pthread_cond_signal(&w->done);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

struct worker *worker_open(void)
{
    struct worker *w = xcalloc(1, sizeof *w);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->posted, NULL);
    pthread_cond_init(&w->done, NULL);
    return w;
}

void worker_close(struct worker *w)
{
    if (!w)
        return;
    if (w->has_thread > 0) {
        pthread_mutex_lock(&w->lock);
        w->is_closing = 1;
        pthread_cond_signal(&w->posted);
        pthread_mutex_unlock(&w->lock);
        pthread_join(w->thread, NULL);
    }
    pthread_cond_destroy(&w->posted);
    pthread_cond_destroy(&w->done);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

/* Signals are for the threads that wait for them. */
static int start(struct worker *w)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    w->has_thread = pthread_create(&w->thread, NULL, thread_main, w) ? -1 : 1;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return w->has_thread;
}

void worker_post(struct worker *w, struct work *work)
{
    if (w->has_thread < 0 || (!w->has_thread && start(w) < 0)) {
        run_all(work);
        set_state(work, WORK_DONE);
        return;
    }
    pthread_mutex_lock(&w->lock);
    queue(w, work);
    pthread_cond_signal(&w->posted);
    pthread_mutex_unlock(&w->lock);
}

/* Takes a work back, or the steps of it that have not begun, and returns 1; 0: it is done. */
static int take_back(struct worker *w, struct work *work)
{
    int taken = 0;
    pthread_mutex_lock(&w->lock);
    w->wanted = work;
    while (work->state == WORK_RUNNING)
        pthread_cond_wait(&w->done, &w->lock);
    w->wanted = NULL;
    taken = work->state == WORK_STOPPED;
    if (work->state == WORK_WAITING) {
        struct work *before = NULL, *at = w->first;
        for (; at != work; at = at->next)
            before = at;
        if (before)
            before->next = work->next;
        else
            w->first = work->next;
        if (w->last == work)
            w->last = before;
        taken = 1;
    }
    set_state(work, WORK_IDLE);
    pthread_mutex_unlock(&w->lock);
    return taken;
}

void worker_wait(struct worker *w, struct work *work)
{
    if (!is_idle(work) && take_back(w, work))
        run_all(work);
}

void worker_cancel(struct worker *w, struct work *work)
{
    if (!is_idle(work))
        take_back(w, work);
}
