/*
 * sampler.h: how many bytes go by until the next sample of a Poisson process over allocated bytes: exponential gaps, by
 * integers alone. A block of s bytes is met with probability 1 - exp(-s / mean), wherever the last sample was.
 */
#ifndef MEMPROF_SAMPLER_H
#define MEMPROF_SAMPLER_H

#include <stdint.h>

/* splitmix64: any state is a good one, and each gives other numbers. */
static inline uint64_t sampler_random(uint64_t *state)
{
    uint64_t x = *state += 0x9e3779b97f4a7c15ull;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    return x ^ x >> 31;
}

/* -log2(x / 2^64) for x > 0, in units of 2^-32: the bits of the fraction are those by which repeated squares of the
 * mantissa pass 2. */
static inline uint64_t sampler_minus_log2(uint64_t x)
{
    unsigned zeros = (unsigned)__builtin_clzll(x);
    uint64_t m = x << zeros >> 1, fraction = 0; /* 1 <= m / 2^62 < 2 */
    for (unsigned i = 0; i < 32; i++) {
        m = (uint64_t)((unsigned __int128)m * m >> 62);
        unsigned is_above = m >> 63 != 0;
        fraction = fraction << 1 | is_above;
        m >>= is_above;
    }
    return ((uint64_t)(zeros + 1) << 32) - fraction;
}

/* A block of at least so many bytes is sampled, a smaller one takes its bytes off. Rounded up: a gap g meets a block of
 * s bytes where g <= s, and s is whole. */
static inline uint64_t sampler_gap(uint64_t *state, uint64_t mean_bytes)
{
    const uint64_t ln2 = 0xb17217f7d1cf79acull; /* in units of 2^-64 */
    uint64_t log2 = sampler_minus_log2(sampler_random(state) | 1);
    uint64_t ln = (uint64_t)((unsigned __int128)log2 * ln2 >> 64);
    return (uint64_t)((unsigned __int128)mean_bytes * ln >> 32) + 1;
}

#endif
