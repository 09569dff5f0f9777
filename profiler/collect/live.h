/*
 * live.h: the live blocks of one process, found by address. The blocks lie in slabs, in the order of their allocation
 * (the place freed last is taken first), so that programs that free in some order of their allocations are followed
 * from line to line of the cache. An index of 8 bytes an entry finds them by hash, in 4 parts that grow one by one. At
 * most 64 bytes a block (from some 10,000 blocks on). Pointers to blocks are valid until the next live_place.
 */
#ifndef MEMPROF_LIVE_H
#define MEMPROF_LIVE_H

#include <stddef.h>
#include <stdint.h>

#define LIVE_PART_BITS 2
#define LIVE_PARTS     (1u << LIVE_PART_BITS)
#define LIVE_SLAB_BITS 16
#define LIVE_SLAB      (1u << LIVE_SLAB_BITS) /* blocks: 2 MiB */
#define LIVE_SIZE_BITS 48
#define LIVE_SIZE_MAX  ((1ull << LIVE_SIZE_BITS) - 1)

struct live_block {
    uint64_t key; /* address and space (live_key); 0: no block */
    uint64_t size : LIVE_SIZE_BITS;
    uint64_t match : 16; /* index of its allocation in the chunk that was being filled then */
    uint64_t time_ns;    /* of a place without a block: number of the next one */
    uint32_t site;
    uint32_t thread_id : 30;
    uint32_t requested : 1; /* its free was asked for, and waits for a stream */
    uint32_t temporary : 1; /* ... and that was before its thread's next allocation */
};

struct live_part {
    uint64_t *entries; /* 32 bits of hash, number of the block; 0: empty */
    uint32_t capacity;
    uint32_t count;
    uint32_t full; /* grows at this count */
};

struct live_table {
    uint64_t count;
    struct live_part parts[LIVE_PARTS];
    uint32_t found;  /* entry of the block that live_find found last */
    uint32_t unused; /* number of the place freed last; 0: none */
    uint32_t used;   /* numbers up to this one were given out; from 1 */
    uint32_t room;   /* there are places for numbers below this one */
    struct live_block **slabs;
    uint32_t slab_count;
};

/* Address and space in one word. The spaces hold blocks that may share an address: a pool's first block and the pool,
 * memory registered a second time. Addresses use 61 bits. */
#define LIVE_ADDRESS_BITS 61
#define LIVE_ADDRESS_MASK ((1ull << LIVE_ADDRESS_BITS) - 1)

static inline uint64_t live_key(uint64_t address, unsigned space)
{
    return (address & LIVE_ADDRESS_MASK) | (uint64_t)space << LIVE_ADDRESS_BITS;
}

static inline uint64_t live_hash(uint64_t key)
{
    uint64_t h = key * 0x9E3779B97F4A7C15ull;
    h ^= h >> 32;
    return h * 0xD6E8FEB86659FD93ull;
}

static inline struct live_part *live_part(struct live_table *t, uint64_t hash)
{
    return &t->parts[hash >> (64 - LIVE_PART_BITS)];
}

/* The bits of the hash that an entry keeps. */
static inline uint32_t live_tag(uint64_t hash)
{
    return (uint32_t)(hash >> (32 - LIVE_PART_BITS));
}

/* An entry's first place. Monotone in the tag, so that a part is rebuilt in one pass from front to back. */
static inline uint32_t live_home(const struct live_part *part, uint32_t tag)
{
    return (uint32_t)((uint64_t)tag * part->capacity >> 32);
}

static inline struct live_block *live_at(const struct live_table *t, uint32_t number)
{
    return &t->slabs[number >> LIVE_SLAB_BITS][number & (LIVE_SLAB - 1)];
}

/* always_inline: gcc 12 takes a function that only prefetches for one without effects and removes its calls. */
static inline __attribute__((always_inline)) void live_prefetch(struct live_table *t, uint64_t hash)
{
    const struct live_part *part = live_part(t, hash);
    const uint64_t *home = part->entries + live_home(part, live_tag(hash));
    __builtin_prefetch(home, 1);
    __builtin_prefetch(home + 4, 1); /* probing goes on there, and removing looks there */
}

/* The number of what is most likely its block; 0: none near its first place. */
static inline uint32_t live_guess(struct live_table *t, uint64_t hash)
{
    const struct live_part *part = live_part(t, hash);
    uint32_t tag = live_tag(hash), i = live_home(part, tag), end = part->capacity - i < 6 ? part->capacity : i + 6;
    for (; i < end && part->entries[i]; i++)
        if (part->entries[i] >> 32 == tag)
            return (uint32_t)part->entries[i];
    return 0;
}

/* The block, or NULL. */
static inline struct live_block *live_find(struct live_table *t, uint64_t key, uint64_t hash)
{
    const struct live_part *part = live_part(t, hash);
    uint32_t tag = live_tag(hash);
    if (!part->count)
        return NULL;
    for (uint32_t i = live_home(part, tag);;) {
        uint64_t entry = part->entries[i];
        if (entry >> 32 == tag && (uint32_t)entry) {
            struct live_block *b = live_at(t, (uint32_t)entry);
            if (__builtin_expect(b->key == key, 1)) {
                t->found = i;
                return b;
            }
        }
        if (!entry)
            return NULL;
        if (++i == part->capacity)
            i = 0;
    }
}

void live_grow(struct live_part *part); /* live.c */
void live_add_slab(struct live_table *t);

/* The place for key: its block when it has one (key set already), else a new one, with key set and site 0. */
static inline struct live_block *live_place(struct live_table *t, uint64_t key, uint64_t hash)
{
    struct live_part *part = live_part(t, hash);
    uint32_t tag = live_tag(hash), i;
    if (__builtin_expect(part->count >= part->full, 0))
        live_grow(part);
    for (i = live_home(part, tag); part->entries[i];) {
        if (part->entries[i] >> 32 == tag) {
            struct live_block *b = live_at(t, (uint32_t)part->entries[i]);
            if (b->key == key)
                return b;
        }
        if (++i == part->capacity)
            i = 0;
    }
    uint32_t number = t->unused;
    if (!number) {
        if (__builtin_expect(t->used + 1 >= t->room, 0))
            live_add_slab(t);
        number = ++t->used;
    }
    struct live_block *b = live_at(t, number);
    if (t->unused)
        t->unused = (uint32_t)b->time_ns;
    part->entries[i] = (uint64_t)tag << 32 | number;
    part->count++;
    t->count++;
    b->key = key;
    b->site = 0;
    return b;
}

/* Removes the block that live_find found last. */
static inline void live_remove(struct live_table *t, struct live_block *b, uint64_t hash)
{
    struct live_part *part = live_part(t, hash);
    uint32_t hole = t->found, i = hole;
    b->key = 0;
    b->time_ns = t->unused;
    t->unused = (uint32_t)part->entries[hole];
    part->count--;
    t->count--;
    for (;;) { /* what was pushed past the hole moves back */
        if (++i == part->capacity)
            i = 0;
        uint64_t next = part->entries[i];
        if (!next)
            break;
        uint32_t home = live_home(part, (uint32_t)(next >> 32));
        uint32_t from_home = i >= home ? i - home : i + part->capacity - home;
        uint32_t from_hole = i >= hole ? i - hole : i + part->capacity - hole;
        if (from_home < from_hole)
            continue;
        part->entries[hole] = next;
        hole = i;
    }
    part->entries[hole] = 0;
}

struct live_table *live_open(void);
void live_close(struct live_table *t);
/* Calls visit for every block, about in the order of allocation. */
void live_each(const struct live_table *t, void (*visit)(void *context, const struct live_block *b), void *context);
size_t live_bytes(const struct live_table *t); /* resident memory */

#endif
