#include "window.h"

#include "../../common/array.h"
#include "../../common/chunk.h"
#include "../../common/db.h"
#include "../../common/kind.h"
#include "../../common/map.h"
#include "../../common/wrap.h"
#include "at.h"
#include "temporaries.h"
#include "window_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What sums of a chunk do not tell from frees: those are read from its events. */
#define APART (1l << CHUNK_end | 1l << CHUNK_to_segment)

size_t window_unite(struct window_range *ranges, size_t count)
{
    size_t kept = 0;
    for (size_t i = 1; i < count; i++) { /* they come nearly in order */
        struct window_range moved = ranges[i];
        size_t k = i;
        for (; k > 0 && ranges[k - 1].from_ns > moved.from_ns; k--)
            ranges[k] = ranges[k - 1];
        ranges[k] = moved;
    }
    for (size_t i = 0; i < count; i++) {
        if (kept == 0 || ranges[i].from_ns > ranges[kept - 1].to_ns)
            ranges[kept++] = ranges[i];
        else if (ranges[i].to_ns > ranges[kept - 1].to_ns)
            ranges[kept - 1].to_ns = ranges[i].to_ns;
    }
    return kept;
}

/* --- sites and levels -------------------------------------------------------------------------------------------- */

static uint32_t level_at(struct window *w, uint32_t device, uint32_t kind)
{
    uint32_t i = map_number_or(&w->level_of, device, kind, w->level_count);
    if (i == w->level_count)
        *ARRAY_ADD(w->levels, w->level_count, w->level_capacity) =
            (struct window_level){.device = (uint8_t)device, .kind = (uint8_t)kind};
    return i;
}

static unsigned kind_number(const char *name)
{
    unsigned kind = 0;
    while (kind < KIND_COUNT && strcmp(kind_name(kind), name) != 0)
        kind++;
    return kind;
}

/* Those of w->live, in its order. What a hostile file says of a device that cannot be is left out of all levels. */
static int load_sites(struct window *w, struct error *err)
{
    sqlite3_stmt *s = NULL;
    size_t i = 0;
    int rc = db_prepare(w->db, "SELECT site_id, device_id, kind FROM site ORDER BY site_id", &s, err);
    w->sites = xcalloc(w->site_count + 1, sizeof *w->sites);
    while (db_next(s, &rc, err) && i < w->site_count) {
        struct window_site *site = &w->sites[i];
        int64_t id = sqlite3_column_int64(s, 0), device = sqlite3_column_int64(s, 1);
        unsigned kind = kind_number(db_text(s, 2));
        if (id != w->live[i].site_id)
            break;
        i++;
        site->levels[0] = site->levels[1] = WINDOW_NONE;
        if (device < 0 || device > UINT8_MAX || kind == KIND_COUNT)
            continue;
        site->levels[0] = level_at(w, (uint32_t)device, KIND_all);
        site->levels[1] = level_at(w, (uint32_t)device, kind);
    }
    sqlite3_finalize(s);
    if (rc == 0 && i < w->site_count)
        rc = error_set(err, EBADMSG, "%s: its sites are damaged", sqlite3_db_filename(w->db, "main"));
    return rc;
}

/* --- events ------------------------------------------------------------------------------------------------------ */

static void count_events(struct window *w, int64_t count)
{
    if (w->is_inside && __builtin_add_overflow(w->event_count, count, &w->event_count))
        w->event_count = INT64_MAX;
}

static void read_events(struct window *w, const struct window_chunk *c, const struct chunk_event *events, long count,
                        const uint8_t *is_temporary)
{
    if (w->parts)
        window_parts_begin(w, c->chunk_id);
    for (long i = 0; i < count; i++) {
        int64_t event = c->first_event + i;
        if (event < w->first_event && w->parts)
            window_parts_apply(w, &events[i], (uint32_t)i, event, 0, 0);
        if (event < w->first_event)
            continue;
        window_advance(w, (int64_t)events[i].time_ns, event);
        if (w->range == w->range_count)
            break;
        count_events(w, 1);
        window_apply(w, &events[i], (uint32_t)i, event, is_temporary && is_temporary[i]);
    }
    w->result->chunks_read++;
}

/* --- chunks ------------------------------------------------------------------------------------------------------ */

/* A chunk whose events were not read: what a level may have risen to in it, at most. */
static void add_bounds(struct window *w, const struct window_chunk *c)
{
    for (uint32_t i = 0; i < w->touched_count; i++) {
        struct window_level *l = &w->levels[w->touched[i]];
        int64_t bound, most_bytes = window_timeline_most(w, l->device, c->first_ns, c->last_ns);
        if (__builtin_add_overflow(l->before_bytes, l->rise_bytes, &bound))
            bound = INT64_MAX;
        if (most_bytes >= 0 && most_bytes < bound)
            bound = most_bytes;
        *ARRAY_ADD(l->bounds, l->bound_count, l->bound_capacity) =
            (struct window_bound){c->chunk_id, c->first_event, l->before_bytes, bound, 0};
        l->is_touched = 0;
    }
    w->touched_count = 0;
}

static void touch_level(struct window *w, uint32_t level, int64_t rise_bytes)
{
    struct window_level *l = &w->levels[level];
    if (!l->is_touched) {
        *ARRAY_ADD(w->touched, w->touched_count, w->touched_capacity) = level;
        l->is_touched = 1;
        l->before_bytes = l->active_bytes;
        l->rise_bytes = 0;
    }
    if (rise_bytes < 0 || __builtin_add_overflow(l->rise_bytes, rise_bytes, &l->rise_bytes))
        l->rise_bytes = INT64_MAX;
}

static void sum_chunk(struct window *w, const struct window_chunk *c, const struct chunk_delta *deltas, long count)
{
    for (long i = 0; i < count; i++) {
        const struct chunk_delta *d = &deltas[i];
        uint32_t index = window_site_at(w, d->site_id);
        if (index == WINDOW_NONE)
            continue;
        struct window_site *site = &w->sites[index];
        window_touch(w, index);
        if (w->is_inside) {
            int64_t high = w->live[index].bytes;
            wrap_change(&high, d->rise_bytes);
            window_most(&site->own_peak_bytes, high);
            wrap_change(&site->alloc_count, d->alloc_count);
            wrap_change(&site->alloc_bytes, d->alloc_bytes);
            wrap_change(&site->free_count, d->free_count);
            wrap_change(&site->free_bytes, d->free_bytes);
            wrap_change(&site->temporary_count, d->temporary_count);
            for (int k = 0; k < 2; k++)
                if (site->levels[k] != WINDOW_NONE)
                    touch_level(w, site->levels[k], (int64_t)d->rise_bytes);
        }
        window_change(w, index, d->alloc_bytes - d->free_bytes, (uint64_t)d->alloc_count - d->free_count);
    }
    add_bounds(w, c);
    if (w->parts)
        window_parts_sum(w, c);
    count_events(w, c->event_count);
    w->result->chunks_summed++;
}

/* Of one whose sums are complete, but whose events are read for what they do not tell apart. */
static void add_temporaries(struct window *w, const struct chunk_delta *deltas, long count)
{
    for (long i = 0; i < count; i++) {
        uint32_t index = window_site_at(w, deltas[i].site_id);
        if (index != WINDOW_NONE)
            wrap_change(&w->sites[index].temporary_count, deltas[i].temporary_count);
    }
    if (w->parts)
        window_parts_temporaries(w);
}

static int is_in_teardown(const struct window *w, const struct window_chunk *c)
{
    for (uint32_t i = 0; i < w->teardown_count; i++)
        if (c->last_ns >= w->teardowns[i].began_ns && c->first_ns < w->teardowns[i].until_ns)
            return 1;
    return 0;
}

/* Whether its sums say all that is wanted of it. */
static int is_summed(struct window *w, const struct window_chunk *c)
{
    char head[4096];
    sqlite3_blob *blob = NULL;
    long ops = -EBADMSG;
    if (c->first_event < w->first_event || c->last_ns >= window_next_edge(w))
        return 0;
    if (!w->is_inside)
        return 1;
    if (is_in_teardown(w, c))
        return 0;
    if (sqlite3_blob_open(w->db, "main", "event_chunk", "data", c->chunk_id, 0, &blob) == SQLITE_OK) {
        int bytes = sqlite3_blob_bytes(blob) < (int)sizeof head ? sqlite3_blob_bytes(blob) : (int)sizeof head;
        if (sqlite3_blob_read(blob, head, bytes, 0) == SQLITE_OK)
            ops = chunk_decode_ops(w->codec, head, (size_t)bytes);
    }
    sqlite3_blob_close(blob);
    return ops >= 0 && !(ops & APART);
}

long window_decode(struct window *w, int64_t chunk_id, const struct chunk_event **events)
{
    sqlite3_bind_int64(w->read_data, 1, chunk_id);
    const void *data = sqlite3_step(w->read_data) == SQLITE_ROW ? sqlite3_column_blob(w->read_data, 0) : NULL;
    long count =
        data ? chunk_decode_events(w->codec, data, (size_t)sqlite3_column_bytes(w->read_data, 0), events) : -EBADMSG;
    sqlite3_reset(w->read_data);
    return count;
}

static void take_chunk(struct window *w, const struct window_chunk *c, const void *delta_data, size_t delta_bytes)
{
    const struct chunk_event *events;
    const struct chunk_delta *deltas = NULL;
    long delta_count = delta_data ? chunk_decode_deltas(w->delta_codec, delta_data, delta_bytes, &deltas) : -EBADMSG;
    deltas = delta_count >= 0 ? deltas : NULL;
    window_advance(w, c->first_ns, c->first_event);
    if (w->range == w->range_count)
        return;
    if (deltas)
        window_join(w, c);
    if (deltas && is_summed(w, c)) {
        sum_chunk(w, c, deltas, delta_count);
        return;
    }
    long count = window_decode(w, c->chunk_id, &events);
    if (count < 0) {
        w->result->chunks_damaged++;
        if (deltas && c->first_event >= w->first_event && c->last_ns < window_next_edge(w))
            sum_chunk(w, c, deltas, delta_count);
        return;
    }
    if (deltas && w->is_inside && c->first_event >= w->first_event && c->last_ns < window_next_edge(w)) {
        read_events(w, c, events, count, NULL);
        add_temporaries(w, deltas, delta_count);
        return;
    }
    uint8_t *is_temporary = xcalloc((size_t)count + 1, 1);
    if (w->is_inside || c->last_ns >= window_next_edge(w))
        temporaries_mark(w->db,
                         &(struct temporaries_chunk){c->chunk_id, c->first_event, events, count, deltas, delta_count},
                         is_temporary);
    read_events(w, c, events, count, is_temporary);
    free(is_temporary);
}

/* From the key frame to the end of the last range. is_counted stays 0 where chunks are missing on the way. */
static int read_chunks(struct window *w, struct error *err)
{
    sqlite3_stmt *s = NULL;
    int64_t next = w->first_event;
    int has_any = 0;
    int rc = db_prepare(w->db,
                        "SELECT chunk_id, first_ns, last_ns, event_count, first_event, site_delta FROM event_chunk "
                        "WHERE last_ns >= ?1 ORDER BY chunk_id",
                        &s, err);
    if (rc == 0)
        sqlite3_bind_int64(s, 1, w->keyframe_ns);
    w->result->is_counted = 1;
    while (rc == 0 && w->range < w->range_count && db_next(s, &rc, err)) {
        struct window_chunk c = {.chunk_id = sqlite3_column_int64(s, 0),
                                 .first_ns = sqlite3_column_int64(s, 1),
                                 .last_ns = sqlite3_column_int64(s, 2),
                                 .event_count = sqlite3_column_int64(s, 3),
                                 .first_event = sqlite3_column_int64(s, 4)};
        int64_t after;
        has_any = 1;
        if (c.first_event < 0 || c.event_count < 0 || __builtin_add_overflow(c.first_event, c.event_count, &after) ||
            after <= w->first_event)
            continue;
        if (c.first_event > next) {
            w->result->is_counted = 0;
            break;
        }
        next = after;
        if (c.first_ns > c.last_ns) /* never written so: no edge can be told to be outside */
            c.last_ns = WINDOW_END;
        take_chunk(w, &c, sqlite3_column_blob(s, 5), (size_t)sqlite3_column_bytes(s, 5));
    }
    sqlite3_finalize(s);
    window_advance(w, WINDOW_END - 1, next); /* what is left of the ranges is behind all events */
    if (!has_any && db_int(w->db, "SELECT 1 FROM event_chunk LIMIT 1", 0) == 0)
        w->result->is_counted = w->site_count == 0;
    return rc;
}

/* --- peaks ------------------------------------------------------------------------------------------------------- */

int window_by_bound(const void *a, const void *b)
{
    const struct window_bound *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return (x->first_event > y->first_event) - (x->first_event < y->first_event);
}

/* The level within one chunk, whose events tell. */
static void climb(struct window *w, uint32_t level, const struct window_bound *bound)
{
    struct window_level *l = &w->levels[level];
    const struct chunk_event *events;
    int64_t active = bound->before_bytes;
    long count = window_decode(w, bound->chunk_id, &events);
    w->result->chunks_read += count >= 0;
    w->result->chunks_damaged += count < 0;
    for (long i = 0; i < count; i++) {
        const struct chunk_event *e = &events[i];
        int is_birth = chunk_op_is_birth(e->op);
        uint32_t index = is_birth || chunk_op_is_loss(e->op) ? window_site_at(w, e->site_id) : WINDOW_NONE;
        if (index == WINDOW_NONE || w->sites[index].levels[l->kind != KIND_all] != level)
            continue;
        wrap_change(&active, is_birth ? e->size_bytes : -e->size_bytes);
        int64_t stop = bound->first_event + i + 1;
        if (is_birth && (active > l->peak_bytes || (active == l->peak_bytes && stop < l->stop_event))) {
            l->peak_bytes = active;
            l->peak_ns = (int64_t)e->time_ns;
            l->stop_event = stop;
        }
    }
}

/* From the chunk that may have risen highest downwards, until none may be higher than what was found. */
static void find_peaks(struct window *w)
{
    for (uint32_t level = 0; level < w->level_count; level++) {
        struct window_level *l = &w->levels[level];
        if (l->bound_count)
            qsort(l->bounds, l->bound_count, sizeof *l->bounds, window_by_bound);
        for (uint32_t i = 0; i < l->bound_count; i++) {
            const struct window_bound *b = &l->bounds[i];
            if (b->bytes > l->peak_bytes || (b->bytes == l->peak_bytes && b->first_event < l->stop_event))
                climb(w, level, b);
        }
    }
}

/* Who held the peaks. Those of a device and of its kinds are mostly one. */
static int hold_peaks(struct window *w, struct error *err)
{
    struct at_live *live = NULL;
    size_t count = 0;
    int rc = 0;
    for (uint32_t first = 0; rc == 0 && first < w->level_count; first++) {
        struct at_result at;
        if (w->levels[first].is_held || w->levels[first].peak_bytes <= 0)
            continue;
        const int64_t stop_event = w->levels[first].stop_event;
        rc = at_values(w->db, WINDOW_END, stop_event, &live, &count, &at, err);
        for (uint32_t k = 0; k < w->level_count; k++)
            w->levels[k].is_holding = k >= first && w->levels[k].stop_event == stop_event;
        for (size_t i = 0; rc == 0 && i < count && i < w->site_count; i++) {
            struct window_site *site = &w->sites[i];
            const uint32_t *levels = site->levels;
            if (levels[0] != WINDOW_NONE && w->levels[levels[0]].is_holding) {
                site->at_peak_bytes = live[i].bytes;
                site->at_peak_count = live[i].count;
                wrap_change(&w->levels[levels[0]].peak_count, (uint64_t)live[i].count);
            }
            if (levels[1] != WINDOW_NONE && w->levels[levels[1]].is_holding) {
                site->at_kind_peak_bytes = live[i].bytes;
                wrap_change(&w->levels[levels[1]].peak_count, (uint64_t)live[i].count);
            }
        }
        if (rc == 0 && w->parts)
            rc = window_parts_peak(w, stop_event, err);
        for (uint32_t k = first; k < w->level_count; k++)
            w->levels[k].is_held |= w->levels[k].is_holding;
    }
    free(live);
    return rc;
}

/* --- without events ---------------------------------------------------------------------------------------------- */

/* Live bytes at the stored instants before the window's ends are all that there is. */
static int load_instants(struct window *w, struct error *err)
{
    const int64_t from_ns = w->ranges[0].from_ns, to_ns = w->ranges[w->range_count - 1].to_ns;
    struct at_result at;
    for (size_t i = 0; i < w->site_count; i++) {
        uint32_t levels[2] = {w->sites[i].levels[0], w->sites[i].levels[1]};
        w->sites[i] = (struct window_site){.levels = {levels[0], levels[1]}};
    }
    int rc = at_values(w->db, from_ns - (from_ns > 0), INT64_MAX, &w->live, &w->site_count, &at, err);
    w->result->start_ns = at.time_ns;
    for (size_t i = 0; rc == 0 && i < w->site_count; i++) {
        w->sites[i].start_bytes = w->live[i].bytes;
        w->sites[i].start_count = w->live[i].count;
    }
    if (rc == 0)
        rc = at_values(w->db, to_ns == WINDOW_END ? to_ns : to_ns - (to_ns > 0), INT64_MAX, &w->live, &w->site_count,
                       &at, err);
    w->result->end_ns = at.time_ns;
    return rc;
}

/* --- all --------------------------------------------------------------------------------------------------------- */

static void close(struct window *w)
{
    for (uint32_t i = 0; i < w->level_count; i++)
        free(w->levels[i].bounds);
    sqlite3_finalize(w->read_data);
    chunk_codec_close(w->codec);
    chunk_codec_close(w->delta_codec);
    map_close(&w->level_of);
    map_close(&w->born);
    map_close(&w->teardown_of);
    window_parts_close(w);
    free(w->levels);
    free(w->touched);
    free(w->ranges);
    free(w->sites);
    free(w->live);
    free(w->teardowns);
    free(w->buckets);
}

int window_load(sqlite3 *db, const struct window_range *ranges, size_t count, enum window_parts_wanted wanted,
                struct replay *replay, struct window_result *result, struct error *err)
{
    struct window w = {.db = db,
                       .ranges = memcpy(xcalloc(count, sizeof *ranges), ranges, count * sizeof *ranges),
                       .range_count = count,
                       .codec = chunk_codec_open(),
                       .delta_codec = chunk_codec_open(),
                       .result = result};
    struct at_result at;
    replay_begin(replay);
    *result = (struct window_result){.start_ns = ranges[0].from_ns, .end_ns = ranges[count - 1].to_ns};
    int rc = at_keyframe(db, ranges[0].from_ns - 1, &w.live, &w.site_count, &w.first_event, &at, err);
    w.keyframe_ns = at.keyframe_ns < 0 ? 0 : at.keyframe_ns;
    result->chunks_damaged = at.chunks_damaged;
    if (rc == 0)
        rc = load_sites(&w, err);
    for (size_t i = 0; rc == 0 && i < w.site_count; i++) {
        const int64_t bytes = w.live[i].bytes, blocks = w.live[i].count;
        w.live[i].bytes = w.live[i].count = 0;
        window_change(&w, (uint32_t)i, (uint64_t)bytes, (uint64_t)blocks);
    }
    if (rc == 0)
        rc = window_load_timeline(&w, err);
    if (rc == 0)
        rc = window_load_teardowns(&w, err);
    if (rc == 0)
        rc = db_prepare(db, "SELECT data FROM event_chunk WHERE chunk_id = ?", &w.read_data, err);
    if (rc == 0 && wanted)
        rc = window_parts_open(&w, wanted == WINDOW_PROCESSES, err);
    if (rc == 0 && wanted)
        rc = window_parts_start(&w, err);
    if (rc == 0)
        rc = read_chunks(&w, err);
    for (size_t i = 0; rc == 0 && w.entered && i < window_row_count(&w); i++)
        window_touch(&w, (uint32_t)i);
    if (rc == 0 && result->is_counted) {
        find_peaks(&w);
        rc = hold_peaks(&w, err);
        if (rc == 0 && wanted)
            window_parts_climb(&w);
    } else if (rc == 0) {
        rc = load_instants(&w, err);
    }
    result->has_parts = rc == 0 && wanted && result->is_counted && !result->chunks_damaged && !w.parts->is_missing;
    if (rc == 0)
        window_fill(&w, replay);
    close(&w);
    return rc;
}
