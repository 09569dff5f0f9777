#include "heap_idle.h"

#include "../../common/db.h"

#define LEAST_TIME 10         /* for so much of the run, as programs free all before they end, and for */
#define LEAST_NS   1000000000 /* so long, as a busy machine may stop them there; or for */
#define SHORT_TIME 2          /* so much of it, and for */
#define SHORT_NS   250000000  /* so long; or while the last */
#define WORK_SHARE 100        /* part of the allocations came, which were */
#define WORK_LEAST 16         /* that many: a buffer for the output comes at the end */
#define RSS_NS     50000000   /* it is sampled more often */

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
    rss = least(least(rss, e->of.peak_rss_bytes), db_int_of(db, sql, &e->of.process_id, 1, INT64_MAX));
    return e->is_forked ? least(rss, db_int_of(db, alone_sql, &e->of.process_id, 1, 0)) : rss;
}

/* From when on so much lay idle to the end, by the samples. The kernel's own figure says what is there at all: pages
 * that were never touched, or that the program has had trimmed, are no loss. Where others ran beside the process what
 * idles is theirs, too, and it may have been since later. */
int heap_idle_since(sqlite3 *db, struct heap_end *e, int64_t idle_bytes)
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

/* The most of it shortly before its end. */
int64_t heap_idle_rss_most(sqlite3 *db, const struct heap_end *e)
{
    static const char sql[] =
        "SELECT max(rss_last_bytes) FROM timeline WHERE device_id = 0 AND level = (SELECT level FROM timeline WHERE "
        "device_id = 0 GROUP BY level HAVING count(*) <= 4096 ORDER BY level LIMIT 1) AND time_ns BETWEEN ?1 - ?2 AND "
        "?1";
    int64_t most = own_rss(db, e, db_int_of(db, sql, (int64_t[]){e->of.end_ns, RSS_NS}, 2, 0));
    return most > e->rss_bytes ? most : e->rss_bytes;
}

/* When the last hundredth of all allocations up to its end, or the last few, began: by what the program did, and not by
 * the clock, which a busy machine changes. */
int64_t heap_idle_work(sqlite3 *db, const struct heap_end *e)
{
    static const char sql[] =
        "SELECT max(time_ns) FROM (SELECT time_ns, sum(alloc_count) OVER (ORDER BY time_ns DESC) AS later, "
        "sum(alloc_count) OVER () AS whole FROM timeline WHERE device_id = 0 AND time_ns <= ?1 AND time_ns >= ?2 - "
        "width_ns AND level = (SELECT level FROM timeline WHERE device_id = 0 GROUP BY level HAVING count(*) <= 4096 "
        "ORDER BY level LIMIT 1)) WHERE later >= max(whole / ?3, ?4)";
    return db_int_of(db, sql, (int64_t[]){e->of.end_ns, e->of.start_ns, WORK_SHARE, WORK_LEAST}, 4, -1);
}

/* A tenth of its run before its end, or half of it where less than a second was idle. */
int64_t heap_idle_long_before(const struct heap_end *e)
{
    int share = e->end_ns - e->since_ns >= LEAST_NS ? LEAST_TIME : SHORT_TIME;
    return e->end_ns - (e->end_ns - e->of.start_ns) / share;
}

int heap_idle_is_long(const struct heap_end *e)
{
    return e->end_ns - e->since_ns >= SHORT_NS && e->since_ns <= heap_idle_long_before(e);
}

/* Whether the program went on after that. */
int heap_idle_goes_on(sqlite3 *db, const struct heap_end *e)
{
    return e->end_ns > e->since_ns && (heap_idle_is_long(e) || e->since_ns <= heap_idle_work(db, e));
}

/* What of the RSS at the end can be free pages of segments: not what the last looks saw on the pages of others, nor so
 * many bytes that are in use. Below 0: nothing was looked at. */
int64_t heap_idle_free_there(sqlite3 *db, const struct heap_end *e, int64_t used_bytes)
{
    static const char sql[] =
        "SELECT iif(count(*) > 0, CAST(total(present_bytes) - (SELECT total(resident_bytes) FROM resident_rest JOIN "
        "resident_scan USING(scan_id) WHERE is_last AND process_id = ?1 AND what IN ('beside', 'heap', 'segment')) - "
        "(SELECT "
        "total(resident_bytes) "
        "FROM resident_site JOIN resident_scan c USING(scan_id) JOIN site USING(site_id) WHERE is_last AND "
        "c.process_id = "
        "?1 AND kind = 'heap') AS INTEGER), -1) FROM resident_scan WHERE is_last AND process_id = ?1";
    int64_t other = db_int_of(db, sql, &e->of.process_id, 1, -1);
    return other < 0 || used_bytes < 0 || e->rss_bytes < 0 || used_bytes > e->rss_bytes
               ? -1
               : e->rss_bytes - used_bytes - other;
}

/* Whether the samples have so much idle for so long at all. */
int heap_idle_for(sqlite3 *db, int64_t idle_bytes, int64_t idle_ns)
{
    static const char sql[] =
        "SELECT total(width_ns) >= ?2 FROM timeline WHERE device_id = 0 AND reserved_last_bytes - active_last_bytes >= "
        "?1 AND level = (SELECT level FROM timeline WHERE device_id = 0 GROUP BY level HAVING count(*) <= 4096 ORDER "
        "BY level LIMIT 1)";
    return db_int_of(db, sql, (int64_t[]){idle_bytes, idle_ns}, 2, 0) != 0;
}

/* What glibc's heaps of a process had then. */
int64_t heap_idle_glibc(sqlite3 *db, int64_t process_id, int64_t time_ns)
{
    static const char sql[] =
        "SELECT CAST(total(size_bytes) AS INTEGER) FROM (SELECT size_bytes, max(time_ns) FROM heap_range WHERE "
        "process_id = ?1 AND time_ns <= ?2 AND size_bytes BETWEEN 0 AND 1 << 48 GROUP BY address)";
    return db_int_of(db, sql, (int64_t[]){process_id, time_ns}, 2, 0);
}
