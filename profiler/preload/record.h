/*
 * record.h: writing records into the calling thread's ring. Only between thread_enter and thread_leave.
 */
#ifndef MEMPROF_RECORD_H
#define MEMPROF_RECORD_H

#include "state.h"

/* Makes room for `words` more; waits for the collector where the ring is full, unless this is a nested record, which
 * may run inside an allocator's lock. 0: no room, nothing may be written. */
int record_room_slow(struct thread *t, uint64_t words) HIDDEN;

static inline __attribute__((always_inline)) int record_room(struct thread *t, uint64_t words)
{
    return likely(t->head + words <= t->limit) || record_room_slow(t, words);
}

/* From here until record_end the ring is busy: the collector waits for this thread before it orders past the stamp that
 * is taken next. */
static inline __attribute__((always_inline)) uint64_t record_begin(struct thread *t)
{
    t->writing++;
    __atomic_store_n(&t->ring->busy, 1, __ATOMIC_RELAXED);
    barrier();
    return clock_ordered();
}

/* One instruction: a signal handler's record between a load and a store of head would be written over. */
static inline __attribute__((always_inline)) uint64_t record_reserve(struct thread *t, uint64_t words)
{
    uint64_t at = words;
    __asm__ volatile("xaddq %0, %1" : "+r"(at), "+m"(t->head) : : "memory", "cc");
    return at;
}

static inline __attribute__((always_inline)) void record_word(struct thread *t, uint64_t at, uint64_t word)
{
    t->words[at & (WIRE_RING_WORDS - 1)] = word;
}

static inline __attribute__((always_inline)) void record_end(struct thread *t)
{
    barrier();
    if (likely(t->writing == 1)) {
        __atomic_store_n(&t->ring->head, t->head, __ATOMIC_RELEASE);
        t->writing = 0;
        barrier();
        /* a signal handler may have written between the two stores above */
        if (unlikely(t->ring->head != t->head))
            __atomic_store_n(&t->ring->head, t->head, __ATOMIC_RELEASE);
        __atomic_store_n(&t->ring->busy, 0, __ATOMIC_RELEASE);
    } else if (t->writing) { /* 0: given up by enter_nested or a fork, both in a signal handler, meanwhile */
        t->writing--;
    }
}

/* The stack's id, defined to the collector when it is new; 0: unknown. May wait for room. */
uint32_t record_stack(struct thread *t, struct unwind_state s) HIDDEN;

/* Whether the caller is Python, which takes an arena of small objects. After record_stack. */
int record_is_arena(const struct thread *t, struct unwind_state s, size_t length) HIDDEN;

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
/* Any record of fixed length: words 1 to count - 1 are given, word 0 is the stamp taken here. */
void record_words(struct thread *t, const uint64_t *words_from_1, unsigned count) HIDDEN;

/* After a fork: stacks are defined anew. ids_go_on: a hook under way may hold an id of the parent, which no stack here
 * may get. */
void record_forget_stacks(int ids_go_on) HIDDEN;
/* A thread ends: its t->python goes. */
void record_unmap_python(struct python_work *work) HIDDEN;
/* A sample of glibc's held memory, where that may be asked. */
void record_heap_sample(struct thread *t) HIDDEN;

#endif
