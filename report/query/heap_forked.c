/* The heaps of processes that began as a fork. What they took over from their parent, and what of it they have freed,
 * is not in the events: of their pages nothing is known, only how large a heap is and what lies in it of their own. */
#include "../../common/array.h"
#include "../../common/kind.h"
#include "../../common/search.h"
#include "heap_private.h"

#include <stdlib.h>

static void add_block(struct heap_range *r, const struct block *b)
{
    r->live_bytes += b->size_bytes;
    r->block_count++;
}

/* Ranges are by address. */
static struct heap_range *range_of(struct heap_range *ranges, size_t count, const uint64_t *limit, uint64_t address)
{
    const size_t low = SEARCH_FIRST(count, i, ranges[i].address <= address);
    return low && address - ranges[low - 1].address < limit[low - 1] ? &ranges[low - 1] : NULL;
}

/* Its own blocks, those in none of its heaps as mappings of their own. */
static void measure(struct heap *h, struct heap_range *ranges, size_t count, const uint64_t *limit,
                    const struct blocks *blocks)
{
    struct heap_range own = {.kind = HEAP_OWN, .process_id = ranges->process_id};
    uint32_t place = own.process_id << 8;
    for (size_t i = live_blocks_find(blocks, place, 0); i < blocks->count; i++) {
        const struct block *b = &blocks->slots[i];
        if (b->space >> 8 != place)
            break;
        if ((b->space & 255) != KIND_heap)
            continue;
        struct heap_range *r = range_of(ranges, count, limit, b->address);
        add_block(r ? r : &own, b);
        own.size_bytes += r ? 0 : (b->size_bytes / h->page + 1) * h->page;
    }
    for (size_t i = 0; i < count; i++)
        if (ranges[i].size_bytes)
            *ARRAY_ADD(h->forked, h->forked_count, h->forked_capacity) = ranges[i];
    if (own.block_count)
        *ARRAY_ADD(h->forked, h->forked_count, h->forked_capacity) = own;
}

int heap_load_forked(struct heap *h, sqlite3 *db, int64_t at_ns, int64_t process_id, const struct blocks *blocks,
                     struct error *err)
{
    struct heap all = {.page = h->page};
    uint64_t *limit = NULL;
    int rc = heap_load_glibc(&all, db, at_ns, process_id, 1, &limit, err);
    for (size_t i = 0, n; rc == 0 && i < all.range_count; i += n) {
        for (n = 1; i + n < all.range_count && all.ranges[i + n].process_id == all.ranges[i].process_id;)
            n++;
        measure(h, &all.ranges[i], n, &limit[i], blocks);
    }
    heap_free(&all);
    free(limit);
    return rc;
}
