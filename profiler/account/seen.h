/*
 * seen.h: pages that one round over all processes has seen, so that each is known that a second process has, too. A bit
 * a page, 512 pages together.
 */
#ifndef MEMPROF_SEEN_H
#define MEMPROF_SEEN_H

#include "../../common/map.h"

#include <stdint.h>

struct seen { /* all zero: nothing yet; freed by seen_clear */
    struct map objects, places;
    struct seen_bits {
        uint64_t words[8];
    } * bits; /* by place */
    uint32_t bits_count, bits_capacity;
    uint32_t last_object, last_place; /* of the page before */
    uint64_t last_group;
};

/* The number of what pages are of, from 1: a file by its inode and device, a family of forks by its id and UINT64_MAX.
 */
uint32_t seen_object(struct seen *s, uint64_t a, uint64_t b);
/* Whether that page of the object was seen before; it is from now on. */
int seen_again(struct seen *s, uint32_t object, uint64_t page);
/* The same, and nothing changes. */
int seen_has(const struct seen *s, uint32_t object, uint64_t page);
void seen_clear(struct seen *s);

#endif
