/*
 * process.h: what this library knows of its process: whether it is recorded, where its session is, its clock. Any
 * thread reads; the one that attaches writes, before any other is let in. In order: attached at most once, off at most
 * once; a forked child begins anew.
 */
#ifndef MEMPROF_PROCESS_H
#define MEMPROF_PROCESS_H

#include "../wire.h"
#include "compiler.h"
#include "sys.h"
#include "thin.h"

#include <sys/single_threaded.h>

/* One page that the kernel empties in a forked child, so that a child made by any means stops using its parent's rings
 * before its first event. Where the kernel does not do that (before Linux 4.14), each entry asks whether it is in a
 * child. */
enum gate_state {
    GATE_SHUT,
    GATE_OPEN,
    GATE_GUARDED,
    GATE_WATCHED, /* open, and each hook looks whether the program's interpreter has begun to take itself down, and
                     each free whether its stack is asked for */
    GATE_PAUSED,  /* open, but for births of blocks of the heap (pause.h) */
    GATE_AGAIN,   /* open once more after a recording that ended: threads may have rings of that one */
    GATE_THINNED, /* open, but for most blocks of the heap (thin.h): GATE_OPEN is never the state of its process, */
    GATE_THINNED_WATCHED, /* and this is in place of GATE_WATCHED; hooks compare with GATE_THINNED: the two are last */
};
struct gate {
    uint32_t on;  /* not GATE_SHUT: attached, and the collector lives */
    uint32_t own; /* 1: in the process that attached, 0 in its forked children; of no meaning where it is guarded */
    char fill[4088];
};
extern struct gate gate HIDDEN;

/* The process. Written while attaching only. */
struct process {
    uint32_t state; /* enum process_state */
    int pid;
    struct wire_control *control;
    char *data; /* of the first rings; NULL: no address space for them (ulimit -v), so each thread maps its own */
    struct wire_proc *slot;
    uint32_t slot_index;
    uint32_t use_tsc;
    const char *guard;          /* a page that forked children lack; NULL: the gate is emptied in them */
    uint32_t heap_locks_unsure; /* forked without libc knowing: an arena may be locked for ever */
    uint32_t teardown_known;    /* the interpreter was seen to take itself down: there is nothing more to watch for */
    uint32_t was_watched;       /* its gate, before the pause */
    uint32_t has_recorded;      /* births of blocks, or its parent did; 0: only where it began in a pause */
    uint32_t filtered;          /* by seccomp: no system calls that recording can do without */
    uint32_t free_stacks;       /* who frees is recorded: then the gate is watched for good, never open */
    uint64_t free_least_bytes;  /* of a heap's blocks, those that can hold so many */
    uint32_t joined;            /* recordings that it was attached to while it ran (attach.c) */
};
enum process_state {
    PROCESS_NEW,
    PROCESS_ATTACHING,
    PROCESS_ON,
    PROCESS_OFF,
    PROCESS_REFUSED, /* off: there is no slot. Its children are counted with it */
    PROCESS_STOPPED, /* off, though the collector goes on: it is told what is lost */
};
extern struct process process HIDDEN;

/* By seccomp, as our hook of prctl saw or the collector: it may kill a process for what recording can do without. */
static inline int process_is_filtered(void)
{
    return process.filtered || (process.slot && __atomic_load_n(&process.slot->is_filtered, __ATOMIC_RELAXED));
}

#define COUNT(name, n)                                                                                                 \
    do {                                                                                                               \
        if (process.slot)                                                                                              \
            __atomic_fetch_add(&process.slot->counters.name, (n), __ATOMIC_RELAXED);                                   \
    } while (0)

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

/* The state of its gate where nothing is the matter. */
static inline uint32_t gate_open(void)
{
    if (unlikely(process.joined > 1))
        return GATE_AGAIN;
    return unlikely(thin.is_on) ? GATE_THINNED : GATE_OPEN;
}

/* The same where each hook looks on. */
static inline uint32_t gate_watched(void)
{
    return unlikely(thin.is_on) ? GATE_THINNED_WATCHED : GATE_WATCHED;
}

/* Attaches this process if it may be recorded and is not yet; called by the constructor and by the first hook. */
void process_attach(void) HIDDEN;
/* From now on each hook looks whether the interpreter takes itself down. Where the gate is guarded they do anyway. */
static inline void process_watch(void)
{
    uint32_t open = gate_open();
    if (gate.on == open && !process.teardown_known)
        __atomic_compare_exchange_n(&gate.on, &open, gate_watched(), 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}
/* Makes the recording at path this process's, which runs already: maps that session; 0: it cannot be, and nothing has
 * changed. The gate is shut. Then process_start opens it. */
int process_join(const char *path) HIDDEN;
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
/* Stops recording because a ring was taken away. */
void process_disowned(void) HIDDEN;
/* Claims a slot and opens the gate, or turns the process off. For process_attach and after a fork, with process.control
 * there. parent_slot: index + 1, 0: none. */
void process_start(uint32_t start_kind, uint32_t parent_slot, int parent_pid) HIDDEN;

#endif
