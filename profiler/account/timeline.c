#include "timeline.h"

#include "../store/store.h"

#include "../../common/error.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define LEVEL_BUCKETS_MIN 64u /* the coarsest level has at most this many */
#define LEVELS_MAX        16u
/* While the run goes on, the finest level that is written has at most this many. All of them are written again whenever
 * a bucket's width doubles, which is every commit of a short run. */
#define RUNNING_BUCKETS 1024u
/* The finest level of a run in which next to nothing was allocated has at most this many. */
#define QUIET_BUCKETS 512u
/* Of the disk's room, for a bucket: eight times its rows of all levels, in file and log. */
#define ROOM_BYTES_BUCKET 2400u
#define DIP_SHIFT         3 /* a dip is 1/2^DIP_SHIFT of the lower maximum beside it */

struct timeline *timeline_open(void)
{
    struct timeline *t = xcalloc(1, sizeof *t);
    t->width_ns = t->end_ns = TIMELINE_FIRST_WIDTH_NS;
    return t;
}

void timeline_close(struct timeline *t)
{
    free(t);
}

/* A bucket that begins with the values that b ends with, and in which nothing happens. */
static struct timeline_bucket bucket_after(const struct timeline_bucket *b, uint64_t start_ns)
{
    return (struct timeline_bucket){
        .active_min_bytes = b->active_last_bytes,
        .active_max_bytes = b->active_last_bytes,
        .active_max_ns = start_ns,
        .active_last_bytes = b->active_last_bytes,
        .allocated_max_bytes = b->allocated_last_bytes,
        .allocated_last_bytes = b->allocated_last_bytes,
        .reserved_max_bytes = b->reserved_last_bytes,
        .reserved_max_ns = start_ns,
        .reserved_last_bytes = b->reserved_last_bytes,
        .rss_max_bytes = b->rss_last_bytes,
        .rss_last_bytes = b->rss_last_bytes,
        .has_rss = b->has_rss,
    };
}

/* b follows a; the earlier of two equal maxima stays. */
static struct timeline_bucket bucket_merge(const struct timeline_bucket *a, const struct timeline_bucket *b)
{
    struct timeline_bucket m = *b;
    if (a->active_min_bytes < m.active_min_bytes)
        m.active_min_bytes = a->active_min_bytes;
    if (a->active_max_bytes >= m.active_max_bytes) {
        m.active_max_bytes = a->active_max_bytes;
        m.active_max_ns = a->active_max_ns;
    }
    if (a->allocated_max_bytes > m.allocated_max_bytes)
        m.allocated_max_bytes = a->allocated_max_bytes;
    if (a->reserved_max_bytes >= m.reserved_max_bytes) {
        m.reserved_max_bytes = a->reserved_max_bytes;
        m.reserved_max_ns = a->reserved_max_ns;
    }
    if (a->rss_max_bytes > m.rss_max_bytes)
        m.rss_max_bytes = a->rss_max_bytes;
    m.alloc_count += a->alloc_count;
    m.alloc_bytes += a->alloc_bytes;
    return m;
}

/* The bucket being filled, as it would end now. */
static struct timeline_bucket bucket_now(const struct timeline *t, uint64_t alloc_count, uint64_t alloc_bytes)
{
    struct timeline_bucket b = t->now;
    b.active_last_bytes = t->active_bytes;
    b.allocated_last_bytes = t->active_bytes - t->pending_bytes;
    b.alloc_count += alloc_count - t->alloc_count_before;
    b.alloc_bytes += alloc_bytes - t->alloc_bytes_before;
    return b;
}

/* Halves the number of buckets, which go to another place or stay. Returns how many are left. */
static uint32_t merge_pairs(struct timeline_bucket *to, const struct timeline_bucket *from, uint32_t count)
{
    for (uint32_t i = 0; i < count / 2; i++)
        to[i] = bucket_merge(&from[2 * i], &from[2 * i + 1]);
    if (count & 1)
        to[count / 2] = from[count - 1];
    return (count + 1) / 2;
}

/* Halves the number of buckets; the one being filled (ended as of now) stays the last. */
static void timeline_double(struct timeline *t)
{
    t->buckets[t->index] = t->now;
    merge_pairs(t->buckets, t->buckets, t->index + 1);
    t->index /= 2;
    t->now = t->buckets[t->index];
    t->width_ns *= 2;
    t->written /= 2;
}

void timeline_advance(struct timeline *t, uint64_t time_ns, uint64_t alloc_count, uint64_t alloc_bytes)
{
    t->now = bucket_now(t, alloc_count, alloc_bytes);
    t->alloc_count_before = alloc_count;
    t->alloc_bytes_before = alloc_bytes;
    time_ns -= t->start_ns;
    while (time_ns / t->width_ns >= TIMELINE_BUCKETS)
        timeline_double(t);
    uint32_t index = (uint32_t)(time_ns / t->width_ns);
    while (t->index < index) {
        t->buckets[t->index] = t->now;
        t->index++;
        t->now = bucket_after(&t->buckets[t->index - 1], t->start_ns + t->index * t->width_ns);
    }
    t->end_ns = t->start_ns + (t->index + 1) * t->width_ns;
}

void timeline_anew(struct timeline *t, uint64_t start_ns, uint64_t alloc_count, uint64_t alloc_bytes)
{
    struct timeline_bucket last = t->now;
    last.active_last_bytes = t->active_bytes;
    last.allocated_last_bytes = t->active_bytes - t->pending_bytes;
    t->now = bucket_after(&last, start_ns);
    t->start_ns = start_ns;
    t->width_ns = TIMELINE_FIRST_WIDTH_NS;
    t->end_ns = start_ns + t->width_ns;
    t->index = t->written = t->written_levels = 0;
    t->has_pending = t->pending_bytes != 0;
    t->alloc_count_before = alloc_count;
    t->alloc_bytes_before = alloc_bytes;
}

static void allocated_is_active(struct timeline_bucket *b)
{
    b->allocated_max_bytes = b->active_max_bytes;
    b->allocated_last_bytes = b->active_last_bytes;
}

void timeline_pending(struct timeline *t, uint64_t pending_bytes)
{
    if (!t->has_pending) {
        t->has_pending = 1;
        for (uint32_t i = 0; i < t->index; i++)
            allocated_is_active(&t->buckets[i]);
        allocated_is_active(&t->now);
    }
    t->pending_bytes = pending_bytes;
}

void timeline_reserved(struct timeline *t, uint64_t time_ns, uint64_t reserved_bytes)
{
    t->now.reserved_last_bytes = reserved_bytes;
    if (reserved_bytes > t->now.reserved_max_bytes) {
        t->now.reserved_max_bytes = reserved_bytes;
        t->now.reserved_max_ns = time_ns;
    }
}

void timeline_rss(struct timeline *t, uint64_t rss_bytes)
{
    t->now.has_rss = 1;
    t->now.rss_last_bytes = rss_bytes;
    if (rss_bytes > t->now.rss_max_bytes)
        t->now.rss_max_bytes = rss_bytes;
}

static int by_value(const void *a, const void *b)
{
    const struct timeline_peak *x = a, *y = b;
    if (x->value_bytes != y->value_bytes)
        return x->value_bytes > y->value_bytes ? -1 : 1;
    return x->time_ns < y->time_ns ? -1 : x->time_ns > y->time_ns;
}

unsigned timeline_peaks(struct timeline *t, struct timeline_peak *peaks, unsigned max)
{
    struct timeline_peak *found = xmalloc((t->index + 1) * sizeof *found);
    unsigned count = 0;
    struct timeline_peak top = {0}; /* highest since the last dip; 0: still falling */
    uint64_t low = 0;               /* lowest since the last maximum */
    for (uint32_t i = 0; i <= t->index; i++) {
        const struct timeline_bucket *b = i < t->index ? &t->buckets[i] : &t->now;
        if (top.value_bytes && b->active_min_bytes + (top.value_bytes >> DIP_SHIFT) <= top.value_bytes &&
            b->active_max_bytes <= top.value_bytes) {
            found[count++] = top;
            top.value_bytes = 0;
            low = b->active_min_bytes;
            continue;
        }
        if (b->active_max_bytes > top.value_bytes &&
            (top.value_bytes || low + (b->active_max_bytes >> DIP_SHIFT) <= b->active_max_bytes)) {
            top = (struct timeline_peak){b->active_max_ns, b->active_max_bytes};
        } else if (!top.value_bytes && b->active_min_bytes < low) {
            low = b->active_min_bytes;
        }
    }
    if (top.value_bytes)
        found[count++] = top;
    qsort(found, count, sizeof *found, by_value);
    if (count) { /* the first is the peak itself */
        count = count - 1 < max ? count - 1 : max;
        memcpy(peaks, found + 1, count * sizeof *found);
    }
    free(found);
    return count;
}

/* --- rows --- */

/* The columns of the table, after device, level, time and width. */
static const uint16_t column_offsets[] = {
#define X(name) offsetof(struct timeline_bucket, name)
    X(active_min_bytes),     X(active_max_bytes),   X(active_max_ns),   X(active_last_bytes),   X(allocated_max_bytes),
    X(allocated_last_bytes), X(reserved_max_bytes), X(reserved_max_ns), X(reserved_last_bytes), X(rss_max_bytes),
    X(rss_last_bytes),       X(alloc_count),        X(alloc_bytes),
#undef X
};

struct timeline_rows { /* those to write */
    unsigned device;
    uint64_t start_ns; /* of the first bucket */
    uint64_t width_ns; /* of level 0 */
    struct timeline_row {
        const struct timeline_bucket *bucket;
        uint32_t level, index;
    } * rows;
};

static void column(void *arg, uint32_t row, int number, sqlite3_context *value)
{
    const struct timeline_rows *x = arg;
    const struct timeline_row *r = &x->rows[row];
    uint64_t width_ns = x->width_ns << r->level,
             of_row[] = {x->device, r->level, x->start_ns + r->index * width_ns, width_ns};
    unsigned firsts = sizeof of_row / sizeof *of_row;
    if ((unsigned)number < firsts) {
        sqlite3_result_int64(value, (int64_t)of_row[number]);
        return;
    }
    uint64_t offset = column_offsets[(unsigned)number - firsts], figure;
    if (!r->bucket->has_rss && (offset == offsetof(struct timeline_bucket, rss_max_bytes) ||
                                offset == offsetof(struct timeline_bucket, rss_last_bytes)))
        return; /* NULL */
    memcpy(&figure, (const char *)r->bucket + offset, sizeof figure);
    sqlite3_result_int64(value, (int64_t)figure);
}

/* Every level, of each what changed: from the bucket that holds bucket first of level 0. buckets has room for all
 * levels: twice count and LEVELS_MAX more. */
static void write_levels(struct timeline_bucket *buckets, uint32_t count, uint32_t first, uint64_t start_ns,
                         uint64_t width_ns, struct store *store, struct rows *rows, unsigned device)
{
    static const char sql[] =
        "INSERT OR REPLACE INTO timeline(device_id, level, time_ns, width_ns, active_min_bytes, active_max_bytes, "
        "active_max_ns, active_last_bytes, allocated_max_bytes, allocated_last_bytes, reserved_max_bytes, "
        "reserved_max_ns, reserved_last_bytes, rss_max_bytes, rss_last_bytes, alloc_count, alloc_bytes) "
        "SELECT * FROM new_timeline(?1)";
    struct timeline_rows x = {.device = device, .start_ns = start_ns, .width_ns = width_ns};
    uint32_t row_count = 0;
    x.rows = xmalloc((2ul * count + LEVELS_MAX) * sizeof *x.rows);
    for (unsigned level = 0;; level++) {
        for (uint32_t i = first; i < count; i++)
            x.rows[row_count++] = (struct timeline_row){&buckets[i], level, i};
        if (count <= LEVEL_BUCKETS_MIN)
            break;
        uint32_t half = merge_pairs(buckets + count, buckets, count);
        buckets += count;
        count = half;
        first /= 2;
    }
    rows->name = "new_timeline";
    rows->declaration =
        "CREATE TABLE x(rows HIDDEN, device_id, level, time_ns, width_ns, active_min_bytes, active_max_bytes, "
        "active_max_ns, active_last_bytes, allocated_max_bytes, allocated_last_bytes, reserved_max_bytes, "
        "reserved_max_ns, reserved_last_bytes, rss_max_bytes, rss_last_bytes, alloc_count, alloc_bytes)";
    rows->column = column;
    rows->arg = &x;
    rows->last = row_count - 1;
    store_rows(store, rows, sql);
    free(x.rows);
}

static unsigned level_count(uint32_t count)
{
    unsigned levels = 1;
    for (; count > LEVEL_BUCKETS_MIN; levels++)
        count = (count + 1) / 2;
    return levels;
}

/* A short program should not wait for the rows of times at which nothing happened, and a small disk is for more. */
static int is_too_fine(const struct timeline *t, const struct store *store, uint64_t alloc_count, int last)
{
    if (last && t->index >= QUIET_BUCKETS && t->index / 4 > alloc_count)
        return 1;
    return t->index >= LEVEL_BUCKETS_MIN && (uint64_t)t->index * ROOM_BYTES_BUCKET > store_room_bytes(store);
}

void timeline_write(struct timeline *t, struct store *store, struct rows *rows, unsigned device, uint64_t alloc_count,
                    uint64_t alloc_bytes, int last)
{
    static const char clear_sql[] = "DELETE FROM timeline WHERE device_id = ?";
    while (is_too_fine(t, store, alloc_count, last)) {
        t->now = bucket_now(t, alloc_count, alloc_bytes);
        t->alloc_count_before = alloc_count;
        t->alloc_bytes_before = alloc_bytes;
        timeline_double(t);
        t->end_ns = t->start_ns + (t->index + 1) * t->width_ns;
    }
    t->buckets[t->index] = bucket_now(t, alloc_count, alloc_bytes);
    uint32_t count = t->index + 1;
    unsigned shift = 0;
    struct timeline_bucket *copy = xmalloc((2ul * count + LEVELS_MAX) * sizeof *copy);
    memcpy(copy, t->buckets, count * sizeof *copy);
    for (uint32_t i = 0; !t->has_pending && i < count; i++)
        allocated_is_active(&copy[i]);
    for (; !last && count > RUNNING_BUCKETS; shift++)
        count = merge_pairs(copy, copy, count);

    unsigned levels = level_count(count);
    if (t->written_levels != levels || t->written_width_ns != t->width_ns << shift) { /* other buckets, or none */
        sqlite3_stmt *s = store_statement(store, clear_sql);
        if (s) {
            sqlite3_bind_int(s, 1, (int)device);
            store_step(store, s);
        }
        t->written = 0;
    }
    write_levels(copy, count, t->written >> shift, t->start_ns, t->width_ns << shift, store, rows, device);
    free(copy);
    t->written = t->index;
    t->written_levels = levels;
    t->written_width_ns = t->width_ns << shift;
}
