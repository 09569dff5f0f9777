/*
 * huge.h: whether huge pages are worth taking here. A virtual machine that returns its free memory to the host has to
 * get each back, which takes longer than 512 small pages do: whoever takes one looks how long that took.
 */
#ifndef MEMPROF_HUGE_H
#define MEMPROF_HUGE_H

#include <stdint.h>
#include <time.h>

#define HUGE_BYTES   (2ul << 20)
#define HUGE_SLOW_NS 1000000u /* processor time to take one; clearing it takes a tenth of this or two */

static inline uint64_t huge_clock_ns(void) /* of this thread */
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* After one was touched for the first time. */
static inline int huge_was_slow(uint64_t before_ns)
{
    return huge_clock_ns() - before_ns > HUGE_SLOW_NS;
}

#endif
