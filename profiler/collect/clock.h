/*
 * clock.h: from stamps of the recorded program (rdtsc, or CLOCK_MONOTONIC nanoseconds) to nanoseconds since the run
 * began. The rate is measured over the whole run; the conversion never goes backwards when the measure improves.
 */
#ifndef MEMPROF_CLOCK_H
#define MEMPROF_CLOCK_H

#include <stdint.h>
#include <time.h>
#include <x86intrin.h>

struct clock {
    int use_tsc;
    int64_t start_unix_ns;
    uint64_t start_stamp; /* the pair that the whole run's rate is measured from */
    uint64_t start_monotonic_ns;
    uint64_t base_stamp; /* of the current straight piece: ns = base_ns + (stamp - base_stamp) * rate / 2^32 */
    int64_t base_ns;
    int64_t rate;
    double run_rate; /* ns a tick, measured over the whole run */
};

/* Takes the first pair; choose 0 forces CLOCK_MONOTONIC, 1 uses the TSC where the kernel itself does. */
void clock_open(struct clock *c, int choose);
/* Makes the first rate; waits until the pairs are far enough apart for it (2 ms after clock_open). */
void clock_calibrate(struct clock *c);
/* Time 0 is now: the program is about to start. Keeps the rate. Before anything was converted. */
void clock_restart(struct clock *c);
/* Measures anew and bends the conversion towards it from `stamp` on: no stamp below it may be converted later but for
 * single times that need no order. Call every second or so. */
void clock_refine(struct clock *c, uint64_t stamp);

static inline uint64_t clock_monotonic_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Of this thread: a loaded machine makes nothing dearer. */
static inline uint64_t clock_processor_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline uint64_t clock_stamp(const struct clock *c)
{
    return c->use_tsc ? __rdtsc() : clock_monotonic_ns();
}

static inline int64_t clock_ns(const struct clock *c, uint64_t stamp)
{
    return c->base_ns + (int64_t)((__int128)(int64_t)(stamp - c->base_stamp) * c->rate >> 32);
}

uint64_t clock_ticks(const struct clock *c, uint64_t time_ns); /* how many stamps that long is */

#endif
