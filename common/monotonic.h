/*
 * monotonic.h: the clock that time-outs and durations go by.
 */
#ifndef MEMPROF_MONOTONIC_H
#define MEMPROF_MONOTONIC_H

#include <stdint.h>
#include <time.h>

static inline uint64_t monotonic_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

#endif
