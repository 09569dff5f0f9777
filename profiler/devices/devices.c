#include "devices_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ADDRESS_END (1ull << 57)
#define SIZE_END    (1ull << 57)
#define TEXT_MAX    1000u

struct devices *devices_open(void)
{
    struct devices *d = xcalloc(1, sizeof *d);
    d->ranges = range_map_open();
    d->sub_ranges = range_map_open();
    d->sub_block_ranges = range_map_open();
    return d;
}

static void undo_close(struct devices *d, struct undo *u)
{
    devices_undo_clear(d, u);
    free(u->blocks);
    free(u->pinned);
}

void devices_close(struct devices *d)
{
    if (!d)
        return;
    for (struct map_entry *e = NULL; (e = map_next(&d->threads, e));)
        undo_close(d, &((struct thread *)(uintptr_t)e->value)->undo);
    map_close_pointers(&d->threads, free);
    device_sub_close(d);
    device_graphs_close(d);
    device_vmm_close(d);
    device_pools_close(d);
    for (struct block *b = d->first, *next; b; b = next) {
        next = b->next;
        free(b);
    }
    map_close(&d->handles);
    map_close(&d->foreign);
    map_close(&d->contexts);
    range_map_close(d->ranges);
    range_map_close(d->sub_ranges);
    range_map_close(d->sub_block_ranges);
    free(d);
}

void devices_counts(const struct devices *d, struct devices_counts *counts)
{
    *counts = d->counts;
}

/* --- what leaves --- */

void devices_emit(struct devices *d, unsigned op, unsigned device_id, unsigned kind, uint64_t address, uint64_t size,
                  uint32_t stack_id, int is_sampled)
{
    struct event e = {.address = address,
                      .size_bytes = size,
                      .stack_id = stack_id,
                      .op = (uint8_t)op,
                      .device = (uint8_t)device_id,
                      .kind = (uint8_t)kind,
                      .is_sampled = is_sampled != 0};
    d->sink->event(d->sink->arg, &e);
}

void devices_emit_free(struct devices *d, unsigned op, unsigned device_id, unsigned kind, uint64_t address,
                       uint32_t stack_id, int is_elsewhere)
{
    devices_emit(d, op, device_id, kind, address, 0, stack_id, stack_id && is_elsewhere);
}

/* Of what calls take away that is not memory of the host's, and not another process's. */
void devices_note_free(struct devices *d, struct block *b)
{
    const struct devices_call *c = d->call;
    if (b->free_stack_id || !devices_takes_away(c->call))
        return;
    b->free_stack_id = c->stack_id;
    b->is_freed_elsewhere =
        c->device < WIRE_DEVICE_UNKNOWN && b->device_id && !b->is_foreign && devices_id(d, c->device) != b->device_id;
}

void devices_reserve(struct devices *d, unsigned device_id, unsigned kind, int64_t bytes)
{
    uint64_t *reserved = &d->reserved_bytes[device_id][kind];
    if (!bytes)
        return;
    *reserved += (uint64_t)bytes;
    devices_emit(d, EVENT_RESERVED, device_id, kind, 0, *reserved, 0, 1);
}

/* --- devices, contexts, threads --- */

unsigned devices_id(struct devices *d, unsigned ordinal)
{
    if (ordinal == WIRE_DEVICE_HOST)
        return 0;
    if (ordinal == WIRE_DEVICE_UNKNOWN)
        ordinal = 0;
    if (!d->id_of[ordinal])
        d->id_of[ordinal] = (uint16_t)(d->sink->device(d->sink->arg, ordinal, NULL, 0, NULL) % DEVICE_IDS + 1);
    return d->id_of[ordinal] - 1u;
}

int devices_ordinal(const struct devices *d, unsigned device_id)
{
    for (unsigned ordinal = 0; ordinal < DEVICE_IDS; ordinal++)
        if (d->id_of[ordinal] == device_id + 1u)
            return (int)ordinal;
    return -1;
}

unsigned devices_foreign(struct devices *d, unsigned device_id)
{
    if (!d->foreign_of[device_id])
        d->foreign_of[device_id] = (uint16_t)(d->sink->foreign(d->sink->arg, device_id) % DEVICE_IDS + 1);
    return d->foreign_of[device_id] - 1u;
}

char *devices_text(const struct devices_call *c, size_t word)
{
    uint64_t bytes = word < c->word_count ? c->words[word] : 0;
    if (!bytes)
        return NULL;
    if (bytes > TEXT_MAX)
        bytes = TEXT_MAX;
    if (bytes > (c->word_count - word - 1) * 8)
        bytes = (c->word_count - word - 1) * 8;
    char *text = xmalloc(bytes + 1);
    memcpy(text, c->words + word + 1, bytes);
    text[bytes] = 0;
    if (*text)
        return text;
    free(text);
    return NULL;
}

static int apply_device(struct devices *d)
{
    const struct devices_call *c = d->call;
    if (c->device >= WIRE_DEVICE_UNKNOWN)
        return -EINVAL;
    char *model = devices_text(c, 3);
    unsigned id = d->sink->device(d->sink->arg, c->device, c->words + 1, c->words[0], model);
    d->id_of[c->device] = (uint16_t)(id % DEVICE_IDS + 1);
    free(model);
    return 0;
}

static int apply_name(struct devices *d)
{
    uint64_t address = d->call->words[0];
    struct sub_pool *pool = map_pointer(&d->sub_pools, address);
    char *name = devices_text(d->call, 1);
    if (name && pool) {
        free(pool->name);
        pool->name = name;
        return 0;
    }
    if (name && !devices_range_is_bad(address, 0))
        d->sink->name(d->sink->arg, address, name);
    free(name);
    return 0;
}

struct thread *devices_thread(struct devices *d)
{
    struct thread *t = map_pointer(&d->threads, d->call->thread_id);
    if (!t) {
        t = xcalloc(1, sizeof *t);
        map_set_pointer(&d->threads, d->call->thread_id, t);
    }
    return t;
}

/* --- blocks --- */

int devices_range_is_bad(uint64_t address, uint64_t size)
{
    return !address || address >= ADDRESS_END || size >= SIZE_END;
}

struct block *devices_block_new(struct devices *d, uint64_t address, uint64_t size, unsigned device_id)
{
    struct block *b = xcalloc(1, sizeof *b);
    b->address = address;
    b->size = size;
    b->device_id = (uint8_t)device_id;
    b->kind = (uint8_t)d->call->kind;
    b->stack_id = d->call->stack_id;
    b->is_segment = d->call->is_segment != 0;
    return b;
}

static uint64_t end_of(const struct block *b)
{
    return b->address + (b->size ? b->size : 1);
}

struct block *devices_block_holding(struct devices *d, uint64_t address)
{
    const struct range *r = range_map_find(d->ranges, address);
    return r && r->start <= address ? (struct block *)(uintptr_t)r->id : NULL;
}

struct block *devices_block_at(struct devices *d, uint64_t address)
{
    struct block *b = devices_block_holding(d, address);
    return b && b->address == address ? b : NULL;
}

/* What is reserved with it, where that is not a sample. */
int devices_is_segment_too(const struct block *b)
{
    return !b->is_foreign &&
           (b->kind == KIND_device || b->kind == KIND_pinned || (b->kind == KIND_managed && b->is_segment));
}

static int is_sampled(const struct block *b)
{
    return b->is_foreign || b->kind == KIND_pool || b->kind == KIND_vmm || b->kind == KIND_array;
}

static void born(struct devices *d, const struct block *b)
{
    if (b->is_silent)
        return;
    if (devices_is_segment_too(b) || (b->is_segment && is_sampled(b)))
        devices_emit(d, EVENT_SEGMENT_ALLOC, b->device_id, b->kind, b->address, b->size, b->stack_id, is_sampled(b));
    if (b->kind == KIND_array && !b->is_foreign)
        devices_reserve(d, b->device_id, KIND_array, (int64_t)b->size);
    if (!b->is_segment)
        devices_emit(d, EVENT_ALLOC, b->device_id, b->kind, b->address, b->size, b->stack_id, 0);
}

static void died(struct devices *d, struct block *b)
{
    if (b->is_silent)
        return;
    if (!b->is_segment)
        devices_emit_free(d, EVENT_FREE, b->device_id, b->kind, b->address, b->free_stack_id, b->is_freed_elsewhere);
    device_touch_end(d, &b->is_touched, b->device_id, b->kind, b->address, 0);
    if (devices_is_segment_too(b) || b->is_segment)
        devices_emit(d, EVENT_SEGMENT_FREE, b->device_id, b->kind, b->address, b->size, 0, is_sampled(b));
    if (b->kind == KIND_array && !b->is_foreign)
        devices_reserve(d, b->device_id, KIND_array, -(int64_t)b->size);
}

static struct map *map_of(struct devices *d, const struct block *b)
{
    return b->where == WHERE_HANDLE ? &d->handles : b->where == WHERE_FOREIGN ? &d->foreign : NULL;
}

static void make_room(struct devices *d, struct block *b)
{
    struct map *map = map_of(d, b);
    struct range *r;
    struct block *other = map ? map_pointer(map, b->address) : NULL;
    if (other) {
        d->counts.lost_frees++;
        devices_block_end(d, other, NULL);
    }
    if (b->where == WHERE_HANDLE)
        return;
    while ((r = range_map_find(d->ranges, b->address)) && r->start < end_of(b)) {
        other = (struct block *)(uintptr_t)r->id;
        if (b->where == WHERE_FOREIGN)
            return;                                 /* a handle, most likely: it is found by itself only */
        d->counts.lost_frees += !other->is_pending; /* the memory of a pending free is reused: it is done */
        devices_block_end(d, other, NULL);
    }
    b->in_ranges = 1;
}

void devices_block_add(struct devices *d, struct block *b)
{
    struct map *map = map_of(d, b);
    make_room(d, b);
    b->serial = ++d->serial;
    b->next = NULL;
    b->previous = d->last;
    *(d->last ? &d->last->next : &d->first) = b;
    d->last = b;
    if (map)
        map_set_pointer(map, b->address, b);
    if (b->in_ranges) {
        struct range range = {.start = b->address, .end = end_of(b), .id = (uintptr_t)b};
        range_map_insert(d->ranges, &range);
    }
    if (b->object) {
        b->object->maps++;
        device_vmm_update(d, b->object);
    }
    device_pool_born(d, b);
    born(d, b);
}

void devices_block_end(struct devices *d, struct block *b, struct undo *keep)
{
    struct map *map = map_of(d, b);
    if (b->is_pending)
        device_pool_unpend(d, b);
    devices_note_free(d, b);
    *(b->previous ? &b->previous->next : &d->first) = b->next;
    *(b->next ? &b->next->previous : &d->last) = b->previous;
    if (map)
        map_take_pointer(map, b->address);
    if (b->in_ranges)
        range_map_remove(d->ranges, range_map_find(d->ranges, b->address));
    b->in_ranges = 0;
    if (b->is_segment)
        device_sub_memory_ends(d, b->address, b->size);
    died(d, b);
    if (b->object) {
        b->object->maps--;
        if (keep)
            devices_undo_pin(keep, b->object);
        device_vmm_update(d, b->object);
    }
    if (keep && b->pool)
        b->pool->pins++;
    device_pool_dies(d, b);
    if (keep)
        devices_undo_keep(keep, b);
    else
        free(b);
}

void devices_succeeded(struct devices *d, unsigned kind, uint64_t size)
{
    struct failure *f = &devices_thread(d)->failure;
    if (f->size != size || f->kind != kind || f->device != d->call->device)
        return;
    d->counts.alloc_retries += f->has_freed != 0;
    *f = (struct failure){0};
}

static void freed(struct devices *d)
{
    devices_thread(d)->failure.has_freed = 1;
}

/* Of a block that allocations of contexts own. */
static int apply_alloc(struct devices *d)
{
    const struct devices_call *c = d->call;
    uint64_t address = c->words[0], size = c->words[1], context = c->words[2];
    unsigned ordinal = c->device;
    if (devices_range_is_bad(address, size) || c->kind >= KIND_COUNT)
        return -EINVAL;
    uintptr_t known = (uintptr_t)map_pointer(&d->contexts, context);
    if (ordinal == WIRE_DEVICE_UNKNOWN && known)
        ordinal = (unsigned)(known - 1);
    else if (context && ordinal < WIRE_DEVICE_UNKNOWN)
        map_set_pointer(&d->contexts, context, (void *)(uintptr_t)(ordinal + 1));
    if (c->kind == KIND_pinned)
        ordinal = WIRE_DEVICE_HOST;
    struct block *b = devices_block_new(d, address, size, devices_id(d, ordinal));
    b->context = context;
    if (c->kind == KIND_array) {
        b->where = WHERE_HANDLE;
        b->is_segment = 0;
    }
    devices_succeeded(d, c->kind, size);
    devices_block_add(d, b);
    return 0;
}

static int apply_free(struct devices *d)
{
    const struct devices_call *c = d->call;
    uint64_t address = c->words[0];
    struct undo *undo = &devices_thread(d)->undo;
    struct block *b = c->kind == KIND_array ? map_pointer(&d->handles, address) : devices_block_at(d, address);
    freed(d);
    if (b && (b->object || (c->kind == KIND_pinned) != (b->kind == KIND_pinned)))
        b = NULL; /* no such call frees it: this one is about to fail */
    if (b)
        devices_block_end(d, b, undo);
    else if (address)
        devices_emit(d, EVENT_FREE, devices_id(d, c->kind == KIND_pinned ? WIRE_DEVICE_HOST : c->device), c->kind,
                     address, 0, 0, 0); /* of what nobody knows: it is counted as such */
    return 0;
}

static int apply_context_end(struct devices *d)
{
    uint64_t context = d->call->words[0];
    int whole_device = d->call->words[1] == 1;
    unsigned ordinal = d->call->device;
    uintptr_t known = (uintptr_t)map_pointer(&d->contexts, context);
    if (ordinal >= WIRE_DEVICE_UNKNOWN && known)
        ordinal = (unsigned)(known - 1);
    for (struct block *b = d->first, *next; b; b = next) {
        next = b->next;
        uintptr_t owner = b->context ? (uintptr_t)map_pointer(&d->contexts, b->context) : 0;
        if (b->context && (b->context == context || (whole_device && owner == ordinal + 1u)))
            devices_block_end(d, b, NULL);
    }
    map_take_pointer(&d->contexts, context);
    freed(d);
    return 0;
}

/* --- calls taken back --- */

void devices_undo_keep(struct undo *u, struct block *b)
{
    *ARRAY_ADD(u->blocks, u->block_count, u->block_capacity) = b;
}

void devices_undo_pin(struct undo *u, struct vmm_object *o)
{
    *ARRAY_ADD(u->pinned, u->pinned_count, u->pinned_capacity) = o;
    o->pins++;
}

void devices_undo_clear(struct devices *d, struct undo *u)
{
    for (size_t i = 0; i < u->block_count; i++) {
        device_pool_unpin(d, u->blocks[i]->pool);
        free(u->blocks[i]);
    }
    for (size_t i = 0; i < u->pinned_count; i++) {
        u->pinned[i]->pins--;
        device_vmm_update(d, u->pinned[i]);
    }
    device_graph_free(u->graph);
    u->graph = NULL;
    u->released = NULL;
    u->block_count = u->pinned_count = 0;
    u->pending_serial = u->pending_address = 0;
    u->is_told = 0;
}

/* What its blocks' addresses mean now wins: a block of another thread may live there already. */
static int take_back(struct devices *d, struct undo *u)
{
    for (size_t i = u->block_count; i-- > 0;) {
        struct block *b = u->blocks[i];
        struct pool *pool = b->pool;
        b->is_pending = 0;
        b->free_stack_id = 0;
        devices_block_add(d, b);
        device_pool_unpin(d, pool);
    }
    u->block_count = 0;
    struct block *b = u->pending_serial ? devices_block_at(d, u->pending_address) : NULL;
    if (b && b->serial == u->pending_serial && b->is_pending) {
        devices_block_end(d, b, u);
        u->pending_serial = 0;
        return take_back(d, u);
    }
    device_vmm_undo(d, u);
    device_graph_undo(d, u);
    devices_undo_clear(d, u);
    return 0;
}

static int apply_undo(struct devices *d)
{
    struct undo *u = &devices_thread(d)->undo;
    d->counts.refused += !u->is_told;
    u->is_told = 0;
    return take_back(d, u);
}

/* --- foreign memory, figures, failures, transfers --- */

static int apply_foreign_open(struct devices *d)
{
    const struct devices_call *c = d->call;
    if (devices_range_is_bad(c->words[0], c->words[1]))
        return -EINVAL;
    struct block *b = devices_block_new(d, c->words[0], c->words[1], devices_foreign(d, devices_id(d, c->device)));
    b->where = WHERE_FOREIGN;
    b->kind = KIND_device;
    b->is_segment = 0;
    b->is_foreign = 1;
    devices_block_add(d, b);
    return 0;
}

static int apply_foreign_close(struct devices *d)
{
    struct block *b = map_pointer(&d->foreign, d->call->words[0]);
    if (b)
        devices_block_end(d, b, &devices_thread(d)->undo);
    return 0;
}

static void figures(struct devices *d, uint64_t free_bytes, uint64_t total_bytes)
{
    if (d->call->device < WIRE_DEVICE_UNKNOWN && free_bytes <= total_bytes && total_bytes < SIZE_END)
        devices_emit(d, EVENT_DEVICE_USED, devices_id(d, d->call->device), KIND_device, total_bytes,
                     total_bytes - free_bytes, 0, 0);
}

static int apply_memory_info(struct devices *d)
{
    figures(d, d->call->words[0], d->call->words[1]);
    return 0;
}

static int apply_oom(struct devices *d)
{
    const struct devices_call *c = d->call;
    unsigned ordinal = c->kind == KIND_pinned ? WIRE_DEVICE_HOST : c->device;
    if (c->kind >= KIND_COUNT)
        return -EINVAL;
    if (c->words[2])
        figures(d, c->words[1], c->words[2]);
    devices_thread(d)->failure = (struct failure){.size = c->words[0], .device = c->device, .kind = c->kind};
    devices_emit(d, EVENT_OOM, devices_id(d, ordinal), c->kind, c->words[3], c->words[0], c->stack_id, 0);
    return 0;
}

enum place { PLACE_HOST, PLACE_DEVICE, PLACE_MANAGED };

static enum place place_of(struct devices *d, uint64_t address, unsigned *device_id)
{
    const struct block *b = devices_block_holding(d, address);
    if (!b || b->kind == KIND_pinned)
        return PLACE_HOST;
    *device_id = b->device_id;
    return b->kind == KIND_managed ? PLACE_MANAGED : PLACE_DEVICE;
}

void devices_transfer(struct devices *d, unsigned device_id, uint32_t stack_id, unsigned direction, uint64_t bytes,
                      uint64_t to_address, uint64_t from_address)
{
    unsigned to_id = 0, from_id = 0;
    if (direction == WIRE_UNIFIED) {
        enum place to = place_of(d, to_address, &to_id), from = place_of(d, from_address, &from_id);
        static const uint8_t directions[2][2] = {{WIRE_HTOH, WIRE_DTOH}, {WIRE_HTOD, WIRE_DTOD}};
        if (to != PLACE_MANAGED && from != PLACE_MANAGED) {
            direction = directions[to][from];
            if (direction == WIRE_DTOD && to_id != from_id)
                direction = WIRE_PEER;
        }
        if (to_id || from_id)
            device_id = to_id ? to_id : from_id;
    }
    d->sink->transfer(d->sink->arg, stack_id, device_id, direction, 1, bytes);
    device_touch(d, direction, bytes, to_address, from_address);
}

static int apply_transfer(struct devices *d)
{
    const struct devices_call *c = d->call;
    const uint64_t *w = c->words;
    if (w[1] > WIRE_UNIFIED || w[0] >= SIZE_END)
        return -EINVAL;
    if (c->flags & WIRE_CALL_CAPTURED)
        return device_graph_transfer(d);
    devices_transfer(d, devices_id(d, c->device), c->stack_id, (unsigned)w[1], w[0], w[2], w[3]);
    return 0;
}

static int apply_nothing(struct devices *d)
{
    (void)d;
    return 0;
}

static int apply_graph_alloc_node(struct devices *d)
{
    return device_graph_node(d, 1);
}

static int apply_graph_free_node(struct devices *d)
{
    return device_graph_node(d, 0);
}

/* --- dispatch --- */

static const struct {
    int (*apply)(struct devices *d);
    uint8_t words;      /* at least */
    uint8_t takes_away; /* may be taken back by UNDO */
    uint8_t unless_captured;
} calls[WIRE_CALL_COUNT] = {
    [WIRE_CALL_DEVICE] = {apply_device, 4, 0, 0},
    [WIRE_CALL_ALLOC] = {apply_alloc, 3, 0, 1},
    [WIRE_CALL_FREE] = {apply_free, 1, 1, 1},
    [WIRE_CALL_UNDO] = {apply_undo, 0, 0, 0},
    [WIRE_CALL_CONTEXT_END] = {apply_context_end, 2, 0, 0},
    [WIRE_CALL_POOL] = {device_pool, 2, 0, 0},
    [WIRE_CALL_POOL_END] = {device_pool_end, 1, 0, 0},
    [WIRE_CALL_POOL_ALLOC] = {device_pool_alloc, 4, 0, 1},
    [WIRE_CALL_POOL_FREE] = {device_pool_free, 2, 1, 1},
    [WIRE_CALL_POOL_STATE] = {device_pool_state, 4, 0, 0},
    [WIRE_CALL_SYNC] = {device_sync, 2, 0, 0},
    [WIRE_CALL_VMM_CREATE] = {device_vmm_create, 3, 0, 0},
    [WIRE_CALL_VMM_RETAIN] = {device_vmm_retain, 2, 0, 0},
    [WIRE_CALL_VMM_RELEASE] = {device_vmm_release, 1, 1, 0},
    [WIRE_CALL_VMM_MAP] = {device_vmm_map, 4, 0, 0},
    [WIRE_CALL_VMM_UNMAP] = {device_vmm_unmap, 2, 1, 0},
    [WIRE_CALL_VMM_RESERVE] = {apply_nothing, 2, 0, 0},
    [WIRE_CALL_VMM_UNRESERVE] = {apply_nothing, 2, 1, 0},
    [WIRE_CALL_FOREIGN_OPEN] = {apply_foreign_open, 2, 0, 0},
    [WIRE_CALL_FOREIGN_CLOSE] = {apply_foreign_close, 1, 1, 0},
    [WIRE_CALL_GRAPH_ALLOC_NODE] = {apply_graph_alloc_node, 3, 0, 0},
    [WIRE_CALL_GRAPH_FREE_NODE] = {apply_graph_free_node, 2, 0, 0},
    [WIRE_CALL_GRAPH_CHILD] = {device_graph_child, 2, 0, 0},
    [WIRE_CALL_GRAPH_INSTANTIATE] = {device_graph_instantiate, 2, 0, 0},
    [WIRE_CALL_GRAPH_LAUNCH] = {device_graph_launch, 2, 0, 1},
    [WIRE_CALL_GRAPH_END] = {device_graph_end, 1, 1, 0},
    [WIRE_CALL_GRAPH_STATE] = {device_graph_state, 2, 0, 0},
    [WIRE_CALL_MEMORY_INFO] = {apply_memory_info, 2, 0, 0},
    [WIRE_CALL_OOM] = {apply_oom, 4, 0, 0},
    [WIRE_CALL_TRANSFER] = {apply_transfer, 4, 0, 0},
    [WIRE_CALL_SUB_POOL] = {device_sub_pool, 1, 0, 0},
    [WIRE_CALL_SUB_POOL_END] = {device_sub_pool_end, 1, 0, 0},
    [WIRE_CALL_SUB_SEGMENT] = {device_sub_segment, 3, 0, 0},
    [WIRE_CALL_SUB_SEGMENT_END] = {device_sub_segment_end, 2, 0, 0},
    [WIRE_CALL_SUB_ALLOC] = {device_sub_alloc, 3, 0, 0},
    [WIRE_CALL_SUB_FREE] = {device_sub_free, 2, 0, 0},
    [WIRE_CALL_SUB_RESIZE] = {device_sub_resize, 3, 0, 0},
    [WIRE_CALL_SUB_RESET] = {device_sub_reset, 1, 0, 0},
    [WIRE_CALL_NAME] = {apply_name, 1, 0, 0},
    [WIRE_CALL_VIEW] = {apply_nothing, 4, 0, 0},
    [WIRE_CALL_CATEGORY] = {apply_nothing, 1, 0, 0},
    [WIRE_CALL_UNTRACKED] = {apply_nothing, 2, 0, 0},
};

int devices_takes_away(unsigned call)
{
    return call < WIRE_CALL_COUNT && calls[call].takes_away;
}

int devices_apply(struct devices *d, const struct devices_call *call, const struct devices_sink *sink)
{
    if (call->call >= WIRE_CALL_COUNT || call->device > WIRE_DEVICE_HOST || call->word_count < calls[call->call].words)
        return -EINVAL;
    d->call = call;
    d->sink = sink;
    if (calls[call->call].unless_captured && call->flags & WIRE_CALL_CAPTURED)
        return 0;
    if (calls[call->call].takes_away) {
        struct undo *undo = &devices_thread(d)->undo;
        devices_undo_clear(d, undo);
        if (call->is_refused) {
            undo->is_told = 1;
            d->counts.refused++;
            return 0;
        }
    }
    return calls[call->call].apply(d);
}
