/*
 * sum.h: sums of what a file says, which may be anything: they stop at what fits.
 */
#ifndef MEMPROF_SUM_H
#define MEMPROF_SUM_H

#include <stdint.h>

static inline int64_t sum_of(int64_t a, int64_t b)
{
    int64_t sum;
    return !__builtin_add_overflow(a, b, &sum) ? sum : a < 0 ? INT64_MIN : INT64_MAX;
}

static inline void sum_add(int64_t *sum, int64_t value)
{
    *sum = sum_of(*sum, value);
}

#endif
