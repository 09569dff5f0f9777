/* From the pickle to arrays. What a dict is, its keys say: so it does not matter where it stands, who shares it, or
 * what newer versions of PyTorch put around it. */
#include "import_fields.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define KEPT_MAX         100000u /* lists and dicts of unknown shape */
#define STACK_FRAMES_MAX 4096u

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

/* --- dicts ------------------------------------------------------------------------------------------------------ */

static int take_event(struct import *im, const struct import_fields *f, struct pickle_value *result, struct error *err)
{
    uint32_t name = fields_text(f, KEY_action), action = IMPORT_NO_ACTION;
    const char *action_name = import_text(im, name);
    for (unsigned i = 1; action_name && i < IMPORT_ACTIONS && !action; i++)
        if (strcmp(action_name, import_action_names[i]) == 0)
            action = i;
    if (action_name && strcmp(action_name, "annotate") == 0)
        action = IMPORT_USER;
    if (!action)
        im->bad_entries++;
    int rc = import_is_full(&im->events, err, "trace entries");
    if (rc)
        return rc;
    struct import_event *e = IMPORT_ADD(im->events, import_event);
    *e = (struct import_event){
        .address = fields_amount(f, FIELDS_HAVE(f, device_free) ? KEY_device_free
                                    : FIELDS_HAVE(f, addr)      ? KEY_addr
                                                                : KEY_address),
        .size_bytes = action == IMPORT_OOM ? fields_size_told(im, f, KEY_size) : fields_size(im, f, KEY_size),
        .time_us = fields_number(f, KEY_time_us, 0),
        .stack = fields_stack(f),
        .place = fields_place(im, f, KEY_pool_id),
        .action = (uint8_t)action,
    };
    if (!e->address && action >= IMPORT_ALLOC &&
        action <= IMPORT_SEGMENT_UNMAP) { /* no block and no segment begins at 0 */
        e->action = IMPORT_NO_ACTION;
        im->bad_entries++;
    }
    if (action == IMPORT_USER)
        e->address = fields_text(f, FIELDS_HAVE(f, user_metadata) ? KEY_user_metadata : KEY_name);
    *result = pickle_make(IMPORT_VALUE_event, im->events.count - 1);
    return 0;
}

/* What the oldest snapshots have instead of requested_size: the allocations that a block saw, newest first. */
static int take_old_history(struct import *im, const struct import_fields *f, struct pickle_value *result,
                            struct error *err)
{
    *IMPORT_ADD(im->old, import_block) =
        (struct import_block){.requested_bytes = fields_size(im, f, KEY_real_size), .stack = fields_stack(f)};
    *IMPORT_ADD(im->runs, import_run) = (struct import_run){PICKLE_DICT, im->old.count - 1, 1};
    *result = pickle_make(IMPORT_VALUE_run, im->runs.count - 1);
    return import_is_full(&im->runs, err, "blocks");
}

static int take_block(struct import *im, const struct import_fields *f, struct pickle_value *result, struct error *err)
{
    const char *state = import_text(im, fields_text(f, KEY_state));
    struct import_block b = {
        .address = fields_amount(f, KEY_address),
        .size_bytes = fields_size(im, f, KEY_size),
        .requested_bytes = fields_size(im, f, KEY_requested_size),
        .stack = fields_stack(f),
        .has_address = FIELDS_HAVE(f, address),
        .has_requested = FIELDS_HAVE(f, requested_size),
    };
    if (state && strcmp(state, "active_allocated") == 0)
        b.state = IMPORT_ACTIVE;
    else if (state && (strcmp(state, "active_pending_free") == 0 || strcmp(state, "active_awaiting_free") == 0))
        b.state = IMPORT_PENDING;
    else if (!state || strcmp(state, "inactive"))
        im->bad_entries++;
    const struct import_run *history =
        FIELDS_HAVE(f, history) ? import_run_of(im, f->value[KEY_history], PICKLE_DICT) : NULL;
    if (history && history->count) {
        const struct import_block *h = IMPORT_AT(im->old, import_block, history->first);
        if (!b.has_requested)
            b.requested_bytes = h->requested_bytes;
        b.has_requested = 1;
        b.stack = b.stack ? b.stack : h->stack;
    }
    if (!b.has_requested)
        b.requested_bytes = b.size_bytes;
    *IMPORT_ADD(im->blocks, import_block) = b;
    *result = pickle_make(IMPORT_VALUE_block, im->blocks.count - 1);
    return import_is_full(&im->blocks, err, "blocks");
}

static int take_segment(struct import *im, const struct import_fields *f, struct pickle_value *result,
                        struct error *err)
{
    const struct import_run *blocks = import_run_of(im, f->value[KEY_blocks], IMPORT_VALUE_block);
    *IMPORT_ADD(im->segments, import_segment) = (struct import_segment){
        .address = fields_amount(f, KEY_address),
        .total_bytes = fields_size(im, f, KEY_total_size),
        .allocated_bytes = fields_size(im, f, KEY_allocated_size),
        .active_bytes = fields_size(im, f, KEY_active_size),
        .requested_bytes = fields_size(im, f, KEY_requested_size),
        .device = (uint32_t)(fields_amount(f, KEY_device) < UINT32_MAX ? fields_amount(f, KEY_device) : UINT32_MAX),
        .first_block = blocks->first,
        .block_count = blocks->count,
        .stack = fields_stack(f),
        .type = fields_text(f, KEY_segment_type),
        .place = fields_place(im, f, KEY_segment_pool_id),
        .is_expandable = fields_number(f, KEY_is_expandable, 0) != 0,
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
    *result = pickle_make(IMPORT_VALUE_segment, im->segments.count - 1);
    return import_is_full(&im->segments, err, "segments");
}

static int take_annotation(struct import *im, const struct import_fields *f, struct pickle_value *result,
                           struct error *err)
{
    const char *stage = import_text(im, fields_text(f, KEY_stage));
    *IMPORT_ADD(im->annotations, import_annotation) = (struct import_annotation){
        .time_us = fields_number(f, KEY_time_us, 0),
        .name = fields_text(f, KEY_name),
        .device = (uint32_t)(fields_amount(f, KEY_device) < UINT32_MAX ? fields_amount(f, KEY_device) : UINT32_MAX),
        .is_end = stage && strcmp(stage, "END") == 0,
    };
    *result = pickle_make(IMPORT_VALUE_annotation, im->annotations.count - 1);
    return import_is_full(&im->annotations, err, "annotations");
}

static int take_frame(struct import *im, const struct import_fields *f, struct pickle_value *result)
{
    int64_t line = fields_number(f, KEY_line, 0);
    struct import_frame frame = {fields_text(f, KEY_name), fields_text(f, KEY_filename),
                                 (uint32_t)(line > 0 && line < INT32_MAX ? line : 0)};
    *result = pickle_make(IMPORT_VALUE_frame, import_frame_number(im, &frame));
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
        const struct import_run *r = import_run_of(im, items[i], IMPORT_VALUE_event);
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
        const struct import_run *r = import_run_of(im, items[i], IMPORT_VALUE_event);
        if (r->count && im->host.count)
            im->unknown_values++;
        else if (r->count)
            im->host = (struct import_history){r->first, r->count};
    }
}

static void take_top(struct import *im, const struct import_fields *f)
{
    if (FIELDS_HAVE(f, segments))
        im->segment_run = *import_run_of(im, f->value[KEY_segments], IMPORT_VALUE_segment);
    if (FIELDS_HAVE(f, host_segments))
        im->host_segment_run = *import_run_of(im, f->value[KEY_host_segments], IMPORT_VALUE_segment);
    if (FIELDS_HAVE(f, device_traces))
        take_histories(im, f->value[KEY_device_traces]);
    if (FIELDS_HAVE(f, host_traces))
        take_host_history(im, f->value[KEY_host_traces]);
    if (FIELDS_HAVE(f, external_annotations))
        im->annotation_run = *import_run_of(im, f->value[KEY_external_annotations], IMPORT_VALUE_annotation);
    if (FIELDS_HAVE(f, allocator_settings) && pickle_type(f->value[KEY_allocator_settings]) == PICKLE_DICT) {
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
    struct import_fields f;
    int rc;
    fields_read(im, items, count, &f);
    if (FIELDS_HAVE(&f, action))
        rc = take_event(im, &f, result, err);
    else if (FIELDS_HAVE(&f, filename) && FIELDS_HAVE(&f, line))
        rc = take_frame(im, &f, result);
    else if (FIELDS_HAVE(&f, blocks) && FIELDS_HAVE(&f, total_size))
        rc = take_segment(im, &f, result, err);
    else if (FIELDS_HAVE(&f, state) && FIELDS_HAVE(&f, size))
        rc = take_block(im, &f, result, err);
    else if (FIELDS_HAVE(&f, real_size))
        rc = take_old_history(im, &f, result, err);
    else if (FIELDS_HAVE(&f, stage) && FIELDS_HAVE(&f, name))
        rc = take_annotation(im, &f, result, err);
    else if (FIELDS_HAVE(&f, segments) || FIELDS_HAVE(&f, device_traces)) {
        im->top = *result;
        im->has_top = 1;
        im->has_segments = FIELDS_HAVE(&f, segments);
        take_top(im, &f);
        rc = 0;
    } else {
        return keep_some(im, result);
    }
    fields_count_unknown(im, &f, items, count);
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
        if (import_type_of(items[i]) != IMPORT_VALUE_frame)
            continue;
        *(uint32_t *)import_add(&im->stack_frames, sizeof(uint32_t)) = pickle_index(items[i]);
        kept++;
    }
    im->unknown_values += count - kept;
    *result = pickle_make(IMPORT_VALUE_stack, import_stack_number(im, kept));
    int rc = import_is_full(&im->stacks, err, "stacks");
    return rc ? rc : import_is_full(&im->stack_frames, err, "frames of stacks");
}

static int take_run(struct import *im, const struct pickle_value *items, size_t count, struct pickle_value *result,
                    struct error *err)
{
    unsigned type = import_type_of(items[0]);
    struct import_run r = {(uint8_t)type, pickle_index(items[0]), (uint32_t)count};
    for (size_t i = 1; i < count; i++)
        if (items[i].bits != pickle_make(type, r.first + (uint32_t)i).bits)
            return error_set(
                err, EBADMSG,
                "byte %llu: a list of unlike things, or of things of other lists: no snapshot of PyTorch's",
                (unsigned long long)pickle_offset(im->pickle));
    *IMPORT_ADD(im->runs, import_run) = r;
    *result = pickle_make(IMPORT_VALUE_run, im->runs.count - 1);
    return import_is_full(&im->runs, err, "lists");
}

static int complete_list(struct import *im, const struct pickle_value *items, size_t count, struct pickle_value *result,
                         struct error *err)
{
    if (!count) {
        *result = pickle_make(IMPORT_VALUE_stack, 0);
        return 0;
    }
    switch (import_type_of(items[0])) {
    case IMPORT_VALUE_frame:
        return take_stack(im, items, count, result, err);
    case IMPORT_VALUE_event:
    case IMPORT_VALUE_block:
    case IMPORT_VALUE_segment:
    case IMPORT_VALUE_annotation:
        return take_run(im, items, count, result, err);
    case IMPORT_VALUE_run:
        if (import_run_of(im, items[0], PICKLE_DICT)->count) { /* of an old block's history, the newest */
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
    uint32_t number = import_place_number(im, &place);
    for (uint32_t i = im->runs.count, look = 16; i-- > 0 && look--;) { /* one tuple a segment, all alike */
        const struct import_run *r = IMPORT_AT(im->runs, import_run, i);
        if (r->type == PICKLE_TUPLE && r->first == number) {
            *result = pickle_make(IMPORT_VALUE_run, i);
            return 0;
        }
    }
    *IMPORT_ADD(im->runs, import_run) = (struct import_run){PICKLE_TUPLE, number, 1};
    *result = pickle_make(IMPORT_VALUE_run, im->runs.count - 1);
    return import_is_full(&im->runs, err, "lists");
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
    const struct import_run *segments = import_run_of(im, top, IMPORT_VALUE_segment);
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
    *IMPORT_ADD(im->places, import_place) = none;
    import_add(&im->stack_frames, sizeof(uint32_t)); /* so that there is an array from the start */
    im->stack_frames.count = 0;
    import_stack_number(im, 0);
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
