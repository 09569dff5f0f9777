/*
 * map.h: the one hash table: from one or two words, or from a string of bytes, to a word. Open addressing: a look-up,
 * an insertion and a removal take constant time on average. Strings are hashed with a seed of each map's own, since
 * they may come from an enemy; words are hashed alike in every run, so that the order in memory is the same. 24 bytes
 * an entry, at most two thirds full. It grows until memory ends (out_of_memory), past 2^32 entries too: the caller
 * bounds what it adds. What has to be faster has tables of its own: live blocks, stacks, and the dictionaries of
 * chunks.
 */
#ifndef MEMPROF_MAP_H
#define MEMPROF_MAP_H

#include <stddef.h>
#include <stdint.h>

struct map { /* all zero: empty; freed by map_close */
    struct map_entry {
        uint64_t a, b;
        uint64_t value; /* 0: free */
    } * entries;
    size_t mask, count; /* places - 1; entries */
};

/* Where a key belongs, from which its search goes on upwards. Quicker than hash_pair: several are looked for an event.
 */
static inline size_t map_home(const struct map *m, uint64_t a, uint64_t b)
{
    __uint128_t x = (__uint128_t)(a ^ b * 0xd6e8feb86659fd93ull) * 0x9e3779b97f4a7c15ull;
    return ((uint64_t)x ^ (uint64_t)(x >> 64)) & m->mask;
}

/* 0: not there. */
uint64_t map_get(const struct map *m, uint64_t a, uint64_t b);
/* Its value; where it is new the value is 0, and the caller sets it before the next call. Valid until that. */
uint64_t *map_slot(struct map *m, uint64_t a, uint64_t b);
/* Removes it. Returns its value; 0: it was not there. */
uint64_t map_take(struct map *m, uint64_t a, uint64_t b);
/* The entry after one (NULL: the first); NULL: there is none. In no order, but the same in each run. */
struct map_entry *map_next(const struct map *m, const struct map_entry *entry);
void map_close(struct map *m);

/* --- values that are pointers, which the map does not own --- */

static inline void *map_pointer(const struct map *m, uint64_t key)
{
    return (void *)(uintptr_t)map_get(m, key, 0);
}

static inline void map_set_pointer(struct map *m, uint64_t key, const void *value)
{
    *map_slot(m, key, 0) = (uintptr_t)value;
}

static inline void *map_take_pointer(struct map *m, uint64_t key)
{
    return (void *)(uintptr_t)map_take(m, key, 0);
}

/* Goes through them; end (free, say) gets each. */
void map_close_pointers(struct map *m, void (*end)(void *value));

/* --- values that are numbers from 0, mostly places in an array --- */

#define MAP_NONE UINT32_MAX

/* MAP_NONE: not there. */
static inline uint32_t map_number(const struct map *m, uint64_t a, uint64_t b)
{
    return (uint32_t)(map_get(m, a, b) - 1);
}

static inline void map_set_number(struct map *m, uint64_t a, uint64_t b, uint32_t number)
{
    *map_slot(m, a, b) = number + 1ull;
}

/* Its number; where it is new that is next. */
static inline uint32_t map_number_or(struct map *m, uint64_t a, uint64_t b, uint32_t next)
{
    uint64_t *slot = map_slot(m, a, b);
    if (!*slot)
        *slot = next + 1ull;
    return (uint32_t)(*slot - 1);
}

/* --- keys that are strings of bytes, below 2 GiB each --- */

struct text_map { /* all zero: empty; freed by text_map_close */
    struct map map;
    uint64_t seed;
    struct text_page *pages;
    char *free_bytes;
    size_t free_count;
};

/* The number of a key, which is copied; 0 where it is new. Valid until text_map_close, as the key is. */
uint32_t *text_map_slot(struct text_map *m, const void *key, size_t length);
/* The same of a key that is there; NULL: it is not. */
const uint32_t *text_map_find(const struct text_map *m, const void *key, size_t length);
void text_map_close(struct text_map *m);

/* The map's copy of the key, with a NUL after it; aligned as numbers of 32 bits are. */
static inline const void *text_map_key(const uint32_t *slot)
{
    return slot + 1;
}

static inline size_t text_map_count(const struct text_map *m)
{
    return m->map.count;
}

#endif
