/* What an event does to a window's sites, levels, threads and processes, and where its ranges begin and end. */
#include "window_private.h"

#include "../../common/wrap.h"

void window_most(int64_t *value, int64_t now)
{
    if (now > *value)
        *value = now;
}

/* A site that did not change since a range began held at its beginning what it holds now. */
void window_touch(struct window *w, uint32_t index)
{
    struct window_site *site = &w->sites[index];
    if (site->seen == w->entered)
        return;
    site->seen = w->entered;
    window_most(&site->own_peak_bytes, w->live[index].bytes);
}

void window_change(struct window *w, uint32_t index, uint64_t bytes, uint64_t count)
{
    wrap_change(&w->live[index].bytes, bytes);
    wrap_change(&w->live[index].count, count);
    for (int i = 0; i < 2; i++) {
        if (w->sites[index].levels[i] == WINDOW_NONE)
            continue;
        struct window_level *l = &w->levels[w->sites[index].levels[i]];
        wrap_change(&l->active_bytes, bytes);
    }
}

/* --- the ranges -------------------------------------------------------------------------------------------------- */

static void raise_level(struct window_level *l, int64_t active_bytes, int64_t time_ns, int64_t stop_event)
{
    if (l->has_peak && active_bytes <= l->peak_bytes)
        return;
    l->has_peak = 1;
    l->peak_bytes = active_bytes;
    l->peak_ns = time_ns;
    l->stop_event = stop_event;
}

static void enter(struct window *w, int64_t time_ns, int64_t event)
{
    w->is_inside = 1;
    for (uint32_t i = 0; i < w->level_count; i++)
        raise_level(&w->levels[i], w->levels[i].active_bytes, time_ns, event);
    for (size_t i = 0; !w->entered && i < window_row_count(w); i++) {
        w->sites[i].start_bytes = w->live[i].bytes;
        w->sites[i].start_count = w->live[i].count;
    }
    w->entered++;
}

/* Up to an event at time_ns: ranges end and begin on the way. */
void window_advance(struct window *w, int64_t time_ns, int64_t event)
{
    while (w->range < w->range_count) {
        const struct window_range *r = &w->ranges[w->range];
        if (!w->is_inside && r->from_ns <= time_ns)
            enter(w, r->from_ns, event);
        if (!w->is_inside || r->to_ns > time_ns || r->to_ns == WINDOW_END)
            break;
        w->is_inside = 0;
        w->range++;
    }
}

/* Where the next range begins or ends. */
int64_t window_next_edge(const struct window *w)
{
    if (w->range == w->range_count)
        return WINDOW_END;
    return w->is_inside ? w->ranges[w->range].to_ns : w->ranges[w->range].from_ns;
}

/* The first event at a time or after it. */
static long first_from(const struct chunk_event *events, long count, int64_t time_ns)
{
    long low = 0, high = count;
    while (low < high) {
        long middle = low + (high - low) / 2;
        if ((int64_t)events[middle].time_ns < time_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Whether the next range begins in the chunk, too. */
static int meets_next(const struct window *w, const struct window_chunk *c)
{
    return w->is_inside && w->range + 1 < w->range_count && w->ranges[w->range + 1].from_ns <= c->last_ns;
}

void window_join(struct window *w, const struct window_chunk *c)
{
    const struct chunk_event *events;
    if (!meets_next(w, c))
        return;
    long count = window_decode(w, c->chunk_id, &events);
    while (count > 0 && meets_next(w, c)) {
        const struct window_range *r = &w->ranges[w->range];
        if (first_from(events, count, r[0].to_ns) != first_from(events, count, r[1].from_ns))
            return;
        w->ranges[w->range + 1].from_ns = r[0].from_ns;
        w->range++;
    }
}

/* --- events ------------------------------------------------------------------------------------------------------ */

/* Whether it was live when its process's interpreter began to take itself down, within this range: that is its end. */
static int is_torn_down(struct window *w, const struct chunk_event *e)
{
    uint32_t i = map_number(&w->teardown_of, e->process_id, 0);
    const struct window_teardown *t = i == MAP_NONE ? NULL : &w->teardowns[i];
    const uint64_t space = chunk_event_space(e);
    if (!t || t->began_ns > (int64_t)e->time_ns || t->until_ns <= (int64_t)e->time_ns)
        return 0;
    if (chunk_op_is_birth(e->op)) {
        if ((int64_t)e->time_ns > t->began_ns)
            *map_slot(&w->born, e->address, space) = 1;
        return 0;
    }
    if (e->op == CHUNK_split && map_get(&w->born, e->address, space))
        *map_slot(&w->born, e->address + e->size_bytes, space) = 1;
    if (e->op != CHUNK_free && e->op != CHUNK_realloc_free && e->op != CHUNK_cut)
        return 0;
    return !map_take(&w->born, e->address, space);
}

void window_birth(struct window *w, uint32_t index, const struct chunk_event *e, int64_t event)
{
    struct window_site *site = &w->sites[index];
    wrap_change(&site->alloc_count, 1);
    wrap_change(&site->alloc_bytes, e->size_bytes);
    window_change(w, index, e->size_bytes, 1);
    window_most(&site->own_peak_bytes, w->live[index].bytes);
    for (int i = 0; i < 2; i++) {
        if (site->levels[i] == WINDOW_NONE)
            continue;
        struct window_level *l = &w->levels[site->levels[i]];
        raise_level(l, l->active_bytes, (int64_t)e->time_ns, event + 1);
    }
}

void window_loss(struct window *w, uint32_t index, const struct chunk_event *e, int is_torn)
{
    struct window_site *site = &w->sites[index];
    uint64_t count = e->op == CHUNK_end ? e->address : e->op == CHUNK_cut ? 0 : 1;
    if (e->op == CHUNK_to_segment) { /* it never was a block */
        wrap_change(&site->moved_count, 1);
        wrap_change(&site->alloc_count, (uint64_t)-1);
        wrap_change(&site->alloc_bytes, -e->size_bytes);
    } else if (e->op == CHUNK_end) {
        wrap_change(&site->end_count, count);
        wrap_change(&site->end_bytes, e->size_bytes);
    } else {
        wrap_change(&site->free_count, count);
        wrap_change(&site->free_bytes, e->size_bytes);
    }
    if (is_torn) {
        wrap_change(&site->torn_count, count);
        wrap_change(&site->torn_bytes, e->size_bytes);
    }
    window_change(w, index, -e->size_bytes, -count);
}

static void apply_site(struct window *w, const struct chunk_event *e, int64_t event, int is_torn, int is_temporary)
{
    const int is_birth = chunk_op_is_birth(e->op);
    const uint32_t index = is_birth || chunk_op_is_loss(e->op) ? window_site_at(w, e->site_id) : WINDOW_NONE;
    if (index == WINDOW_NONE)
        return;
    window_touch(w, index);
    if (w->is_inside && is_birth)
        window_birth(w, index, e, event);
    else if (w->is_inside)
        window_loss(w, index, e, is_torn);
    else if (is_birth)
        window_change(w, index, e->size_bytes, 1);
    else
        window_change(w, index, -e->size_bytes,
                      e->op == CHUNK_end   ? -e->address
                      : e->op == CHUNK_cut ? 0
                                           : (uint64_t)-1);
    w->sites[index].temporary_count += w->is_inside && is_temporary;
}

void window_apply(struct window *w, const struct chunk_event *e, uint32_t at, int64_t event, int is_temporary)
{
    const int is_torn = w->is_inside && w->teardown_count && is_torn_down(w, e);
    apply_site(w, e, event, is_torn, is_temporary);
    if (w->parts)
        window_parts_apply(w, e, at, event, is_torn, is_temporary);
}
