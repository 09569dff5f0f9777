/*
 * A history and the final state as one stream of events. The history may be a ring that begins in mid-run, and may end
 * a little before the final state was taken. So the final state is the anchor: what lived before the history is found
 * by going back from it, and is born at the history's start; what still differs at its end is set right there, and
 * counted.
 */
#include "../../common/range.h"
#include "../account/account.h"
#include "import_snapshot.h"

#include "../../common/array.h"
#include "../../common/kind.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BATCH        512u
#define FLUSH_EVENTS (1u << 20)

/* What is known of an address that is or was a block's: flags, and of which block of the final state. */
#define SEEN              1u /* the history names the address */
#define LIVE              2u /* at the end of what was looked at */
#define PENDING           4u /* its free was requested */
#define FINAL             8u /* lives in the final state ... */
#define FINAL_PENDING     16u
#define KNOWN_FLAGS       31u
#define KNOWN_BLOCK_SHIFT 32

struct birth { /* a block that lived before the history */
    uint64_t address, size_bytes;
    uint32_t stack;
    uint16_t place;
    uint8_t is_pending;
};

struct lane { /* a device */
    unsigned device, device_id, kind;
    const struct snapshot_event *events;
    uint32_t count, next;
    const struct snapshot_segment *segments; /* of all devices */
    uint32_t segment_count;
    int64_t last_us;
    struct map known; /* address -> flags, above them the block's number */
    struct map last;  /* of addresses in the final state: the number of the event that allocated it last, plus 1 */
    struct birth *births;
    uint32_t birth_count, birth_capacity;
    struct range_map
        *at_start; /* segments: id is the number of the final one plus 1, or 0; type: 1, place in stack_id */
};

struct replay {
    const struct snapshot *snap;
    const struct import_names *names;
    struct account *account;
    struct import_counts *counts;
    void (*flush)(void *context, uint64_t time_ns, int percent);
    void *context;
    struct event batch[BATCH];
    unsigned fill;
    uint64_t flushed;
    uint64_t total;
};

/* --- time ------------------------------------------------------------------------------------------------------- */

static void span_time(struct import_counts *c, int64_t time_us)
{
    if (time_us <= 0)
        return;
    if (!c->has_times || time_us < c->start_us)
        c->start_us = time_us;
    if (!c->has_times || time_us > c->end_us)
        c->end_us = time_us;
    c->has_times = 1;
}

void import_span(const struct snapshot *snap, struct import_counts *counts)
{
    const struct snapshot_event *events = snap->events.data;
    *counts = (struct import_counts){0};
    for (uint32_t i = 0; i < snap->events.count; i++)
        span_time(counts, events[i].time_us);
    for (uint32_t i = 0; i < snap->annotations.count; i++)
        span_time(counts, SNAPSHOT_AT(snap->annotations, snapshot_annotation, i)->time_us);
    if (!counts->has_times)
        counts->end_us = snap->events.count;
    /* no run lasts longer; a time that is off must not make the others one point */
    if (counts->end_us - counts->start_us > 366ll * 86400 * 1000000)
        counts->end_us = counts->start_us + 366ll * 86400 * 1000000;
}

static int64_t event_us(const struct replay *r, const struct lane *l, uint32_t index)
{
    if (!r->counts->has_times)
        return (int64_t)(l->events - (const struct snapshot_event *)r->snap->events.data) + index;
    int64_t time_us = l->events[index].time_us;
    time_us = time_us > l->last_us ? time_us : l->last_us;
    return time_us < r->counts->end_us ? time_us : r->counts->end_us;
}

/* --- giving events ---------------------------------------------------------------------------------------------- */

static void give(struct replay *r, const struct lane *l, unsigned op, unsigned hook, uint64_t time_ns, uint64_t address,
                 uint64_t size_bytes, uint32_t stack, uint16_t place)
{
    r->batch[r->fill++] = (struct event){
        .time_ns = time_ns,
        .address = address,
        .size_bytes = size_bytes,
        .stack_id = hook == IMPORT_HOOK_BEFORE && !r->names->stack_ids[stack] ? r->names->before_id
                                                                              : r->names->stack_ids[stack],
        .thread_id = r->names->thread_ids[place],
        .process_id = IMPORT_PROCESS,
        .op = (uint8_t)op,
        .hook = (uint8_t)hook,
        .device = (uint8_t)l->device_id,
        .kind = (uint8_t)l->kind,
    };
    r->counts->events++;
    if (r->fill == BATCH) {
        account_events(r->account, r->batch, r->fill);
        r->fill = 0;
    }
    if (r->counts->events - r->flushed >= FLUSH_EVENTS && r->flush) {
        account_events(r->account, r->batch, r->fill);
        r->fill = 0;
        r->flushed = r->counts->events;
        r->flush(r->context, time_ns,
                 r->total ? (int)(r->counts->events * 100 / (r->total + r->counts->before_blocks)) : 0);
    }
}

/* --- blocks ----------------------------------------------------------------------------------------------------- */

static void final_blocks(const struct snapshot *snap, struct lane *l)
{
    for (uint32_t i = 0; i < l->segment_count; i++) {
        const struct snapshot_segment *s = &l->segments[i];
        if (s->device != l->device)
            continue;
        for (uint32_t n = 0; n < s->block_count; n++) {
            const struct snapshot_block *b = SNAPSHOT_AT(snap->blocks, snapshot_block, s->first_block + n);
            if (b->state == SNAPSHOT_INACTIVE || !b->address)
                continue;
            uint64_t *known = map_slot(&l->known, b->address, 0);
            *known = (*known & KNOWN_FLAGS) | FINAL | (b->state == SNAPSHOT_PENDING ? FINAL_PENDING : 0) |
                     (uint64_t)(s->first_block + n) << KNOWN_BLOCK_SHIFT;
        }
    }
}

/* Through the history once: what it frees without having allocated it lived before. */
static void find_births(struct lane *l)
{
    for (uint32_t i = 0; i < l->count; i++) {
        const struct snapshot_event *e = &l->events[i];
        if (e->action < SNAPSHOT_alloc || e->action > SNAPSHOT_free_completed || !e->address)
            continue;
        uint64_t *known = map_slot(&l->known, e->address, 0);
        if (!(*known & SEEN) && e->action != SNAPSHOT_alloc) {
            struct birth b = {e->address, e->size_bytes, 0, e->place, e->action == SNAPSHOT_free_completed};
            *ARRAY_ADD(l->births, l->birth_count, l->birth_capacity) = b;
        }
        if (*known & FINAL && (e->action == SNAPSHOT_alloc || !(*known & SEEN)))
            map_set_number(&l->last, e->address, 0, i);
        int was_live = *known & LIVE || !(*known & SEEN);
        *known &= ~(uint64_t)(LIVE | PENDING);
        *known |= SEEN | (e->action == SNAPSHOT_alloc                        ? LIVE
                          : e->action == SNAPSHOT_free_requested && was_live ? LIVE | PENDING
                                                                             : 0u);
    }
}

/* What the history does not name, and lives in the end, lived from before on. */
static void find_silent(const struct snapshot *snap, struct lane *l)
{
    for (uint32_t i = 0; i < l->segment_count; i++) {
        const struct snapshot_segment *s = &l->segments[i];
        for (uint32_t n = 0; s->device == l->device && n < s->block_count; n++) {
            const struct snapshot_block *b = SNAPSHOT_AT(snap->blocks, snapshot_block, s->first_block + n);
            if (b->state == SNAPSHOT_INACTIVE || !b->address)
                continue;
            uint64_t *known = map_slot(&l->known, b->address, 0);
            if (*known & SEEN || *known >> KNOWN_BLOCK_SHIFT != s->first_block + n)
                continue;
            struct birth birth = {b->address, b->requested_bytes, b->stack, s->place, b->state == SNAPSHOT_PENDING};
            *ARRAY_ADD(l->births, l->birth_count, l->birth_capacity) = birth;
            *known |= SEEN | LIVE | (b->state == SNAPSHOT_PENDING ? PENDING : 0);
        }
    }
}

static int by_address(const void *a, const void *b)
{
    const struct birth *x = a, *y = b;
    return (x->address > y->address) - (x->address < y->address);
}

static void give_births(struct replay *r, struct lane *l)
{
    if (l->birth_count)
        qsort(l->births, l->birth_count, sizeof(struct birth), by_address);
    for (uint32_t i = 0; i < l->birth_count; i++) {
        const struct birth *b = &l->births[i];
        give(r, l, EVENT_ALLOC, IMPORT_HOOK_BEFORE, 0, b->address, b->size_bytes, b->stack, b->place);
        r->counts->before_unknown += r->names->stack_ids[b->stack] == 0;
    }
    r->counts->before_blocks += l->birth_count;
}

/* The order of births from before is not known: that one was the last says nothing. */
static void give_pending(struct replay *r, struct lane *lanes, unsigned count)
{
    account_events(r->account, r->batch, r->fill);
    r->fill = 0;
    account_forget_last(r->account);
    for (unsigned n = 0; n < count; n++)
        for (uint32_t i = 0; i < lanes[n].birth_count; i++) {
            const struct birth *b = &lanes[n].births[i];
            if (b->is_pending)
                give(r, &lanes[n], EVENT_FREE_REQUESTED, IMPORT_HOOK_BEFORE, 0, b->address, 0, 0, b->place);
        }
}

static uint16_t segment_place(const struct lane *l, uint32_t block)
{
    for (uint32_t i = 0; i < l->segment_count; i++)
        if (block - l->segments[i].first_block < l->segments[i].block_count)
            return l->segments[i].place;
    return 0;
}

/* Whether a block of the final state is another one than the history left at its address: it was freed and allocated
 * again afterwards, as far as sizes and stacks tell. Of what was there before, its free has the size alone. */
static int is_another(const struct replay *r, const struct lane *l, const struct snapshot_block *b)
{
    const uint32_t number = map_number(&l->last, b->address, 0);
    if (number == MAP_NONE)
        return 0;
    const struct snapshot_event *e = &l->events[number];
    const uint32_t had = e->action == SNAPSHOT_alloc ? r->names->stack_ids[e->stack] : 0;
    const uint32_t has = r->names->stack_ids[b->stack];
    /* old histories have the size that was given, not the one that was asked for */
    return (e->size_bytes != b->requested_bytes && e->size_bytes != b->size_bytes) || (had && has && had != has);
}

/* The history's end against the final state. */
static void settle_blocks(struct replay *r, struct lane *l, uint64_t time_ns)
{
    for (const struct map_entry *e = NULL; r->snap->has_segments && (e = map_next(&l->known, e));) {
        uint64_t address = e->a, flags = e->value, number = e->value >> KNOWN_BLOCK_SHIFT;
        int live = (flags & LIVE) != 0;
        const struct snapshot_block *b =
            flags & FINAL ? SNAPSHOT_AT(r->snap->blocks, snapshot_block, (uint32_t)number) : NULL;
        if (live && (!b || is_another(r, l, b))) {
            give(r, l, EVENT_FREE, IMPORT_HOOK_AFTER, time_ns, address, 0, 0, 0);
            r->counts->unseen_frees++;
            live = 0;
        }
        if (!b)
            continue;
        uint16_t place = live ? 0 : segment_place(l, (uint32_t)number);
        if (!live) {
            give(r, l, EVENT_ALLOC, IMPORT_HOOK_AFTER, time_ns, address, b->requested_bytes, b->stack, place);
            r->counts->unseen_allocs++;
        }
        if (flags & FINAL_PENDING && !(live && flags & PENDING))
            give(r, l, EVENT_FREE_REQUESTED, IMPORT_HOOK_AFTER, time_ns, address, 0, 0, place);
    }
}

/* --- segments --------------------------------------------------------------------------------------------------- */

static int is_segment_birth(unsigned action)
{
    return action == SNAPSHOT_segment_alloc || action == SNAPSHOT_segment_map;
}

static int is_segment_death(unsigned action)
{
    return action == SNAPSHOT_segment_free || action == SNAPSHOT_segment_unmap;
}

static uint64_t end_of(uint64_t address, uint64_t size_bytes)
{
    uint64_t end;
    return __builtin_add_overflow(address, size_bytes, &end) ? UINT64_MAX : end;
}

/* Takes [start, end) out of the map; how many bytes of it were there. */
static uint64_t cut(struct range_map *m, uint64_t start, uint64_t end)
{
    uint64_t bytes = 0;
    struct range *found;
    while (start < end && (found = range_map_find(m, start)) && found->start < end) {
        struct range r = *found, part;
        uint64_t from = r.start > start ? r.start : start, to = r.end < end ? r.end : end;
        range_map_remove(m, found);
        if (r.start < from) {
            part = r;
            part.end = from;
            range_map_insert(m, &part);
        }
        if (to < r.end) {
            part = r;
            part.start = to;
            range_map_insert(m, &part);
        }
        bytes += to - from;
    }
    return bytes;
}

static void put(struct range_map *m, uint64_t start, uint64_t end, uint32_t stack, uint16_t place)
{
    struct range r = {.start = start, .end = end, .id = place, .stack_id = stack};
    if (end <= start)
        return;
    cut(m, start, end);
    range_map_insert(m, &r);
}

static struct range_map *final_segments(const struct lane *l)
{
    struct range_map *m = range_map_open();
    for (uint32_t i = 0; i < l->segment_count; i++) {
        const struct snapshot_segment *s = &l->segments[i];
        if (s->device == l->device && s->address)
            put(m, s->address, end_of(s->address, s->total_bytes), s->stack, s->place);
    }
    return m;
}

/* Back from the final state. */
static void find_first_segments(struct lane *l)
{
    l->at_start = final_segments(l);
    for (uint32_t i = l->count; i-- > 0;) {
        const struct snapshot_event *e = &l->events[i];
        if (is_segment_birth(e->action))
            cut(l->at_start, e->address, end_of(e->address, e->size_bytes));
        else if (is_segment_death(e->action))
            put(l->at_start, e->address, end_of(e->address, e->size_bytes), 0, e->place);
    }
}

static void give_first_segments(struct replay *r, struct lane *l)
{
    uint64_t at = 0;
    const struct range *s;
    while ((s = range_map_find(l->at_start, at))) {
        give(r, l, EVENT_SEGMENT_ALLOC, IMPORT_HOOK_BEFORE, 0, s->start, s->end - s->start, s->stack_id,
             (uint16_t)s->id);
        r->counts->before_segments++;
        at = s->end;
    }
}

/* Gives op for each part of a that b lacks. */
static void give_difference(struct replay *r, struct lane *l, struct range_map *a, struct range_map *b, unsigned op,
                            uint64_t time_ns)
{
    uint64_t at = 0;
    const struct range *in_a, *in_b;
    while ((in_a = range_map_find(a, at))) {
        uint64_t start = in_a->start > at ? in_a->start : at, end = in_a->end;
        in_b = range_map_find(b, start);
        if (in_b && in_b->start <= start) {
            at = in_b->end;
            continue;
        }
        if (in_b && in_b->start < end)
            end = in_b->start;
        give(r, l, op, IMPORT_HOOK_AFTER, time_ns, start, end - start, in_a->stack_id, (uint16_t)in_a->id);
        r->counts->unseen_segments++;
        at = end;
    }
}

static void settle_segments(struct replay *r, struct lane *l, uint64_t time_ns)
{
    if (!r->snap->has_segments)
        return;
    struct range_map *now = l->at_start, *final = final_segments(l);
    for (uint32_t i = 0; i < l->count; i++) {
        const struct snapshot_event *e = &l->events[i];
        if (is_segment_birth(e->action))
            put(now, e->address, end_of(e->address, e->size_bytes), 0, e->place);
        else if (is_segment_death(e->action))
            cut(now, e->address, end_of(e->address, e->size_bytes));
    }
    give_difference(r, l, now, final, EVENT_SEGMENT_FREE, time_ns);
    give_difference(r, l, final, now, EVENT_SEGMENT_ALLOC, time_ns);
    range_map_close(final);
}

/* --- all devices ------------------------------------------------------------------------------------------------ */

static void give_event(struct replay *r, struct lane *l)
{
    static const uint8_t ops[SNAPSHOT_ACTIONS] = {
        [SNAPSHOT_alloc] = EVENT_ALLOC,
        [SNAPSHOT_free_requested] = EVENT_FREE_REQUESTED,
        [SNAPSHOT_free_completed] = EVENT_FREE,
        [SNAPSHOT_segment_alloc] = EVENT_SEGMENT_ALLOC,
        [SNAPSHOT_segment_free] = EVENT_SEGMENT_FREE,
        [SNAPSHOT_segment_map] = EVENT_SEGMENT_ALLOC,
        [SNAPSHOT_segment_unmap] = EVENT_SEGMENT_FREE,
        [SNAPSHOT_oom] = EVENT_OOM,
    };
    const struct snapshot_event *e = &l->events[l->next];
    l->last_us = event_us(r, l, l->next++);
    if (e->action == SNAPSHOT_NO_ACTION || e->action == SNAPSHOT_snapshot || e->action == SNAPSHOT_user_defined)
        return;
    int is_oom = e->action == SNAPSHOT_oom,
        has_stack = is_oom || e->action == SNAPSHOT_alloc || is_segment_birth(e->action);
    r->counts->oom_count += is_oom;
    give(r, l, ops[e->action], e->action, import_time_ns(r->counts, l->last_us), is_oom ? ENOMEM : e->address,
         e->size_bytes, has_stack ? e->stack : 0, e->place);
}

static struct lane *next_lane(const struct replay *r, struct lane *lanes, unsigned count)
{
    struct lane *next = NULL;
    int64_t first_us = 0;
    for (unsigned i = 0; i < count; i++) {
        struct lane *l = &lanes[i];
        if (l->next == l->count)
            continue;
        int64_t time_us = event_us(r, l, l->next);
        if (!next || time_us < first_us) {
            next = l;
            first_us = time_us;
        }
    }
    return next;
}

static unsigned open_lanes(const struct snapshot *snap, struct lane *lanes)
{
    uint8_t has_segments[SNAPSHOT_DEVICES] = {0};
    unsigned count = 0;
    const struct snapshot_event *events = snap->events.data;
    const struct snapshot_segment *segments = snap->segments.data;
    for (uint32_t i = 0; i < snap->segment_run.count; i++)
        if (segments[snap->segment_run.first + i].device < SNAPSHOT_DEVICES)
            has_segments[segments[snap->segment_run.first + i].device] = 1;
    for (unsigned i = 0; i <= SNAPSHOT_DEVICES; i++) {
        int host = i == IMPORT_HOST;
        const struct snapshot_history *h = host ? &snap->host : &snap->devices[i];
        const struct snapshot_run *run = host ? &snap->host_segment_run : &snap->segment_run;
        if (!h->count && !(host ? run->count : has_segments[i]))
            continue;
        lanes[count++] = (struct lane){
            .device = host ? 0 : i,
            .device_id = import_device_id(i),
            .kind = host ? KIND_pinned : KIND_sub,
            .events = events ? events + h->first : NULL,
            .count = h->count,
            .segments = segments ? segments + run->first : NULL,
            .segment_count = run->count,
        };
    }
    return count;
}

void import_replay(const struct snapshot *snap, const struct import_names *names, struct account *account,
                   void (*flush)(void *context, uint64_t time_ns, int percent), void *context,
                   struct import_counts *counts)
{
    struct replay *r = xcalloc(1, sizeof *r);
    struct lane *lanes = xcalloc(SNAPSHOT_DEVICES + 1, sizeof *lanes), *l;
    *r = (struct replay){snap, names, account, counts, flush, context, .total = snap->events.count};
    unsigned count = open_lanes(snap, lanes);
    for (unsigned i = 0; i < count; i++) {
        final_blocks(snap, &lanes[i]);
        find_births(&lanes[i]);
        find_silent(snap, &lanes[i]);
        find_first_segments(&lanes[i]);
        give_first_segments(r, &lanes[i]);
        give_births(r, &lanes[i]);
    }
    give_pending(r, lanes, count);
    while ((l = next_lane(r, lanes, count)))
        give_event(r, l);
    for (unsigned i = 0; i < count; i++) {
        uint64_t time_ns = import_time_ns(counts, counts->end_us);
        settle_blocks(r, &lanes[i], time_ns);
        settle_segments(r, &lanes[i], time_ns);
    }
    account_events(account, r->batch, r->fill);
    for (unsigned i = 0; i < count; i++) {
        map_close(&lanes[i].known);
        map_close(&lanes[i].last);
        free(lanes[i].births);
        range_map_close(lanes[i].at_start);
    }
    free(lanes);
    free(r);
}
