/*
 * Maps of which a part was unmapped or overlaid. One map asked for is one block: what leaves takes its bytes away, the
 * last part the block. The live table has an entry a part, so that addresses and pages are exact; which block it is of
 * stands here. All of this is rare: whole blocks never come here.
 */
#include "account_private.h"

#include "../../common/array.h"
#include "../../common/db.h"
#include "../../common/range.h"
#include "segment.h"

#include <stdlib.h>

struct parts {
    struct range_map *ranges; /* where parts begin, a byte each; id: place of the block, from 1 */
    struct part_block *blocks;
    uint32_t count, capacity;
    uint32_t unused; /* a free place, whose part_count is the next one's; 0: none */
    uint32_t pass;
};

static struct range *range_of(const struct parts *parts, uint64_t address)
{
    struct range *r = parts ? range_map_find(parts->ranges, address) : NULL;
    return r && r->start == address ? r : NULL;
}

struct part_block *account_part_of(const struct process_account *p, const struct live_block *b)
{
    if (!p->parts || b->key >> LIVE_ADDRESS_BITS != account_space(KIND_map))
        return NULL;
    const struct range *r = range_of(p->parts, b->key & LIVE_ADDRESS_MASK);
    return r ? &p->parts->blocks[r->id - 1] : NULL;
}

uint64_t account_block_key(const struct process_account *p, const struct live_block *b)
{
    const struct part_block *block = account_part_of(p, b);
    return block ? live_key(LIVE_ADDRESS_MASK - (uint64_t)(block - p->parts->blocks), account_space(KIND_map)) : b->key;
}

void account_parts_pass(struct process_account *p)
{
    if (p->parts)
        p->parts->pass++;
}

int account_part_is_first(const struct process_account *p, const struct live_block *b)
{
    struct part_block *block = account_part_of(p, b);
    if (!block)
        return 1;
    int is_first = block->pass != p->parts->pass;
    block->pass = p->parts->pass;
    return is_first;
}

void account_parts_close(struct process_account *p)
{
    if (!p->parts)
        return;
    range_map_close(p->parts->ranges);
    free(p->parts->blocks);
    free(p->parts);
    p->parts = NULL;
}

static uint64_t add_block(struct parts *parts, const struct part_block *block)
{
    uint32_t id = parts->unused;
    if (id)
        parts->unused = parts->blocks[id - 1].part_count;
    else {
        ARRAY_ADD(parts->blocks, parts->count, parts->capacity);
        id = parts->count;
    }
    parts->blocks[id - 1] = *block;
    return id;
}

static void add_range(struct parts *parts, uint64_t start, uint64_t id)
{
    range_map_insert(parts->ranges, &(struct range){.start = start, .end = start + 1, .id = id});
}

static void remove_range(struct parts *parts, uint64_t address)
{
    const struct range *r = range_of(parts, address);
    if (r)
        range_map_remove(parts->ranges, r);
}

static void note_split(struct process_account *p, uint64_t address, uint64_t size, uint64_t first)
{
    if (!p->parts) {
        p->parts = xcalloc(1, sizeof *p->parts);
        p->parts->ranges = range_map_open();
    }
    struct parts *parts = p->parts;
    const struct range *r = range_of(parts, address);
    uint64_t id = r ? r->id : add_block(parts, &(struct part_block){size, address, 1, 0});
    remove_range(parts, address);
    parts->blocks[id - 1].part_count++;
    add_range(parts, address, id);
    add_range(parts, address + first, id);
}

void account_split(struct account *a, const struct event *e)
{
    struct process_account *p = a->processes[e->process_id];
    uint64_t key = live_key(e->address, account_space(e->kind));
    struct live_block *b = p ? live_find(p->live, key, live_hash(key)) : NULL;
    if (!b || !e->size_bytes || e->size_bytes >= b->size)
        return;
    struct live_block rest = *b;
    rest.key = live_key(e->address + e->size_bytes, account_space(e->kind));
    rest.size -= e->size_bytes;
    if (live_find(p->live, rest.key, live_hash(rest.key)))
        return; /* a block whose end was not seen */
    const uint64_t whole_key = account_block_key(p, b);
    note_split(p, e->address & LIVE_ADDRESS_MASK, b->size, e->size_bytes);
    if (account_block_key(p, b) != whole_key)
        account_name_move(a, e->process_id, whole_key, account_block_key(p, b));
    b->size = e->size_bytes;
    *live_place(p->live, rest.key, live_hash(rest.key)) = rest;
    a->counts.live_blocks++;
    store_needs(a->store, DB_SCHEMA_PARTS);
    const struct site *s = site_at(&a->sites, rest.site);
    account_keep(a, e, CHUNK_split, e->address & LIVE_ADDRESS_MASK, e->size_bytes, rest.site, s->device, s->kind, 0);
}

static void tally_part(struct tally *t, uint64_t size, uint64_t lifetime_ns, unsigned is_last)
{
    t->left_bytes += size;
    t->left_count += is_last;
    t->lifetime_ns += is_last ? lifetime_ns : 0;
}

/* The histogram has the whole block, the chunk's sums what its events say: the last part. */
static void part_ends(struct kind_account *k, uint64_t block_bytes, uint64_t part_bytes, unsigned temporary)
{
    struct size_class *block = &k->chunk_sizes[histogram_class(block_bytes)];
    struct size_class *part = &k->chunk_sizes[histogram_class(part_bytes)];
    block->free_count++;
    part->free_count--;
    block->temporary_count += temporary;
    part->temporary_count -= temporary;
}

/* The last part: the block was of the size that was asked for. */
static void block_ends(struct account *a, const struct event *e, const struct live_block *b,
                       const struct part_block *block)
{
    struct site *s = site_at(&a->sites, b->site);
    struct kind_account *k = a->devices[s->device]->kinds[s->kind];
    unsigned temporary = e->op != EVENT_REALLOC_FREE && a->threads[b->thread_id]->last_key == b->key;
    uint64_t lifetime_ns = a->now_ns - b->time_ns;
    struct tally *thread = account_thread_tally(account_thread_device(a, b->thread_id, s->device), s->kind);
    if (temporary) {
        tally_temporary(&s->tally, b->size, 1);
        tally_temporary(thread, b->size, 1);
        k->temporary_bytes += b->size;
    }
    histogram_free(&k->histogram, block->size_bytes, 1, block->size_bytes, lifetime_ns, temporary);
    histogram_cut(&k->histogram, -block->size_bytes, lifetime_ns); /* the bytes were counted as they left */
    part_ends(k, block->size_bytes, b->size, temporary);
    if (largest_wants(&a->largest, block->size_bytes)) {
        struct largest_block l = {.size_bytes = block->size_bytes,
                                  .lifetime_ns = lifetime_ns,
                                  .address = block->address,
                                  .alloc_ns = b->time_ns,
                                  .thread_id = b->thread_id,
                                  .site = b->site,
                                  .process_id = e->process_id};
        largest_add(&a->largest, &l);
    }
}

void account_part_leave(struct account *a, const struct event *e, struct process_account *p, const struct live_block *b)
{
    struct site *s = site_at(&a->sites, b->site);
    struct device_account *d = a->devices[s->device];
    struct kind_account *k = d->kinds[s->kind];
    struct thread_device *t = account_thread_device(a, b->thread_id, s->device);
    struct tally *thread = account_thread_tally(t, s->kind);
    struct part_block whole = {b->size, b->key & LIVE_ADDRESS_MASK, 1, 0}, *block = account_part_of(p, b);
    block = block ? block : &whole;
    unsigned is_last = --block->part_count == 0;
    uint64_t lifetime_ns = a->now_ns - b->time_ns;
    account_seal(a);
    account_touch_site(a, s, b->site);
    account_thread_touch(a, b->thread_id, t, s->kind);
    timeline_step(d->timeline, a->now_ns, d->alloc_count, d->alloc_bytes);
    level_drop(&d->level, b->size, is_last);
    level_drop(&k->level, b->size, is_last);
    timeline_fall(d->timeline, d->level.active_bytes);
    if (b->time_ns < a->started.ns)
        account_inherited_left(a, p, b, is_last);
    tally_part(&s->tally, b->size, lifetime_ns, is_last);
    tally_part(thread, b->size, lifetime_ns, is_last);
    t->live_bytes -= b->size;
    histogram_cut(&k->histogram, b->size, lifetime_ns);
    if (is_last) {
        account_name_end(a, e->process_id, account_block_key(p, b), 0);
        block_ends(a, e, b, block);
    }
    account_reserved_change(a, d, k, -(int64_t)b->size);
    if (b->thread_id != e->thread_id)
        account_chunk_owner(a, b->thread_id);
    if (e->stack_id && event_is_death(e->op))
        account_freed(a, e, b, is_last);
    account_keep(a, e, is_last ? CHUNK_free : CHUNK_cut, b->key & LIVE_ADDRESS_MASK, b->size, b->site, s->device,
                 s->kind, is_last ? b->match : 0);
    if (block == &whole)
        return;
    remove_range(p->parts, b->key & LIVE_ADDRESS_MASK);
    if (is_last) {
        block->part_count = p->parts->unused;
        p->parts->unused = (uint32_t)(block - p->parts->blocks) + 1;
    }
}

/* Of a block that has become a segment, that part of the segment goes. */
static int free_moved(struct account *a, const struct event *e)
{
    const struct process_device *pd = account_process_device(a, e->process_id, e->device);
    struct range found;
    if (!pd->segments || !segments_find(pd->segments, e->address, &found) || found.type != e->kind)
        return 0;
    struct event segment = *e;
    segment.op = EVENT_SEGMENT_FREE;
    account_segment(a, &segment, 1);
    return 1;
}

void account_part_free(struct account *a, const struct event *e)
{
    struct process_account *p = a->processes[e->process_id];
    uint64_t key = live_key(e->address, account_space(e->kind)), hash = live_hash(key);
    struct live_block *b = p ? live_find(p->live, key, hash) : NULL;
    if (b) {
        account_part_leave(a, e, p, b);
        live_remove(p->live, b);
        a->counts.live_blocks--;
    } else if (!(p && p->has_moved && free_moved(a, e))) {
        account_unmatched(a, e);
    }
}
