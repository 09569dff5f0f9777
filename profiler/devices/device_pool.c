/* Stream-ordered pools, and the memory of graphs, which is another such pool of its device. */
#include "devices_private.h"

#include <errno.h>
#include <stdlib.h>

#define GRAPH_HANDLES 0xffffffffffff0000ull /* no pointer: one a device */

static struct pool *add(struct devices *d, uint64_t handle, unsigned device_id)
{
    struct pool *pool = xcalloc(1, sizeof *pool);
    pool->handle = handle;
    pool->device_id = (uint8_t)device_id;
    map_set_pointer(&d->pools, handle, pool);
    return pool;
}

/* Frees it where it is over and holds nothing. */
static void update(struct devices *d, struct pool *pool)
{
    if (!pool->is_ended || pool->block_count)
        return;
    if (pool->reserved_bytes)
        pool->end_bytes = pool->reserved_bytes;
    device_pool_now(d, pool, 0);
    if (!pool->pins)
        free(pool);
}

static void end(struct devices *d, struct pool *pool)
{
    map_take_pointer(&d->pools, pool->handle);
    pool->is_ended = 1;
    update(d, pool);
}

/* The pool of that handle; one that nobody saw is there since now. */
static struct pool *find(struct devices *d, uint64_t handle)
{
    struct pool *pool = map_pointer(&d->pools, handle);
    return pool ? pool : add(d, handle, devices_id(d, d->call->device));
}

struct pool *device_pool_graph(struct devices *d, unsigned device_id)
{
    struct pool *pool = map_pointer(&d->pools, GRAPH_HANDLES | device_id);
    if (!pool) {
        pool = add(d, GRAPH_HANDLES | device_id, device_id);
        pool->is_graph = 1;
    }
    return pool;
}

/* Its reserved bytes; never less than its blocks. */
void device_pool_now(struct devices *d, struct pool *pool, uint64_t reserved_bytes)
{
    if (reserved_bytes < pool->active_bytes)
        reserved_bytes = pool->active_bytes;
    if (pool->is_imported)
        reserved_bytes = 0;
    devices_reserve(d, pool->device_id, KIND_pool, (int64_t)(reserved_bytes - pool->reserved_bytes));
    pool->reserved_bytes = reserved_bytes;
    if (pool->high_bytes < reserved_bytes)
        pool->high_bytes = reserved_bytes;
}

void device_pool_born(struct devices *d, const struct block *b)
{
    if (!b->pool)
        return;
    b->pool->active_bytes += b->size;
    b->pool->block_count++;
    device_pool_now(d, b->pool,
                    b->pool->is_ended && b->pool->block_count == 1 ? b->pool->end_bytes : b->pool->reserved_bytes);
}

void device_pool_dies(struct devices *d, struct block *b)
{
    if (!b->pool)
        return;
    b->pool->active_bytes -= b->size;
    b->pool->block_count--;
    update(d, b->pool);
}

void device_pool_unpin(struct devices *d, struct pool *pool)
{
    if (!pool)
        return;
    pool->pins--;
    update(d, pool);
}

int device_pool(struct devices *d)
{
    uint64_t handle = d->call->words[0];
    struct pool *pool = map_pointer(&d->pools, handle);
    if (!handle || handle >= GRAPH_HANDLES)
        return -EINVAL;
    if (pool && pool->block_count) /* the handle of one whose end was not seen, or seen twice */
        return 0;
    if (pool)
        end(d, pool);
    pool = add(d, handle, devices_id(d, d->call->device));
    pool->is_imported = (d->call->words[1] & WIRE_POOL_IMPORTED) != 0;
    return 0;
}

int device_pool_end(struct devices *d)
{
    struct pool *pool = map_pointer(&d->pools, d->call->words[0]);
    if (pool && !pool->is_graph)
        end(d, pool);
    return 0;
}

int device_pool_alloc(struct devices *d)
{
    const uint64_t *w = d->call->words;
    if (devices_range_is_bad(w[0], w[1]) || w[2] >= GRAPH_HANDLES)
        return -EINVAL;
    struct pool *pool = find(d, w[2]);
    struct block *b = devices_block_new(d, w[0], w[1], pool->device_id);
    b->kind = KIND_pool;
    b->pool = pool;
    b->stream = w[3];
    if (pool->is_imported) {
        b->is_foreign = 1;
        b->device_id = (uint8_t)devices_foreign(d, pool->device_id);
    }
    devices_succeeded(d, KIND_pool, w[1]);
    pool->pins++; /* making room may end its last block */
    devices_block_add(d, b);
    device_pool_unpin(d, pool);
    return 0;
}

/* --- frees that wait --- */

void device_pool_request(struct devices *d, struct block *b, uint64_t stream)
{
    b->stream = stream;
    b->is_pending = 1;
    devices_note_free(d, b);
    b->next_pending = NULL;
    b->previous_pending = d->last_pending;
    *(d->last_pending ? &d->last_pending->next_pending : &d->first_pending) = b;
    d->last_pending = b;
    if (!b->is_segment)
        devices_emit(d, EVENT_FREE_REQUESTED, b->device_id, b->kind, b->address, 0, b->free_stack_id, 0);
}

void device_pool_unpend(struct devices *d, struct block *b)
{
    *(b->previous_pending ? &b->previous_pending->next_pending : &d->first_pending) = b->next_pending;
    *(b->next_pending ? &b->next_pending->previous_pending : &d->last_pending) = b->previous_pending;
    b->is_pending = 0;
}

int device_pool_free(struct devices *d)
{
    uint64_t address = d->call->words[0];
    struct thread *t = devices_thread(d);
    struct block *b = devices_block_at(d, address);
    t->failure.has_freed = 1;
    if (b && b->where == WHERE_FOREIGN) { /* a block of an imported pool */
        devices_block_end(d, b, &t->undo);
        return 0;
    }
    if (!b || b->object) {
        if (address) /* of what nobody knows: it is counted as such */
            devices_emit(d, EVENT_FREE, devices_id(d, d->call->device), KIND_pool, address, 0, 0, 0);
        return 0;
    }
    if (b->is_pending)
        return 0;
    t->undo.pending_serial = b->serial;
    t->undo.pending_address = b->address;
    device_pool_request(d, b, d->call->words[1]);
    return 0;
}

int device_pool_state(struct devices *d)
{
    const uint64_t *w = d->call->words;
    struct pool *pool = map_pointer(&d->pools, w[0]);
    uint64_t reserved_bytes = w[1];
    int all_done = w[3] == 1 || !w[2];
    if (!w[0] || w[0] >= GRAPH_HANDLES || reserved_bytes >= 1ull << 57)
        return -EINVAL;
    if (!pool)
        pool = find(d, w[0]);
    pool->pins++;
    /* it held more for a moment between two readings */
    if (d->call->word_count > 4 && w[4] > pool->high_bytes && w[4] > reserved_bytes && w[4] < 1ull << 57)
        device_pool_now(d, pool, w[4]);
    for (struct block *b = d->first_pending, *next; b; b = next) {
        next = b->next_pending;
        /* what does not fit in any more is gone, the oldest first */
        if (b->pool == pool && (all_done || pool->active_bytes > reserved_bytes))
            devices_block_end(d, b, NULL);
    }
    device_pool_now(d, pool, reserved_bytes);
    device_pool_unpin(d, pool);
    return 0;
}

int device_sync(struct devices *d)
{
    uint64_t stream = d->call->words[1];
    uintptr_t known = (uintptr_t)map_pointer(&d->contexts, d->call->words[0]);
    unsigned ordinal = d->call->device < WIRE_DEVICE_UNKNOWN || !known ? d->call->device : (unsigned)(known - 1);
    int device_id = ordinal < WIRE_DEVICE_UNKNOWN ? (int)devices_id(d, ordinal) : -1;
    for (struct block *b = d->first_pending, *next; b; b = next) {
        next = b->next_pending;
        if (stream ? b->stream == stream : device_id < 0 || b->device_id == device_id || b->is_foreign)
            devices_block_end(d, b, NULL);
    }
    return 0;
}

void device_pools_close(struct devices *d)
{
    for (struct block *b = d->first; b; b = b->next) /* those that are over live by their blocks alone */
        if (b->pool && b->pool->is_ended && !--b->pool->block_count)
            free(b->pool);
    map_close_pointers(&d->pools, free);
}
