/*
 * live.h: the live blocks of one process, found by address. Open addressing in 16 parts, each a run of 32-byte entries
 * in the order of their hashes: at most 64 bytes a block (from some 10,000 blocks on), one part being rebuilt included.
 * Removing leaves no tombstones. Pointers to entries are valid until the next change.
 */
#ifndef MEMPROF_LIVE_H
#define MEMPROF_LIVE_H

#include <stddef.h>
#include <stdint.h>

#define LIVE_PART_BITS 4
#define LIVE_PARTS     (1u << LIVE_PART_BITS)
#define LIVE_SIZE_BITS 48
#define LIVE_SIZE_MAX  ((1ull << LIVE_SIZE_BITS) - 1)

struct live_block {
    uint64_t key; /* address and space (live_key); 0: no block */
    uint64_t size : LIVE_SIZE_BITS;
    uint64_t match : 16; /* index of its allocation in the chunk that was being filled then */
    uint64_t time_ns;
    uint32_t site;
    uint32_t thread_id;
};

struct live_part {
    struct live_block *blocks;
    uint32_t capacity;
    uint32_t count;
    uint32_t full; /* grows at this count */
};

struct live_table {
    uint64_t count;
    struct live_part parts[LIVE_PARTS];
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

/* A block's first place. Monotone in the hash, so that a part is rebuilt in one pass from front to back. */
static inline uint32_t live_home(const struct live_part *part, uint64_t hash)
{
    return (uint32_t)((hash >> (32 - LIVE_PART_BITS) & UINT32_MAX) * part->capacity >> 32);
}

/* always_inline: gcc 12 takes a function that only prefetches for one without effects and removes its calls. */
static inline __attribute__((always_inline)) void live_prefetch(struct live_table *t, uint64_t hash)
{
    const struct live_part *part = live_part(t, hash);
    const char *home = (const char *)(part->blocks + live_home(part, hash));
    __builtin_prefetch(home, 1);
    __builtin_prefetch(home + 64, 1); /* probing, and removing, often go on there */
}

/* What lies at the first place that is tried: a hint of where the block is. NULL: the part is empty. */
static inline const struct live_block *live_peek(struct live_table *t, uint64_t hash)
{
    const struct live_part *part = live_part(t, hash);
    return part->capacity ? part->blocks + live_home(part, hash) : NULL;
}

/* The block, or NULL. */
static inline struct live_block *live_find(struct live_table *t, uint64_t key, uint64_t hash)
{
    const struct live_part *part = live_part(t, hash);
    if (!part->count)
        return NULL;
    for (uint32_t i = live_home(part, hash);;) {
        struct live_block *b = &part->blocks[i];
        if (b->key == key)
            return b;
        if (!b->key)
            return NULL;
        if (++i == part->capacity)
            i = 0;
    }
}

void live_grow(struct live_part *part); /* live.c */

/* The place for key: its block when it has one (key set already), else a new one, of which only key is set. */
static inline struct live_block *live_place(struct live_table *t, uint64_t key, uint64_t hash)
{
    struct live_part *part = live_part(t, hash);
    if (__builtin_expect(part->count >= part->full, 0))
        live_grow(part);
    for (uint32_t i = live_home(part, hash);;) {
        struct live_block *b = &part->blocks[i];
        if (!b->key) {
            b->key = key;
            b->site = 0;
            part->count++;
            t->count++;
            return b;
        }
        if (b->key == key)
            return b;
        if (++i == part->capacity)
            i = 0;
    }
}

/* Removes the block that live_find found. */
static inline void live_remove(struct live_table *t, struct live_block *b, uint64_t hash)
{
    struct live_part *part = live_part(t, hash);
    uint32_t hole = (uint32_t)(b - part->blocks), i = hole;
    part->count--;
    t->count--;
    for (;;) { /* what was pushed past the hole moves back */
        if (++i == part->capacity)
            i = 0;
        const struct live_block *next = &part->blocks[i];
        if (!next->key)
            break;
        uint32_t home = live_home(part, live_hash(next->key));
        uint32_t from_home = i >= home ? i - home : i + part->capacity - home;
        uint32_t from_hole = i >= hole ? i - hole : i + part->capacity - hole;
        if (from_home < from_hole)
            continue;
        part->blocks[hole] = *next;
        hole = i;
    }
    part->blocks[hole].key = 0;
}

struct live_table *live_open(void);
void live_close(struct live_table *t);
/* Calls visit for every block, in no order. */
void live_each(const struct live_table *t, void (*visit)(void *context, const struct live_block *b), void *context);
size_t live_bytes(const struct live_table *t); /* memory it takes */

#endif
