/*
 * sample_weight.h: what a sampled block stands for. In a recording that is sampled each mean_bytes, a block of s bytes
 * is recorded with probability p = 1 - exp(-s / mean_bytes), one of 8 mean_bytes or more always. So it stands for
 * w = 1 / p blocks of its size: sums of w and of w s over the recorded blocks are the true sums in the mean. The
 * variance of such a sum is the sum of w (w - 1) s^2 over the recorded ones, in the mean again.
 */
#ifndef MEMPROF_SAMPLE_WEIGHT_H
#define MEMPROF_SAMPLE_WEIGHT_H

#include <math.h>
#include <stdint.h>

#define SAMPLE_SURE 8u /* means; as wire_sample_always */

static inline double sample_weight(uint64_t size_bytes, uint64_t mean_bytes)
{
    if (!mean_bytes || size_bytes / SAMPLE_SURE >= mean_bytes)
        return 1;
    return 1 / -expm1(-(double)(size_bytes ? size_bytes : 1) / (double)mean_bytes);
}

/* The bytes that it stands for, w s, in whole bytes. */
static inline uint64_t sample_bytes(uint64_t size_bytes, uint64_t mean_bytes)
{
    return (uint64_t)llround(sample_weight(size_bytes, mean_bytes) * (double)size_bytes);
}

/* Its count is the weight rounded up or down by chance, with this probability up. */
static inline double sample_fraction(double weight)
{
    return weight - floor(weight);
}

/* Of a count C of blocks of one size: its variance is C times this, what is rounded included. */
static inline double sample_count_spread(double weight)
{
    const double f = sample_fraction(weight);
    return weight - 1 + f * (1 - f) / weight;
}

/* Of a sum B of such bytes over blocks of one size: its variance is B times this, as w (w - 1) s^2 = (w s) (w s - s).
 */
static inline double sample_excess(uint64_t size_bytes, uint64_t mean_bytes)
{
    return (double)(sample_bytes(size_bytes, mean_bytes) - size_bytes);
}

/* In which parts variances of counts are kept (spread.def). */
#define SPREAD_COUNT_PARTS 256

/* An estimate's error: it is off by no more in 95 of 100 recordings. */
#define SAMPLE_ERRORS 1.96

#endif
