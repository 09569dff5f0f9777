/* From the pickle to arrays. What a dict is, its keys say: so it does not matter where it stands, who shares it, or
 * what newer versions of PyTorch put around it. */
#include "snapshot_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define KEPT_MAX         100000u /* lists and dicts of unknown shape */
#define STACK_FRAMES_MAX 4096u

/* --- dicts ------------------------------------------------------------------------------------------------------ */

static void take_texts(struct snapshot *snap, const struct snapshot_fields *f)
{
    struct snapshot_texts texts = {snap->events.count - 1, fields_text(f, WORD_compile_context),
                                   fields_text(f, WORD_user_metadata)};
    const struct snapshot_texts *last =
        snap->texts.count ? SNAPSHOT_AT(snap->texts, snapshot_texts, snap->texts.count - 1) : NULL;
    if (!last || last->compile_context != texts.compile_context || last->user_metadata != texts.user_metadata)
        *SNAPSHOT_ADD(snap->texts, snapshot_texts) = texts;
}

static int take_event(struct snapshot *snap, const struct snapshot_fields *f, struct pickle_value *result,
                      struct error *err)
{
    enum snapshot_word word = fields_word(snap, f, WORD_action);
    unsigned action = word >= WORD_KEYS && word < WORD_KEYS + SNAPSHOT_ACTIONS - 1 ? word - WORD_KEYS + 1
                      : word == WORD_annotate                                      ? SNAPSHOT_user_defined
                                                                                   : SNAPSHOT_NO_ACTION;
    if (!action)
        snap->bad_entries++;
    int rc = snapshot_is_full(&snap->events, err, "trace entries");
    if (rc)
        return rc;
    struct snapshot_event *e = SNAPSHOT_ADD(snap->events, snapshot_event);
    *e = (struct snapshot_event){
        .address = fields_amount(f, FIELDS_HAVE(f, device_free) ? WORD_device_free
                                    : FIELDS_HAVE(f, addr)      ? WORD_addr
                                                                : WORD_address),
        .size_bytes = action == SNAPSHOT_oom ? fields_size_told(snap, f, WORD_size) : fields_size(snap, f, WORD_size),
        .time_us = fields_number(f, WORD_time_us, 0),
        .stack = fields_stack(f),
        .place = fields_place(snap, f, WORD_pool_id),
        .action = (uint8_t)action,
    };
    if (!e->address && action >= SNAPSHOT_alloc &&
        action <= SNAPSHOT_segment_unmap) { /* no block and no segment begins at 0 */
        e->action = SNAPSHOT_NO_ACTION;
        snap->bad_entries++;
    }
    if (action == SNAPSHOT_user_defined)
        e->address = fields_text(f, FIELDS_HAVE(f, user_metadata) ? WORD_user_metadata : WORD_name);
    take_texts(snap, f);
    *result = pickle_make(SNAPSHOT_VALUE_event, snap->events.count - 1);
    return 0;
}

/* What the oldest snapshots have instead of requested_size: the allocations that a block saw, newest first. */
static int take_old_history(struct snapshot *snap, const struct snapshot_fields *f, struct pickle_value *result,
                            struct error *err)
{
    *SNAPSHOT_ADD(snap->old, snapshot_block) =
        (struct snapshot_block){.requested_bytes = fields_size(snap, f, WORD_real_size), .stack = fields_stack(f)};
    *SNAPSHOT_ADD(snap->runs, snapshot_run) = (struct snapshot_run){PICKLE_DICT, snap->old.count - 1, 1};
    *result = pickle_make(SNAPSHOT_VALUE_run, snap->runs.count - 1);
    return snapshot_is_full(&snap->runs, err, "blocks");
}

static int take_block(struct snapshot *snap, const struct snapshot_fields *f, struct pickle_value *result,
                      struct error *err)
{
    enum snapshot_word state = fields_word(snap, f, WORD_state);
    struct snapshot_block b = {
        .address = fields_amount(f, WORD_address),
        .size_bytes = fields_size(snap, f, WORD_size),
        .requested_bytes = fields_size(snap, f, WORD_requested_size),
        .stack = fields_stack(f),
        .has_address = FIELDS_HAVE(f, address),
        .has_requested = FIELDS_HAVE(f, requested_size),
    };
    if (state == WORD_active_allocated)
        b.state = SNAPSHOT_ACTIVE;
    else if (state == WORD_active_pending_free || state == WORD_active_awaiting_free)
        b.state = SNAPSHOT_PENDING;
    else if (state != WORD_inactive)
        snap->bad_entries++;
    const struct snapshot_run *history =
        FIELDS_HAVE(f, history) ? snapshot_run_of(snap, f->value[WORD_history], PICKLE_DICT) : NULL;
    if (history && history->count) {
        const struct snapshot_block *h = SNAPSHOT_AT(snap->old, snapshot_block, history->first);
        if (!b.has_requested)
            b.requested_bytes = h->requested_bytes;
        b.has_requested = 1;
        b.stack = b.stack ? b.stack : h->stack;
    }
    if (!b.has_requested)
        b.requested_bytes = b.size_bytes;
    *SNAPSHOT_ADD(snap->blocks, snapshot_block) = b;
    *result = pickle_make(SNAPSHOT_VALUE_block, snap->blocks.count - 1);
    return snapshot_is_full(&snap->blocks, err, "blocks");
}

static int take_segment(struct snapshot *snap, const struct snapshot_fields *f, struct pickle_value *result,
                        struct error *err)
{
    const struct snapshot_run *blocks = snapshot_run_of(snap, f->value[WORD_blocks], SNAPSHOT_VALUE_block);
    *SNAPSHOT_ADD(snap->segments, snapshot_segment) = (struct snapshot_segment){
        .address = fields_amount(f, WORD_address),
        .total_bytes = fields_size(snap, f, WORD_total_size),
        .allocated_bytes = fields_size(snap, f, WORD_allocated_size),
        .active_bytes = fields_size(snap, f, WORD_active_size),
        .requested_bytes = fields_size(snap, f, WORD_requested_size),
        .device = (uint32_t)(fields_amount(f, WORD_device) < UINT32_MAX ? fields_amount(f, WORD_device) : UINT32_MAX),
        .first_block = blocks->first,
        .block_count = blocks->count,
        .stack = fields_stack(f),
        .type = fields_text(f, WORD_segment_type),
        .place = fields_place(snap, f, WORD_segment_pool_id),
        .is_expandable = fields_number(f, WORD_is_expandable, 0) != 0,
    };
    const struct snapshot_segment *taken = SNAPSHOT_AT(snap->segments, snapshot_segment, snap->segments.count - 1);
    snap->unknown_values += taken->device >= SNAPSHOT_DEVICES;
    uint64_t next = taken->address;
    for (uint32_t i = 0; i < blocks->count; i++) { /* the oldest say sizes only: they lie one after the other */
        struct snapshot_block *b = SNAPSHOT_AT(snap->blocks, snapshot_block, blocks->first + i);
        if (!b->has_address)
            b->address = next;
        b->has_address = 1;
        if (__builtin_add_overflow(b->address, b->size_bytes, &next))
            next = b->address;
    }
    *result = pickle_make(SNAPSHOT_VALUE_segment, snap->segments.count - 1);
    return snapshot_is_full(&snap->segments, err, "segments");
}

static int take_annotation(struct snapshot *snap, const struct snapshot_fields *f, struct pickle_value *result,
                           struct error *err)
{
    *SNAPSHOT_ADD(snap->annotations, snapshot_annotation) = (struct snapshot_annotation){
        .time_us = fields_number(f, WORD_time_us, 0),
        .name = fields_text(f, WORD_name),
        .device = (uint32_t)(fields_amount(f, WORD_device) < UINT32_MAX ? fields_amount(f, WORD_device) : UINT32_MAX),
        .is_end = fields_word(snap, f, WORD_stage) == WORD_END,
    };
    *result = pickle_make(SNAPSHOT_VALUE_annotation, snap->annotations.count - 1);
    return snapshot_is_full(&snap->annotations, err, "annotations");
}

static int take_frame(struct snapshot *snap, const struct snapshot_fields *f, struct pickle_value *result)
{
    int64_t line = fields_number(f, WORD_line, 0);
    struct snapshot_frame frame = {fields_text(f, WORD_name), fields_text(f, WORD_filename),
                                   (uint32_t)(line > 0 && line < INT32_MAX ? line : 0)};
    *result = pickle_make(SNAPSHOT_VALUE_frame, snapshot_frame_number(snap, &frame));
    return 0;
}

static void take_histories(struct snapshot *snap, struct pickle_value v)
{
    size_t count = 0;
    const struct pickle_value *items = NULL;
    if (pickle_type(v) == PICKLE_LIST)
        items = pickle_items(snap->pickle, v, &count);
    if (count > SNAPSHOT_DEVICES) {
        snap->unknown_values += count - SNAPSHOT_DEVICES;
        count = SNAPSHOT_DEVICES;
    }
    for (size_t i = 0; i < count; i++) {
        const struct snapshot_run *r = snapshot_run_of(snap, items[i], SNAPSHOT_VALUE_event);
        snap->devices[i] = (struct snapshot_history){r->first, r->count};
    }
    snap->device_count = (uint32_t)count;
}

static void take_host_history(struct snapshot *snap, struct pickle_value v)
{
    size_t count = 1;
    const struct pickle_value *items = &v;
    if (pickle_type(v) == PICKLE_LIST)
        items = pickle_items(snap->pickle, v, &count);
    for (size_t i = 0; i < count; i++) {
        const struct snapshot_run *r = snapshot_run_of(snap, items[i], SNAPSHOT_VALUE_event);
        if (r->count && snap->host.count)
            snap->unknown_values++;
        else if (r->count)
            snap->host = (struct snapshot_history){r->first, r->count};
    }
}

static void take_top(struct snapshot *snap, const struct snapshot_fields *f)
{
    if (FIELDS_HAVE(f, segments))
        snap->segment_run = *snapshot_run_of(snap, f->value[WORD_segments], SNAPSHOT_VALUE_segment);
    if (FIELDS_HAVE(f, host_segments))
        snap->host_segment_run = *snapshot_run_of(snap, f->value[WORD_host_segments], SNAPSHOT_VALUE_segment);
    if (FIELDS_HAVE(f, device_traces))
        take_histories(snap, f->value[WORD_device_traces]);
    if (FIELDS_HAVE(f, host_traces))
        take_host_history(snap, f->value[WORD_host_traces]);
    if (FIELDS_HAVE(f, external_annotations))
        snap->annotation_run = *snapshot_run_of(snap, f->value[WORD_external_annotations], SNAPSHOT_VALUE_annotation);
    if (FIELDS_HAVE(f, allocator_settings) && pickle_type(f->value[WORD_allocator_settings]) == PICKLE_DICT) {
        snap->settings = f->value[WORD_allocator_settings];
        snap->has_settings = 1;
    }
}

static int keep_some(struct snapshot *snap, struct pickle_value *result)
{
    if (snap->kept++ >= KEPT_MAX) {
        *result = pickle_make(PICKLE_OPAQUE, 0);
        snap->unknown_values++;
    }
    return 0;
}

static int complete_dict(struct snapshot *snap, const struct pickle_value *items, size_t count,
                         struct pickle_value *result, struct error *err)
{
    struct snapshot_fields f;
    int rc;
    fields_read(snap, items, count, &f);
    if (FIELDS_HAVE(&f, action))
        rc = take_event(snap, &f, result, err);
    else if (FIELDS_HAVE(&f, filename) && FIELDS_HAVE(&f, line))
        rc = take_frame(snap, &f, result);
    else if (FIELDS_HAVE(&f, blocks) && FIELDS_HAVE(&f, total_size))
        rc = take_segment(snap, &f, result, err);
    else if (FIELDS_HAVE(&f, state) && FIELDS_HAVE(&f, size))
        rc = take_block(snap, &f, result, err);
    else if (FIELDS_HAVE(&f, real_size))
        rc = take_old_history(snap, &f, result, err);
    else if (FIELDS_HAVE(&f, stage) && FIELDS_HAVE(&f, name))
        rc = take_annotation(snap, &f, result, err);
    else if (FIELDS_HAVE(&f, segments) || FIELDS_HAVE(&f, device_traces)) {
        snap->top = *result;
        snap->has_top = 1;
        snap->has_segments = FIELDS_HAVE(&f, segments);
        take_top(snap, &f);
        rc = 0;
    } else {
        return keep_some(snap, result);
    }
    fields_count_unknown(snap, &f, items, count);
    return rc;
}

/* --- lists and tuples ------------------------------------------------------------------------------------------- */

static int take_stack(struct snapshot *snap, const struct pickle_value *items, size_t count,
                      struct pickle_value *result, struct error *err)
{
    uint32_t kept = 0, frames[STACK_FRAMES_MAX];
    if (count > STACK_FRAMES_MAX) { /* recursion: the innermost frames say where */
        snap->unknown_values++;
        count = STACK_FRAMES_MAX;
    }
    for (size_t i = 0; i < count; i++) {
        if (snapshot_type_of(items[i]) != SNAPSHOT_VALUE_frame)
            continue;
        frames[kept++] = pickle_index(items[i]);
    }
    snap->unknown_values += count - kept;
    *result = pickle_make(SNAPSHOT_VALUE_stack, snapshot_stack_number(snap, frames, kept));
    return snapshot_is_full(&snap->stacks, err, "stacks");
}

static int take_run(struct snapshot *snap, const struct pickle_value *items, size_t count, struct pickle_value *result,
                    struct error *err)
{
    unsigned type = snapshot_type_of(items[0]);
    struct snapshot_run r = {(uint8_t)type, pickle_index(items[0]), (uint32_t)count};
    for (size_t i = 1; i < count; i++)
        if (items[i].bits != pickle_make(type, r.first + (uint32_t)i).bits)
            return error_set(
                err, EBADMSG,
                "byte %llu: a list of unlike things, or of things of other lists: no snapshot of PyTorch's",
                (unsigned long long)pickle_offset(snap->pickle));
    *SNAPSHOT_ADD(snap->runs, snapshot_run) = r;
    *result = pickle_make(SNAPSHOT_VALUE_run, snap->runs.count - 1);
    return snapshot_is_full(&snap->runs, err, "lists");
}

static int complete_list(struct snapshot *snap, const struct pickle_value *items, size_t count,
                         struct pickle_value *result, struct error *err)
{
    if (!count) {
        *result = pickle_make(SNAPSHOT_VALUE_stack, 0);
        return 0;
    }
    switch (snapshot_type_of(items[0])) {
    case SNAPSHOT_VALUE_frame:
        return take_stack(snap, items, count, result, err);
    case SNAPSHOT_VALUE_event:
    case SNAPSHOT_VALUE_block:
    case SNAPSHOT_VALUE_segment:
    case SNAPSHOT_VALUE_annotation:
        return take_run(snap, items, count, result, err);
    case SNAPSHOT_VALUE_run:
        if (snapshot_run_of(snap, items[0], PICKLE_DICT)->count) { /* of an old block's history, the newest */
            *result = items[0];
            return 0;
        }
        return keep_some(snap, result);
    default:
        return keep_some(snap, result);
    }
}

/* A pool's id is two numbers. */
static int complete_tuple(struct snapshot *snap, const struct pickle_value *items, size_t count,
                          struct pickle_value *result, struct error *err)
{
    if (count != 2 || pickle_type(items[0]) != PICKLE_INT || pickle_type(items[1]) != PICKLE_INT)
        return keep_some(snap, result);
    struct snapshot_place place;
    memset(&place, 0, sizeof place);
    place.pool[0] = pickle_int(items[0]);
    place.pool[1] = pickle_int(items[1]);
    uint32_t number = snapshot_place_number(snap, &place);
    for (uint32_t i = snap->runs.count, look = 16; i-- > 0 && look--;) { /* one tuple a segment, all alike */
        const struct snapshot_run *r = SNAPSHOT_AT(snap->runs, snapshot_run, i);
        if (r->type == PICKLE_TUPLE && r->first == number) {
            *result = pickle_make(SNAPSHOT_VALUE_run, i);
            return 0;
        }
    }
    *SNAPSHOT_ADD(snap->runs, snapshot_run) = (struct snapshot_run){PICKLE_TUPLE, number, 1};
    *result = pickle_make(SNAPSHOT_VALUE_run, snap->runs.count - 1);
    return snapshot_is_full(&snap->runs, err, "lists");
}

static int complete(void *context, struct pickle *p, enum pickle_type type, const struct pickle_value *items,
                    size_t count, struct pickle_value *result, struct error *err)
{
    struct snapshot *snap = context;
    (void)p;
    switch (type) {
    case PICKLE_DICT:
        return complete_dict(snap, items, count, result, err);
    case PICKLE_LIST:
        return complete_list(snap, items, count, result, err);
    default:
        return complete_tuple(snap, items, count, result, err);
    }
}

static long read_source(void *context, void *data, size_t size)
{
    const struct snapshot *snap = context;
    return snap->source->read(snap->source->context, data, size);
}

/* --- the whole -------------------------------------------------------------------------------------------------- */

/* It is a dict; before PyTorch 2.0 it was a list of segments. */
static int check_top(struct snapshot *snap, struct pickle_value top, struct error *err)
{
    const struct snapshot_run *segments = snapshot_run_of(snap, top, SNAPSHOT_VALUE_segment);
    if (segments->count)
        snap->segment_run = *segments;
    else if (!snap->has_top || top.bits != snap->top.bits)
        return error_set(err, EINVAL,
                         "a pickle, but no memory snapshot: it has neither 'segments' nor 'device_traces'; expected "
                         "what torch.cuda.memory._dump_snapshot writes");
    snap->has_segments |= segments->count != 0;
    return 0;
}

int snapshot_read(struct snapshot *snap, const struct snapshot_source *source, struct error *err)
{
    struct pickle_user user = {snap, read_source, complete};
    struct pickle_value top;
    struct snapshot_place none;
    *snap = (struct snapshot){.source = source, .pickle = pickle_open(&user)};
    memset(&none, 0, sizeof none);
    *SNAPSHOT_ADD(snap->places, snapshot_place) = none;
    snapshot_stack_number(snap, &(uint32_t){0}, 0);
    int rc = pickle_read(snap->pickle, &top, err);
    if (rc == 0)
        rc = check_top(snap, top, err);
    if (rc == 0)
        snap->rest_bytes = pickle_rest(snap->pickle);
    return rc;
}

void snapshot_free(struct snapshot *snap)
{
    struct snapshot_table *const tables[] = {&snap->events,      &snap->places, &snap->blocks, &snap->segments,
                                             &snap->annotations, &snap->frames, &snap->stacks, &snap->runs,
                                             &snap->old,         &snap->texts};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        free(tables[i]->data);
    map_close(&snap->frame_map);
    text_map_close(&snap->stack_map);
    free(snap->words);
    pickle_close(snap->pickle);
    *snap = (struct snapshot){0};
}
