/* random.h: numbers that look random and are the same in every run: set random_seed (not to 0) before the first. */
#ifndef MEMPROF_TEST_RANDOM_H
#define MEMPROF_TEST_RANDOM_H

#include <stdint.h>

extern uint64_t random_seed;

uint64_t rnd(uint64_t below);

/* How much of something random: a part, which has each kind of input; or, where the environment has RANDOM_ALL, the
 * whole (`make check-random`). */
unsigned random_volume(unsigned whole, unsigned part);

#endif
