#include "timeline.h"

#include "../store/store.h"

#include "../../common/error.h"

#include <stdlib.h>
#include <string.h>

#define LEVEL_BUCKETS_MIN 64u /* the coarsest level has at most this many */
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

/* Halves the number of buckets; the one being filled (ended as of now) stays the last. */
static void timeline_double(struct timeline *t)
{
    uint32_t count = t->index + 1;
    t->buckets[t->index] = t->now;
    for (uint32_t i = 0; i < count / 2; i++)
        t->buckets[i] = bucket_merge(&t->buckets[2 * i], &t->buckets[2 * i + 1]);
    if (count & 1)
        t->buckets[count / 2] = t->buckets[count - 1];
    t->index /= 2;
    t->now = t->buckets[t->index];
    t->width_ns *= 2;
    t->written = 0;
}

void timeline_advance(struct timeline *t, uint64_t time_ns, uint64_t alloc_count, uint64_t alloc_bytes)
{
    t->now = bucket_now(t, alloc_count, alloc_bytes);
    t->alloc_count_before = alloc_count;
    t->alloc_bytes_before = alloc_bytes;
    while (time_ns / t->width_ns >= TIMELINE_BUCKETS)
        timeline_double(t);
    uint32_t index = (uint32_t)(time_ns / t->width_ns);
    while (t->index < index) {
        t->buckets[t->index] = t->now;
        t->index++;
        t->now = bucket_after(&t->buckets[t->index - 1], t->index * t->width_ns);
    }
    t->end_ns = (t->index + 1) * t->width_ns;
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

static void write_bucket(struct store *store, unsigned device, unsigned level, uint64_t width_ns, uint32_t index,
                         const struct timeline_bucket *b, unsigned has_pending)
{
    static const char sql[] =
        "INSERT OR REPLACE INTO timeline(device_id, level, time_ns, width_ns, active_min_bytes, active_max_bytes, "
        "active_max_ns, active_last_bytes, allocated_max_bytes, allocated_last_bytes, reserved_max_bytes, "
        "reserved_max_ns, reserved_last_bytes, rss_max_bytes, rss_last_bytes, alloc_count, alloc_bytes) "
        "VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)";
    sqlite3_stmt *s = store_statement(store, sql);
    if (!s)
        return;
    const uint64_t values[] = {width_ns,
                               b->active_min_bytes,
                               b->active_max_bytes,
                               b->active_max_ns,
                               b->active_last_bytes,
                               has_pending ? b->allocated_max_bytes : b->active_max_bytes,
                               has_pending ? b->allocated_last_bytes : b->active_last_bytes,
                               b->reserved_max_bytes,
                               b->reserved_max_ns,
                               b->reserved_last_bytes,
                               b->rss_max_bytes,
                               b->rss_last_bytes,
                               b->alloc_count,
                               b->alloc_bytes};
    sqlite3_bind_int(s, 1, (int)device);
    sqlite3_bind_int(s, 2, (int)level);
    sqlite3_bind_int64(s, 3, (int64_t)(index * width_ns));
    for (unsigned i = 0; i < sizeof values / sizeof *values; i++)
        sqlite3_bind_int64(s, (int)i + 4, (int64_t)values[i]);
    if (!b->has_rss) {
        sqlite3_bind_null(s, 14);
        sqlite3_bind_null(s, 15);
    }
    store_step(store, s);
}

/* Every level, of each what changed: from the bucket that holds bucket first of level 0. Merges in place. */
static void write_levels(struct timeline_bucket *buckets, uint32_t count, uint32_t first, uint64_t width_ns,
                         struct store *store, unsigned device, unsigned has_pending)
{
    for (unsigned level = 0;; level++) {
        for (uint32_t i = first; i < count; i++)
            write_bucket(store, device, level, width_ns, i, &buckets[i], has_pending);
        if (count <= LEVEL_BUCKETS_MIN)
            return;
        uint32_t half = count / 2;
        for (uint32_t i = 0; i < half; i++)
            buckets[i] = bucket_merge(&buckets[2 * i], &buckets[2 * i + 1]);
        if (count & 1)
            buckets[half++] = buckets[count - 1];
        count = half;
        first /= 2;
        width_ns *= 2;
    }
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

void timeline_write(struct timeline *t, struct store *store, unsigned device, uint64_t alloc_count,
                    uint64_t alloc_bytes, int last)
{
    static const char clear_sql[] = "DELETE FROM timeline WHERE device_id = ?";
    while (is_too_fine(t, store, alloc_count, last)) {
        t->now = bucket_now(t, alloc_count, alloc_bytes);
        t->alloc_count_before = alloc_count;
        t->alloc_bytes_before = alloc_bytes;
        timeline_double(t);
        t->end_ns = (t->index + 1) * t->width_ns;
    }
    if (t->written_levels != level_count(t->index + 1)) {
        t->written_levels = level_count(t->index + 1);
        t->written = 0;
    }
    if (t->written == 0) { /* nothing yet, or of another width */
        sqlite3_stmt *s = store_statement(store, clear_sql);
        if (s) {
            sqlite3_bind_int(s, 1, (int)device);
            store_step(store, s);
        }
    }
    t->buckets[t->index] = bucket_now(t, alloc_count, alloc_bytes);
    uint32_t count = t->index + 1;
    struct timeline_bucket *copy = xmalloc(count * sizeof *copy);
    memcpy(copy, t->buckets, count * sizeof *copy);
    write_levels(copy, count, t->written, t->width_ns, store, device, t->has_pending);
    free(copy);
    t->written = t->index;
}
