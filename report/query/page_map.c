#include "page_map.h"

#include "../../common/error.h"

#include <stdlib.h>
#include <string.h>

struct page_map_slot {
    uint64_t a, b;
    uint32_t value; /* PAGE_NONE: free */
};

static uint32_t hash(uint64_t a, uint64_t b)
{
    uint64_t h = (a ^ (b * 0x9e3779b97f4a7c15u)) * 0xff51afd7ed558ccdu;
    h ^= h >> 32;
    h *= 0xc4ceb9fe1a85ec53u;
    return (uint32_t)(h >> 32);
}

static struct page_map_slot *find(const struct page_map *map, uint64_t a, uint64_t b)
{
    for (uint32_t i = hash(a, b) & map->mask;; i = (i + 1) & map->mask) {
        struct page_map_slot *slot = &map->slots[i];
        if (slot->value == PAGE_NONE || (slot->a == a && slot->b == b))
            return slot;
    }
}

uint32_t page_map_get(const struct page_map *map, uint64_t a, uint64_t b)
{
    return map->slots ? find(map, a, b)->value : PAGE_NONE;
}

static void resize(struct page_map *map, uint32_t size)
{
    struct page_map old = *map;
    map->slots = xmalloc((unsigned long)size * sizeof *map->slots);
    memset(map->slots, 0xff, (unsigned long)size * sizeof *map->slots);
    map->mask = size - 1;
    for (uint32_t i = 0; old.slots && i <= old.mask; i++)
        if (old.slots[i].value != PAGE_NONE)
            *find(map, old.slots[i].a, old.slots[i].b) = old.slots[i];
    free(old.slots);
}

void page_map_set(struct page_map *map, uint64_t a, uint64_t b, uint32_t value)
{
    if (!map->slots)
        resize(map, 64);
    else if (map->used >= map->mask / 2)
        resize(map, (map->mask + 1) * 2);
    struct page_map_slot *slot = find(map, a, b);
    if (slot->value == PAGE_NONE)
        map->used++;
    *slot = (struct page_map_slot){a, b, value};
}

void page_map_free(struct page_map *map)
{
    free(map->slots);
    *map = (struct page_map){0};
}

void *page_grow(void *array, uint32_t count, uint32_t *capacity, unsigned long element_bytes)
{
    if (count < *capacity)
        return array;
    *capacity = *capacity ? *capacity * 2 : 64;
    return xrealloc(array, *capacity * element_bytes);
}
