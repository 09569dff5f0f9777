#include "heap_gap.h"

#include "../../common/array.h"
#include "../../common/db.h"

/* Of sites alone it is not known what each process has. A file without accounts lets more be looked at. */
static const char sql[] =
    "WITH glibc AS (SELECT process_id, total(size_bytes) AS bytes FROM (SELECT r.process_id, size_bytes, "
    "max(r.time_ns) FROM heap_range r LEFT JOIN teardown t USING(process_id) WHERE size_bytes BETWEEN 0 AND 1 << 48 "
    "AND "
    "r.time_ns <= coalesce(t.time_ns, ?1) GROUP BY r.process_id, address) GROUP BY process_id), "
    "others AS (SELECT g.process_id, total(size_bytes) AS bytes FROM segment g LEFT JOIN teardown t USING(process_id) "
    "WHERE device_id = 0 AND kind = 'heap' AND (free_ns IS NULL OR free_ns > t.time_ns) AND alloc_ns <= "
    "coalesce(t.time_ns, ?1) AND size_bytes BETWEEN 1 AND 1 << 48 GROUP BY g.process_id), live AS (SELECT "
    "t.process_id, "
    "total(a.end_bytes) AS bytes, total(a.end_count) AS count FROM account a JOIN thread t ON t.thread_id = a.key_id "
    "WHERE a.scope = 'thread' AND "
    "a.inclusive = 0 AND a.device_id = 0 AND a.kind = 'heap' AND a.end_bytes > 0 GROUP BY t.process_id) SELECT "
    "p.process_id, max(p.start_ns, 0), coalesce(d.time_ns, p.end_ns, ?1), coalesce(p.peak_rss_bytes, ?1), "
    "CAST(coalesce(g.bytes, 0) AS INTEGER), p.start_kind = 'fork', CAST(coalesce(o.bytes, 0) AS INTEGER), "
    "CAST(min(coalesce(l.bytes, "
    "0), 1 << 62) AS INTEGER), CAST(min(coalesce(l.count, 0), 1 << 62) AS INTEGER) FROM main.process p LEFT JOIN "
    "teardown d USING(process_id) LEFT JOIN glibc g "
    "USING(process_id) LEFT JOIN others o "
    "USING(process_id) LEFT JOIN live l USING(process_id) WHERE g.bytes > 0 OR o.bytes > 0 ORDER BY p.process_id";

struct heap_gap *heap_gaps_at_end(sqlite3 *db, size_t *count)
{
    struct heap_gap *gaps = NULL;
    size_t capacity = 0;
    sqlite3_stmt *s = NULL;
    *count = 0;
    if (db_prepare(db, sql, &s, NULL))
        return NULL;
    sqlite3_bind_int64(s, 1, INT64_MAX);
    while (sqlite3_step(s) == SQLITE_ROW)
        *ARRAY_ADD(gaps, *count, capacity) = (struct heap_gap){.process_id = sqlite3_column_int64(s, 0),
                                                               .start_ns = sqlite3_column_int64(s, 1),
                                                               .end_ns = sqlite3_column_int64(s, 2),
                                                               .peak_rss_bytes = sqlite3_column_int64(s, 3),
                                                               .glibc_bytes = sqlite3_column_int64(s, 4),
                                                               .is_forked = sqlite3_column_int(s, 5),
                                                               .segment_bytes = sqlite3_column_int64(s, 6),
                                                               .live_bytes = sqlite3_column_int64(s, 7),
                                                               .live_count = sqlite3_column_int64(s, 8)};
    sqlite3_finalize(s);
    return gaps;
}
