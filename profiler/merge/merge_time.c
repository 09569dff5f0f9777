/*
 * Timelines on one axis. A bucket of the merged one has the sums of what the recordings had in it: of their maxima,
 * which is what all can have held together at most, and of their minima, which they held at every instant of it.
 */
#include "merge_private.h"

#include "../account/timeline.h"

#include "../../common/array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A bucket of an input, from and to in the merged file's time. */
struct span {
    uint64_t from, to;
    struct timeline_bucket bucket;
};

struct input_time { /* of one device */
    unsigned device;
    struct timeline_bucket *buckets; /* of the merged width, of this input alone */
    uint8_t *is_there;
    uint64_t *covered; /* so much of the bucket's time the input's buckets have */
    uint32_t first, last;
    uint32_t span_count;
};

/* What a recording held at an instant, and in all of that bucket at least. */
struct merge_instant {
    unsigned device;
    uint64_t ns, bytes, min_bytes;
};

static uint64_t at_least_zero(int64_t value)
{
    return value > 0 ? (uint64_t)value : 0;
}

static uint64_t later(uint64_t ns, int64_t shift_ns)
{
    int64_t sum;
    if (ns > INT64_MAX || __builtin_add_overflow((int64_t)ns, shift_ns, &sum) || sum < 0)
        return 0;
    return (uint64_t)sum;
}

static uint32_t bucket_at(const struct merge *m, uint64_t ns)
{
    uint64_t at = ns / m->width_ns;
    return at < TIMELINE_BUCKETS ? (uint32_t)at : TIMELINE_BUCKETS - 1;
}

static void take(struct timeline_bucket *into, const struct timeline_bucket *b, int is_first)
{
    uint64_t min =
        is_first || b->active_min_bytes < into->active_min_bytes ? b->active_min_bytes : into->active_min_bytes;
    struct timeline_bucket old = *into;
    *into = *b;
    into->active_min_bytes = min;
    into->alloc_count = old.alloc_count;
    into->alloc_bytes = old.alloc_bytes;
    if (is_first)
        return;
    if (old.active_max_bytes >= into->active_max_bytes) {
        into->active_max_bytes = old.active_max_bytes;
        into->active_max_ns = old.active_max_ns;
    }
    if (old.allocated_max_bytes > into->allocated_max_bytes)
        into->allocated_max_bytes = old.allocated_max_bytes;
    if (old.reserved_max_bytes >= into->reserved_max_bytes) {
        into->reserved_max_bytes = old.reserved_max_bytes;
        into->reserved_max_ns = old.reserved_max_ns;
    }
    if (old.rss_max_bytes > into->rss_max_bytes)
        into->rss_max_bytes = old.rss_max_bytes;
    into->has_rss |= old.has_rss;
}

/* The span's figures hold in each bucket that it reaches into; what was allocated counts where it begins. */
static void spread(const struct merge *m, struct input_time *t, const struct span *s)
{
    uint32_t first = bucket_at(m, s->from), last = bucket_at(m, s->to > s->from ? s->to - 1 : s->from);
    for (uint32_t i = first; i <= last; i++) {
        uint64_t from = i * m->width_ns, to = from + m->width_ns;
        take(&t->buckets[i], &s->bucket, !t->is_there[i]);
        t->is_there[i] = 1;
        t->covered[i] += (s->to < to ? s->to : to) - (s->from > from ? s->from : from);
        /* its maximum is in one of them; the others have no better instant than their own beginning */
        if (t->buckets[i].active_max_ns < from || t->buckets[i].active_max_ns >= to)
            t->buckets[i].active_max_ns = from;
        if (t->buckets[i].reserved_max_ns < from || t->buckets[i].reserved_max_ns >= to)
            t->buckets[i].reserved_max_ns = from;
    }
    t->buckets[first].alloc_count += s->bucket.alloc_count;
    t->buckets[first].alloc_bytes += s->bucket.alloc_bytes;
    t->first = first < t->first ? first : t->first;
    t->last = last > t->last ? last : t->last;
}

static struct span span_of(struct input *in, sqlite3_stmt *s)
{
    int64_t shift_ns = in->source->shift_ns;
    uint64_t value[16];
    for (int i = 0; i < 16; i++)
        value[i] = at_least_zero(sqlite3_column_int64(s, i));
    struct span span = {
        .from = later(value[1], shift_ns),
        .bucket = {.active_min_bytes = value[3],
                   .active_max_bytes = value[4],
                   .active_max_ns = later(value[5], shift_ns),
                   .active_last_bytes = value[6],
                   .allocated_max_bytes = value[7],
                   .allocated_last_bytes = value[8],
                   .reserved_max_bytes = value[9],
                   .reserved_max_ns = later(value[10], shift_ns),
                   .reserved_last_bytes = value[11],
                   .rss_max_bytes = value[12],
                   .rss_last_bytes = value[13],
                   .alloc_count = value[14],
                   .alloc_bytes = value[15],
                   .has_rss = sqlite3_column_type(s, 12) != SQLITE_NULL},
    };
    span.to = value[2] > INT64_MAX - span.from ? INT64_MAX : span.from + value[2];
    return span;
}

/* --- adding ------------------------------------------------------------------------------------------------------ */

static void open_device(struct merge *m, unsigned device)
{
    if (m->timelines[device])
        return;
    m->timelines[device] = timeline_open();
    m->timelines[device]->width_ns = m->width_ns;
    m->timelines[device]->has_pending = 1; /* its allocated bytes are what the buckets say */
    m->common[device].least = xcalloc(TIMELINE_BUCKETS, sizeof *m->common[device].least);
}

static void plus(uint64_t *a, uint64_t b)
{
    if (__builtin_add_overflow(*a, b, a))
        *a = UINT64_MAX;
}

static void add_bucket(struct timeline_bucket *into, const struct timeline_bucket *b, int is_counted_once)
{
    /* the later of two maxima's instants has nothing to it; that of the larger one stays */
    if (b->active_max_bytes > into->active_max_bytes)
        into->active_max_ns = b->active_max_ns;
    if (b->reserved_max_bytes > into->reserved_max_bytes)
        into->reserved_max_ns = b->reserved_max_ns;
    plus(&into->active_min_bytes, b->active_min_bytes);
    plus(&into->active_max_bytes, b->active_max_bytes);
    plus(&into->active_last_bytes, b->active_last_bytes);
    plus(&into->allocated_max_bytes, b->allocated_max_bytes);
    plus(&into->allocated_last_bytes, b->allocated_last_bytes);
    plus(&into->reserved_max_bytes, b->reserved_max_bytes);
    plus(&into->reserved_last_bytes, b->reserved_last_bytes);
    plus(&into->alloc_count, b->alloc_count);
    plus(&into->alloc_bytes, b->alloc_bytes);
    if (is_counted_once) {
        into->rss_max_bytes = b->rss_max_bytes > into->rss_max_bytes ? b->rss_max_bytes : into->rss_max_bytes;
        into->rss_last_bytes = b->rss_last_bytes > into->rss_last_bytes ? b->rss_last_bytes : into->rss_last_bytes;
    } else {
        plus(&into->rss_max_bytes, b->rss_max_bytes);
        plus(&into->rss_last_bytes, b->rss_last_bytes);
    }
    into->has_rss |= b->has_rss;
}

/* A recording's peak was at an instant; that of a merged one is a sum, and what it held together is known otherwise. */
static void add_peak(struct input *in, const struct input_time *t)
{
    struct merge *m = in->m;
    const struct timeline_bucket *top = &t->buckets[t->first];
    for (uint32_t i = t->first; i <= t->last; i++)
        if (t->is_there[i] && t->buckets[i].active_max_bytes > top->active_max_bytes)
            top = &t->buckets[i];
    struct merge_instant at = {t->device, top->active_max_ns, top->active_max_bytes, 0};
    if (in->is_merged) {
        sqlite3_stmt *s = NULL;
        at.bytes = 0;
        if (db_prepare(in->db, "SELECT device_id, least_bytes, time_ns FROM common_peak", &s, NULL) == 0)
            while (sqlite3_step(s) == SQLITE_ROW)
                if (merge_column(in, MERGE_DEVICE, s, 0) == (int64_t)t->device + 1) {
                    at.bytes = at_least_zero(sqlite3_column_int64(s, 1));
                    at.ns = later(at_least_zero(sqlite3_column_int64(s, 2)), in->source->shift_ns);
                }
        sqlite3_finalize(s);
    }
    uint32_t bucket = bucket_at(m, at.ns);
    at.min_bytes = t->is_there[bucket] ? t->buckets[bucket].active_min_bytes : 0;
    *ARRAY_ADD(m->instants, m->instant_count, m->instant_capacity) = at;
}

static void close_device(struct input *in, struct input_time *t)
{
    struct merge *m = in->m;
    struct timeline *merged = m->timelines[t->device];
    if (t->first > t->last)
        return;
    for (uint32_t i = t->first; i <= t->last; i++) {
        if (!t->is_there[i])
            continue;
        if (t->covered[i] < m->width_ns) /* it begins or ends in there: before and after it holds nothing */
            t->buckets[i].active_min_bytes = 0;
        merged->buckets[i].has_rss |= t->buckets[i].has_rss;
        plus(&m->common[t->device].least[i], t->buckets[i].active_min_bytes);
        add_bucket(&merged->buckets[i], &t->buckets[i], in->is_counted_once[t->device]);
    }
    add_peak(in, t);
    if (t->last > merged->index)
        merged->index = t->last;
    memset(t->buckets, 0, TIMELINE_BUCKETS * sizeof *t->buckets);
    memset(t->is_there, 0, TIMELINE_BUCKETS);
    memset(t->covered, 0, TIMELINE_BUCKETS * sizeof *t->covered);
    t->first = TIMELINE_BUCKETS;
    t->last = t->span_count = 0;
}

void merge_timeline(struct input *in)
{
    static const char sql[] =
        "SELECT device_id, time_ns, width_ns, active_min_bytes, active_max_bytes, active_max_ns, active_last_bytes, "
        "allocated_max_bytes, allocated_last_bytes, reserved_max_bytes, reserved_max_ns, reserved_last_bytes, "
        "rss_max_bytes, rss_last_bytes, alloc_count, alloc_bytes FROM timeline WHERE level = 0 ORDER BY device_id, "
        "time_ns";
    struct input_time t = {.first = TIMELINE_BUCKETS,
                           .buckets = xcalloc(TIMELINE_BUCKETS, sizeof *t.buckets),
                           .is_there = xcalloc(TIMELINE_BUCKETS, 1),
                           .covered = xcalloc(TIMELINE_BUCKETS, sizeof *t.covered)};
    struct error err = {""};
    sqlite3_stmt *s = NULL;
    int has = 0, rc = db_prepare(in->db, sql, &s, &err);
    while (rc == 0 && db_next(s, &rc, &err)) {
        int64_t device = merge_column(in, MERGE_DEVICE, s, 0);
        if (!device)
            continue;
        if (has && t.device != (unsigned)device - 1)
            close_device(in, &t);
        t.device = (unsigned)device - 1;
        has = 1;
        open_device(in->m, t.device);
        struct span span = span_of(in, s);
        if (t.span_count++ <= TIMELINE_BUCKETS) /* more are none of ours, and would take for ever */
            spread(in->m, &t, &span);
    }
    if (has)
        close_device(in, &t);
    sqlite3_finalize(s);
    free(t.buckets);
    free(t.is_there);
    free(t.covered);
    if (rc)
        merge_failed(in, rc, err.text);
}

/* --- the end ----------------------------------------------------------------------------------------------------- */

/* Beside what one recording held at an instant, the others held what they had in all of that bucket at least. */
static void see_instants(struct merge *m)
{
    for (uint32_t i = 0; i < m->instant_count; i++) {
        const struct merge_instant *at = &m->instants[i];
        struct merge_common *c = &m->common[at->device];
        uint64_t others = c->least[bucket_at(m, at->ns)], bytes = at->bytes;
        plus(&bytes, others > at->min_bytes ? others - at->min_bytes : 0);
        if (bytes > c->least_peak || (bytes == c->least_peak && at->ns < c->least_peak_ns)) {
            c->least_peak = bytes;
            c->least_peak_ns = at->ns;
        }
    }
}

void merge_common_peak(struct merge *m, const char *device, int64_t least_bytes, int64_t most_bytes, int64_t time_ns)
{
    const uint32_t *slot = text_map_slot(&m->device_names, device, strlen(device));
    /* of a device that has two names each of them says but a part */
    if (!*slot || *slot == DEVICE_SEVERAL || m->name_counts[*slot - 1] != 1 || least_bytes < 0 || time_ns < 0)
        return;
    struct merge_common *c = &m->common[*slot - 1];
    c->known_least = (uint64_t)least_bytes;
    c->known_most = at_least_zero(most_bytes);
    c->known_ns = (uint64_t)time_ns;
}

/* What does not fit to the timelines is of a file that is damaged, or another one by now. most becomes 0 where a
 * recording's part that cannot be read leaves it open. */
static void take_known(const struct merge *m, struct merge_common *c, uint64_t *most)
{
    if (!c->known_most || (c->known_least > *most && !m->options.is_part) || c->known_most < c->least_peak) {
        if (m->options.is_part)
            *most = 0;
        return;
    }
    if (c->known_least >= c->least_peak) {
        c->least_peak = c->known_least;
        c->least_peak_ns = c->known_ns;
    }
    if (c->known_most < *most || m->options.is_part)
        *most = c->known_most;
}

static void write_common(struct merge *m, unsigned device, uint64_t most)
{
    const struct merge_common *c = &m->common[device];
    sqlite3_stmt *q = store_statement(
        m->store, "INSERT INTO common_peak(device_id, least_bytes, most_bytes, time_ns) VALUES(?, ?, ?, ?)");
    sqlite3_bind_int64(q, 1, device);
    sqlite3_bind_int64(q, 2, (int64_t)c->least_peak);
    sqlite3_bind_int64(q, 3, (int64_t)most);
    sqlite3_bind_int64(q, 4, (int64_t)c->least_peak_ns);
    store_step(m->store, q);
}

static void end_device(struct merge *m, struct rows *rows, unsigned device)
{
    struct merge_common *c = &m->common[device];
    struct timeline *t = m->timelines[device];
    uint64_t most = 0;
    for (uint32_t i = 0; i <= t->index; i++) {
        if (t->buckets[i].active_max_bytes > most)
            most = t->buckets[i].active_max_bytes;
        if (c->least[i] > c->least_peak) {
            c->least_peak = c->least[i];
            c->least_peak_ns = i * m->width_ns;
        }
        if (t->buckets[i].active_max_ns < i * m->width_ns) /* no recording has it */
            t->buckets[i].active_max_ns = t->buckets[i].reserved_max_ns = i * m->width_ns;
    }
    if (most > INT64_MAX)
        most = INT64_MAX;
    if (most < c->least_peak)
        most = c->least_peak;
    take_known(m, c, &most);
    if (m->options.is_one_clock && most)
        write_common(m, device, most);
    t->now = t->buckets[t->index];
    t->active_bytes = t->now.active_last_bytes;
    t->pending_bytes = t->active_bytes - t->now.allocated_last_bytes;
    t->alloc_count_before = UINT64_MAX / 2; /* more than it has buckets: none are put together for being quiet */
    timeline_write(t, m->store, rows, device, t->alloc_count_before, 0, 1);
}

void merge_timeline_end(struct merge *m)
{
    struct rows rows = {0};
    see_instants(m);
    for (unsigned i = 0; i < DEVICE_ROWS; i++)
        if (m->timelines[i])
            end_device(m, &rows, i);
}

void merge_time_free(struct merge *m)
{
    for (unsigned i = 0; i < DEVICE_ROWS; i++) {
        timeline_close(m->timelines[i]);
        free(m->common[i].least);
        m->timelines[i] = NULL;
        m->common[i].least = NULL;
    }
    free(m->instants);
    m->instants = NULL;
}
