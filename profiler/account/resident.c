#include "resident.h"

#include "../../common/array.h"
#include "../../common/range.h"
#include "../../common/search.h"
#include "account_private.h"
#include "resident_gone.h"
#include "seen.h"

#include <stdlib.h>
#include <string.h>

#define USED_MASK 0x1fffu /* bytes of a page that blocks have; and: */
#define USED_HEAP 0x8000u /* one of these is of malloc, among others */

/* Where there are many sites, what a block needs of its own is asked for so many blocks ahead: the site's place, and
 * what is there. */
#define AHEAD_PLACE 24u
#define AHEAD_SITE  12u
#define NEAR_SITES  8192u

struct looking {
    const struct account *a;
    const struct process_account *process;
    const struct resident_pages *pages;
    uint16_t *used;  /* by page */
    uint32_t *place; /* by site: its place among the result's sites, + 1; UINT32_MAX: not on the host */
    size_t last;     /* the range that was found last */
    unsigned heap_space, map_space;
    int is_second;  /* pass: of the blocks that may lie in others; */
    int has_second; /* there are some */
    struct resident_result *result;
    uint32_t site_capacity;
};

static uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static void add(struct resident_sum *sum, uint8_t flags, uint64_t bytes)
{
    if (flags & RESIDENT_SWAPPED)
        sum->swapped_bytes += bytes;
    if (!(flags & RESIDENT_PRESENT))
        return;
    sum->resident_bytes += bytes;
    if (flags & RESIDENT_SHARED)
        sum->shared_bytes += bytes;
    if (flags & RESIDENT_HUGE)
        sum->huge_bytes += bytes;
}

static struct resident_site *site_of(struct looking *l, uint32_t id)
{
    uint32_t place = l->place[id];
    if (place && place != UINT32_MAX)
        return &l->result->sites[place - 1];
    if (place || site_at(&l->a->sites, id)->device != 0) {
        l->place[id] = UINT32_MAX;
        return NULL;
    }
    struct resident_site *site = ARRAY_ADD(l->result->sites, l->result->site_count, l->site_capacity);
    site->site = id;
    l->place[id] = l->result->site_count;
    return site;
}

/* The first range that ends after address; blocks that follow each other lie near each other. */
static size_t range_at(struct looking *l, uint64_t address)
{
    const struct resident_range *ranges = l->pages->ranges;
    const size_t count = l->pages->range_count;
    if (l->last < count && ranges[l->last].start <= address && address < ranges[l->last].end)
        return l->last;
    return l->last = SEARCH_FIRST(count, i, ranges[i].end <= address);
}

/* Where blocks overlap (memory that was registered, too) the one below has the bytes, which is seen first: a page has
 * no more of them than its size. Returns the bytes on pages, of whomever. */
static uint64_t take_pages(struct looking *l, const struct resident_range *r, uint64_t start, uint64_t end,
                           unsigned heap, struct resident_sum *sum)
{
    uint64_t on_pages = 0;
    size_t i = r->first + (start - r->start) / RESIDENT_PAGE;
    for (uint64_t at = start; at < end; i++) {
        uint64_t next = min_u64((at & ~(uint64_t)(RESIDENT_PAGE - 1)) + RESIDENT_PAGE, end), bytes = next - at;
        uint8_t flags = l->pages->flags[i];
        if (flags) {
            unsigned used = l->used[i] & USED_MASK;
            uint64_t taken = min_u64(bytes, RESIDENT_PAGE - used);
            l->used[i] = (uint16_t)((l->used[i] + taken) | heap);
            add(sum, flags, taken);
            on_pages += bytes;
        }
        at = next;
    }
    return on_pages;
}

/* NULL: none that is known. */
static const struct resident_map *map_at(const struct resident_pages *p, uint64_t address)
{
    const size_t low = SEARCH_FIRST(p->map_count, i, p->maps[i].end <= address);
    return low < p->map_count && p->maps[low].start <= address ? &p->maps[low] : NULL;
}

/* The bytes on pages, of whomever. */
static uint64_t take_range(struct looking *l, uint64_t start, uint64_t end, unsigned heap, struct resident_sum *sum)
{
    uint64_t on_pages = 0;
    for (size_t i = range_at(l, start); i < l->pages->range_count && l->pages->ranges[i].start < end; i++) {
        const struct resident_range *r = &l->pages->ranges[i];
        on_pages += take_pages(l, r, start > r->start ? start : r->start, min_u64(end, r->end), heap, sum);
    }
    return on_pages;
}

/* Whether other processes may have pages of a block that this one has not. */
static int is_shared(const struct resident_pages *p, uint64_t address)
{
    const struct resident_map *m = map_at(p, address);
    return m && m->is_shared;
}

/* Where that block's pages lie in what is shared, for when the other processes were looked at, too. */
static void keep_shared(struct looking *l, const struct live_block *b)
{
    const struct resident_map *m = map_at(l->pages, b->key & LIVE_ADDRESS_MASK);
    if (!l->pages->touched || !m || m->rest != REST_shared || !m->inode)
        return;
    struct resident_result *result = l->result;
    *ARRAY_ADD(result->shared, result->shared_count, result->shared_capacity) =
        (struct resident_shared){.site = b->site,
                                 .object = seen_object(l->pages->touched, m->inode, m->device),
                                 .offset = m->offset + (b->key & LIVE_ADDRESS_MASK) - m->start,
                                 .size = b->size};
}

uint64_t resident_untouched(const struct resident_shared *block, const struct seen *touched)
{
    uint64_t bytes = 0, end = block->offset + block->size;
    for (uint64_t at = block->offset, next; at < end; at = next) {
        next = min_u64((at & ~(uint64_t)(RESIDENT_PAGE - 1)) + RESIDENT_PAGE, end);
        if (!seen_has(touched, block->object, at / RESIDENT_PAGE))
            bytes += next - at;
    }
    return bytes;
}

/* Most blocks: of malloc, of some bytes on one page that is there, in the range that was found last. */
static inline int look_at_small(struct looking *l, const struct live_block *b)
{
    uint64_t start = b->key & LIVE_ADDRESS_MASK;
    if (b->key >> LIVE_ADDRESS_BITS != l->heap_space || b->size - 1 >= RESIDENT_PAGE - start % RESIDENT_PAGE ||
        l->process->parts || l->last >= l->pages->range_count)
        return 0;
    const struct resident_range *r = &l->pages->ranges[l->last];
    if (start < r->start || start >= r->end)
        return 0;
    size_t i = r->first + (start - r->start) / RESIDENT_PAGE;
    uint8_t flags = l->pages->flags[i];
    if (!flags)
        return 0;
    struct resident_site *site = site_of(l, b->site);
    if (!site)
        return 1;
    uint64_t taken = min_u64(b->size, RESIDENT_PAGE - (l->used[i] & USED_MASK));
    l->used[i] = (uint16_t)((l->used[i] + taken) | USED_HEAP);
    add(&site->sum, flags, taken);
    site->live_count++;
    site->live_bytes += b->size;
    return 1;
}

static void look_at_other(struct looking *l, const struct live_block *b)
{
    unsigned space = b->key >> LIVE_ADDRESS_BITS;
    int may_overlap = space != l->heap_space && space != l->map_space;
    l->has_second |= may_overlap;
    struct resident_site *site = may_overlap == l->is_second ? site_of(l, b->site) : NULL;
    if (!site)
        return;
    uint64_t start = b->key & LIVE_ADDRESS_MASK, end = start + b->size;
    unsigned heap = space == l->heap_space && !resident_may_be_mapped(b) ? USED_HEAP : 0;
    uint64_t on_pages = take_range(l, start, end, heap, &site->sum);
    site->live_count += account_part_is_first(l->process, b) != 0;
    site->live_bytes += b->size;
    if (on_pages >= b->size)
        return;
    if (l->pages->is_only || !is_shared(l->pages, start))
        site->untouched_bytes += b->size - on_pages;
    else
        keep_shared(l, b);
}

static void look_at_block(void *context, const struct live_block *b)
{
    struct looking *l = context;
    if (l->is_second || !look_at_small(l, b))
        look_at_other(l, b);
}

static inline __attribute__((always_inline)) void look_ahead(const void *context, const struct live_table *t,
                                                             uint32_t number)
{
    const struct looking *l = context;
    if (number + AHEAD_PLACE > t->used)
        return;
    __builtin_prefetch(&l->place[live_at(t, number + AHEAD_PLACE)->site]);
    uint32_t id = live_at(t, number + AHEAD_SITE)->site, place = l->place[id];
    if (place && place != UINT32_MAX)
        __builtin_prefetch(&l->result->sites[place - 1], 1);
    else if (id)
        __builtin_prefetch(site_at(&l->a->sites, id));
}

static void look_at_blocks(struct looking *l, const struct live_table *t)
{
    if (l->a->sites.count > NEAR_SITES)
        live_visit(t, look_ahead, look_at_block, l);
    else
        live_visit(t, NULL, look_at_block, l);
}

/* A block that went while the pages were read counts with what of it was still there and is nobody else's. */
static void look_at_gone(struct looking *l, const struct live_block *b)
{
    uint64_t start = b->key & LIVE_ADDRESS_MASK;
    struct resident_sum sum = {0};
    take_range(l, start, start + b->size, 0, &sum);
    struct resident_site *site = sum.resident_bytes || sum.swapped_bytes ? site_of(l, b->site) : NULL;
    if (!site)
        return;
    site->live_count++;
    site->live_bytes += sum.resident_bytes + sum.swapped_bytes;
    site->sum.resident_bytes += sum.resident_bytes;
    site->sum.shared_bytes += sum.shared_bytes;
    site->sum.huge_bytes += sum.huge_bytes;
    site->sum.swapped_bytes += sum.swapped_bytes;
}

/* --- what is no block's --- */

struct rest_walk {
    const struct resident_pages *pages;
    const uint16_t *used;
    struct segments *segments; /* NULL: none */
    struct range segment;      /* that was found last */
    size_t begun;              /* the mapping that it began with, which the page before lay in or before */
    uint32_t family, file;     /* in pages->seen; 0: none */
    struct resident_result *result;
};

static int in_segment(struct rest_walk *w, uint64_t address)
{
    if (!w->segments)
        return 0;
    if (address >= w->segment.start && address < w->segment.end)
        return 1;
    return segments_find(w->segments, address, &w->segment);
}

/* Addresses ascend from one call to the next. */
static int is_begun(struct rest_walk *w, uint64_t address)
{
    const struct resident_pages *p = w->pages;
    while (w->begun < p->begun_count && p->begun[w->begun].end <= address)
        w->begun++;
    return w->begun < p->begun_count && p->begun[w->begun].start <= address;
}

/* A page of a fork's child. Blocks of its own on one that it shares have not been written to yet. */
static void add_fork(struct rest_walk *w, int is_inherited, uint8_t flags, unsigned used)
{
    struct resident_fork *fork = &w->result->fork;
    if (!w->pages->begun || !(flags & RESIDENT_PRESENT))
        return;
    if (flags & RESIDENT_FILE) {
        fork->file_bytes += RESIDENT_PAGE;
    } else if (!is_inherited) {
        fork->own_bytes += RESIDENT_PAGE;
    } else if (flags & RESIDENT_SHARED) {
        fork->shared_bytes += RESIDENT_PAGE;
    } else {
        fork->own_bytes += used;
        fork->copied_bytes += RESIDENT_PAGE - used;
    }
}

/* Whether a process that the round saw before has this very page. An anonymous one that several have came by a fork. */
static int is_again(const struct rest_walk *w, const struct resident_map *m, uint64_t address, uint8_t flags)
{
    if (!w->family || !(flags & RESIDENT_PRESENT) || !(flags & RESIDENT_SHARED))
        return 0;
    if (!(flags & RESIDENT_FILE))
        return seen_again(w->pages->seen, w->family, address / RESIDENT_PAGE);
    return w->file && seen_again(w->pages->seen, w->file, (m->offset + address - m->start) / RESIDENT_PAGE);
}

static void touch(const struct rest_walk *w, const struct resident_map *m, uint64_t address)
{
    struct seen *touched = w->pages->touched;
    seen_again(touched, seen_object(touched, m->inode, m->device), (m->offset + address - m->start) / RESIDENT_PAGE);
}

/* Pages of one range, first to end, that lie in one mapping (NULL: in none that is known). */
static void rest_of_pages(struct rest_walk *w, const struct resident_range *r, uint64_t start, uint64_t end,
                          const struct resident_map *m, enum resident_rest rest)
{
    size_t first = r->first + (start - r->start) / RESIDENT_PAGE, count = (end - start) / RESIDENT_PAGE;
    struct resident_sum *sums = w->result->rest;
    int is_touched = w->pages->touched && m && m->rest == REST_shared && m->inode;
    w->file = w->family && m && m->inode ? seen_object(w->pages->seen, m->inode, m->device) : 0;
    for (size_t i = first; i < first + count; i++) {
        uint8_t flags = w->pages->flags[i];
        if (!flags)
            continue;
        unsigned used = w->used[i] & USED_MASK;
        enum resident_rest what = used ? REST_beside : rest;
        uint64_t address = start + (i - first) * RESIDENT_PAGE;
        int is_inherited = !(flags & RESIDENT_FILE) && is_begun(w, address);
        if (is_inherited && rest != REST_memprof)
            what = REST_inherited;
        else if (!used && (rest == REST_anonymous || rest == REST_heap) && in_segment(w, address))
            what = REST_segment;
        add_fork(w, is_inherited, flags, used);
        if (is_touched)
            touch(w, m, address);
        w->result->again_bytes += is_again(w, m, address, flags) ? RESIDENT_PAGE : 0;
        add(&sums[what], flags, RESIDENT_PAGE - used);
        add(&w->result->all, flags, RESIDENT_PAGE);
    }
}

/* Whether malloc has blocks among others in these pages: then the others are its own, too. */
static int holds_heap(const struct resident_pages *pages, const uint16_t *used, size_t range, uint64_t start,
                      uint64_t end)
{
    for (; range < pages->range_count && pages->ranges[range].start < end; range++) {
        const struct resident_range *r = &pages->ranges[range];
        uint64_t from = start > r->start ? start : r->start, to = min_u64(end, r->end);
        for (size_t i = r->first + (from - r->start) / RESIDENT_PAGE; from < to; i++, from += RESIDENT_PAGE)
            if (used[i] & USED_HEAP)
                return 1;
    }
    return 0;
}

/* Ranges and mappings in step. What came after the mappings were read is in none. */
static void find_rests(struct rest_walk *w)
{
    const struct resident_pages *pages = w->pages;
    size_t map = 0;
    int map_seen = -1; /* whether holds_heap was asked of this one */
    enum resident_rest rest = REST_anonymous;
    for (size_t i = 0; i < pages->range_count; i++) {
        const struct resident_range *r = &pages->ranges[i];
        for (uint64_t at = r->start; at < r->end;) {
            while (map < pages->map_count && pages->maps[map].end <= at) {
                map++;
                map_seen = -1;
            }
            const struct resident_map *m = map < pages->map_count ? &pages->maps[map] : NULL;
            int is_in = m && m->start <= at;
            uint64_t end = min_u64(r->end, is_in ? m->end : m ? m->start : r->end);
            if (is_in && map_seen < 0) {
                rest =
                    m->rest == REST_anonymous && holds_heap(pages, w->used, i, m->start, m->end) ? REST_heap : m->rest;
                map_seen = 1;
            }
            rest_of_pages(w, r, at, end, is_in ? m : NULL, is_in ? rest : REST_anonymous);
            at = end;
        }
    }
}

/* Their rows are appended to a table that is in this order: in any other each would be searched its place. */
static void sort_sites(const struct looking *l)
{
    struct resident_result *result = l->result;
    if (!result->site_count)
        return;
    struct resident_site *sorted = xmalloc(result->site_count * sizeof *sorted);
    uint32_t count = 0;
    for (uint32_t id = 0; count < result->site_count; id++)
        if (l->place[id] && l->place[id] != UINT32_MAX)
            sorted[count++] = result->sites[l->place[id] - 1];
    free(result->sites);
    result->sites = sorted;
}

void resident_blocks(const struct account *a, uint16_t process_id, const struct resident_pages *pages,
                     const struct resident_gone *gone, struct resident_result *result)
{
    const struct process_account *p = a->processes[process_id];
    *result = (struct resident_result){0};
    struct looking l = {.a = a,
                        .process = p,
                        .pages = pages,
                        .last = SIZE_MAX,
                        .result = result,
                        .heap_space = account_space(KIND_heap),
                        .map_space = account_space(KIND_map)};
    l.used = xcalloc(pages->page_count + 1, sizeof *l.used);
    l.place = xcalloc(a->sites.count + 1ul, sizeof *l.place);
    if (p) {
        account_parts_pass(a->processes[process_id]);
        look_at_blocks(&l, p->live);
        l.is_second = 1;
        if (l.has_second)
            look_at_blocks(&l, p->live);
    }
    for (size_t i = 0; gone && i < gone->count; i++)
        look_at_gone(&l, &gone->blocks[i]);
    struct rest_walk w = {.pages = pages, .used = l.used, .result = result};
    if (pages->seen)
        w.family = seen_object(pages->seen, pages->family, UINT64_MAX);
    for (const struct process_device *d = p ? p->devices : NULL; d; d = d->next)
        if (d->device == 0)
            w.segments = d->segments;
    find_rests(&w);
    sort_sites(&l);
    free(l.used);
    free(l.place);
}
