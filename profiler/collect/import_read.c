/* From the pickle to arrays. What a dict is, its keys say: so it does not matter where it stands, who shares it, or
 * what newer versions of PyTorch put around it. */
#include "import_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEPT_MAX         100000u /* lists and dicts of unknown shape */
#define PLACES_MAX       1000u
#define STACK_FRAMES_MAX 4096u
#define SIZE_BYTES_MAX   ((1ull << 48) - 1) /* what the accounts can hold of a block */

/* X(identifier, name in the snapshot) */
#define KEYS(X)                                                                                                        \
    X(action, "action")                                                                                                \
    X(addr, "addr")                                                                                                    \
    X(address, "address")                                                                                              \
    X(size, "size")                                                                                                    \
    X(stream, "stream")                                                                                                \
    X(time_us, "time_us")                                                                                              \
    X(frames, "frames")                                                                                                \
    X(device, "device")                                                                                                \
    X(device_free, "device_free")                                                                                      \
    X(pool_id, "pool_id")                                                                                              \
    X(user_metadata, "user_metadata")                                                                                  \
    X(compile_context, "compile_context")                                                                              \
    X(total_size, "total_size")                                                                                        \
    X(allocated_size, "allocated_size")                                                                                \
    X(active_size, "active_size")                                                                                      \
    X(requested_size, "requested_size")                                                                                \
    X(segment_type, "segment_type")                                                                                    \
    X(segment_pool_id, "segment_pool_id")                                                                              \
    X(is_expandable, "is_expandable")                                                                                  \
    X(blocks, "blocks")                                                                                                \
    X(state, "state")                                                                                                  \
    X(history, "history")                                                                                              \
    X(real_size, "real_size")                                                                                          \
    X(name, "name")                                                                                                    \
    X(filename, "filename")                                                                                            \
    X(line, "line")                                                                                                    \
    X(fx_node_op, "fx_node_op")                                                                                        \
    X(fx_node_name, "fx_node_name")                                                                                    \
    X(fx_node_target, "fx_node_target")                                                                                \
    X(fx_original_trace, "fx_original_trace")                                                                          \
    X(stage, "stage")                                                                                                  \
    X(segments, "segments")                                                                                            \
    X(device_traces, "device_traces")                                                                                  \
    X(allocator_settings, "allocator_settings")                                                                        \
    X(external_annotations, "external_annotations")                                                                    \
    X(host_segments, "host_segments")                                                                                  \
    X(host_traces, "host_traces")

enum import_key {
#define X(id, name) KEY_##id,
    KEYS(X)
#undef X
        KEY_COUNT
};

static const char *const key_names[KEY_COUNT] = {
#define X(id, name) name,
    KEYS(X)
#undef X
};

const char *const import_action_names[IMPORT_ACTIONS] = {
    [IMPORT_ALLOC] = "alloc",
    [IMPORT_FREE_REQUESTED] = "free_requested",
    [IMPORT_FREE_COMPLETED] = "free_completed",
    [IMPORT_SEGMENT_ALLOC] = "segment_alloc",
    [IMPORT_SEGMENT_FREE] = "segment_free",
    [IMPORT_SEGMENT_MAP] = "segment_map",
    [IMPORT_SEGMENT_UNMAP] = "segment_unmap",
    [IMPORT_SNAPSHOT] = "snapshot",
    [IMPORT_OOM] = "oom",
    [IMPORT_USER] = "user_defined",
};

/* The values that stand for what was read. */
enum import_type {
    TYPE_frame = PICKLE_USER,
    TYPE_stack,
    TYPE_event,
    TYPE_block,
    TYPE_segment,
    TYPE_annotation,
    TYPE_run, /* a list of events, blocks, segments or annotations; a pool */
};

static unsigned type_of(struct pickle_value v)
{
    return (unsigned)pickle_type(v);
}

/* A dict by its known keys. */
struct fields {
    struct pickle_value value[KEY_COUNT];
    uint64_t mask;
    uint32_t unknown;
};

static void *add(struct import_table *t, size_t size_bytes)
{
    if (t->count == t->capacity) {
        /* by half: the last doubling of a large array would be the most memory of all */
        uint64_t capacity = t->capacity ? t->capacity + (uint64_t)t->capacity / 2 : 256;
        if (capacity > UINT32_MAX)
            capacity = UINT32_MAX;
        t->data = xrealloc(t->data, capacity * size_bytes);
        t->capacity = (uint32_t)capacity;
    }
    return (char *)t->data + size_bytes * t->count++;
}

#define ADD(table, type) ((struct type *)add(&(table), sizeof(struct type)))

static int is_full(const struct import_table *t, struct error *err, const char *what)
{
    return t->count >= PICKLE_INDEX_MAX ? error_set(err, E2BIG, "more %s than memprof counts", what) : 0;
}

/* --- numbers of frames, stacks and places ----------------------------------------------------------------------- */

static uint32_t mix(const void *data, size_t words)
{
    const uint32_t *w = data;
    uint64_t h = 0x9E3779B97F4A7C15ull;
    for (size_t i = 0; i < words; i++) {
        h = (h ^ w[i]) * 0xD6E8FEB86659FD93ull;
        h ^= h >> 32;
    }
    return (uint32_t)h;
}

static uint32_t hash_stack(const struct import *im, uint32_t number)
{
    const struct import_stack *s = IMPORT_AT(im->stacks, import_stack, number);
    return mix((const uint32_t *)im->stack_frames.data + s->first, s->count);
}

static uint32_t hash_frame(const struct import *im, uint32_t number)
{
    return mix(IMPORT_AT(im->frames, import_frame, number), 3);
}

static void rehash(const struct import *im, uint32_t **slots, uint32_t *slot_count, uint32_t count,
                   uint32_t (*hash)(const struct import *im, uint32_t number))
{
    if (*slot_count > count * 2)
        return;
    *slot_count = *slot_count ? *slot_count * 2 : 1024;
    free(*slots);
    *slots = xcalloc(*slot_count, sizeof **slots);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t slot = hash(im, i) & (*slot_count - 1);
        while ((*slots)[slot])
            slot = (slot + 1) & (*slot_count - 1);
        (*slots)[slot] = i + 1;
    }
}

static uint32_t frame_number(struct import *im, const struct import_frame *f)
{
    rehash(im, &im->frame_slots, &im->frame_slot_count, im->frames.count, hash_frame);
    uint32_t slot = mix(f, 3) & (im->frame_slot_count - 1), number;
    for (; (number = im->frame_slots[slot]); slot = (slot + 1) & (im->frame_slot_count - 1))
        if (memcmp(IMPORT_AT(im->frames, import_frame, number - 1), f, sizeof *f) == 0)
            return number - 1;
    *ADD(im->frames, import_frame) = *f;
    im->frame_slots[slot] = im->frames.count;
    return im->frames.count - 1;
}

/* The last count of stack_frames as a stack: they go again where it is known. */
static uint32_t stack_number(struct import *im, uint32_t count)
{
    uint32_t first = im->stack_frames.count - count;
    const uint32_t *frames = im->stack_frames.data;
    rehash(im, &im->stack_slots, &im->stack_slot_count, im->stacks.count, hash_stack);
    uint32_t slot = mix(frames + first, count) & (im->stack_slot_count - 1), number;
    for (; (number = im->stack_slots[slot]); slot = (slot + 1) & (im->stack_slot_count - 1)) {
        const struct import_stack *s = IMPORT_AT(im->stacks, import_stack, number - 1);
        if (s->count == count && memcmp(frames + s->first, frames + first, count * sizeof *frames) == 0) {
            im->stack_frames.count = first;
            return number - 1;
        }
    }
    *ADD(im->stacks, import_stack) = (struct import_stack){first, count};
    im->stack_slots[slot] = im->stacks.count;
    return im->stacks.count - 1;
}

static uint16_t place_number(struct import *im, const struct import_place *place)
{
    /* few, and mostly the one before; past the limit they are as good as the first */
    for (uint32_t i = im->places.count; i-- > 0;)
        if (memcmp(IMPORT_AT(im->places, import_place, i), place, sizeof *place) == 0)
            return (uint16_t)i;
    if (im->places.count >= PLACES_MAX)
        return 0;
    *ADD(im->places, import_place) = *place;
    return (uint16_t)(im->places.count - 1);
}

/* --- fields ----------------------------------------------------------------------------------------------------- */

static enum import_key key_of(struct import *im, struct pickle_value v)
{
    uint32_t index = pickle_index(v);
    if (pickle_type(v) != PICKLE_TEXT)
        return KEY_COUNT;
    if (index >= im->key_count) {
        uint32_t count = index + 1024;
        im->keys = xrealloc(im->keys, count);
        memset(im->keys + im->key_count, 0, count - im->key_count);
        im->key_count = count;
    }
    if (!im->keys[index]) {
        const char *text = pickle_text(im->pickle, v, NULL);
        unsigned key = 0;
        while (key < KEY_COUNT && strcmp(text, key_names[key]))
            key++;
        im->keys[index] = (uint8_t)(key + 1);
    }
    return (enum import_key)(im->keys[index] - 1);
}

#define HAS(f, key) ((f)->mask >> KEY_##key & 1)

static int64_t number(const struct fields *f, enum import_key key, int64_t missing)
{
    struct pickle_value v = f->value[key];
    if (!(f->mask >> key & 1))
        return missing;
    if (pickle_type(v) == PICKLE_BOOL)
        return pickle_index(v);
    if (pickle_type(v) == PICKLE_FLOAT && pickle_float(v) >= -0x1p58 && pickle_float(v) < 0x1p58)
        return (int64_t)pickle_float(v);
    return pickle_type(v) == PICKLE_INT ? pickle_int(v) : missing;
}

static uint64_t amount(const struct fields *f, enum import_key key) /* not below 0 */
{
    int64_t v = number(f, key, 0);
    return v < 0 ? 0 : (uint64_t)v;
}

/* One that is no number, or below 0, is no size. */
static uint64_t size_told(struct import *im, const struct fields *f, enum import_key key)
{
    int64_t v = number(f, key, f->mask >> key & 1 ? -1 : 0);
    im->bad_sizes += v < 0;
    return v < 0 ? 0 : (uint64_t)v;
}

/* Of memory that was there: neither is one that no device has, or with which the sums would not fit. */
static uint64_t size_of(struct import *im, const struct fields *f, enum import_key key)
{
    uint64_t size_bytes = size_told(im, f, key);
    if (size_bytes > SIZE_BYTES_MAX || size_bytes > (uint64_t)INT64_MAX - im->total_bytes) {
        im->bad_sizes++;
        return 0;
    }
    im->total_bytes += size_bytes;
    return size_bytes;
}

static uint32_t text(const struct fields *f, enum import_key key)
{
    return f->mask >> key & 1 && pickle_type(f->value[key]) == PICKLE_TEXT ? pickle_index(f->value[key]) + 1 : 0;
}

static uint32_t stack(const struct fields *f)
{
    return HAS(f, frames) && type_of(f->value[KEY_frames]) == TYPE_stack ? pickle_index(f->value[KEY_frames]) : 0;
}

static const struct import_run *run(const struct import *im, struct pickle_value v, unsigned type)
{
    static const struct import_run none = {0};
    if (type_of(v) != TYPE_run)
        return &none;
    const struct import_run *r = IMPORT_AT(im->runs, import_run, pickle_index(v));
    return r->type == type ? r : &none;
}

static void fields_read(struct import *im, const struct pickle_value *items, size_t count, struct fields *f)
{
    f->mask = 0;
    f->unknown = 0;
    for (size_t i = 0; i + 1 < count; i += 2) {
        enum import_key key = key_of(im, items[i]);
        if (key < KEY_COUNT) {
            f->value[key] = items[i + 1];
            f->mask |= 1ull << key;
        } else {
            f->unknown++;
        }
    }
}

/* Of a dict whose shape is known. */
static void count_unknown(struct import *im, const struct fields *f, const struct pickle_value *items, size_t count)
{
    if (!f->unknown)
        return;
    im->unknown_keys += f->unknown;
    for (size_t i = 0; i + 1 < count; i += 2) {
        size_t length = strlen(im->unknown_names);
        const char *name = pickle_type(items[i]) == PICKLE_TEXT ? pickle_text(im->pickle, items[i], NULL) : "";
        if (!*name || key_of(im, items[i]) < KEY_COUNT || strlen(name) > 60 || strstr(im->unknown_names, name))
            continue;
        if (length + strlen(name) + 3 < sizeof im->unknown_names)
            snprintf(im->unknown_names + length, sizeof im->unknown_names - length, "%s%s", length ? ", " : "", name);
    }
}

static uint16_t place_of(struct import *im, const struct fields *f, enum import_key pool_key)
{
    struct import_place place;
    memset(&place, 0, sizeof place); /* compared as bytes */
    place.stream = number(f, KEY_stream, 0);
    const struct import_run *pool =
        f->mask >> pool_key & 1 ? run(im, f->value[pool_key], PICKLE_TUPLE) : &(struct import_run){0};
    if (pool->type == PICKLE_TUPLE && pool->count) {
        const struct import_place *p = IMPORT_AT(im->places, import_place, pool->first);
        place.pool[0] = p->pool[0];
        place.pool[1] = p->pool[1];
    }
    return place_number(im, &place);
}

/* --- dicts ------------------------------------------------------------------------------------------------------ */

static int take_event(struct import *im, const struct fields *f, struct pickle_value *result, struct error *err)
{
    uint32_t name = text(f, KEY_action), action = IMPORT_NO_ACTION;
    const char *action_name = import_text(im, name);
    for (unsigned i = 1; action_name && i < IMPORT_ACTIONS && !action; i++)
        if (strcmp(action_name, import_action_names[i]) == 0)
            action = i;
    if (action_name && strcmp(action_name, "annotate") == 0)
        action = IMPORT_USER;
    if (!action)
        im->bad_entries++;
    int rc = is_full(&im->events, err, "trace entries");
    if (rc)
        return rc;
    struct import_event *e = ADD(im->events, import_event);
    *e = (struct import_event){
        .address = amount(f, HAS(f, device_free) ? KEY_device_free
                             : HAS(f, addr)      ? KEY_addr
                                                 : KEY_address),
        .size_bytes = action == IMPORT_OOM ? size_told(im, f, KEY_size) : size_of(im, f, KEY_size),
        .time_us = number(f, KEY_time_us, 0),
        .stack = stack(f),
        .place = place_of(im, f, KEY_pool_id),
        .action = (uint8_t)action,
    };
    if (action == IMPORT_USER)
        e->address = text(f, HAS(f, user_metadata) ? KEY_user_metadata : KEY_name);
    *result = pickle_make(TYPE_event, im->events.count - 1);
    return 0;
}

/* What the oldest snapshots have instead of requested_size: the allocations that a block saw, newest first. */
static int take_old_history(struct import *im, const struct fields *f, struct pickle_value *result, struct error *err)
{
    *ADD(im->old, import_block) =
        (struct import_block){.requested_bytes = size_of(im, f, KEY_real_size), .stack = stack(f)};
    *ADD(im->runs, import_run) = (struct import_run){PICKLE_DICT, im->old.count - 1, 1};
    *result = pickle_make(TYPE_run, im->runs.count - 1);
    return is_full(&im->runs, err, "blocks");
}

static int take_block(struct import *im, const struct fields *f, struct pickle_value *result, struct error *err)
{
    const char *state = import_text(im, text(f, KEY_state));
    struct import_block b = {
        .address = amount(f, KEY_address),
        .size_bytes = size_of(im, f, KEY_size),
        .requested_bytes = size_of(im, f, KEY_requested_size),
        .stack = stack(f),
        .has_address = HAS(f, address),
        .has_requested = HAS(f, requested_size),
    };
    if (state && strcmp(state, "active_allocated") == 0)
        b.state = IMPORT_ACTIVE;
    else if (state && (strcmp(state, "active_pending_free") == 0 || strcmp(state, "active_awaiting_free") == 0))
        b.state = IMPORT_PENDING;
    else if (!state || strcmp(state, "inactive"))
        im->bad_entries++;
    const struct import_run *history = HAS(f, history) ? run(im, f->value[KEY_history], PICKLE_DICT) : NULL;
    if (history && history->count) {
        const struct import_block *h = IMPORT_AT(im->old, import_block, history->first);
        if (!b.has_requested)
            b.requested_bytes = h->requested_bytes;
        b.has_requested = 1;
        b.stack = b.stack ? b.stack : h->stack;
    }
    if (!b.has_requested)
        b.requested_bytes = b.size_bytes;
    *ADD(im->blocks, import_block) = b;
    *result = pickle_make(TYPE_block, im->blocks.count - 1);
    return is_full(&im->blocks, err, "blocks");
}

static int take_segment(struct import *im, const struct fields *f, struct pickle_value *result, struct error *err)
{
    const struct import_run *blocks = run(im, f->value[KEY_blocks], TYPE_block);
    *ADD(im->segments, import_segment) = (struct import_segment){
        .address = amount(f, KEY_address),
        .total_bytes = size_of(im, f, KEY_total_size),
        .allocated_bytes = size_of(im, f, KEY_allocated_size),
        .active_bytes = size_of(im, f, KEY_active_size),
        .requested_bytes = size_of(im, f, KEY_requested_size),
        .device = (uint32_t)(amount(f, KEY_device) < UINT32_MAX ? amount(f, KEY_device) : UINT32_MAX),
        .first_block = blocks->first,
        .block_count = blocks->count,
        .stack = stack(f),
        .type = text(f, KEY_segment_type),
        .place = place_of(im, f, KEY_segment_pool_id),
        .is_expandable = number(f, KEY_is_expandable, 0) != 0,
    };
    uint64_t next = IMPORT_AT(im->segments, import_segment, im->segments.count - 1)->address;
    for (uint32_t i = 0; i < blocks->count; i++) { /* the oldest say sizes only: they lie one after the other */
        struct import_block *b = IMPORT_AT(im->blocks, import_block, blocks->first + i);
        if (!b->has_address)
            b->address = next;
        b->has_address = 1;
        if (__builtin_add_overflow(b->address, b->size_bytes, &next))
            next = b->address;
    }
    *result = pickle_make(TYPE_segment, im->segments.count - 1);
    return is_full(&im->segments, err, "segments");
}

static int take_annotation(struct import *im, const struct fields *f, struct pickle_value *result, struct error *err)
{
    const char *stage = import_text(im, text(f, KEY_stage));
    *ADD(im->annotations, import_annotation) = (struct import_annotation){
        .time_us = number(f, KEY_time_us, 0),
        .name = text(f, KEY_name),
        .device = (uint32_t)(amount(f, KEY_device) < UINT32_MAX ? amount(f, KEY_device) : UINT32_MAX),
        .is_end = stage && strcmp(stage, "END") == 0,
    };
    *result = pickle_make(TYPE_annotation, im->annotations.count - 1);
    return is_full(&im->annotations, err, "annotations");
}

static int take_frame(struct import *im, const struct fields *f, struct pickle_value *result)
{
    int64_t line = number(f, KEY_line, 0);
    struct import_frame frame = {text(f, KEY_name), text(f, KEY_filename),
                                 (uint32_t)(line > 0 && line < INT32_MAX ? line : 0)};
    *result = pickle_make(TYPE_frame, frame_number(im, &frame));
    return 0;
}

static void take_histories(struct import *im, struct pickle_value v)
{
    size_t count = 0;
    const struct pickle_value *items = NULL;
    if (pickle_type(v) == PICKLE_LIST)
        items = pickle_items(im->pickle, v, &count);
    if (count > IMPORT_DEVICES) {
        im->unknown_values += count - IMPORT_DEVICES;
        count = IMPORT_DEVICES;
    }
    for (size_t i = 0; i < count; i++) {
        const struct import_run *r = run(im, items[i], TYPE_event);
        im->devices[i] = (struct import_history){r->first, r->count};
    }
    im->device_count = (uint32_t)count;
}

static void take_host_history(struct import *im, struct pickle_value v)
{
    size_t count = 1;
    const struct pickle_value *items = &v;
    if (pickle_type(v) == PICKLE_LIST)
        items = pickle_items(im->pickle, v, &count);
    for (size_t i = 0; i < count; i++) {
        const struct import_run *r = run(im, items[i], TYPE_event);
        if (r->count && im->host.count)
            im->unknown_values++;
        else if (r->count)
            im->host = (struct import_history){r->first, r->count};
    }
}

static void take_top(struct import *im, const struct fields *f)
{
    if (HAS(f, segments))
        im->segment_run = *run(im, f->value[KEY_segments], TYPE_segment);
    if (HAS(f, host_segments))
        im->host_segment_run = *run(im, f->value[KEY_host_segments], TYPE_segment);
    if (HAS(f, device_traces))
        take_histories(im, f->value[KEY_device_traces]);
    if (HAS(f, host_traces))
        take_host_history(im, f->value[KEY_host_traces]);
    if (HAS(f, external_annotations))
        im->annotation_run = *run(im, f->value[KEY_external_annotations], TYPE_annotation);
    if (HAS(f, allocator_settings) && pickle_type(f->value[KEY_allocator_settings]) == PICKLE_DICT) {
        im->settings = f->value[KEY_allocator_settings];
        im->has_settings = 1;
    }
}

static int keep_some(struct import *im, struct pickle_value *result)
{
    if (im->kept++ >= KEPT_MAX) {
        *result = pickle_make(PICKLE_OPAQUE, 0);
        im->unknown_values++;
    }
    return 0;
}

static int complete_dict(struct import *im, const struct pickle_value *items, size_t count, struct pickle_value *result,
                         struct error *err)
{
    struct fields f;
    int rc;
    fields_read(im, items, count, &f);
    if (HAS(&f, action))
        rc = take_event(im, &f, result, err);
    else if (HAS(&f, filename) && HAS(&f, line))
        rc = take_frame(im, &f, result);
    else if (HAS(&f, blocks) && HAS(&f, total_size))
        rc = take_segment(im, &f, result, err);
    else if (HAS(&f, state) && HAS(&f, size))
        rc = take_block(im, &f, result, err);
    else if (HAS(&f, real_size))
        rc = take_old_history(im, &f, result, err);
    else if (HAS(&f, stage) && HAS(&f, name))
        rc = take_annotation(im, &f, result, err);
    else if (HAS(&f, segments) || HAS(&f, device_traces)) {
        im->top = *result;
        im->has_top = 1;
        im->has_segments = HAS(&f, segments);
        take_top(im, &f);
        rc = 0;
    } else {
        return keep_some(im, result);
    }
    count_unknown(im, &f, items, count);
    return rc;
}

/* --- lists and tuples ------------------------------------------------------------------------------------------- */

static int take_stack(struct import *im, const struct pickle_value *items, size_t count, struct pickle_value *result,
                      struct error *err)
{
    uint32_t kept = 0;
    if (count > STACK_FRAMES_MAX) { /* recursion: the innermost frames say where */
        im->unknown_values++;
        count = STACK_FRAMES_MAX;
    }
    for (size_t i = 0; i < count; i++) {
        if (type_of(items[i]) != TYPE_frame)
            continue;
        *(uint32_t *)add(&im->stack_frames, sizeof(uint32_t)) = pickle_index(items[i]);
        kept++;
    }
    im->unknown_values += count - kept;
    *result = pickle_make(TYPE_stack, stack_number(im, kept));
    int rc = is_full(&im->stacks, err, "stacks");
    return rc ? rc : is_full(&im->stack_frames, err, "frames of stacks");
}

static int take_run(struct import *im, const struct pickle_value *items, size_t count, struct pickle_value *result,
                    struct error *err)
{
    unsigned type = type_of(items[0]);
    struct import_run r = {(uint8_t)type, pickle_index(items[0]), (uint32_t)count};
    for (size_t i = 1; i < count; i++)
        if (items[i].bits != pickle_make(type, r.first + (uint32_t)i).bits)
            return error_set(
                err, EBADMSG,
                "byte %llu: a list of unlike things, or of things of other lists: no snapshot of PyTorch's",
                (unsigned long long)pickle_offset(im->pickle));
    *ADD(im->runs, import_run) = r;
    *result = pickle_make(TYPE_run, im->runs.count - 1);
    return is_full(&im->runs, err, "lists");
}

static int complete_list(struct import *im, const struct pickle_value *items, size_t count, struct pickle_value *result,
                         struct error *err)
{
    if (!count) {
        *result = pickle_make(TYPE_stack, 0);
        return 0;
    }
    switch (type_of(items[0])) {
    case TYPE_frame:
        return take_stack(im, items, count, result, err);
    case TYPE_event:
    case TYPE_block:
    case TYPE_segment:
    case TYPE_annotation:
        return take_run(im, items, count, result, err);
    case TYPE_run:
        if (run(im, items[0], PICKLE_DICT)->count) { /* of an old block's history, the newest */
            *result = items[0];
            return 0;
        }
        return keep_some(im, result);
    default:
        return keep_some(im, result);
    }
}

/* A pool's id is two numbers. */
static int complete_tuple(struct import *im, const struct pickle_value *items, size_t count,
                          struct pickle_value *result, struct error *err)
{
    if (count != 2 || pickle_type(items[0]) != PICKLE_INT || pickle_type(items[1]) != PICKLE_INT)
        return keep_some(im, result);
    struct import_place place;
    memset(&place, 0, sizeof place);
    place.pool[0] = pickle_int(items[0]);
    place.pool[1] = pickle_int(items[1]);
    uint32_t number = place_number(im, &place);
    for (uint32_t i = im->runs.count, look = 16; i-- > 0 && look--;) { /* one tuple a segment, all alike */
        const struct import_run *r = IMPORT_AT(im->runs, import_run, i);
        if (r->type == PICKLE_TUPLE && r->first == number) {
            *result = pickle_make(TYPE_run, i);
            return 0;
        }
    }
    *ADD(im->runs, import_run) = (struct import_run){PICKLE_TUPLE, number, 1};
    *result = pickle_make(TYPE_run, im->runs.count - 1);
    return is_full(&im->runs, err, "lists");
}

static int complete(void *context, struct pickle *p, enum pickle_type type, const struct pickle_value *items,
                    size_t count, struct pickle_value *result, struct error *err)
{
    struct import *im = context;
    (void)p;
    switch (type) {
    case PICKLE_DICT:
        return complete_dict(im, items, count, result, err);
    case PICKLE_LIST:
        return complete_list(im, items, count, result, err);
    default:
        return complete_tuple(im, items, count, result, err);
    }
}

static long read_source(void *context, void *data, size_t size)
{
    const struct import *im = context;
    return im->source->read(im->source->context, data, size);
}

/* --- the whole -------------------------------------------------------------------------------------------------- */

/* It is a dict; before PyTorch 2.0 it was a list of segments. */
static int check_top(struct import *im, struct pickle_value top, struct error *err)
{
    const struct import_run *segments = run(im, top, TYPE_segment);
    if (segments->count)
        im->segment_run = *segments;
    else if (!im->has_top || top.bits != im->top.bits)
        return error_set(err, EINVAL,
                         "a pickle, but no memory snapshot: it has neither 'segments' nor 'device_traces'; expected "
                         "what torch.cuda.memory._dump_snapshot writes");
    im->has_segments |= segments->count != 0;
    return 0;
}

int import_read(struct import *im, const struct import_source *source, struct error *err)
{
    struct pickle_user user = {im, read_source, complete};
    struct pickle_value top;
    struct import_place none;
    *im = (struct import){.source = source, .pickle = pickle_open(&user)};
    memset(&none, 0, sizeof none);
    *ADD(im->places, import_place) = none;
    add(&im->stack_frames, sizeof(uint32_t)); /* so that there is an array from the start */
    im->stack_frames.count = 0;
    stack_number(im, 0);
    int rc = pickle_read(im->pickle, &top, err);
    if (rc == 0)
        rc = check_top(im, top, err);
    if (rc == 0)
        im->rest_bytes = pickle_rest(im->pickle);
    return rc;
}

void import_free(struct import *im)
{
    struct import_table *const tables[] = {&im->events, &im->places, &im->blocks,       &im->segments, &im->annotations,
                                           &im->frames, &im->stacks, &im->stack_frames, &im->runs,     &im->old};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        free(tables[i]->data);
    free(im->frame_slots);
    free(im->stack_slots);
    free(im->keys);
    pickle_close(im->pickle);
    *im = (struct import){0};
}
