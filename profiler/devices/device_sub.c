/* Sub-allocators (NVTX memory heaps, pools of memprof.h): their segments, and their blocks of kind 'sub'. */
#include "devices_private.h"

#include <errno.h>
#include <stdlib.h>

#define PUT(list, item)                                                                                                \
    do {                                                                                                               \
        (item)->previous = NULL;                                                                                       \
        (item)->next = (list);                                                                                         \
        if (list)                                                                                                      \
            (list)->previous = (item);                                                                                 \
        (list) = (item);                                                                                               \
    } while (0)
#define TAKE(list, item)                                                                                               \
    do {                                                                                                               \
        *((item)->previous ? &(item)->previous->next : &(list)) = (item)->next;                                        \
        if ((item)->next)                                                                                              \
            (item)->next->previous = (item)->previous;                                                                 \
    } while (0)

static struct sub_pool *find_pool(struct devices *d, uint64_t handle)
{
    struct sub_pool *p = map_pointer(&d->sub_pools, handle);
    if (!p) {
        p = xcalloc(1, sizeof *p);
        p->handle = handle;
        map_set_pointer(&d->sub_pools, handle, p);
    }
    return p;
}

static struct sub_segment *segment_holding(struct devices *d, uint64_t address)
{
    const struct range *r = range_map_find(d->sub_ranges, address);
    return r && r->start <= address ? (struct sub_segment *)(uintptr_t)r->id : NULL;
}

static uint64_t segment_key(const struct sub_pool *pool, uint64_t address)
{
    return pool->handle * 0xD6E8FEB86659FD93ull ^ address; /* pools may lie in each other, at the same address */
}

/* --- blocks --- */

struct sub_block *device_sub_holding(struct devices *d, uint64_t address)
{
    const struct range *r = range_map_find(d->sub_block_ranges, address);
    return r && r->start <= address ? (struct sub_block *)(uintptr_t)r->id : NULL;
}

static void range_add(struct devices *d, struct sub_block *b)
{
    struct range range = {.start = b->address, .end = b->address + (b->size ? b->size : 1), .id = (uintptr_t)b};
    const struct range *r = b->device_id ? range_map_find(d->sub_block_ranges, range.start) : NULL;
    if (!b->device_id || (r && r->start < range.end))
        return;
    range_map_insert(d->sub_block_ranges, &range);
    b->in_ranges = 1;
}

static void range_take(struct devices *d, struct sub_block *b)
{
    if (b->in_ranges)
        range_map_remove(d->sub_block_ranges, range_map_find(d->sub_block_ranges, b->address));
    b->in_ranges = 0;
}

static void block_end(struct devices *d, struct sub_block *b, uint32_t free_stack_id)
{
    if (!b->is_segment)
        devices_emit_free(d, EVENT_FREE, b->device_id, KIND_sub, b->address, free_stack_id, 0);
    device_touch_end(d, &b->is_touched, b->device_id, KIND_sub, b->address, 0);
    range_take(d, b);
    if (b->segment)
        b->segment->block_count--;
    TAKE(b->pool->blocks, b);
    map_take_pointer(b->is_segment ? &d->sub_outer : &d->sub_blocks, b->address);
    if (b->is_segment)
        device_sub_memory_ends(d, b->address, b->size);
    free(b);
}

static unsigned device_of(struct devices *d, uint64_t address)
{
    const struct sub_segment *s = segment_holding(d, address);
    const struct block *b = s ? NULL : devices_block_holding(d, address);
    if (s)
        return s->device_id;
    if (b)
        return b->device_id;
    return d->call->device < WIRE_DEVICE_UNKNOWN ? devices_id(d, d->call->device) : 0;
}

static int block_begin(struct devices *d, struct sub_pool *pool, unsigned op, uint64_t address, uint64_t size,
                       uint32_t stack_id)
{
    struct sub_block *old = map_pointer(&d->sub_blocks, address);
    if (old) {
        d->counts.lost_frees++;
        block_end(d, old, 0);
    }
    struct sub_block *b = xcalloc(1, sizeof *b);
    b->address = address;
    b->size = size;
    b->pool = pool;
    b->segment = segment_holding(d, address);
    b->stack_id = stack_id;
    b->device_id = (uint8_t)device_of(d, address);
    if (b->segment)
        b->segment->block_count++;
    PUT(pool->blocks, b);
    map_set_pointer(&d->sub_blocks, address, b);
    range_add(d, b);
    devices_emit(d, op, b->device_id, KIND_sub, address, size, stack_id, 0);
    return 0;
}

static struct sub_block *find_block(struct devices *d, uint64_t pool, uint64_t address)
{
    const struct map *maps[2] = {&d->sub_blocks, &d->sub_outer};
    for (unsigned i = 0; i < 2; i++) {
        struct sub_block *b = map_pointer(maps[i], address);
        if (b && (!pool || b->pool->handle == pool))
            return b;
    }
    return NULL;
}

int device_sub_free(struct devices *d)
{
    const uint64_t *w = d->call->words;
    struct sub_block *b = find_block(d, w[0], w[1]);
    if (b)
        block_end(d, b, d->call->stack_id);
    else if (w[1]) /* of what nobody knows: it is counted as such */
        devices_emit(d, EVENT_FREE, device_of(d, w[1]), KIND_sub, w[1], 0, 0, 0);
    return 0;
}

int device_sub_resize(struct devices *d)
{
    const uint64_t *w = d->call->words;
    struct sub_block *b = find_block(d, w[0], w[1]);
    if (!b || b->is_segment || devices_range_is_bad(w[1], w[2]))
        return b ? -EINVAL : 0;
    devices_emit_free(d, EVENT_REALLOC_FREE, b->device_id, KIND_sub, b->address, d->call->stack_id, 0);
    device_touch_end(d, &b->is_touched, b->device_id, KIND_sub, b->address, 0);
    range_take(d, b);
    b->size = w[2];
    range_add(d, b);
    if (d->call->stack_id)
        b->stack_id = d->call->stack_id;
    devices_emit(d, EVENT_REALLOC_ALLOC, b->device_id, KIND_sub, b->address, b->size, b->stack_id, 0);
    return 0;
}

int device_sub_reset(struct devices *d)
{
    struct sub_pool *pool = map_pointer(&d->sub_pools, d->call->words[0]);
    while (pool && pool->blocks)
        block_end(d, pool->blocks, d->call->stack_id);
    return 0;
}

/* --- segments --- */

static void segment_end(struct devices *d, struct sub_segment *s)
{
    struct sub_block **in = s->block_count ? xmalloc(s->block_count * sizeof(struct sub_block *)) : NULL;
    uint64_t count = 0;
    const struct map *maps[2] = {&d->sub_blocks, &d->sub_outer};
    for (unsigned m = 0; in && m < 2; m++)
        for (struct map_entry *e = NULL; (e = map_next(maps[m], e));) {
            struct sub_block *b = (struct sub_block *)(uintptr_t)e->value;
            if (b->segment == s) {
                in[count++] = b;
                b->segment = NULL;
            }
        }
    if (s->in_ranges)
        range_map_remove(d->sub_ranges, range_map_find(d->sub_ranges, s->address));
    TAKE(s->pool->segments, s);
    map_take_pointer(&d->sub_segments, segment_key(s->pool, s->address));
    uint64_t address = s->address, size = s->size;
    unsigned device_id = s->device_id, is_own = s->is_own;
    free(s);
    while (count > 0) {
        struct sub_block *b = in[--count];
        if (!b->is_segment)
            block_end(d, b, 0);
    }
    free(in);
    if (is_own)
        devices_emit(d, EVENT_SEGMENT_FREE, device_id, KIND_sub, address, size, 0, 0);
}

void device_sub_memory_ends(struct devices *d, uint64_t address, uint64_t size)
{
    const struct range *r;
    while ((r = range_map_find(d->sub_ranges, address)) && r->start < address + size)
        segment_end(d, (struct sub_segment *)(uintptr_t)r->id);
}

/* What covers the range is a segment from now on. Returns its device. */
static unsigned cover(struct devices *d, struct sub_segment *s)
{
    struct sub_block *outer = map_pointer(&d->sub_blocks, s->address);
    struct block *b = devices_block_holding(d, s->address);
    uint64_t map;
    if (outer && map_pointer(&d->sub_outer, s->address)) {
        block_end(d, map_pointer(&d->sub_outer, s->address), 0); /* with what lies in it */
        outer = map_pointer(&d->sub_blocks, s->address);
    }
    if (outer && outer->pool != s->pool && outer->size >= s->size) {
        outer->is_segment = 1;
        map_take_pointer(&d->sub_blocks, outer->address);
        map_set_pointer(&d->sub_outer, outer->address, outer);
        range_take(d, outer);
        device_touch_end(d, &outer->is_touched, outer->device_id, KIND_sub, outer->address, TOUCH_MOVED);
        devices_emit(d, EVENT_TO_SEGMENT, outer->device_id, KIND_sub, outer->address, outer->size, 0, 1);
        return outer->device_id;
    }
    if (b) {
        device_touch_end(d, &b->is_touched, b->device_id, b->kind, b->address, TOUCH_MOVED);
        if (!b->is_segment)
            devices_emit(d, EVENT_TO_SEGMENT, b->device_id, b->kind, b->address, b->size, 0,
                         b->is_foreign || b->kind == KIND_pool || b->kind == KIND_vmm);
        b->is_segment = 1;
        return b->device_id;
    }
    unsigned device_id = device_of(d, s->address);
    s->is_own = !segment_holding(d, s->address);
    if (device_id)
        devices_emit(d, EVENT_TO_SEGMENT, device_id, KIND_sub, s->address, s->size, 0, 0);
    else if ((map = d->sink->host_map(d->sink->arg, s->address)))
        devices_emit(d, EVENT_TO_SEGMENT, 0, KIND_map, map, s->size, 0, 0);
    else
        devices_emit(d, EVENT_TO_SEGMENT, 0, KIND_heap, s->address, s->size, 0, 0);
    return device_id;
}

static void segment_begin(struct devices *d, struct sub_pool *pool, uint64_t address, uint64_t size)
{
    struct sub_segment *s = map_pointer(&d->sub_segments, segment_key(pool, address));
    if (s && s->size == size)
        return;
    if (s)
        segment_end(d, s);
    s = xcalloc(1, sizeof *s);
    s->address = address;
    s->size = size;
    s->pool = pool;
    s->device_id = (uint8_t)cover(d, s);
    if (pool->name)
        d->sink->name(d->sink->arg, address, pool->name);
    PUT(pool->segments, s);
    map_set_pointer(&d->sub_segments, segment_key(pool, address), s);
    const struct range *r = range_map_find(d->sub_ranges, address);
    if (!r || r->start >= address + size) {
        struct range range = {.start = address, .end = address + size, .id = (uintptr_t)s};
        range_map_insert(d->sub_ranges, &range);
        s->in_ranges = 1;
    }
}

int device_sub_segment(struct devices *d)
{
    const uint64_t *w = d->call->words;
    if (devices_range_is_bad(w[1], w[2]) || !w[2])
        return -EINVAL;
    segment_begin(d, find_pool(d, w[0]), w[1], w[2]);
    return 0;
}

/* A pool that does not say what it holds (PyTorch's): whatever the driver gave under the block is a segment of it. */
static void segments_under(struct devices *d, struct sub_pool *pool, uint64_t address, uint64_t size)
{
    uint64_t end = address + size;
    while (address < end) {
        const struct block *b = segment_holding(d, address) ? NULL : devices_block_holding(d, address);
        const struct sub_segment *s = b ? NULL : segment_holding(d, address);
        if (!b && !s)
            return;
        uint64_t next = b ? b->address + b->size : s->address + s->size;
        if (b)
            segment_begin(d, pool, b->address, b->size);
        if (next <= address)
            return;
        address = next;
    }
}

int device_sub_alloc(struct devices *d)
{
    const uint64_t *w = d->call->words;
    if (devices_range_is_bad(w[1], w[2]))
        return -EINVAL;
    struct sub_pool *pool = find_pool(d, w[0]);
    if (d->call->flags & WIRE_CALL_IMPLICIT)
        segments_under(d, pool, w[1], w[2]);
    return block_begin(d, pool, EVENT_ALLOC, w[1], w[2], d->call->stack_id);
}

int device_sub_segment_end(struct devices *d)
{
    struct sub_pool *pool = map_pointer(&d->sub_pools, d->call->words[0]);
    struct sub_segment *s = pool ? map_pointer(&d->sub_segments, segment_key(pool, d->call->words[1])) : NULL;
    if (s && s->pool == pool && s->address == d->call->words[1])
        segment_end(d, s);
    return 0;
}

/* --- pools --- */

int device_sub_pool(struct devices *d)
{
    struct sub_pool *pool = find_pool(d, d->call->words[0]);
    char *name = devices_text(d->call, 1);
    if (name) {
        free(pool->name);
        pool->name = name;
    }
    return 0;
}

int device_sub_pool_end(struct devices *d)
{
    struct sub_pool *pool = map_pointer(&d->sub_pools, d->call->words[0]);
    if (!pool)
        return 0;
    while (pool->blocks)
        block_end(d, pool->blocks, d->call->stack_id);
    while (pool->segments)
        segment_end(d, pool->segments);
    map_take_pointer(&d->sub_pools, pool->handle);
    free(pool->name);
    free(pool);
    return 0;
}

void device_sub_close(struct devices *d)
{
    for (struct map_entry *e = NULL; (e = map_next(&d->sub_pools, e));)
        free(((struct sub_pool *)(uintptr_t)e->value)->name);
    struct map *maps[] = {&d->sub_blocks, &d->sub_outer, &d->sub_segments, &d->sub_pools};
    for (unsigned m = 0; m < 4; m++)
        map_close_pointers(maps[m], free);
}
