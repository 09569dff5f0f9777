/* random.h: numbers that look random and are the same in every run: set random_seed (not to 0) before the first. */
#ifndef MEMPROF_TEST_RANDOM_H
#define MEMPROF_TEST_RANDOM_H

#include <stdint.h>

extern uint64_t random_seed;

uint64_t rnd(uint64_t below);

/* How much of something random: a build with sanitizers, 3 to 5 times as slow, does a part of it. */
#ifdef __SANITIZE_ADDRESS__
#define RANDOM_VOLUME(whole, sanitized) (sanitized)
#else
#define RANDOM_VOLUME(whole, sanitized) (whole)
#endif

#endif
