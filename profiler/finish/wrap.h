/*
 * wrap.h: sums of numbers from a file, which may hold any: they wrap instead of overflowing.
 */
#ifndef MEMPROF_WRAP_H
#define MEMPROF_WRAP_H

#include <stdint.h>

static inline int64_t wrap_add(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

static inline int64_t wrap_subtract(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a - (uint64_t)b);
}

#endif
