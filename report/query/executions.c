#include "executions.h"

#include "../../common/array.h"
#include "../../common/chunk.h"
#include "../../common/db.h"
#include "../../common/map.h"
#include "../../common/search.h"
#include "../../common/wrap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NONE AT_NONE
/* What sums of a chunk do not tell from frees. */
#define APART (1l << CHUNK_end | 1l << CHUNK_to_segment)

struct edge { /* where an execution begins or ends */
    int64_t time_ns;
    uint32_t index;
    uint8_t is_end;
};

struct top { /* the highest since as many executions had begun as begun says; those below it are higher and earlier */
    uint32_t begun;
    int64_t bytes;
};

struct level {                                                /* of a device */
    int64_t active_bytes, most_bytes;                         /* most: since the newest execution began */
    int64_t alloc_bytes, alloc_count, free_bytes, free_count; /* so far */
    int64_t rise_bytes;                                       /* of the chunk that is looked at */
    struct top *tops;
    uint32_t top_count, top_capacity;
};

struct site {
    uint32_t level; /* NONE: of no device that can be */
};

struct pass {
    sqlite3 *db;
    struct executions *e;
    const struct executions_options *options;
    struct executions_result *result;
    struct chunk_codec *codec, *delta_codec;
    sqlite3_stmt *read_data;
    struct at_live *live; /* all sites, by site_id; sites beside it */
    struct site *sites;
    size_t site_count;
    struct level *levels; /* by result->device */
    struct edge *edges;
    size_t edge_count, edge;
    uint32_t begun, open, *begun_of; /* begun_of: how many had begun before each execution */
    int sample;
    int64_t first_event; /* events before it are in the values of live already */
};

/* --- what there is ----------------------------------------------------------------------------------------------- */

static uint32_t site_at(const struct pass *p, uint32_t site_id)
{
    return at_find(p->live, p->site_count, site_id);
}

static int load_sites(struct pass *p, struct error *err)
{
    struct map level_of = {0};
    struct executions_result *r = p->result;
    sqlite3_stmt *s = NULL;
    size_t i = 0;
    int rc =
        db_prepare(p->db,
                   "SELECT s.site_id, s.device_id, iif(?1 IS NULL OR ?1 IN ('all', s.kind), d.name, NULL) FROM site "
                   "s LEFT JOIN device d USING(device_id) ORDER BY s.site_id",
                   &s, err);
    if (rc == 0)
        sqlite3_bind_text(s, 1, p->options->kind, -1, SQLITE_STATIC);
    p->sites = xcalloc(p->site_count + 1, sizeof *p->sites);
    while (db_next(s, &rc, err) && i < p->site_count && sqlite3_column_int64(s, 0) == p->live[i].site_id) {
        struct site *site = &p->sites[i++];
        site->level = NONE;
        if (sqlite3_column_type(s, 2) == SQLITE_NULL)
            continue;
        site->level = map_number_or(&level_of, (uint64_t)sqlite3_column_int64(s, 1), 0, r->device_count);
        if (site->level == r->device_count)
            *ARRAY_ADD(r->device, r->device_count, r->device_capacity) =
                (struct executions_device){.device_id = sqlite3_column_int64(s, 1), .name = db_own_text(s, 2)};
    }
    sqlite3_finalize(s);
    map_close(&level_of);
    if (rc == 0 && i < p->site_count)
        rc = error_set(err, EBADMSG, "%s: its sites are damaged", sqlite3_db_filename(p->db, "main"));
    p->levels = xcalloc(r->device_count + 1ul, sizeof *p->levels);
    for (uint32_t k = 0; p->options->with_rows && k < r->device_count; k++)
        r->device[k].rows = xcalloc(p->e->count + 1ul, sizeof *r->device[k].rows);
    return rc;
}

static int by_time(const void *a, const void *b)
{
    const struct edge *x = a, *y = b;
    if (x->time_ns != y->time_ns)
        return x->time_ns < y->time_ns ? -1 : 1;
    if (x->is_end != y->is_end) /* an execution that took no time begins before it ends */
        return x->is_end - y->is_end;
    return (x->index > y->index) - (x->index < y->index);
}

static void list_edges(struct pass *p)
{
    const struct executions_samples *samples = p->options->samples;
    p->edges = xcalloc(2ul * p->e->count + 1, sizeof *p->edges);
    p->begun_of = xcalloc(p->e->count + 1ul, sizeof *p->begun_of);
    for (uint32_t i = 0; p->options->with_rows && i < p->e->count; i++) {
        p->edges[p->edge_count++] = (struct edge){p->e->execution[i].start_ns, i, 0};
        p->edges[p->edge_count++] = (struct edge){p->e->execution[i].end_ns, i, 1};
    }
    for (int i = 0; !p->options->with_rows && samples && i < samples->count; i++)
        p->edges[p->edge_count++] = (struct edge){p->e->execution[samples->indexes[i]].end_ns, samples->indexes[i], 1};
    if (p->edge_count)
        qsort(p->edges, p->edge_count, sizeof *p->edges, by_time);
}

/* What was live at a stored instant: from there on the events are read. */
static int start_at(struct pass *p, int64_t time_ns, struct error *err)
{
    struct at_result at;
    int rc = at_keyframe(p->db, time_ns, &p->live, &p->site_count, &p->first_event, &at, err);
    p->result->chunks_damaged += at.chunks_damaged;
    if (rc == 0 && !p->sites)
        rc = load_sites(p, err);
    for (uint32_t i = 0; rc == 0 && i < p->result->device_count; i++)
        p->levels[i].active_bytes = 0;
    for (size_t i = 0; rc == 0 && i < p->site_count; i++)
        if (p->sites[i].level != NONE)
            wrap_change(&p->levels[p->sites[i].level].active_bytes, (uint64_t)p->live[i].bytes);
    return rc;
}

/* --- executions -------------------------------------------------------------------------------------------------- */

static void raise(struct level *l)
{
    if (l->active_bytes > l->most_bytes)
        l->most_bytes = l->active_bytes;
}

/* What was highest before the newest execution began matters to those alone that had begun by then. */
static void keep_top(struct level *l, uint32_t begun)
{
    struct top top = {begun, l->most_bytes};
    while (l->top_count && l->tops[l->top_count - 1].bytes <= top.bytes)
        top.begun = l->tops[--l->top_count].begun;
    *ARRAY_ADD(l->tops, l->top_count, l->top_capacity) = top;
}

/* The highest since so many had begun; now: how many have. */
static int64_t most_since(const struct level *l, uint32_t begun, uint32_t now)
{
    /* The first one that reaches beyond it: tops end where the next one begins. */
    const uint32_t first = SEARCH_FIRST(l->top_count, i, (i + 1 < l->top_count ? l->tops[i + 1].begun : now) <= begun);
    return first < l->top_count && l->tops[first].bytes > l->most_bytes ? l->tops[first].bytes : l->most_bytes;
}

static void begin(struct pass *p, uint32_t index)
{
    p->e->execution[index].is_known = p->e->execution[index].start_ns >= p->result->known_from_ns;
    for (uint32_t i = 0; i < p->result->device_count; i++) {
        struct level *l = &p->levels[i];
        if (p->open)
            keep_top(l, p->begun);
        else
            l->top_count = 0;
        l->most_bytes = l->active_bytes;
        p->result->device[i].rows[index] = (struct execution_row){.start_bytes = l->active_bytes,
                                                                  .alloc_bytes = l->alloc_bytes,
                                                                  .alloc_count = l->alloc_count,
                                                                  .free_bytes = l->free_bytes,
                                                                  .free_count = l->free_count};
    }
    p->begun_of[index] = ++p->begun;
    p->open++;
}

static void end(struct pass *p, uint32_t index)
{
    for (uint32_t i = 0; i < p->result->device_count; i++) {
        const struct level *l = &p->levels[i];
        struct execution_row *row = &p->result->device[i].rows[index];
        row->end_bytes = l->active_bytes;
        row->peak_bytes = most_since(l, p->begun_of[index], p->begun);
        row->alloc_bytes = l->alloc_bytes - row->alloc_bytes;
        row->alloc_count = l->alloc_count - row->alloc_count;
        row->free_bytes = l->free_bytes - row->free_bytes;
        row->free_count = l->free_count - row->free_count;
    }
    p->open--;
}

/* The executions that begin and end up to an event at time_ns. */
static int advance(struct pass *p, int64_t time_ns)
{
    const struct executions_samples *samples = p->options->samples;
    int rc = 0;
    while (rc == 0 && p->edge < p->edge_count && p->edges[p->edge].time_ns <= time_ns) {
        const struct edge *edge = &p->edges[p->edge++];
        if (!edge->is_end)
            begin(p, edge->index);
        else if (p->options->with_rows)
            end(p, edge->index);
        if (edge->is_end && samples && p->sample < samples->count && samples->indexes[p->sample] == edge->index) {
            p->result->has_unknown_sample |= edge->time_ns < p->result->known_from_ns;
            rc = samples->take(samples->arg, p->sample++, p->live, p->site_count);
        }
    }
    return rc;
}

/* --- events ------------------------------------------------------------------------------------------------------ */

static void apply(struct pass *p, const struct chunk_event *e)
{
    const int is_birth = chunk_op_is_birth(e->op);
    uint32_t index = is_birth || chunk_op_is_loss(e->op) ? site_at(p, e->site_id) : NONE;
    if (index == NONE)
        return;
    wrap_change(&p->live[index].bytes, is_birth ? e->size_bytes : -e->size_bytes);
    if (p->sites[index].level == NONE)
        return;
    struct level *l = &p->levels[p->sites[index].level];
    wrap_change(&l->active_bytes, is_birth ? e->size_bytes : -e->size_bytes);
    if (is_birth) {
        wrap_change(&l->alloc_bytes, e->size_bytes);
        wrap_change(&l->alloc_count, 1);
        raise(l);
    } else if (e->op == CHUNK_to_segment) { /* it never was a block */
        wrap_change(&l->alloc_bytes, -e->size_bytes);
        wrap_change(&l->alloc_count, (uint64_t)-1);
    } else if (e->op != CHUNK_end) {
        wrap_change(&l->free_bytes, e->size_bytes);
        wrap_change(&l->free_count, e->op != CHUNK_cut);
    }
}

static int read_events(struct pass *p, int64_t first_event, const struct chunk_event *events, long count)
{
    int rc = 0;
    for (long i = 0; rc == 0 && i < count; i++) {
        if (first_event + i < p->first_event)
            continue;
        if (p->edge < p->edge_count && p->edges[p->edge].time_ns <= (int64_t)events[i].time_ns)
            rc = advance(p, (int64_t)events[i].time_ns);
        apply(p, &events[i]);
    }
    p->result->chunks_read++;
    return rc;
}

static void add_sums(struct pass *p, const struct chunk_delta *deltas, long count)
{
    for (long i = 0; i < count; i++) {
        const struct chunk_delta *d = &deltas[i];
        uint32_t index = site_at(p, d->site_id);
        if (index == NONE)
            continue;
        wrap_change(&p->live[index].bytes, d->alloc_bytes - d->free_bytes);
        if (p->sites[index].level == NONE)
            continue;
        struct level *l = &p->levels[p->sites[index].level];
        wrap_change(&l->active_bytes, d->alloc_bytes - d->free_bytes);
        wrap_change(&l->alloc_bytes, d->alloc_bytes);
        wrap_change(&l->alloc_count, d->alloc_count);
        wrap_change(&l->free_bytes, d->free_bytes);
        wrap_change(&l->free_count, d->free_count);
    }
    for (uint32_t i = 0; i < p->result->device_count; i++)
        raise(&p->levels[i]); /* where its events cannot be read, this is a part of the truth */
    p->result->chunks_summed++;
}

/* Whether no device can have risen above what the newest execution has seen of it. */
static int is_below_most(struct pass *p, const struct chunk_delta *deltas, long count)
{
    int is_below = 1;
    for (uint32_t i = 0; i < p->result->device_count; i++)
        p->levels[i].rise_bytes = 0;
    for (long i = 0; i < count; i++) {
        uint32_t index = site_at(p, deltas[i].site_id);
        struct level *l = index == NONE || p->sites[index].level == NONE ? NULL : &p->levels[p->sites[index].level];
        int64_t rise = (int64_t)deltas[i].rise_bytes;
        if (l && (rise < 0 || __builtin_add_overflow(l->rise_bytes, rise, &l->rise_bytes)))
            return 0;
    }
    for (uint32_t i = 0; i < p->result->device_count; i++) {
        int64_t bound;
        is_below &= !__builtin_add_overflow(p->levels[i].active_bytes, p->levels[i].rise_bytes, &bound) &&
                    bound <= p->levels[i].most_bytes;
    }
    return is_below;
}

static int has_apart(struct pass *p, int64_t chunk_id)
{
    char head[4096];
    sqlite3_blob *blob = NULL;
    long ops = -EBADMSG;
    if (sqlite3_blob_open(p->db, "main", "event_chunk", "data", chunk_id, 0, &blob) == SQLITE_OK) {
        int bytes = sqlite3_blob_bytes(blob) < (int)sizeof head ? sqlite3_blob_bytes(blob) : (int)sizeof head;
        if (sqlite3_blob_read(blob, head, bytes, 0) == SQLITE_OK)
            ops = chunk_decode_ops(p->codec, head, (size_t)bytes);
    }
    sqlite3_blob_close(blob);
    return ops < 0 || ops & APART;
}

/* --- chunks ------------------------------------------------------------------------------------------------------ */

struct chunk {
    int64_t chunk_id, first_ns, last_ns, first_event;
};

static int read_chunk(struct pass *p, const struct chunk *c, const void *delta_data, size_t delta_bytes)
{
    const struct chunk_event *events;
    const struct chunk_delta *deltas = NULL;
    int rc = advance(p, c->first_ns);
    if (rc || p->edge == p->edge_count)
        return rc;
    const int is_whole = c->first_event >= p->first_event && p->edges[p->edge].time_ns > c->last_ns;
    long count = is_whole && delta_data ? chunk_decode_deltas(p->delta_codec, delta_data, delta_bytes, &deltas) : -1;
    if (count >= 0 && (!p->open || (is_below_most(p, deltas, count) && !has_apart(p, c->chunk_id)))) {
        add_sums(p, deltas, count);
        return 0;
    }
    sqlite3_bind_int64(p->read_data, 1, c->chunk_id);
    const void *data = sqlite3_step(p->read_data) == SQLITE_ROW ? sqlite3_column_blob(p->read_data, 0) : NULL;
    long n =
        data ? chunk_decode_events(p->codec, data, (size_t)sqlite3_column_bytes(p->read_data, 0), &events) : -EBADMSG;
    if (n >= 0)
        rc = read_events(p, c->first_event, events, n);
    sqlite3_reset(p->read_data);
    if (n < 0) {
        p->result->chunks_damaged++;
        if (count < 0 && delta_data)
            count = chunk_decode_deltas(p->delta_codec, delta_data, delta_bytes, &deltas);
        if (count >= 0 && c->first_event >= p->first_event)
            add_sums(p, deltas, count);
    }
    return rc;
}

/* The events before this chunk are gone: the first stored instant behind it is where what is known begins. */
static int start_later(struct pass *p, int64_t first_event, struct error *err)
{
    sqlite3_stmt *s = NULL;
    int64_t time_ns = -1;
    int rc = db_prepare(p->db,
                        "SELECT min(time_ns) FROM keyframe WHERE event_count >= ?1 AND (reason NOT IN ('peak', "
                        "'reserved peak') OR (SELECT count(*) FROM device) = 1)",
                        &s, err);
    if (rc == 0) {
        sqlite3_bind_int64(s, 1, first_event);
        if (db_next(s, &rc, err) && sqlite3_column_type(s, 0) == SQLITE_INTEGER)
            time_ns = sqlite3_column_int64(s, 0);
    }
    sqlite3_finalize(s);
    if (rc == 0 && time_ns < 0)
        return -ENODATA;
    if (rc == 0)
        rc = start_at(p, time_ns, err);
    if (rc == 0 && p->first_event < first_event)
        rc = -ENODATA;
    p->result->known_from_ns = time_ns;
    return rc;
}

static int read_chunks(struct pass *p, struct error *err)
{
    const int64_t all = db_int(p->db, "SELECT max(last_ns) FROM event_chunk", 0);
    sqlite3_stmt *s = NULL;
    int64_t next = p->first_event;
    int is_first = 1, percent = -1;
    int rc = db_prepare(p->db,
                        "SELECT chunk_id, first_ns, last_ns, event_count, first_event, site_delta FROM event_chunk "
                        "ORDER BY chunk_id",
                        &s, err);
    if (rc == 0)
        rc = db_prepare(p->db, "SELECT data FROM event_chunk WHERE chunk_id = ?", &p->read_data, err);
    while (rc == 0 && p->edge < p->edge_count && db_next(s, &rc, err)) {
        struct chunk c = {.chunk_id = sqlite3_column_int64(s, 0),
                          .first_ns = sqlite3_column_int64(s, 1),
                          .last_ns = sqlite3_column_int64(s, 2),
                          .first_event = sqlite3_column_int64(s, 4)};
        int64_t after, event_count = sqlite3_column_int64(s, 3);
        if (c.first_event < 0 || event_count < 0 || __builtin_add_overflow(c.first_event, event_count, &after) ||
            after <= p->first_event)
            continue;
        if (c.first_event > next)
            rc = is_first ? start_later(p, c.first_event, err) : -ENODATA;
        if (rc || after <= p->first_event)
            continue;
        is_first = 0;
        next = after;
        if (c.first_ns > c.last_ns) /* never written so: no edge can be told to be outside */
            c.last_ns = INT64_MAX;
        rc = read_chunk(p, &c, sqlite3_column_blob(s, 5), (size_t)sqlite3_column_bytes(s, 5));
        int now = c.first_ns >= 0 && c.first_ns < all ? (int)(100 * ((double)c.first_ns / (double)all)) : 100;
        if (p->options->progress && now > percent)
            p->options->progress(p->options->progress_arg, percent = now);
    }
    sqlite3_finalize(s);
    if (percent >= 0 && percent < 100)
        p->options->progress(p->options->progress_arg, 100);
    if (rc == 0 && is_first)
        return p->site_count ? -ENODATA : advance(p, INT64_MAX);
    return rc ? rc : advance(p, INT64_MAX); /* what is left is behind all events */
}

static void close(struct pass *p)
{
    for (uint32_t i = 0; p->levels && i < p->result->device_count; i++)
        free(p->levels[i].tops);
    sqlite3_finalize(p->read_data);
    chunk_codec_close(p->codec);
    chunk_codec_close(p->delta_codec);
    free(p->levels);
    free(p->sites);
    free(p->live);
    free(p->edges);
    free(p->begun_of);
}

int executions_measure(sqlite3 *db, struct executions *e, const struct executions_options *options,
                       struct executions_result *result, struct error *err)
{
    struct pass p = {.db = db,
                     .e = e,
                     .options = options,
                     .result = result,
                     .codec = chunk_codec_open(),
                     .delta_codec = chunk_codec_open()};
    *result = (struct executions_result){.known_from_ns = 0};
    list_edges(&p);
    int rc = p.edge_count ? start_at(&p, p.edges[0].time_ns - 1, err) : 0;
    if (rc == 0 && p.edge_count)
        rc = read_chunks(&p, err);
    close(&p);
    return rc;
}

void executions_result_free(struct executions_result *r)
{
    for (uint32_t i = 0; i < r->device_count; i++) {
        free(r->device[i].name);
        free(r->device[i].rows);
    }
    free(r->device);
    *r = (struct executions_result){.known_from_ns = 0};
}

void executions_free(struct executions *e)
{
    for (uint32_t i = 0; i < e->name_count; i++)
        free(e->names[i]);
    free(e->names);
    free(e->execution);
    *e = (struct executions){.count = 0};
}
