/*
 * thread.h: what this library knows of the calling thread; entering and leaving a hook. A thread gets a ring at its
 * first hook and gives it back at its end.
 */
#ifndef MEMPROF_THREAD_H
#define MEMPROF_THREAD_H

#include "process.h"
#include "python/python.h"
#include "unwind/unwind.h"

/* Per thread. This thread only; signal handlers on it nest, so every field may change between two instructions where
 * depth is not 0. */
struct thread {
    volatile uint32_t depth;   /* hooks of this thread that are under way */
    volatile uint32_t writing; /* records of this thread that are under way */
    struct wire_ring *ring;    /* NULL: not attached */
    uint64_t *words;           /* the ring's data */
    uint64_t head;             /* words written and reserved */
    uint64_t limit;            /* head may grow to this without a look at the collector's tail */
    struct unwind_thread *unwind;
    uint64_t *addresses;          /* WIRE_STACK_MAX words each, for new stacks: [0] plain, [1] nested */
    uint64_t *told;               /* the stack that was defined last, not by a nested hook, outermost frame first */
    struct wire_ring *told_ring;  /* where: a fork in a signal handler may change the thread's ring meanwhile */
    volatile uint32_t told_depth; /* 0: none, or it is being changed */
    uint64_t told_number;         /* counts them */
    struct python_work *python;   /* for new stacks with Python frames; NULL: none met yet */
    uint64_t python_hash;         /* of the last stack with Python frames, and its id */
    uint32_t python_id;
    int tid;                       /* as the ring has it */
    volatile uint64_t outer_sp;    /* of the outermost hook's caller, while depth > 0 */
    uint32_t refused;              /* no ring could be had: this thread is not recorded */
    volatile uint32_t maps_hidden; /* in a driver call whose memory is told by the call itself: maps are not */
    volatile uint64_t cuda_sp;     /* of the outermost wrapped driver call's caller, while it is under way */
    struct new_call *new_call;     /* the innermost operator new of an allocator under way (hooks_new.c) */
    struct figures *figures;       /* of its scopes (figures.c); NULL: none was opened yet */
    volatile uint64_t oom_sp;      /* of oom_tell under way; 0: none */
    uint64_t thin_left;            /* bytes until the next sample (thin.h); 0: not known yet */
    uint64_t thin_state;           /* of its random numbers */
    uint32_t thin_is_ready;        /* they began */
    uint32_t attached;             /* counts the rings that it had: one may come to it again, through a fork */
    uint32_t joined;               /* process.joined, of the recording that the ring is of */
    volatile uint64_t fork_stamp;  /* of the fork under way, before which nothing of it has happened; 0: none */
};

extern __thread struct thread self HIDDEN __attribute__((tls_model("initial-exec")));

/* Enters for a record of what the allocator under way does itself (nested in its call): always needs thread_leave after
 * a 1. */
int thread_enter_inside(struct thread *t) HIDDEN;

/* Enters a hook: 1 when its call is to be recorded; then thread_leave must follow. 0: call the real function only. */
int thread_enter_slow(struct thread *t, struct unwind_state s) HIDDEN;

/* Where the gate is open. */
static inline __attribute__((always_inline)) int thread_enter_open(struct thread *t, struct unwind_state s)
{
    if (unlikely(!(t->depth == 0 && t->ring)))
        return 0;
    t->depth = 1;
    t->outer_sp = s.sp;
    barrier();
    return 1;
}

static inline __attribute__((always_inline)) int thread_enter_fast(struct thread *t, struct unwind_state s)
{
    return likely(gate.on == GATE_OPEN) && thread_enter_open(t, s);
}

static inline __attribute__((always_inline)) int thread_enter(struct thread *t, struct unwind_state s)
{
    return thread_enter_fast(t, s) || thread_enter_slow(t, s);
}

/* The same of hooks of the heap, for a birth and for a death at p. */
enum thread_entry {
    ENTER_NOT,
    ENTERED,
    ENTERED_PAUSED,   /* there is nothing to record, but what the call does itself; thread_leave must follow */
    ENTERED_LEFT_OUT, /* the same: the recording is thinned */
    ENTERED_CHOSEN,   /* of births alone: to be recorded, and thin_lives must follow, too */
};
enum thread_entry thread_enter_birth_slow(struct thread *t, struct unwind_state s, uint64_t size_bytes) HIDDEN;
enum thread_entry thread_enter_death_slow(struct thread *t, struct unwind_state s, const void *p) HIDDEN;

/* Of a thinned recording, what most of its births and deaths are: left out. Then thread_enter_thinned is all that
 * there is to enter. */
static inline __attribute__((always_inline)) int thread_is_thinned(void)
{
    barrier(); /* gate.on is compared where it lies before this, and read here */
    const uint32_t on = gate.on;
    return on >= GATE_THINNED && !(on == GATE_THINNED_WATCHED && python_is_ending());
}

static inline __attribute__((always_inline)) int thread_passes_birth(struct thread *t, uint64_t size_bytes)
{
    if (!(size_bytes < t->thin_left && size_bytes - thin.least_bytes < thin.span_bytes))
        return 0;
    t->thin_left -= size_bytes;
    return 1;
}

static inline __attribute__((always_inline)) int thread_leaves_out_birth(struct thread *t, uint64_t size_bytes)
{
    return thread_is_thinned() && t->depth == 0 && thread_passes_birth(t, size_bytes);
}

static inline __attribute__((always_inline)) int thread_leaves_out_death(const struct thread *t, const void *p)
{
    return thread_is_thinned() && t->depth == 0 && !chosen_maybe(&thin.chosen, p);
}

/* sp: of the hook's caller, as in struct unwind_state. */
static inline __attribute__((always_inline)) void thread_enter_thinned(struct thread *t, uint64_t sp)
{
    t->depth = 1;
    t->outer_sp = sp;
    barrier();
}

/* thread_leave, of a hook that was entered so: none was under way before. */
static inline __attribute__((always_inline)) void thread_leave_thinned(struct thread *t)
{
    barrier();
    t->depth = 0;
}

static inline __attribute__((always_inline)) enum thread_entry
thread_enter_birth(struct thread *t, struct unwind_state s, uint64_t size_bytes)
{
    if (thread_enter_fast(t, s))
        return ENTERED;
    if (!thread_leaves_out_birth(t, size_bytes))
        return thread_enter_birth_slow(t, s, size_bytes);
    thread_enter_thinned(t, s.sp);
    return ENTERED_LEFT_OUT;
}

static inline __attribute__((always_inline)) enum thread_entry
thread_enter_birth_open(struct thread *t, struct unwind_state s, uint64_t size_bytes)
{
    return thread_enter_open(t, s) ? ENTERED : thread_enter_birth_slow(t, s, size_bytes);
}

static inline __attribute__((always_inline)) void thread_leave(struct thread *t)
{
    barrier();
    t->depth--;
}

/* Whether this thread's call of ours, whose caller's stack pointer is call_sp (0: none), is under way, seen from s. One
 * that was left by longjmp or an exception is over: it was further down, or it is nowhere on the stack any more. */
int thread_is_within(const struct thread *t, struct unwind_state s, uint64_t call_sp) HIDDEN;

/* From now on the end of each thread that has a ring is noticed. Once, by the library's constructor. */
void thread_watch_ends(void) HIDDEN;
/* Takes a ring for the thread. 0: none to be had; the thread is not recorded. */
int thread_attach(struct thread *t) HIDDEN;
/* The thread's buffers. 0: none to be had. */
int thread_memory(struct thread *t) HIDDEN;
/* Its ring is of a recording that the process was attached to before: nobody reads it. */
static inline int thread_is_stale(const struct thread *t)
{
    return t->ring && t->joined != __atomic_load_n(&process.joined, __ATOMIC_ACQUIRE);
}
/* Whether the thread's ring is still its own, and the process's slot, without which nobody reads it. The collector
 * frees a ring whose thread it takes for gone, and another thread may have it then. */
static inline int thread_owns_ring(const struct thread *t)
{
    if (t->joined != __atomic_load_n(&process.joined, __ATOMIC_ACQUIRE))
        return 0;
    const struct wire_ring *r = t->ring;
    const struct wire_proc *slot = process.slot;
    return __atomic_load_n(&r->state, __ATOMIC_ACQUIRE) != WIRE_RING_FREE && r->pid == process.pid &&
           r->tid == t->tid && slot && __atomic_load_n(&slot->state, __ATOMIC_ACQUIRE) == WIRE_PROC_LIVE &&
           slot->pid == process.pid;
}
/* Thread ends: says so to the collector, which reuses the ring once the kernel's thread is gone. */
void thread_closing(struct thread *t) HIDDEN;

#endif
