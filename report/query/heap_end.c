#include "heap_end.h"

#include "../../common/db.h"

#include <stdlib.h>

#define LEAST_BYTES (1 << 20)
#define LARGE_BYTES (16 << 20) /* below, it must be */
#define LEAST_PEAK  8          /* of the peak of what was reserved, */
#define LEAST_PART  4          /* and in any case of what is reserved at the end, */
#define SEGMENTS    (4 << 20)  /* of segments, where allocators hold more to go on with */
#define LEAST_TIME  10         /* for so much of the run, as programs free all before they end, and for */
#define LEAST_NS    1000000000 /* so long, as a busy machine may stop them there; or while the last */
#define WORK_SHARE  100        /* part of the allocations came, which were */
#define WORK_LEAST  16         /* that many: a buffer for the output comes at the end */
#define EVENTS_MOST 50000000   /* a replay of more takes too long for a sentence */

/* From when on so much lay idle to the end, by the samples. The kernel's own figure says what is there at all: pages
 * that were never touched, or that the program has had trimmed, are no loss. */
static int find_since(sqlite3 *db, struct heap_end *e, int64_t idle_bytes)
{
    sqlite3_stmt *s = NULL;
    int64_t rss = 0;
    if (db_prepare(db,
                   "WITH t AS (SELECT time_ns, width_ns, reserved_last_bytes - active_last_bytes AS idle, "
                   "reserved_last_bytes, rss_last_bytes FROM timeline WHERE device_id = 0 AND level = (SELECT level "
                   "FROM timeline WHERE device_id = 0 GROUP BY level HAVING count(*) <= 4096 ORDER BY level LIMIT 1)), "
                   "e AS (SELECT max(time_ns) AS last FROM t WHERE reserved_last_bytes > 0) SELECT (SELECT "
                   "max(time_ns + width_ns) FROM t, e WHERE time_ns < last AND idle < ?1), (SELECT last FROM e), "
                   "(SELECT rss_last_bytes FROM t, e WHERE time_ns <= last AND rss_last_bytes > 0 ORDER BY time_ns "
                   "DESC LIMIT 1)",
                   &s, NULL))
        return 0;
    sqlite3_bind_int64(s, 1, idle_bytes / 2);
    if (sqlite3_step(s) == SQLITE_ROW) {
        e->since_ns = sqlite3_column_int64(s, 0);
        e->end_ns = sqlite3_column_int64(s, 1);
        e->rss_bytes = rss = sqlite3_column_int64(s, 2);
    }
    sqlite3_finalize(s);
    return rss >= idle_bytes && e->end_ns > e->since_ns;
}

/* When the last hundredth of all allocations, or the last few, began: by what the program did, and not by the clock,
 * which a busy machine changes. */
static int64_t last_work(sqlite3 *db)
{
    static const char sql[] =
        "SELECT max(time_ns) FROM (SELECT time_ns, sum(alloc_count) OVER (ORDER BY time_ns DESC) AS later, "
        "sum(alloc_count) OVER () AS whole FROM timeline WHERE device_id = 0 AND level = (SELECT level FROM timeline "
        "WHERE device_id = 0 GROUP BY level HAVING count(*) <= 4096 ORDER BY level LIMIT 1)) WHERE later >= "
        "max(whole / ?1, ?2)";
    sqlite3_stmt *s = NULL;
    int64_t time_ns = -1;
    if (db_prepare(db, sql, &s, NULL))
        return -1;
    sqlite3_bind_int(s, 1, WORK_SHARE);
    sqlite3_bind_int(s, 2, WORK_LEAST);
    if (sqlite3_step(s) == SQLITE_ROW && sqlite3_column_type(s, 0) != SQLITE_NULL)
        time_ns = sqlite3_column_int64(s, 0);
    sqlite3_finalize(s);
    return time_ns;
}

static int is_long(const struct heap_end *e)
{
    return e->end_ns - e->since_ns >= LEAST_NS && e->end_ns - e->since_ns >= e->end_ns / LEAST_TIME;
}

/* Whether the program went on after that. */
static int goes_on(sqlite3 *db, const struct heap_end *e)
{
    return is_long(e) || e->since_ns <= last_work(db);
}

/* At an instant. INT64_MAX: the end */
static int load_at(sqlite3 *db, int64_t time_ns, struct heap_end *end)
{
    struct error err;
    struct instant at;
    instant_at(&at, time_ns);
    return live_blocks_load(db, &at, "", &end->blocks, &err) == 0 &&
           heap_load(db, &at, &end->blocks, &end->heap, &err) == 0;
}

/* Whether so much of glibc's heaps is free pages that live blocks keep there. */
static int holds_much(sqlite3 *db, struct heap_end *e)
{
    const struct heap *h = &e->heap;
    for (size_t i = 0; i < h->range_count; i++) {
        const struct heap_range *r = &h->ranges[i];
        if (r->kind > HEAP_OWN)
            continue;
        e->reserved_bytes += r->page_bytes;
        e->pin_bytes += r->pinned_bytes + r->shared_bytes;
    }
    e->trim_bytes = h->trim_bytes + h->main_top_bytes;
    uint64_t peak =
        (uint64_t)db_int(db, "SELECT peak_reserved_bytes FROM total WHERE device_id = 0 AND kind = 'heap'", 0);
    return h->trim_bytes >= LEAST_BYTES && (h->trim_bytes >= LARGE_BYTES || h->trim_bytes >= peak / LEAST_PEAK) &&
           h->trim_bytes >= e->reserved_bytes / LEAST_PART;
}

/* What is reserved and not live may be parts of pages, whose blocks a program frees before it ends: the pages
 * themselves were free for that long. */
static int held_at(sqlite3 *db, int64_t time_ns)
{
    struct heap_end before = {0};
    int held = time_ns >= 0 && load_at(db, time_ns, &before) && holds_much(db, &before);
    heap_end_free(&before);
    return held;
}

static int held_before(sqlite3 *db, const struct heap_end *e)
{
    int64_t work_ns = last_work(db);
    return (is_long(e) && held_at(db, e->end_ns - e->end_ns / LEAST_TIME)) ||
           (e->since_ns <= work_ns && held_at(db, work_ns));
}

static int is_large(sqlite3 *db, struct heap_end *e)
{
    return holds_much(db, e) && find_since(db, e, (int64_t)e->trim_bytes) && held_before(db, e);
}

/* What of the RSS at the end can be free pages of segments: not what the last looks saw on the pages of others, nor so
 * many bytes that are in use. Below 0: nothing was looked at. */
static int64_t free_there(sqlite3 *db, const struct heap_end *e, int64_t used_bytes)
{
    static const char sql[] =
        "SELECT iif(count(*) > 0, CAST(total(present_bytes) - (SELECT total(resident_bytes) FROM resident_rest JOIN "
        "resident_scan USING(scan_id) WHERE is_last AND what IN ('beside', 'heap', 'segment')) - (SELECT "
        "total(resident_bytes) "
        "FROM resident_site JOIN resident_scan USING(scan_id) JOIN site USING(site_id) WHERE is_last AND kind = "
        "'heap') AS INTEGER), -1) FROM resident_scan WHERE is_last";
    int64_t other = db_int(db, sql, -1);
    return other < 0 || used_bytes < 0 || e->rss_bytes < 0 || used_bytes > e->rss_bytes
               ? -1
               : e->rss_bytes - used_bytes - other;
}

static int is_large_segments(sqlite3 *db, struct heap_end *e)
{
    const struct heap *h = &e->heap;
    uint64_t idle = 0;
    e->reserved_bytes = e->pin_bytes = 0;
    for (size_t i = 0; i < h->range_count; i++) {
        const struct heap_range *r = &h->ranges[i];
        if (r->kind != HEAP_SEGMENT)
            continue;
        e->reserved_bytes += r->page_bytes;
        e->pin_bytes += r->pinned_bytes + r->shared_bytes;
        idle += r->held_bytes + r->top_bytes;
    }
    int64_t there = free_there(db, e, (int64_t)e->pin_bytes);
    e->trim_bytes = there < 0 ? 0 : idle < (uint64_t)there ? idle : (uint64_t)there;
    uint64_t peak =
        (uint64_t)db_int(db, "SELECT peak_reserved_bytes FROM total WHERE device_id = 0 AND kind = 'heap'", 0);
    return e->trim_bytes >= SEGMENTS && (e->trim_bytes >= LARGE_BYTES || e->trim_bytes >= peak / LEAST_PEAK) &&
           e->trim_bytes >= (e->trim_bytes + e->pin_bytes) / LEAST_PART && find_since(db, e, (int64_t)e->trim_bytes) &&
           goes_on(db, e);
}

/* Whether segments held at least so much more than live blocks, and the process as many resident bytes. */
static int has_segments(sqlite3 *db, struct heap_end *e)
{
    int64_t reserved = db_int(db,
                              "SELECT CAST(total(size_bytes) AS INTEGER) FROM segment WHERE device_id = 0 AND kind = "
                              "'heap' AND free_ns IS NULL AND size_bytes BETWEEN 1 AND 1 << 48",
                              0);
    int64_t live =
        db_int(db, "SELECT end_active_bytes FROM total WHERE device_id = 0 AND kind = 'heap' AND end_active_bytes >= 0",
               INT64_MAX);
    return reserved >= SEGMENTS && reserved - SEGMENTS >= live && find_since(db, e, SEGMENTS) && goes_on(db, e) &&
           free_there(db, e, live) >= SEGMENTS;
}

void heap_end_load(sqlite3 *db, struct heap_end *end)
{
    int64_t reserved, gap = heap_gap_at_end(db, &reserved);
    *end = (struct heap_end){0};
    if (db_meta_int(db, "event_count", 0) > EVENTS_MOST)
        return;
    int may_glibc = gap >= LEAST_BYTES && gap >= reserved / LEAST_PART && find_since(db, end, reserved / LEAST_PART) &&
                    goes_on(db, end); /* what is_large asks is more */
    int may_segments = has_segments(db, end);
    if ((may_glibc || may_segments) && load_at(db, INT64_MAX, end)) {
        end->is_there = may_glibc && is_large(db, end);
        end->is_segments = !end->is_there && may_segments && is_large_segments(db, end);
        end->is_there |= end->is_segments;
    }
    if (!end->is_there)
        heap_end_free(end);
}

void heap_end_free(struct heap_end *end)
{
    heap_free(&end->heap);
    free(end->blocks.slots);
    *end = (struct heap_end){0};
}
