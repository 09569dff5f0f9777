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

static inline void wrap_change(int64_t *value, uint64_t change)
{
    *value = (int64_t)((uint64_t)*value + change);
}

static inline int64_t wrap_subtract(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a - (uint64_t)b);
}

#endif
