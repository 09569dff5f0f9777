/*
 * range.h: disjoint address ranges in order. Leaves of up to 128 ranges under one sorted directory: 10^6 ranges are
 * 10^4 leaves, found by two binary searches. Pointers to ranges are valid until the next insert or removal.
 */
#ifndef MEMPROF_RANGE_H
#define MEMPROF_RANGE_H

#include <stddef.h>
#include <stdint.h>

struct range {
    uint64_t start;
    uint64_t end; /* above start */
    uint64_t id;  /* the rest: the user's */
    uint32_t stack_id;
    uint8_t type;
    uint8_t flag;
    uint8_t pad[2];
};

struct range_map;

struct range_map *range_map_open(void);
void range_map_close(struct range_map *m);
/* The first range that ends after address; NULL: none. */
struct range *range_map_find(struct range_map *m, uint64_t address);
/* It must not overlap another. */
void range_map_insert(struct range_map *m, const struct range *r);
/* r: what range_map_find returned. */
void range_map_remove(struct range_map *m, const struct range *r);

#endif
