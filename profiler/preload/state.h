/*
 * state.h: what this library knows of its process and of the calling thread; entering and leaving a hook.
 */
#ifndef MEMPROF_STATE_H
#define MEMPROF_STATE_H

#include "../wire.h"
#include "sys.h"
#include "unwind/unwind.h"

#include <sys/single_threaded.h>

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define HIDDEN      __attribute__((visibility("hidden")))
#define EXPORT      __attribute__((visibility("default"), noinline))

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
    uint64_t *addresses;        /* WIRE_STACK_MAX words each, for new stacks: [0] plain, [1] nested */
    struct python_work *python; /* for new stacks with Python frames; NULL: none met yet */
    uint64_t python_hash;       /* of the last stack with Python frames, and its id */
    uint32_t python_id;
    int tid;                       /* as the ring has it */
    volatile uint64_t outer_sp;    /* of the outermost hook's caller, while depth > 0 */
    uint32_t refused;              /* no ring could be had: this thread is not recorded */
    volatile uint32_t maps_hidden; /* in a driver call whose memory is told by the call itself: maps are not */
    volatile uint64_t cuda_sp;     /* of the outermost wrapped driver call's caller, while it is under way */
};

extern __thread struct thread self HIDDEN __attribute__((tls_model("initial-exec")));

/* One page that the kernel empties in a forked child, so that a child made by any means stops using its parent's rings
 * before its first event. Where the kernel does not do that (before Linux 4.14), each entry asks whether it is in a
 * child. */
enum gate_state { GATE_SHUT, GATE_OPEN, GATE_GUARDED };
struct gate {
    uint32_t on;  /* not GATE_SHUT: attached, and the collector lives */
    uint32_t own; /* 1: in the process that attached, 0 in its forked children; of no meaning where it is guarded */
    char fill[4088];
};
extern struct gate gate HIDDEN;

/* The last look at all of glibc's heap; whoever got heap_sample_due writes it. */
struct heap_walk {
    uint64_t sampled; /* stamp of the last sample, walk or not */
    uint64_t end;     /* stamp; 0: none yet */
    uint64_t cost;    /* stamps that the next one takes, as far as is known */
    uint64_t arena_bytes, mapped_bytes;
    uint64_t top; /* the break then */
    const struct thread *thread;
    uint64_t head; /* its words then */
};

/* The process. Written while attaching only. */
struct process {
    uint32_t state; /* enum process_state */
    int pid;
    struct wire_control *control;
    char *data; /* of the first rings; NULL: no address space for them (ulimit -v), so each thread maps its own */
    struct wire_proc *slot;
    uint32_t slot_index;
    uint32_t use_tsc;
    const char *guard;             /* a page that forked children lack; NULL: the gate is emptied in them */
    uint32_t heap_locks_unsure;    /* forked without libc knowing: an arena may be locked for ever */
    uint64_t heap_sample_due;      /* stamp; threads race for it with compare and swap */
    uint64_t heap_sample_interval; /* stamps */
    struct heap_walk heap_walk;
};
enum process_state {
    PROCESS_NEW,
    PROCESS_ATTACHING,
    PROCESS_ON,
    PROCESS_OFF,
    PROCESS_STOPPED, /* off, though the collector goes on: it is told what is lost */
};
extern struct process process HIDDEN;

#define COUNT(name, n)                                                                                                 \
    do {                                                                                                               \
        if (process.slot)                                                                                              \
            __atomic_fetch_add(&process.slot->counters.name, (n), __ATOMIC_RELAXED);                                   \
    } while (0)

/* Enters for a record of what the allocator under way does itself (nested in its call): always needs thread_leave after
 * a 1. */
int thread_enter_inside(struct thread *t) HIDDEN;

static inline uint64_t clock_now(void)
{
    if (likely(process.use_tsc))
        return __builtin_ia32_rdtsc();
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The stamp of an event: not earlier than the loads before it. rdtsc alone runs ahead of loads that wait for another
 * core, and a block that came from another thread would seem to be allocated before that one freed it, or freed before
 * that one allocated it. */
static inline uint64_t clock_ordered(void)
{
    if (unlikely(!__libc_single_threaded))
        __asm__ volatile("lfence" ::: "memory");
    return clock_now();
}

#define barrier() __asm__ volatile("" ::: "memory")

/* Enters a hook: 1 when its call is to be recorded; then thread_leave must follow. 0: call the real function only. */
int thread_enter_slow(struct thread *t, struct unwind_state s) HIDDEN;

static inline __attribute__((always_inline)) int thread_enter(struct thread *t, struct unwind_state s)
{
    if (likely(gate.on == GATE_OPEN && t->depth == 0 && t->ring)) {
        t->depth = 1;
        t->outer_sp = s.sp;
        barrier();
        return 1;
    }
    return thread_enter_slow(t, s);
}

static inline __attribute__((always_inline)) void thread_leave(struct thread *t)
{
    barrier();
    t->depth--;
}

/* Attaches this process if it may be recorded and is not yet; called by the constructor and by the first hook. */
void process_attach(void) HIDDEN;
/* In a forked child: becomes a process of its own, or stops recording where children are not followed. libc_knows: made
 * by fork, which took the allocator's locks in its parent. torn: the hook that the fork interrupted, if any, may have
 * been storing words in its parent's ring; then the child is not recorded. */
void process_after_fork(int libc_knows, int torn) HIDDEN;
/* Whether this is a forked child that has not become a process of its own here yet. A vfork's child is none. */
int process_is_child(void) HIDDEN;
/* Stops recording for good: the program lives on. */
void process_off(void) HIDDEN;
/* The same where the collector lives and is to know that something is missing. */
void process_stop(void) HIDDEN;
/* The thread's buffers. 0: none to be had. */
int thread_memory(struct thread *t) HIDDEN;
/* Whether the thread's ring is still its own, and the process's slot, without which nobody reads it. The collector
 * frees a ring whose thread it takes for gone, and another thread may have it then. */
static inline int thread_owns_ring(const struct thread *t)
{
    const struct wire_ring *r = t->ring;
    const struct wire_proc *slot = process.slot;
    return __atomic_load_n(&r->state, __ATOMIC_ACQUIRE) != WIRE_RING_FREE && r->pid == process.pid &&
           r->tid == t->tid && slot && __atomic_load_n(&slot->state, __ATOMIC_ACQUIRE) == WIRE_PROC_LIVE &&
           slot->pid == process.pid;
}
/* Stops recording because a ring was taken away. */
void process_disowned(void) HIDDEN;
/* Thread ends: says so to the collector, which reuses the ring once the kernel's thread is gone. */
void thread_closing(struct thread *t) HIDDEN;

#endif
