/*
 * page_map.h: a hash map and growing arrays, for the page and for tree.h.
 */
#ifndef MEMPROF_PAGE_MAP_H
#define MEMPROF_PAGE_MAP_H

#include <stdint.h>
#include <string.h>

/* A hash map from two words to an index. All-zero is an empty one. */
struct page_map {
    struct page_map_slot *slots;
    uint32_t mask, used;
};
#define PAGE_NONE UINT32_MAX
uint32_t page_map_get(const struct page_map *map, uint64_t a, uint64_t b); /* PAGE_NONE: absent */
void page_map_set(struct page_map *map, uint64_t a, uint64_t b, uint32_t value);
void page_map_free(struct page_map *map);

/* Room for one more element of an array that doubles. */
void *page_grow(void *array, uint32_t count, uint32_t *capacity, unsigned long element_bytes);
#define PAGE_PUSH(array, count, capacity)                                                                              \
    ((array) = page_grow((array), (count), &(capacity), sizeof *(array)), memset(&(array)[count], 0, sizeof *(array)), \
     &(array)[(count)++])

#endif
