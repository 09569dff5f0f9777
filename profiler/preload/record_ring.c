#include "record_ring.h"

#include "figures.h"
#include "pause.h"
#include "session.h"

/* Kept free by all but nested records: a signal handler may write between a hook's check for room and its record. */
#define NESTED_WORDS 4096u

static uint64_t capacity(const struct thread *t)
{
    return t->depth > 1 ? WIRE_RING_WORDS - WIRE_RECORD_MAX : WIRE_RING_WORDS - NESTED_WORDS;
}

void record_wake_collector(void)
{
    uint32_t *sleeping = &process.control->sleeping;
    if (__atomic_load_n(sleeping, __ATOMIC_RELAXED) && __atomic_exchange_n(sleeping, 0, __ATOMIC_ACQ_REL))
        sys_futex_wake(sleeping);
}

int record_has_room(const struct thread *t, uint64_t words)
{
    return t->head + words - __atomic_load_n(&t->ring->tail, __ATOMIC_ACQUIRE) <= capacity(t);
}

/* Until the next look: a quarter of what was waited so far. Many threads that all wait would else take the collector's
 * processor with looking. It gives back a sixteenth of the ring at a time, so a look that comes late by a quarter of
 * the wait finds most of the ring still full, and one that comes late by a millisecond some of it. */
static uint64_t pause_ns(uint64_t waited_ns)
{
    uint64_t ns = waited_ns / 4;
    return ns < 20000 ? 20000 : ns > 1000000 ? 1000000 : ns;
}

/* A seccomp filter may kill the process for asking the kernel, but not for reading the vdso. */
static uint64_t wait_clock_ns(void)
{
    if (likely(!process_is_filtered()))
        return sys_monotonic_ns();
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Not a part of its caller, which may have no more of a signal handler's stack than it needs where there is room. */
static __attribute__((noinline)) void wait_for_collector(struct thread *t, uint64_t words)
{
    const uint64_t begin_ns = wait_clock_ns();
    uint64_t next_check_ns = 100000000, waited_ns = 0;
    for (unsigned round = 0; thread_owns_ring(t); round++) {
        uint64_t tail = __atomic_load_n(&t->ring->tail, __ATOMIC_ACQUIRE);
        if (t->head + words - tail <= capacity(t))
            break;
        record_wake_collector();
        if (__atomic_load_n(&process.control->state, __ATOMIC_RELAXED) != WIRE_STATE_ON) {
            process_off();
            break;
        }
        if (round < 64)
            __builtin_ia32_pause();
        else
            sys_sleep_ns(pause_ns(waited_ns));
        waited_ns = wait_clock_ns() - begin_ns;
        if (waited_ns > next_check_ns) {
            next_check_ns += 100000000;
            if (!wire_collector_lives(process.control)) {
                process_off();
                break;
            }
        }
    }
    COUNT(wait_count, 1);
    COUNT(wait_ns, wait_clock_ns() - begin_ns);
}

static int disowned(const struct thread *t)
{
    if (!thread_is_stale(t)) /* else the event is of the recording before */
        process_disowned();
    return 0;
}

static int make_room(struct thread *t, uint64_t words)
{
    const uint64_t eighth = WIRE_RING_WORDS / 8;
    if (!thread_owns_ring(t))
        return disowned(t);
    uint64_t tail = __atomic_load_n(&t->ring->tail, __ATOMIC_ACQUIRE);
    if (t->head - tail > eighth)
        record_wake_collector();
    if (t->head + words - tail > capacity(t)) {
        if (t->depth > 1 || t->writing) {
            COUNT(lost_event, 1);
            return 0;
        }
        wait_for_collector(t, words);
        if (!thread_owns_ring(t))
            return disowned(t);
        tail = __atomic_load_n(&t->ring->tail, __ATOMIC_ACQUIRE);
        if (t->head + words - tail > capacity(t)) {
            COUNT(lost_event, 1);
            return 0;
        }
    }
    /* come back here at each eighth of the ring, to wake a sleeping collector in time */
    uint64_t limit = t->head + words + eighth;
    uint64_t most = tail + WIRE_RING_WORDS - NESTED_WORDS;
    t->limit = limit > most ? most : limit;
    return 1;
}

/* Where somebody waits for figures that are exact up to now (desk.c), the collector gets this processor if it needs it:
 * beside threads that do nothing but allocate it would wait milliseconds for one, of which the answer takes a tenth.
 * Not in the middle of a record, for whose end the collector waits. */
static void give_way(const struct thread *t)
{
    const struct wire_desk *desk = session_desk();
    if (likely(__atomic_load_n(&desk->asked, __ATOMIC_RELAXED) == __atomic_load_n(&desk->answered, __ATOMIC_RELAXED)))
        return;
    if (!t->writing && !process_is_filtered())
        sys_call(SYS_sched_yield, 0, 0, 0);
}

int record_room_slow(struct thread *t, uint64_t words)
{
    int has_room = make_room(t, words);
    pause_look();
    give_way(t);
    if (unlikely(t->figures != NULL))
        figures_keep_up(t, has_room);
    return has_room;
}

void record_words(struct thread *t, const uint64_t *words_from_1, unsigned count)
{
    if (!record_room(t, count))
        return;
    uint64_t stamp = record_begin(t);
    uint64_t at = record_reserve(t, count);
    record_word(t, at, stamp);
    for (unsigned i = 1; i < count; i++)
        record_word(t, at + i, words_from_1[i - 1]);
    record_end(t);
}
