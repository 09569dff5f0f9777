/* The events of a window, as window.c reads them, for the sites below the wanted lines. */
#include "../../common/array.h"
#include "../../common/chunk.h"
#include "../../common/db.h"
#include "../../common/wrap.h"
#include "at.h"
#include "focus_private.h"
#include "temporaries.h"

#include <errno.h>
#include <stdlib.h>

#define EVENTS_MAX (INT64_C(4) << 20) /* with more of them sums of chunks are quicker, which lenses add up */

static struct focus_site *site_at(const struct focus_work *w, uint32_t site_id)
{
    const uint32_t index = site_id && site_id < w->site_limit ? w->site_of[site_id] : 0;
    return index ? &w->sites[index - 1] : NULL;
}

static void take_start(void *arg, uint32_t site_id, uint64_t bytes, uint64_t count)
{
    struct focus_site *site = site_at(arg, site_id);
    if (!site)
        return;
    wrap_change(&site->bytes, bytes);
    wrap_change(&site->count, count);
}

static void raise_level(struct focus_level *l, int64_t stop_event)
{
    if (l->has_peak && l->active_bytes <= l->peak_bytes)
        return;
    l->has_peak = 1;
    l->peak_bytes = l->active_bytes;
    l->stop_event = stop_event;
}

/* A site that did not change since a range began held at its beginning what it holds now. */
static void touch(struct focus_work *w, struct focus_site *site)
{
    if (site->seen != w->entered && site->bytes > site->own_peak_bytes)
        site->own_peak_bytes = site->bytes;
    site->seen = w->entered;
}

/* Up to an event at time_ns: ranges end and begin on the way. 0: the last one has ended. */
static int advance(struct focus_work *w, int64_t time_ns, int64_t event)
{
    const struct lens_window *window = w->lens.options->window;
    for (; w->range < window->count; w->range++) {
        const struct window_range *r = &window->ranges[w->range];
        if (!w->is_inside && r->from_ns <= time_ns) {
            w->is_inside = 1;
            w->entered++;
            for (int i = 0; i < w->level_count; i++)
                raise_level(&w->levels[i], event);
        }
        if (!w->is_inside || r->to_ns > time_ns || r->to_ns == WINDOW_END)
            return 1;
        w->is_inside = 0;
    }
    return 0;
}

static void change_levels(struct focus_work *w, const struct chunk_event *e, int64_t event, int is_birth)
{
    for (int i = 0; i < 2 && e->site_id && e->site_id < w->site_limit; i++) {
        struct focus_level *l = &w->levels[w->levels_of[e->site_id][i]];
        wrap_change(&l->active_bytes, is_birth ? e->size_bytes : -e->size_bytes);
        if (is_birth && w->is_inside)
            raise_level(l, event + 1);
    }
}

/* What happened to it within the ranges. */
static void count_inside(int64_t *v, const struct chunk_event *e, int is_birth, uint64_t count)
{
    if (is_birth || e->op == CHUNK_to_segment) { /* that never was a block */
        wrap_change(&v[STAT_alloc_count], is_birth ? 1 : (uint64_t)-1);
        wrap_change(&v[STAT_alloc_bytes], is_birth ? e->size_bytes : -e->size_bytes);
    } else {
        wrap_change(&v[e->op == CHUNK_end ? STAT_end_count : STAT_free_count], count);
        wrap_change(&v[e->op == CHUNK_end ? STAT_end_bytes : STAT_free_bytes], e->size_bytes);
    }
}

static void change_site(struct focus_work *w, struct focus_site *site, const struct chunk_event *e, int64_t event)
{
    const int is_birth = chunk_op_is_birth(e->op);
    const uint64_t count = is_birth ? 1 : e->op == CHUNK_end ? e->address : e->op == CHUNK_cut ? 0 : 1;
    const uint64_t sign = is_birth ? 1 : (uint64_t)-1;
    touch(w, site);
    if (w->is_inside)
        count_inside(site->stats.value, e, is_birth, count);
    wrap_change(&site->bytes, sign * e->size_bytes);
    wrap_change(&site->count, sign * count);
    if (is_birth && w->is_inside && site->bytes > site->own_peak_bytes)
        site->own_peak_bytes = site->bytes;
    *ARRAY_ADD(w->changes, w->change_count, w->change_capacity) = (struct focus_change){
        (uint32_t)(site - w->sites), event, (int64_t)(sign * e->size_bytes), (int64_t)(sign * count)};
}

/* 1: the window ends within these. */
static int read_events(struct focus_work *w, int64_t first_event, const struct chunk_event *events, long count,
                       const uint8_t *is_temporary)
{
    for (long i = 0; i < count; i++) {
        const struct chunk_event *e = &events[i];
        const int is_birth = chunk_op_is_birth(e->op);
        if ((int64_t)e->time_ns < w->lens.options->window->ranges->from_ns || (!is_birth && !chunk_op_is_loss(e->op)))
            continue;
        if (!advance(w, (int64_t)e->time_ns, first_event + i))
            return 1;
        change_levels(w, e, first_event + i, is_birth);
        struct focus_site *site = site_at(w, e->site_id);
        if (!site)
            continue;
        change_site(w, site, e, first_event + i);
        site->stats.value[STAT_temporary_count] += w->is_inside && is_temporary[i];
    }
    return 0;
}

static int read_chunk(struct focus_work *w, sqlite3_stmt *s, struct chunk_codec *codecs[2])
{
    const struct chunk_event *events;
    const struct chunk_delta *deltas = NULL;
    const void *data = sqlite3_column_blob(s, 2), *sums = sqlite3_column_blob(s, 3);
    const int64_t first_event = sqlite3_column_int64(s, 1);
    long count = data ? chunk_decode_events(codecs[0], data, (size_t)sqlite3_column_bytes(s, 2), &events) : -EBADMSG;
    long delta_count =
        sums ? chunk_decode_deltas(codecs[1], sums, (size_t)sqlite3_column_bytes(s, 3), &deltas) : -EBADMSG;
    if (count < 0)
        return -EAGAIN;
    uint8_t *is_temporary = xcalloc((size_t)count + 1, 1);
    temporaries_mark(w->lens.db,
                     &(struct temporaries_chunk){sqlite3_column_int64(s, 0), first_event, events, count,
                                                 delta_count >= 0 ? deltas : NULL, delta_count},
                     is_temporary);
    int is_over = read_events(w, first_event, events, count, is_temporary);
    free(is_temporary);
    return is_over;
}

#define IN_WINDOW " FROM event_chunk WHERE last_ns >= ?1 AND first_ns < ?2"

static int prepare(const struct focus_work *w, const char *sql, sqlite3_stmt **s, struct error *err)
{
    const struct lens_window *window = w->lens.options->window;
    int rc = db_prepare(w->lens.db, sql, s, err);
    if (rc == 0) {
        sqlite3_bind_int64(*s, 1, window->ranges[0].from_ns);
        sqlite3_bind_int64(*s, 2, window->ranges[window->count - 1].to_ns);
    }
    return rc;
}

static int check_count(const struct focus_work *w, struct error *err)
{
    sqlite3_stmt *s = NULL;
    int rc = prepare(w, "SELECT coalesce(sum(event_count), 0), count(*)" IN_WINDOW, &s, err);
    if (rc == 0 && sqlite3_step(s) == SQLITE_ROW &&
        (sqlite3_column_int64(s, 0) < 0 || sqlite3_column_int64(s, 0) > EVENTS_MAX || sqlite3_column_int64(s, 1) == 0))
        rc = -EAGAIN;
    sqlite3_finalize(s);
    return rc;
}

static int read_chunks(struct focus_work *w, struct error *err)
{
    struct chunk_codec *codecs[2] = {chunk_codec_open(), chunk_codec_open()};
    sqlite3_stmt *s = NULL;
    int64_t next = -1;
    int is_over = 0;
    int rc = prepare(w, "SELECT chunk_id, first_event, data, site_delta, event_count" IN_WINDOW " ORDER BY chunk_id",
                     &s, err);
    while (rc == 0 && !is_over && db_next(s, &rc, err)) {
        const int64_t first = sqlite3_column_int64(s, 1), count = sqlite3_column_int64(s, 4);
        if (first < 0 || count < 0 || (next >= 0 && first != next) || __builtin_add_overflow(first, count, &next))
            rc = -EAGAIN;
        else if ((is_over = read_chunk(w, s, codecs)) < 0)
            rc = is_over;
    }
    sqlite3_finalize(s);
    chunk_codec_close(codecs[0]);
    chunk_codec_close(codecs[1]);
    return rc;
}

/* What each site held at the peaks of its device, and of its kind there. */
static void hold_peaks(struct focus_work *w)
{
    for (uint32_t i = 0; i < w->site_count; i++) {
        int64_t *v = w->sites[i].stats.value;
        v[STAT_at_peak_bytes] = v[STAT_at_kind_peak_bytes] = v[STAT_start_bytes];
        v[STAT_at_peak_count] = v[STAT_start_count];
    }
    for (size_t i = 0; i < w->change_count; i++) {
        const struct focus_change *c = &w->changes[i];
        const struct focus_site *site = &w->sites[c->site];
        int64_t *v = w->sites[c->site].stats.value;
        if (c->event < w->levels[site->levels[0]].stop_event) {
            wrap_change(&v[STAT_at_peak_bytes], (uint64_t)c->bytes);
            wrap_change(&v[STAT_at_peak_count], (uint64_t)c->count);
        }
        if (c->event < w->levels[site->levels[1]].stop_event)
            wrap_change(&v[STAT_at_kind_peak_bytes], (uint64_t)c->bytes);
    }
}

int focus_events(struct focus_work *w, struct error *err)
{
    const struct lens_window *window = w->lens.options->window;
    struct at_result at = {.is_exact = 1};
    int rc = check_count(w, err);
    if (rc == 0)
        rc = at_changes(w->lens.db, window->ranges->from_ns - 1, take_start, w, &at, err);
    if (rc == 0 && (!at.is_exact || at.chunks_damaged))
        rc = -EAGAIN;
    for (uint32_t i = 0; rc == 0 && i < w->site_count; i++) {
        struct focus_site *site = &w->sites[i];
        site->stats.value[STAT_start_bytes] = site->bytes;
        site->stats.value[STAT_start_count] = site->count;
    }
    if (rc == 0)
        rc = read_chunks(w, err);
    advance(w, WINDOW_END - 1, INT64_MAX); /* what is left of the ranges is behind all events */
    if (rc == 0)
        hold_peaks(w);
    for (uint32_t i = 0; rc == 0 && i < w->site_count; i++) {
        struct focus_site *site = &w->sites[i];
        touch(w, site);
        site->stats.value[STAT_own_peak_bytes] = site->own_peak_bytes;
        wrap_change(&site->stats.value[STAT_end_bytes], (uint64_t)site->bytes);
        wrap_change(&site->stats.value[STAT_end_count], (uint64_t)site->count);
    }
    return rc;
}
