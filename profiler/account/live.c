#include "live.h"

#include "../../common/error.h"
#include "huge.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define BUCKETS_FIRST 8u
#define BUCKET_FULL   9u     /* blocks a bucket on average when the table grows */
#define SLOW          4096u  /* of a program whose blocks are recent ones, fewer than a part of all blocks */
#define SLOW_PART     6u     /* are placed the slow way: looked at when so many were */
#define PAUSE_FIRST   32768u /* blocks; doubled from try to try, up to: */
#define PAUSE_MOST    (1u << 21)
#define AHEAD         16u                /* a new table's bucket is asked for so many blocks before its turn */
#define NEARLY(most)  ((most) / 18 * 17) /* when the next table is asked for */
#define SLAB_FIRST    64u                /* blocks of the first slab at first */
#define SLAB_HUGE     4u      /* slabs from this one on take huge pages: less to translate; before, too much to waste */
#define SLAB_AHEAD    8u      /* and from here on the next one is touched while this one fills */
#define MAPPED_BYTES  131072u /* tables from here on are mapped, and from HUGE_BYTES on in huge pages */

static void *map_alloc(size_t bytes, int huge)
{
    void *map = ahead_map(bytes, huge);
    if (!map && huge)
        map = ahead_map(bytes, 0); /* that takes less room */
    if (!map)
        out_of_memory(bytes);
    return map;
}

static struct live_bucket *buckets_alloc(uint64_t count, int huge)
{
    size_t bytes = count * sizeof(struct live_bucket);
    if (bytes < MAPPED_BYTES) {
        struct live_bucket *buckets = aligned_alloc(sizeof *buckets, bytes);
        if (!buckets)
            out_of_memory(bytes);
        return memset(buckets, 0, bytes);
    }
    void *map = map_alloc(bytes, huge && bytes >= HUGE_BYTES);
    /* It is used all over at once, so its pages are asked for at once: a fault each would cost more than rebuilding. */
    madvise(map, bytes, MADV_POPULATE_WRITE);
    return map;
}

static void buckets_free(struct live_bucket *buckets, uint64_t count)
{
    size_t bytes = count * sizeof *buckets;
    if (bytes < MAPPED_BYTES)
        free(buckets);
    else
        munmap(buckets, bytes);
}

/* With a table that is large the next one is asked for before it is needed. */
static void set_full(struct live_table *t)
{
    uint64_t count = t->bucket_mask + 1ull;
    t->most = t->full = count * BUCKET_FULL;
    if (t->worker && count * 2 * sizeof *t->buckets >= HUGE_BYTES)
        t->full = NEARLY(t->most);
}

struct live_table *live_open(struct worker *worker)
{
    struct live_table *t = xcalloc(1, sizeof *t);
    t->worker = worker;
    t->recent = map_alloc(LIVE_RECENT * sizeof *t->recent, 0);
    t->has_recent = 1;
    t->pause = PAUSE_FIRST;
    t->buckets = buckets_alloc(BUCKETS_FIRST, 0);
    t->bucket_mask = BUCKETS_FIRST - 1;
    set_full(t);
    return t;
}

void live_close(struct live_table *t)
{
    if (!t)
        return;
    ahead_drop(t->worker, &t->next_slab);
    ahead_drop(t->worker, &t->next_buckets);
    buckets_free(t->buckets, t->bucket_mask + 1ull);
    for (uint32_t i = 0; i < t->slab_count; i++) {
        if (i)
            munmap(t->slabs[i], LIVE_SLAB * sizeof(struct live_block));
        else
            free(t->slabs[i]);
    }
    free(t->slabs);
    munmap(t->recent, LIVE_RECENT * sizeof *t->recent);
    free(t);
}

struct live_block *live_find_on(struct live_table *t, uint64_t key, uint64_t hash)
{
    uint32_t home = live_home(t, hash), at = home;
    while (t->buckets[at].passed) {
        at = (at + 1) & t->bucket_mask;
        if (at == home)
            break;
        struct live_block *b = live_find_in(t, at, key, hash);
        if (b)
            return b;
    }
    return NULL;
}

/* The first free slot from the block's bucket on; there is one, as the table grows before it is full. */
uint32_t *live_slot_on(struct live_table *t, uint64_t hash)
{
    for (uint32_t at = live_home(t, hash);; at = (at + 1) & t->bucket_mask) {
        struct live_bucket *bucket = &t->buckets[at];
        unsigned empty = live_match(bucket, 0);
        if (empty) {
            unsigned i = (unsigned)__builtin_ctz(empty);
            bucket->tags[i] = live_tag(hash);
            return &bucket->numbers[i];
        }
        bucket->passed++;
    }
}

void live_unpass(struct live_table *t)
{
    for (uint32_t at = t->found_home; at != t->found_bucket; at = (at + 1) & t->bucket_mask)
        t->buckets[at].passed--;
}

/* Doubled: 7.1 to 14.2 bytes a block, beside the block's 32; with the next table up to 23 for a while. A tag is too
 * short to tell the new bucket, so the blocks are asked, in the order in which they lie. */
void live_grow(struct live_table *t)
{
    uint64_t old_count = t->bucket_mask + 1ull, hashes[AHEAD];
    if (t->stored < t->most) {
        /* without memory what is needed is mapped in its turn, when the old table is gone */
        ahead_begin(t->worker, &t->next_buckets, old_count * 2 * sizeof *t->buckets, !t->huge_is_slow);
        t->full = t->most;
        return;
    }
    if (old_count > UINT32_MAX / 2)
        bug("%lu live blocks", (unsigned long)t->stored);
    buckets_free(t->buckets, old_count);
    void *next = ahead_take(t->worker, &t->next_buckets, &t->huge_is_slow);
    t->buckets = next ? next : buckets_alloc(old_count * 2, !t->huge_is_slow);
    t->bucket_mask = (uint32_t)(old_count * 2 - 1);
    set_full(t);
    for (uint64_t number = 1; number <= t->used + (uint64_t)AHEAD; number++) {
        uint64_t *hash = &hashes[number % AHEAD];
        if (number > AHEAD && live_at(t, (uint32_t)(number - AHEAD))->key)
            *live_slot_on(t, *hash) = (uint32_t)(number - AHEAD);
        if (number <= t->used) {
            *hash = live_hash(live_at(t, (uint32_t)number)->key);
            live_prefetch(t, *hash);
        }
    }
}

/* A slab is as large as a huge page. */
static void *slab_alloc(struct live_table *t, size_t bytes)
{
    int huge = t->slab_count >= SLAB_HUGE && !t->huge_is_slow;
    void *map = map_alloc(bytes, huge);
    uint64_t before_ns = huge ? huge_clock_ns() : 0;
    if (huge) {
        *(volatile char *)map = 0;
        t->huge_is_slow = huge_was_slow(before_ns);
    }
    return map;
}

/* The first slab grows up to its full size, the others come whole. No memory but that of huge pages is touched, and so
 * taken, before its blocks are. */
void live_add_slab(struct live_table *t)
{
    if (t->room < LIVE_SLAB) {
        uint32_t room = t->room ? t->room * 2 : SLAB_FIRST;
        if (!t->slabs)
            t->slabs = xcalloc(1, sizeof *t->slabs);
        t->slabs[0] = xrealloc(t->slabs[0], room * sizeof **t->slabs);
        t->slab_count = 1;
        t->room = room;
        return;
    }
    if (t->room > UINT32_MAX - LIVE_SLAB)
        bug("%u live blocks in one process", t->used);
    size_t bytes = LIVE_SLAB * sizeof(struct live_block);
    void *next = ahead_take(t->worker, &t->next_slab, &t->huge_is_slow);
    t->slabs = xrealloc(t->slabs, (t->slab_count + 1ul) * sizeof *t->slabs);
    t->slabs[t->slab_count] = next ? next : slab_alloc(t, bytes);
    t->slab_count++;
    t->room += LIVE_SLAB;
    if (t->slab_count > SLAB_AHEAD)
        ahead_begin(t->worker, &t->next_slab, bytes, !t->huge_is_slow);
}

/* All blocks are stored from here on. */
static void leave_recent(struct live_table *t)
{
    for (uint32_t i = 0; i < LIVE_RECENT; i++) {
        struct live_block *b = &t->recent[i];
        if (b->site)
            *live_store(t, live_hash(b->key)) = *b;
        *b = (struct live_block){0};
    }
    t->has_recent = 0;
    t->next_try = t->placed + t->pause;
    t->pause = t->pause < PAUSE_MOST ? t->pause * 2 : PAUSE_MOST;
}

void live_try_recent(struct live_table *t)
{
    t->has_recent = 1;
    t->slow = 0;
    t->slow_placed = t->placed;
}

/* Of a key that has no place among the recent blocks. */
struct live_block *live_place_on(struct live_table *t, uint64_t key, uint64_t hash)
{
    struct live_block *b = live_find_stored(t, key, hash);
    if (__builtin_expect(b != NULL, 0))
        return b;
    t->count++;
    t->placed++;
    b = live_recent(t, key);
    if (b->site)
        *live_store(t, live_hash(b->key)) = *b;
    if (++t->slow == SLOW) {
        if (t->placed - t->slow_placed < SLOW * SLOW_PART) {
            b->site = 0;
            leave_recent(t);
            b = live_store(t, hash);
        }
        t->slow = 0;
        t->slow_placed = t->placed;
    }
    b->key = key;
    b->site = 0;
    return b;
}

void live_each(const struct live_table *t, void (*visit)(void *context, const struct live_block *b), void *context)
{
    live_visit(t, NULL, visit, context);
}

size_t live_bytes(const struct live_table *t)
{
    uint32_t blocks = t->slab_count > SLAB_HUGE ? t->room : t->used;
    size_t bytes = sizeof *t + LIVE_RECENT * sizeof *t->recent + t->slab_count * sizeof *t->slabs +
                   blocks * sizeof(struct live_block) + (t->bucket_mask + 1ul) * sizeof *t->buckets;
    bytes += (t->next_slab.memory ? t->next_slab.bytes : 0) + (t->next_buckets.memory ? t->next_buckets.bytes : 0);
    return bytes;
}
