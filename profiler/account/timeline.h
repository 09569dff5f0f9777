/*
 * timeline.h: active, allocated, reserved and resident bytes of a device over time, in a fixed number of buckets whose
 * width doubles as the run grows. A bucket holds the extremes with their exact times, so no peak is lost.
 */
#ifndef MEMPROF_TIMELINE_H
#define MEMPROF_TIMELINE_H

#include <stdint.h>

#define TIMELINE_BUCKETS        8192u
#define TIMELINE_FIRST_WIDTH_NS 1024u

struct timeline_bucket {
    uint64_t active_min_bytes;
    uint64_t active_max_bytes;
    uint64_t active_max_ns;
    uint64_t active_last_bytes;
    uint64_t allocated_max_bytes; /* this and the next: of no meaning before has_pending */
    uint64_t allocated_last_bytes;
    uint64_t reserved_max_bytes;
    uint64_t reserved_max_ns;
    uint64_t reserved_last_bytes;
    uint64_t rss_max_bytes;
    uint64_t rss_last_bytes;
    uint64_t alloc_count;
    uint64_t alloc_bytes;
    uint64_t has_rss;
};

struct timeline {
    struct timeline_bucket now; /* the bucket being filled; alloc_* and active_last when it ends */
    uint64_t start_ns;          /* of the first bucket */
    uint64_t end_ns;            /* of that bucket */
    uint64_t width_ns;
    uint32_t index;   /* of that bucket; the ones before it are in buckets */
    uint32_t written; /* so many of buckets are in the database, in buckets of this width: */
    uint64_t written_width_ns;
    uint32_t written_levels;
    uint32_t has_pending; /* a free was pending at some time: allocated is a series of its own */
    uint64_t pending_bytes;
    uint64_t active_bytes;
    uint64_t alloc_count_before; /* the device's at the bucket's start */
    uint64_t alloc_bytes_before;
    struct timeline_bucket buckets[TIMELINE_BUCKETS];
};

struct timeline *timeline_open(void);
void timeline_close(struct timeline *t);
/* Begins at start_ns with what there is, and forgets what was before. alloc_count and alloc_bytes: as below. */
void timeline_anew(struct timeline *t, uint64_t start_ns, uint64_t alloc_count, uint64_t alloc_bytes);

/* alloc_count and alloc_bytes: the device's totals so far. */
void timeline_advance(struct timeline *t, uint64_t time_ns, uint64_t alloc_count, uint64_t alloc_bytes);

/* Before the change at time_ns (never decreasing). */
static inline void timeline_step(struct timeline *t, uint64_t time_ns, uint64_t alloc_count, uint64_t alloc_bytes)
{
    if (__builtin_expect(time_ns >= t->end_ns, 0))
        timeline_advance(t, time_ns, alloc_count, alloc_bytes);
}

static inline void timeline_rise(struct timeline *t, uint64_t time_ns, uint64_t active_bytes)
{
    t->active_bytes = active_bytes;
    if (__builtin_expect(t->has_pending, 0) && active_bytes - t->pending_bytes > t->now.allocated_max_bytes)
        t->now.allocated_max_bytes = active_bytes - t->pending_bytes;
    if (active_bytes > t->now.active_max_bytes) {
        t->now.active_max_bytes = active_bytes;
        t->now.active_max_ns = time_ns;
    }
}

static inline void timeline_fall(struct timeline *t, uint64_t active_bytes)
{
    t->active_bytes = active_bytes;
    if (active_bytes < t->now.active_min_bytes)
        t->now.active_min_bytes = active_bytes;
}

/* Before the fall when pending bytes leave. */
void timeline_pending(struct timeline *t, uint64_t pending_bytes);
void timeline_reserved(struct timeline *t, uint64_t time_ns, uint64_t reserved_bytes);
void timeline_rss(struct timeline *t, uint64_t rss_bytes);

/* Local maxima of active bytes other than the peak itself, largest first: highest values between dips. A dip is a
 * stretch of buckets whose minimum lies an eighth or more below the maxima on both sides of it. Returns how many. */
struct timeline_peak {
    uint64_t time_ns;
    uint64_t value_bytes;
};
unsigned timeline_peaks(struct timeline *t, struct timeline_peak *peaks, unsigned max);

struct store;
struct rows;
/* Writes what has changed since the last time, of every level; the bucket being filled is included. rows: one for all
 * timelines of a store. last: the run ends: before that the finest level stays away, and of a quiet one after it. */
void timeline_write(struct timeline *t, struct store *store, struct rows *rows, unsigned device, uint64_t alloc_count,
                    uint64_t alloc_bytes, int last);

#endif
