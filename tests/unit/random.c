#include "random.h"

#include <stdlib.h>

uint64_t random_seed = 1;

uint64_t rnd(uint64_t below)
{
    random_seed ^= random_seed << 13;
    random_seed ^= random_seed >> 7;
    random_seed ^= random_seed << 17;
    return (random_seed >> 11) % below;
}

unsigned random_volume(unsigned whole, unsigned part)
{
    return getenv("RANDOM_ALL") ? whole : part;
}
