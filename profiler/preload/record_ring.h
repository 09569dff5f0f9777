/*
 * record_ring.h: room in the calling thread's ring and the writing of one record there: record_room, record_begin,
 * record_reserve, record_word for each word, record_end. Only between thread_enter and thread_leave; a signal handler's
 * record may nest anywhere in another one.
 */
#ifndef MEMPROF_RECORD_RING_H
#define MEMPROF_RECORD_RING_H

#include "thread.h"

/* Makes room for `words` more; waits for the collector where the ring is full, unless this is a nested record, which
 * may run inside an allocator's lock. 0: no room, nothing may be written. */
int record_room_slow(struct thread *t, uint64_t words) HIDDEN;

static inline __attribute__((always_inline)) int record_room(struct thread *t, uint64_t words)
{
    return likely(t->head + words <= t->limit) || record_room_slow(t, words);
}

/* Whether a record of so many words has room as it is, without waiting. Not for nested records. */
int record_has_room(const struct thread *t, uint64_t words) HIDDEN;
/* Where it sleeps. */
void record_wake_collector(void) HIDDEN;

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

/* Any record of fixed length: words 1 to count - 1 are given, word 0 is the stamp taken here. */
void record_words(struct thread *t, const uint64_t *words_from_1, unsigned count) HIDDEN;

#endif
