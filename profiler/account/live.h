/*
 * live.h: the live blocks of one process, found by address. A block is in one of two places. Most die soon, and their
 * address is handed out again at once: those are among the recent ones, an array with one place for an address, found
 * without a hash. A block whose place another one takes is stored: it lies in a slab, in the order of allocation (the
 * place freed last is taken first), so that programs that free in some order of their allocations are followed from
 * line to line of the cache. A hash table finds stored blocks: a bucket is one cache line of 12 numbers of blocks, each
 * with 8 bits of its hash, which are compared at once. Where few blocks are recent ones, all are stored. At most 64
 * bytes a block (from some 10,000 blocks on). Pointers to blocks are valid until the next live_place.
 */
#ifndef MEMPROF_LIVE_H
#define MEMPROF_LIVE_H

#include "ahead.h"

#include <emmintrin.h>
#include <stddef.h>
#include <stdint.h>

#define LIVE_BUCKET    12u
#define LIVE_RECENT    4096u
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
    uint32_t thread_id : 29;
    uint32_t named : 1;     /* it has rows in names.h */
    uint32_t requested : 1; /* its free was asked for, and waits for a stream */
    uint32_t temporary : 1; /* ... and that was before its thread's next allocation */
};

struct live_bucket {
    uint8_t tags[LIVE_BUCKET]; /* 0: no block */
    uint32_t passed;           /* blocks that belong here or before and lie in a later bucket */
    uint32_t numbers[LIVE_BUCKET];
};

struct live_table {
    uint64_t count;
    /* A place keeps its key when its block dies (site 0): a block of that key is in this place or in none. */
    struct live_block *recent; /* LIVE_RECENT of them */
    uint32_t has_recent;       /* 0: all blocks are stored */
    uint32_t slow;             /* placed by live_place_on since slow_placed was noted */
    uint64_t placed;           /* blocks, ever */
    uint64_t slow_placed;      /* so many when that was; */
    uint64_t next_try;         /* and when recent ones are tried again */
    uint64_t pause;            /* between two tries */
    /* stored blocks */
    uint64_t stored;             /* how many */
    uint64_t full;               /* live_grow is called at this many */
    uint64_t most;               /* ... and makes the table larger at this one */
    struct live_bucket *buckets; /* bucket_mask + 1 of them */
    uint32_t bucket_mask;
    uint32_t found_home, found_bucket, found_slot; /* of the stored block that live_find found last */
    uint32_t unused;                               /* number of the place freed last; 0: none */
    uint32_t used;                                 /* numbers up to this one were given out; from 1 */
    uint32_t room;                                 /* there are places for numbers below this one */
    struct live_block **slabs;
    uint32_t slab_count;
    int huge_is_slow;
    /* what comes next, while the worker touches its memory */
    struct worker *worker;
    struct ahead next_slab, next_buckets;
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

static inline uint32_t live_home(const struct live_table *t, uint64_t hash)
{
    return (uint32_t)(hash >> 20) & t->bucket_mask;
}

static inline uint8_t live_tag(uint64_t hash)
{
    uint8_t tag = (uint8_t)(hash >> 56);
    return (uint8_t)(tag + !tag);
}

/* The slots with this tag, a bit each; tag 0: those without a block. */
static inline unsigned live_match(const struct live_bucket *b, uint8_t tag)
{
    __m128i tags = _mm_load_si128((const __m128i *)(const void *)b->tags);
    return (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(tags, _mm_set1_epi8((char)tag))) & ((1u << LIVE_BUCKET) - 1);
}

static inline struct live_block *live_at(const struct live_table *t, uint32_t number)
{
    return &t->slabs[number >> LIVE_SLAB_BITS][number & (LIVE_SLAB - 1)];
}

/* always_inline: gcc 12 takes a function that only prefetches for one without effects and removes its calls. */
static inline __attribute__((always_inline)) void live_prefetch(const struct live_table *t, uint64_t hash)
{
    __builtin_prefetch(&t->buckets[live_home(t, hash)], 1);
}

/* The bucket after the first one, for a new block that finds no place there. */
static inline __attribute__((always_inline)) void live_prefetch_on(const struct live_table *t, uint64_t hash)
{
    uint32_t home = live_home(t, hash);
    if (__builtin_expect(t->buckets[home].passed || !live_match(&t->buckets[home], 0), 0))
        __builtin_prefetch(&t->buckets[(home + 1) & t->bucket_mask], 1);
}

/* The number of what is most likely its block; 0: none in its first bucket. */
static inline uint32_t live_guess(const struct live_table *t, uint64_t hash)
{
    const struct live_bucket *bucket = &t->buckets[live_home(t, hash)];
    unsigned match = live_match(bucket, live_tag(hash));
    return match ? bucket->numbers[__builtin_ctz(match)] : 0;
}

/* live.c: the same where the first place, or bucket, does not do */
struct live_block *live_find_on(struct live_table *t, uint64_t key, uint64_t hash);
struct live_block *live_place_on(struct live_table *t, uint64_t key, uint64_t hash);
uint32_t *live_slot_on(struct live_table *t, uint64_t hash);
void live_unpass(struct live_table *t);
void live_grow(struct live_table *t);
void live_add_slab(struct live_table *t);
void live_try_recent(struct live_table *t); /* at next_try */

/* The place of a key among the recent blocks; its block is there if it has this key and a site. Neighbours in memory
 * are neighbours here. */
static inline struct live_block *live_recent(const struct live_table *t, uint64_t key)
{
    return &t->recent[(key >> 4 ^ key >> 18) & (LIVE_RECENT - 1)];
}

static inline struct live_block *live_find_in(struct live_table *t, uint32_t at, uint64_t key, uint64_t hash)
{
    const struct live_bucket *bucket = &t->buckets[at];
    for (unsigned match = live_match(bucket, live_tag(hash)); match; match &= match - 1) {
        unsigned slot = (unsigned)__builtin_ctz(match);
        struct live_block *b = live_at(t, bucket->numbers[slot]);
        if (__builtin_expect(b->key == key, 1)) {
            t->found_bucket = at;
            t->found_slot = slot;
            return b;
        }
    }
    return NULL;
}

static inline struct live_block *live_find_stored(struct live_table *t, uint64_t key, uint64_t hash)
{
    uint32_t home = live_home(t, hash);
    t->found_home = home;
    struct live_block *b = live_find_in(t, home, key, hash);
    if (__builtin_expect(!b && t->buckets[home].passed, 0))
        b = live_find_on(t, key, hash);
    return b;
}

/* The block, or NULL. hash: of the key, or 0, which asks for it where it is needed. */
static inline struct live_block *live_find(struct live_table *t, uint64_t key, uint64_t hash)
{
    if (t->has_recent) {
        struct live_block *b = live_recent(t, key);
        if (__builtin_expect(b->key == key && b->site, 1))
            return b;
    }
    return live_find_stored(t, key, hash ? hash : live_hash(key));
}

/* The place of one more stored block, whose key is set by the caller. */
static inline struct live_block *live_store(struct live_table *t, uint64_t hash)
{
    if (__builtin_expect(t->stored >= t->full, 0))
        live_grow(t);
    struct live_bucket *bucket = &t->buckets[live_home(t, hash)];
    unsigned empty = live_match(bucket, 0);
    uint32_t *slot;
    if (__builtin_expect(empty != 0, 1)) {
        unsigned i = (unsigned)__builtin_ctz(empty);
        bucket->tags[i] = live_tag(hash);
        slot = &bucket->numbers[i];
    } else {
        slot = live_slot_on(t, hash);
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
    *slot = number;
    t->stored++;
    return b;
}

/* The place for key: its block when it has one (key set already), else a new one, with key set and site 0, which the
 * caller sets. hash: as above. */
static inline struct live_block *live_place(struct live_table *t, uint64_t key, uint64_t hash)
{
    struct live_block *b;
    if (t->has_recent) {
        b = live_recent(t, key);
        if (__builtin_expect(b->key != key, 0))
            return live_place_on(t, key, hash ? hash : live_hash(key));
        t->count += !b->site;
        t->placed++;
        return b;
    }
    hash = hash ? hash : live_hash(key);
    b = live_find_stored(t, key, hash);
    if (__builtin_expect(b != NULL, 0))
        return b;
    b = live_store(t, hash);
    b->key = key;
    b->site = 0;
    t->count++;
    if (__builtin_expect(++t->placed >= t->next_try, 0))
        live_try_recent(t);
    return b;
}

/* Removes the block that live_find found last. */
static inline void live_remove(struct live_table *t, struct live_block *b)
{
    t->count--;
    if (__builtin_expect((uintptr_t)b - (uintptr_t)t->recent < LIVE_RECENT * sizeof *b, 1)) {
        b->site = 0;
        return;
    }
    struct live_bucket *bucket = &t->buckets[t->found_bucket];
    b->key = 0;
    b->time_ns = t->unused;
    t->unused = bucket->numbers[t->found_slot];
    bucket->tags[t->found_slot] = 0;
    t->stored--;
    if (__builtin_expect(t->found_bucket != t->found_home, 0))
        live_unpass(t);
}

/* worker: for memory that is needed soon; NULL: none. */
struct live_table *live_open(struct worker *worker);
void live_close(struct live_table *t);
/* Calls visit for every block: the stored ones about in the order of allocation, then the recent ones. live_visit: with
 * visit in place, where that matters. ahead (NULL: none) is called before, with the block's number, and may look at
 * those up to t->used. */
static inline __attribute__((always_inline)) void
live_visit(const struct live_table *t, void (*ahead)(const void *context, const struct live_table *t, uint32_t number),
           void (*visit)(void *context, const struct live_block *b), void *context)
{
    for (uint32_t number = 1; number <= t->used; number++) {
        const struct live_block *b = live_at(t, number);
        if (ahead)
            ahead(context, t, number);
        if (b->key)
            visit(context, b);
    }
    for (uint32_t i = 0; i < LIVE_RECENT; i++)
        if (t->recent[i].site)
            visit(context, &t->recent[i]);
}
void live_each(const struct live_table *t, void (*visit)(void *context, const struct live_block *b), void *context);
size_t live_bytes(const struct live_table *t); /* resident memory */

#endif
