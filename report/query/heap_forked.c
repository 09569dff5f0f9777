/* The heaps of processes that began as a fork: what lies in them is what they took over from their parents, as far as
 * they did not free it, and what they allocated. Where the first is not known, nothing is of their pages. */
#include "../../common/array.h"
#include "../../common/kind.h"
#include "../../common/search.h"
#include "heap_private.h"
#include "inherited.h"

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

/* Its own blocks alone, those in none of its heaps as mappings of their own. */
static void count_own(struct heap *h, size_t first, size_t count, const uint64_t *limit, const struct blocks *blocks)
{
    struct heap_range own = {
        .kind = HEAP_OWN, .process_id = h->ranges[first].process_id, .is_forked = 1, .is_unknown = 1};
    uint32_t place = own.process_id << 8;
    for (size_t i = live_blocks_find(blocks, place, 0); i < blocks->count; i++) {
        const struct block *b = &blocks->slots[i];
        if (b->space >> 8 != place)
            break;
        if ((b->space & 255) != KIND_heap)
            continue;
        struct heap_range *r = range_of(&h->ranges[first], count, &limit[first], b->address);
        add_block(r ? r : &own, b);
        own.size_bytes += r ? 0 : (b->size_bytes / h->page + 1) * h->page;
    }
    for (size_t i = first; i < first + count; i++)
        h->ranges[i].is_unknown = 1;
    if (own.block_count)
        *ARRAY_ADD(h->ranges, h->range_count, h->range_capacity) = own;
}

/* The pages are summed up and not kept: of many children they would be too many. */
static void measure(struct heap *h, size_t first, size_t count, const uint64_t *limit, const struct blocks *blocks,
                    const struct inherited *inherited, const struct site_lines *site_line)
{
    struct blocks all = {0};
    for (size_t i = first; i < first + count; i++)
        h->ranges[i].is_forked = 1;
    if (inherited_blocks(inherited, blocks, h->ranges[first].process_id, &all))
        heap_walk_process(h, first, count, limit, &all, site_line);
    else
        count_own(h, first, count, limit, blocks);
    h->run_count = 0;
    free(all.slots);
}

static void drop_empty(struct heap *h)
{
    size_t kept = 0;
    for (size_t i = 0; i < h->range_count; i++)
        if (h->ranges[i].size_bytes) {
            h->ranges[kept] = h->ranges[i];
            h->ranges[kept++].run_count = 0;
        }
    h->range_count = kept;
}

int heap_load_forked(struct heap *h, sqlite3 *db, const struct instant *at, int64_t process_id,
                     const struct blocks *blocks, const struct inherited *inherited, const struct site_lines *site_line,
                     struct error *err)
{
    struct heap *f = h->forked = xcalloc(1, sizeof *f);
    uint64_t *limit = NULL;
    f->page = h->page;
    int rc = heap_load_glibc(f, db, at, process_id, 1, &limit, err);
    size_t known = f->range_count;
    for (size_t i = 0, n; rc == 0 && i < known; i += n) {
        for (n = 1; i + n < known && f->ranges[i + n].process_id == f->ranges[i].process_id;)
            n++;
        measure(f, i, n, limit, blocks, inherited, site_line);
    }
    drop_empty(f);
    if (rc == 0)
        rc = heap_name_lines(f, db, err);
    if (!f->range_count) {
        heap_free(f);
        free(f);
        h->forked = NULL;
    }
    free(limit);
    return rc;
}
