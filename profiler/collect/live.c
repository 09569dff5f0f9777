#include "live.h"

#include "../../common/error.h"

#include <stdlib.h>
#include <sys/mman.h>

#define PART_FIRST   16u        /* entries of a part when its first block comes */
#define PART_DOUBLES 512u       /* entries below which a part doubles */
#define MAPPED_BYTES 65536u     /* parts from here on are mapped, */
#define HUGE_BYTES   (2u << 20) /* and from here on in huge pages */
#define PAGE_BYTES   4096u

/* A part is filled all over as soon as it exists, so its pages are asked for at once: a fault each would cost more than
 * the rebuilding. */
static struct live_block *blocks_alloc(uint64_t capacity)
{
    size_t bytes = capacity * sizeof(struct live_block);
    if (bytes < MAPPED_BYTES)
        return xcalloc(capacity, sizeof(struct live_block));
    size_t room = bytes >= HUGE_BYTES ? bytes + HUGE_BYTES : bytes;
    char *map = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED)
        bug("no memory for %zu bytes of live blocks", bytes);
    if (room != bytes) {
        char *start = (char *)(((uintptr_t)map + HUGE_BYTES - 1) & ~(uintptr_t)(HUGE_BYTES - 1));
        char *end = (char *)(((uintptr_t)start + bytes + PAGE_BYTES - 1) & ~(uintptr_t)(PAGE_BYTES - 1));
        if (start > map)
            munmap(map, (size_t)(start - map));
        if (end < map + room)
            munmap(end, (size_t)(map + room - end));
        map = start;
        madvise(map, bytes, MADV_HUGEPAGE);
    }
    madvise(map, bytes, MADV_POPULATE_WRITE);
    return (struct live_block *)map;
}

static void blocks_free(struct live_block *blocks, uint64_t capacity)
{
    size_t bytes = capacity * sizeof(struct live_block);
    if (bytes < MAPPED_BYTES)
        free(blocks);
    else
        munmap(blocks, bytes);
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
        blocks_free(t->parts[i].blocks, t->parts[i].capacity);
    free(t);
}

/* Full at 25/32; growing by a half leaves it filled to 0.52 at least: 61 bytes a block, and the part that is being
 * rebuilt adds 41 / 16. A block is moved twice on average by that; growing by less would move it more often. Small
 * tables double. */
void live_grow(struct live_part *part)
{
    struct live_part old = *part;
    uint64_t capacity = old.capacity ? (uint64_t)old.capacity * 3 / 2 : PART_FIRST;
    if (old.capacity && old.capacity < PART_DOUBLES)
        capacity = old.capacity * 2ull;
    if (capacity > UINT32_MAX)
        bug("%u live blocks in one part", old.count);
    part->capacity = (uint32_t)capacity;
    part->full = (uint32_t)(capacity * 25 / 32);
    part->blocks = blocks_alloc(capacity);
    for (uint32_t i = 0; i < old.capacity; i++) {
        if (!old.blocks[i].key)
            continue;
        uint32_t to = live_home(part, live_hash(old.blocks[i].key));
        while (part->blocks[to].key)
            if (++to == part->capacity)
                to = 0;
        part->blocks[to] = old.blocks[i];
    }
    blocks_free(old.blocks, old.capacity);
}

void live_each(const struct live_table *t, void (*visit)(void *context, const struct live_block *b), void *context)
{
    for (unsigned p = 0; p < LIVE_PARTS; p++)
        for (uint32_t i = 0; i < t->parts[p].capacity; i++)
            if (t->parts[p].blocks[i].key)
                visit(context, &t->parts[p].blocks[i]);
}

size_t live_bytes(const struct live_table *t)
{
    size_t bytes = sizeof *t;
    for (unsigned p = 0; p < LIVE_PARTS; p++)
        bytes += t->parts[p].capacity * sizeof(struct live_block);
    return bytes;
}
