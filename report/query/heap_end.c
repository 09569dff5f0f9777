#include "heap_end.h"

#include "../../common/db.h"

#include <stdlib.h>

#define LEAST_BYTES (1 << 20)
#define LARGE_BYTES (16 << 20) /* below, it must be */
#define LEAST_PEAK  8          /* of the peak of what was reserved, */
#define LEAST_PART  4          /* and in any case of what is reserved at the end, */
#define LEAST_TIME  10         /* for so much of the run: programs free all before they end */
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
        rss = sqlite3_column_int64(s, 2);
    }
    sqlite3_finalize(s);
    return rss >= idle_bytes && e->end_ns > e->since_ns && (e->end_ns - e->since_ns) >= e->end_ns / LEAST_TIME;
}

static int is_large(sqlite3 *db, struct heap_end *e)
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
           h->trim_bytes >= e->reserved_bytes / LEAST_PART && find_since(db, e, (int64_t)e->trim_bytes);
}

void heap_end_load(sqlite3 *db, struct heap_end *end)
{
    struct error err;
    struct instant at;
    int64_t reserved, gap = heap_gap_at_end(db, &reserved);
    *end = (struct heap_end){0};
    if (gap < LEAST_BYTES || gap < reserved / LEAST_PART || db_meta_int(db, "event_count", 0) > EVENTS_MOST ||
        !find_since(db, end, reserved / LEAST_PART)) /* what is_large asks is more */
        return;
    instant_at(&at, INT64_MAX);
    end->is_there = live_blocks_load(db, &at, "", &end->blocks, &err) == 0 &&
                    heap_load(db, &at, &end->blocks, &end->heap, &err) == 0 && is_large(db, end);
    if (!end->is_there)
        heap_end_free(end);
}

void heap_end_free(struct heap_end *end)
{
    heap_free(&end->heap);
    free(end->blocks.slots);
    *end = (struct heap_end){0};
}
