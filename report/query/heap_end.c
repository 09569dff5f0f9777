#include "heap_end.h"

#include "../../common/db.h"
#include "../../common/units.h"
#include "heap_released.h"
#include "process_label.h"

#include <stdlib.h>
#include <string.h>

#define LEAST_BYTES (1 << 20)
#define LARGE_BYTES (16 << 20) /* below, it must be */
#define LEAST_PEAK  8          /* of the peak of what was reserved, */
#define LEAST_PART  4          /* and in any case of what is reserved at the end, */
#define SEGMENTS    (4 << 20)  /* of segments, where allocators hold more to go on with */
#define SPREAD_PART 4          /* of pages with a live byte less than this part is live */
#define LEAST_TIME  10         /* for so much of the run, as programs free all before they end, and for */
#define LEAST_NS    1000000000 /* so long, as a busy machine may stop them there; or for */
#define SHORT_TIME  2          /* so much of it, and for */
#define SHORT_NS    250000000  /* so long; or while the last */
#define WORK_SHARE  100        /* part of the allocations came, which were */
#define WORK_LEAST  16         /* that many: a buffer for the output comes at the end */
#define EVENTS_MOST 50000000   /* a replay of more takes too long for a sentence */
#define TRIED_MOST  3          /* processes: each may take two replays */

static int64_t int_of(sqlite3 *db, const char *sql, const int64_t *values, int count, int64_t otherwise)
{
    sqlite3_stmt *s = NULL;
    int64_t value = otherwise;
    if (db_prepare(db, sql, &s, NULL))
        return otherwise;
    for (int i = 0; i < count; i++)
        sqlite3_bind_int64(s, i + 1, values[i]);
    if (sqlite3_step(s) == SQLITE_ROW && sqlite3_column_type(s, 0) != SQLITE_NULL)
        value = sqlite3_column_int64(s, 0);
    sqlite3_finalize(s);
    return value;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* What it can have of all processes' RSS: no more than its peak, or than the last look at its pages saw; of a forked
 * one what that saw to be its alone. */
static int64_t own_rss(sqlite3 *db, const struct heap_end *e, int64_t rss)
{
    static const char sql[] = "SELECT present_bytes FROM resident_scan WHERE is_last AND process_id = ?1";
    static const char alone_sql[] = "SELECT copied_bytes + own_bytes FROM resident_fork JOIN resident_scan "
                                    "USING(scan_id) WHERE is_last AND process_id = ?1";
    if (!e->is_one_of)
        return rss;
    rss = least(least(rss, e->of.peak_rss_bytes), int_of(db, sql, &e->of.process_id, 1, INT64_MAX));
    return e->is_forked ? least(rss, int_of(db, alone_sql, &e->of.process_id, 1, 0)) : rss;
}

/* From when on so much lay idle to the end, by the samples. The kernel's own figure says what is there at all: pages
 * that were never touched, or that the program has had trimmed, are no loss. Where others ran beside the process what
 * idles is theirs, too, and it may have been since later. */
static int find_since(sqlite3 *db, struct heap_end *e, int64_t idle_bytes)
{
    sqlite3_stmt *s = NULL;
    int64_t rss = 0;
    if (db_prepare(db,
                   "WITH t AS (SELECT time_ns, width_ns, reserved_last_bytes - active_last_bytes AS idle, "
                   "reserved_last_bytes, rss_last_bytes FROM timeline WHERE device_id = 0 AND level = (SELECT level "
                   "FROM timeline WHERE device_id = 0 GROUP BY level HAVING count(*) <= 4096 ORDER BY level LIMIT 1)), "
                   "e AS (SELECT max(time_ns) AS last FROM t WHERE reserved_last_bytes > 0 AND time_ns <= ?2 - "
                   "width_ns) SELECT (SELECT max(time_ns + width_ns) FROM t, e WHERE time_ns < last AND idle < ?1), "
                   "(SELECT last FROM e), "
                   "(SELECT rss_last_bytes FROM t, e WHERE time_ns <= last AND rss_last_bytes > 0 ORDER BY time_ns "
                   "DESC LIMIT 1)",
                   &s, NULL))
        return 0;
    sqlite3_bind_int64(s, 1, idle_bytes / 2);
    sqlite3_bind_int64(s, 2, e->of.end_ns);
    if (sqlite3_step(s) == SQLITE_ROW) {
        e->since_ns = sqlite3_column_int64(s, 0);
        e->since_ns = e->since_ns > e->of.start_ns ? e->since_ns : e->of.start_ns;
        e->end_ns = sqlite3_column_int64(s, 1);
        e->rss_bytes = rss = own_rss(db, e, sqlite3_column_int64(s, 2));
    }
    sqlite3_finalize(s);
    return rss >= idle_bytes;
}

/* When the last hundredth of all allocations up to its end, or the last few, began: by what the program did, and not by
 * the clock, which a busy machine changes. */
static int64_t last_work(sqlite3 *db, const struct heap_end *e)
{
    static const char sql[] =
        "SELECT max(time_ns) FROM (SELECT time_ns, sum(alloc_count) OVER (ORDER BY time_ns DESC) AS later, "
        "sum(alloc_count) OVER () AS whole FROM timeline WHERE device_id = 0 AND time_ns <= ?1 AND time_ns >= ?2 - "
        "width_ns AND level = (SELECT level FROM timeline WHERE device_id = 0 GROUP BY level HAVING count(*) <= 4096 "
        "ORDER BY level LIMIT 1)) WHERE later >= max(whole / ?3, ?4)";
    return int_of(db, sql, (int64_t[]){e->of.end_ns, e->of.start_ns, WORK_SHARE, WORK_LEAST}, 4, -1);
}

/* A tenth of its run before its end, or half of it where less than a second was idle. */
static int64_t long_before(const struct heap_end *e)
{
    int share = e->end_ns - e->since_ns >= LEAST_NS ? LEAST_TIME : SHORT_TIME;
    return e->end_ns - (e->end_ns - e->of.start_ns) / share;
}

static int is_long(const struct heap_end *e)
{
    return e->end_ns - e->since_ns >= SHORT_NS && e->since_ns <= long_before(e);
}

/* Whether the program went on after that. */
static int goes_on(sqlite3 *db, const struct heap_end *e)
{
    return e->end_ns > e->since_ns && (is_long(e) || e->since_ns <= last_work(db, e));
}

static void drop_blocks(struct heap_end *e)
{
    inherited_close(e->inherited);
    e->inherited = NULL;
    free(e->blocks.slots);
    e->blocks = (struct blocks){0};
}

/* The heap of the one process that was asked for, in the place of those that are no fork's: there are none. */
static void take_forked(struct heap *heap)
{
    struct heap *forked = heap->forked;
    heap->forked = NULL;
    heap_free(heap);
    if (forked)
        *heap = *forked;
    free(forked);
}

/* The process at an instant. INT64_MAX: its end, or where its interpreter began to take it down */
static int load_at(sqlite3 *db, int64_t time_ns, struct heap_end *e)
{
    struct error err;
    struct instant at;
    if (time_ns == INT64_MAX)
        instant_end(&at);
    else
        instant_at(&at, time_ns);
    heap_free(&e->heap);
    if (e->is_forked && !e->inherited)
        drop_blocks(e);
    if (!e->blocks.slots && live_blocks_load(db, &at, "", &e->blocks, e->is_forked ? &e->inherited : NULL, &err) != 0) {
        drop_blocks(e);
        return 0;
    }
    int rc = heap_load(db, &at, &e->blocks, e->inherited, e->of.process_id, &e->heap, &err);
    if (rc == 0 && e->is_forked)
        take_forked(&e->heap);
    return rc == 0;
}

static uint64_t peak_reserved(sqlite3 *db)
{
    return (uint64_t)db_int(db, "SELECT peak_reserved_bytes FROM total WHERE device_id = 0 AND kind = 'heap'", 0);
}

/* Whether so much of glibc's heaps is free pages that live blocks keep there. */
static int holds_much(sqlite3 *db, struct heap_end *e)
{
    const struct heap *h = &e->heap;
    e->reserved_bytes = e->pin_bytes = 0;
    for (size_t i = 0; i < h->range_count; i++) {
        const struct heap_range *r = &h->ranges[i];
        if (r->kind > HEAP_OWN)
            continue;
        e->reserved_bytes += r->page_bytes;
        e->pin_bytes += r->pinned_bytes + r->shared_bytes;
    }
    e->trim_bytes = h->trim_bytes + h->main_top_bytes;
    uint64_t peak = peak_reserved(db);
    return h->trim_bytes >= LEAST_BYTES && (h->trim_bytes >= LARGE_BYTES || h->trim_bytes >= peak / LEAST_PEAK) &&
           h->trim_bytes >= e->reserved_bytes / LEAST_PART;
}

/* Free pages of its segments; sums up the others. */
static uint64_t idle_segments(struct heap_end *e)
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
    return idle;
}

/* Whether so much of its pages is between few live blocks: no page is free, and nothing gives them back. */
static int is_spread(sqlite3 *db, struct heap_end *e)
{
    uint64_t live = 0;
    uint64_t peak = peak_reserved(db);
    if (e->is_segments)
        idle_segments(e);
    else
        holds_much(db, e);
    for (size_t i = 0; i < e->heap.range_count; i++) {
        const struct heap_range *r = &e->heap.ranges[i];
        live += (e->is_segments ? r->kind == HEAP_SEGMENT : r->kind <= HEAP_OWN) ? r->live_bytes : 0;
    }
    e->spread_bytes = e->pin_bytes > live ? e->pin_bytes - live : 0;
    return e->spread_bytes >= SEGMENTS && live < e->pin_bytes / SPREAD_PART &&
           (e->spread_bytes >= LARGE_BYTES || e->spread_bytes >= peak / LEAST_PEAK);
}

/* What is reserved and not live may be parts of pages, whose blocks a program frees before it ends: the pages
 * themselves were free for that long. */
static int held_at(sqlite3 *db, const struct heap_end *e, int64_t time_ns)
{
    struct heap_end before = {.of = e->of, .is_forked = e->is_forked, .is_segments = e->is_segments};
    int held = time_ns >= 0 && load_at(db, time_ns, &before) &&
               (e->is_spread     ? is_spread(db, &before)
                : e->is_segments ? idle_segments(&before) >= e->trim_bytes / 2
                                 : holds_much(db, &before));
    heap_end_free(&before);
    return held;
}

static int held_before(sqlite3 *db, const struct heap_end *e)
{
    int64_t work_ns = last_work(db, e);
    return (is_long(e) && held_at(db, e, long_before(e))) || (e->since_ns <= work_ns && held_at(db, e, work_ns));
}

static int is_large(sqlite3 *db, struct heap_end *e)
{
    return holds_much(db, e) && find_since(db, e, (int64_t)e->trim_bytes) &&
           (!e->is_kept || (goes_on(db, e) && held_before(db, e)));
}

/* What of the RSS at the end can be free pages of segments: not what the last looks saw on the pages of others, nor so
 * many bytes that are in use. Below 0: nothing was looked at. */
static int64_t free_there(sqlite3 *db, const struct heap_end *e, int64_t used_bytes)
{
    static const char sql[] =
        "SELECT iif(count(*) > 0, CAST(total(present_bytes) - (SELECT total(resident_bytes) FROM resident_rest JOIN "
        "resident_scan USING(scan_id) WHERE is_last AND process_id = ?1 AND what IN ('beside', 'heap', 'segment')) - "
        "(SELECT "
        "total(resident_bytes) "
        "FROM resident_site JOIN resident_scan c USING(scan_id) JOIN site USING(site_id) WHERE is_last AND "
        "c.process_id = "
        "?1 AND kind = 'heap') AS INTEGER), -1) FROM resident_scan WHERE is_last AND process_id = ?1";
    int64_t other = int_of(db, sql, &e->of.process_id, 1, -1);
    return other < 0 || used_bytes < 0 || e->rss_bytes < 0 || used_bytes > e->rss_bytes
               ? -1
               : e->rss_bytes - used_bytes - other;
}

static void trim_segments(sqlite3 *db, struct heap_end *e)
{
    uint64_t idle = idle_segments(e);
    int64_t there = free_there(db, e, (int64_t)e->pin_bytes);
    e->trim_bytes = there < 0 ? 0 : idle < (uint64_t)there ? idle : (uint64_t)there;
}

static int is_large_segments(sqlite3 *db, struct heap_end *e)
{
    trim_segments(db, e);
    uint64_t peak = peak_reserved(db);
    return e->trim_bytes >= SEGMENTS && (e->trim_bytes >= LARGE_BYTES || e->trim_bytes >= peak / LEAST_PEAK) &&
           e->trim_bytes >= (e->trim_bytes + e->pin_bytes) / LEAST_PART && find_since(db, e, (int64_t)e->trim_bytes) &&
           goes_on(db, e) && (!e->is_one_of || held_before(db, e));
}

static int is_large_spread(sqlite3 *db, struct heap_end *e)
{
    if (e->is_segments)
        trim_segments(db, e);
    return is_spread(db, e) && find_since(db, e, (int64_t)e->spread_bytes) && goes_on(db, e) &&
           (!e->is_one_of || held_before(db, e));
}

/* What glibc's heaps, or segments, had more than live blocks. */
static int64_t idle_of(const struct heap_gap *g, int is_segments)
{
    return (is_segments ? g->segment_bytes : g->glibc_bytes) - g->live_bytes;
}

/* Whether it may be, by the samples: less than is_large asks. */
static int may_be(sqlite3 *db, struct heap_end *e)
{
    const struct heap_gap *g = &e->of;
    int64_t idle = idle_of(g, e->is_segments);
    if (e->is_spread)
        return idle >= SEGMENTS && find_since(db, e, SEGMENTS) && goes_on(db, e);
    if (e->is_segments)
        return idle >= SEGMENTS && find_since(db, e, SEGMENTS) && goes_on(db, e) &&
               free_there(db, e, g->live_bytes) >= SEGMENTS;
    return idle >= LEAST_BYTES && idle >= g->glibc_bytes / LEAST_PART &&
           find_since(db, e, g->glibc_bytes / LEAST_PART) && (!e->is_kept || goes_on(db, e));
}

static int by_glibc(const void *x, const void *y)
{
    int64_t a = idle_of(x, 0), b = idle_of(y, 0);
    return a != b ? (a > b ? -1 : 1) : 0;
}

static int by_segments(const void *x, const void *y)
{
    int64_t a = idle_of(x, 1), b = idle_of(y, 1);
    return a != b ? (a > b ? -1 : 1) : 0;
}

static void name_process(sqlite3 *db, struct heap_end *e)
{
    struct buf name = BUF(1 << 16);
    sqlite3_stmt *labels = e->is_one_of ? process_label_query(db) : NULL;
    int64_t pid = -1;
    if (labels) {
        buf_puts(&name, " of ");
        pid = process_label(labels, e->of.process_id, &name);
    }
    if (pid >= 0)
        buf_printf(&name, ", pid %lld", (long long)pid);
    else
        buf_reset(&name);
    e->whose = xstrdup(buf_text(&name));
    sqlite3_finalize(labels);
    buf_free(&name);
}

/* Of those with most first, the first one that is. */
static void find_process(sqlite3 *db, struct heap_end *e, struct heap_gap *gaps, size_t count)
{
    int is_segments = e->is_segments;
    if (count)
        qsort(gaps, count, sizeof *gaps, is_segments ? by_segments : by_glibc);
    int tried = 0;
    for (size_t i = 0; i < count && tried < TRIED_MOST && !e->is_there; i++) {
        if (!is_segments && gaps[i].is_forked != e->is_forked)
            continue;
        tried++;
        e->of = gaps[i];
        e->is_there = may_be(db, e) && load_at(db, INT64_MAX, e) &&
                      (e->is_spread  ? is_large_spread(db, e)
                       : is_segments ? is_large_segments(db, e)
                                     : is_large(db, e));
    }
}

/* One that kept it first, one that is no fork before one that is, as that has its parent's heap; then one whose pages
 * are hardly used. Where none did, glibc's at the end alone; other allocators give back by themselves. */
static int find_kept(sqlite3 *db, struct heap_end *e, struct heap_gap *gaps, size_t count)
{
    static const struct {
        int is_segments, is_kept, is_forked, is_spread;
    } order[] = {{0, 1, 0, 0}, {1, 1, 0, 0}, {0, 1, 1, 0}, {1, 1, 0, 1}, {0, 1, 0, 1}, {0, 0, 0, 0}};
    for (size_t i = 0; i < sizeof order / sizeof *order && !e->is_there; i++) {
        e->is_segments = order[i].is_segments;
        e->is_kept = order[i].is_kept;
        e->is_forked = order[i].is_forked;
        e->is_spread = order[i].is_spread;
        find_process(db, e, gaps, count);
    }
    return e->is_there;
}

/* What idled when it began to free what it had, of what glibc had then; nothing of that is known to be live. */
static void take_glibc(sqlite3 *db, struct heap_end *e)
{
    static const char sql[] =
        "SELECT CAST(total(size_bytes) AS INTEGER) FROM (SELECT size_bytes, max(time_ns) FROM heap_range WHERE "
        "process_id = ?1 AND time_ns <= ?2 AND size_bytes BETWEEN 0 AND 1 << 48 GROUP BY address)";
    e->of.glibc_bytes = int_of(db, sql, (int64_t[]){e->of.process_id, e->of.end_ns}, 2, 0);
    e->of.live_bytes = 0;
}

/* The same before it freed what it had as it ended: that was the end of its work. One replay more, and those of
 * held_before where it is. */
static int find_released(sqlite3 *db, struct heap_end *e, const struct heap_gap *gaps, size_t count)
{
    int64_t released_ns = heap_released(db, LEAST_BYTES / 2, SHORT_NS, gaps, count, &e->of);
    if (released_ns <= 0)
        return 0;
    e->of.end_ns = e->released_ns = released_ns;
    e->is_kept = 1;
    take_glibc(db, e);
    if (!may_be(db, e) || !load_at(db, released_ns, e))
        return 0;
    e->is_there = is_large(db, e);
    e->is_spread = !e->is_there;
    e->is_there = e->is_there || is_large_spread(db, e);
    return e->is_there;
}

/* What was left of it when its interpreter had taken itself down. */
static void load_left(sqlite3 *db, struct heap_end *e)
{
    struct instant at;
    struct error err;
    struct heap heap = {0};
    struct blocks blocks = {0};
    instant_at(&at, INT64_MAX);
    e->is_before_teardown = int_of(db, "SELECT 1 FROM teardown WHERE process_id = ?1", &e->of.process_id, 1, 0) == 1;
    if (e->is_before_teardown && live_blocks_load(db, &at, "", &blocks, NULL, &err) == 0 &&
        heap_load(db, &at, &blocks, NULL, e->of.process_id, &heap, &err) == 0)
        for (size_t i = 0; i < heap.range_count; i++) {
            const struct heap_range *r = &heap.ranges[i];
            e->left_pin_bytes += r->kind <= HEAP_OWN ? r->pinned_bytes + r->shared_bytes : 0;
            e->left_free_bytes += r->kind <= HEAP_THREAD ? r->held_bytes + r->top_bytes : 0;
        }
    heap_free(&heap);
    free(blocks.slots);
}

void heap_end_when(const struct heap_end *end, struct buf *text)
{
    static const char of[] = " of ";
    const char *name = strncmp(end->whose, of, sizeof of - 1) == 0 ? end->whose + sizeof of - 1 : NULL;
    char t[UNITS_TEXT];
    if (end->released_ns)
        buf_printf(text, "at %s, before %s%s freed what it had as it ended", units_ns(t, end->released_ns),
                   name ? name : "it", name ? "," : "");
    else if (!end->is_before_teardown)
        buf_printf(text, "at the end%s", end->whose);
    else if (name)
        buf_printf(text, "as Python began to take itself down (%s)", name);
    else
        buf_puts(text, "as Python began to take itself down");
}

void heap_end_when_short(const struct heap_end *end, struct buf *text)
{
    char t[UNITS_TEXT];
    if (end->released_ns)
        buf_printf(text, "at %s", units_ns(t, end->released_ns));
    else
        buf_puts(text, "at end");
}

void heap_end_load(sqlite3 *db, struct heap_end *end)
{
    size_t count = 0;
    *end = (struct heap_end){0};
    if (db_meta_int(db, "event_count", 0) > EVENTS_MOST)
        return;
    struct heap_gap *gaps = heap_gaps_at_end(db, &count);
    end->is_one_of = db_int(db, "SELECT count(DISTINCT first_id) FROM v_image", 0) > 1;
    struct heap_end released = {.is_one_of = end->is_one_of};
    if (!(find_kept(db, end, gaps, count) && end->is_kept) && find_released(db, &released, gaps, count)) {
        heap_end_free(end);
        *end = released;
    } else {
        heap_end_free(&released);
    }
    if (end->is_there)
        name_process(db, end);
    else
        heap_end_free(end);
    if (end->is_there && !end->is_forked)
        load_left(db, end);
    free(gaps);
}

void heap_end_free(struct heap_end *end)
{
    heap_free(&end->heap);
    drop_blocks(end);
    free(end->whose);
    *end = (struct heap_end){0};
}
