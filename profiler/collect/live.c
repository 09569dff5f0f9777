#include "live.h"

#include "../../common/error.h"

#include <stdlib.h>
#include <sys/mman.h>

#define PART_FIRST   16u     /* entries of a part when its first block comes */
#define SLAB_FIRST   64u     /* blocks of the first slab at first */
#define SLAB_HUGE    4u      /* slabs from this one on take huge pages: less to translate; before, too much to waste */
#define MAPPED_BYTES 131072u /* parts from here on are mapped */
#define HUGE_BYTES   (2u << 20) /* and from here on in huge pages */
#define PAGE_BYTES   4096u

/* Zeroed memory that is used all over at once, so its pages are asked for at once too: a fault each would cost more
 * than rebuilding a part. */
static void *map_alloc(size_t bytes, int huge)
{
    size_t room = huge ? bytes + HUGE_BYTES : bytes;
    char *map = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED)
        bug("no memory for %zu bytes of live blocks", bytes);
    if (huge) {
        char *start = (char *)(((uintptr_t)map + HUGE_BYTES - 1) & ~(uintptr_t)(HUGE_BYTES - 1));
        char *end = (char *)(((uintptr_t)start + bytes + PAGE_BYTES - 1) & ~(uintptr_t)(PAGE_BYTES - 1));
        if (start > map)
            munmap(map, (size_t)(start - map));
        if (end < map + room)
            munmap(end, (size_t)(map + room - end));
        map = start;
        madvise(map, bytes, MADV_HUGEPAGE);
    }
    return map;
}

static uint64_t *entries_alloc(uint64_t capacity)
{
    size_t bytes = capacity * sizeof(uint64_t);
    if (bytes < MAPPED_BYTES)
        return xcalloc(capacity, sizeof(uint64_t));
    void *map = map_alloc(bytes, bytes >= HUGE_BYTES);
    madvise(map, bytes, MADV_POPULATE_WRITE);
    return map;
}

static void entries_free(uint64_t *entries, uint64_t capacity)
{
    size_t bytes = capacity * sizeof(uint64_t);
    if (bytes < MAPPED_BYTES)
        free(entries);
    else
        munmap(entries, bytes);
}

struct live_table *live_open(void)
{
    return xcalloc(1, sizeof(struct live_table));
}

void live_close(struct live_table *t)
{
    if (!t)
        return;
    for (unsigned i = 0; i < LIVE_PARTS; i++)
        entries_free(t->parts[i].entries, t->parts[i].capacity);
    for (uint32_t i = 0; i < t->slab_count; i++) {
        if (i)
            munmap(t->slabs[i], LIVE_SLAB * sizeof(struct live_block));
        else
            free(t->slabs[i]);
    }
    free(t->slabs);
    free(t);
}

/* Full at 3/4, doubled: at most 21 bytes of index a block, beside the block's 32. */
void live_grow(struct live_part *part)
{
    struct live_part old = *part;
    uint64_t capacity = old.capacity ? old.capacity * 2ull : PART_FIRST;
    if (capacity > UINT32_MAX)
        bug("%u live blocks in one part", old.count);
    part->capacity = (uint32_t)capacity;
    part->full = (uint32_t)(capacity / 4 * 3);
    part->entries = entries_alloc(capacity);
    for (uint32_t i = 0; i < old.capacity; i++) {
        if (!old.entries[i])
            continue;
        uint32_t to = live_home(part, (uint32_t)(old.entries[i] >> 32));
        while (part->entries[to])
            if (++to == part->capacity)
                to = 0;
        part->entries[to] = old.entries[i];
    }
    entries_free(old.entries, old.capacity);
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
    t->slabs = xrealloc(t->slabs, (t->slab_count + 1ul) * sizeof *t->slabs);
    t->slabs[t->slab_count] = map_alloc(LIVE_SLAB * sizeof(struct live_block), t->slab_count >= SLAB_HUGE);
    t->slab_count++;
    t->room += LIVE_SLAB;
}

void live_each(const struct live_table *t, void (*visit)(void *context, const struct live_block *b), void *context)
{
    for (uint32_t number = 1; number <= t->used; number++) {
        const struct live_block *b = live_at(t, number);
        if (b->key)
            visit(context, b);
    }
}

size_t live_bytes(const struct live_table *t)
{
    uint32_t blocks = t->slab_count > SLAB_HUGE ? t->room : t->used;
    size_t bytes = sizeof *t + t->slab_count * sizeof *t->slabs + blocks * sizeof(struct live_block);
    for (unsigned p = 0; p < LIVE_PARTS; p++)
        bytes += t->parts[p].capacity * sizeof(uint64_t);
    return bytes;
}
