#include "resident.h"

#include "../../common/db.h"
#include "../../common/units.h"
#include "look_rows.h"

#include <errno.h>
#include <string.h>

#define DIFFERS_SHARE 20 /* a part of what is live, or this much: */
#define DIFFERS_BYTES (1 << 20)
#define SAMPLE_BYTES  (1 << 20)
#define LATER_SHARE   64 /* of what a look saw, and 1 MiB: by less the kernel's own count may be off */
#define AGAIN_SHARE   20 /* of the sum; less is not worth a word */

static int64_t column(sqlite3_stmt *s, int i, int64_t unknown)
{
    return sqlite3_column_type(s, i) == SQLITE_NULL ? unknown : sqlite3_column_int64(s, i);
}

/* The sums of a damaged file need not fit. */
static int load(sqlite3 *db, const char *sql, int64_t *const values[], int count, struct error *err)
{
    sqlite3_stmt *s = NULL;
    int rc = db_prepare(db, sql, &s, err);
    if (rc == 0 && sqlite3_step(s) == SQLITE_ROW)
        for (int i = 0; i < count; i++)
            *values[i] = column(s, i, -1);
    sqlite3_finalize(s);
    return rc;
}

static int load_sites(sqlite3 *db, struct resident_peak *p, struct error *err)
{
    static const enum packed_column columns[] = {PACKED_resident_site_live_bytes, PACKED_resident_site_resident_bytes,
                                                 PACKED_resident_site_untouched_bytes};
    int64_t *const into[] = {&p->live_bytes, &p->block_bytes, &p->untouched_bytes};
    double sums[] = {0, 0, 0}; /* as SQLite's total() */
    struct look_rows rows;
    int rc = look_rows_open(db, LOOKS_PEAK, columns, 3, &rows, err);
    while (rc == 0 && (rc = look_rows_next(&rows, err)) == 1) {
        for (int i = 0; i < 3; i++)
            sums[i] += (double)look_rows_value(&rows, i);
        rc = 0;
    }
    look_rows_close(&rows);
    for (int i = 0; i < 3; i++)
        *into[i] = sums[i] >= 0x1p63 ? INT64_MAX : sums[i] < -0x1p63 ? INT64_MIN : (int64_t)sums[i];
    return rc;
}

int resident_peak_load(sqlite3 *db, struct resident_peak *p, struct error *err)
{
    static const char scans[] =
        "SELECT count(*), min(time_ns), max(time_ns) + CAST(total(duration_ns) AS INTEGER) / max(count(*), 1) - "
        "min(time_ns), iif(count(moved_count) = count(*), max(moved_count), NULL), CAST(total(rss_bytes) AS INTEGER), "
        "CAST(total(present_bytes) AS INTEGER), CAST(total(shared_bytes) AS INTEGER), CAST(total(swapped_bytes) AS "
        "INTEGER), iif(count(huge_bytes) = count(*), CAST(total(huge_bytes) AS INTEGER), NULL), (SELECT min(time_ns) "
        "FROM resident_scan WHERE is_last), (SELECT max(time_ns) FROM resident_scan) FROM resident_scan WHERE is_peak";
    *p = (struct resident_peak){0};
    int rc = load(db, scans,
                  (int64_t *const[]){&p->process_count, &p->time_ns, &p->duration_ns, &p->moved_count, &p->rss_bytes,
                                     &p->present_bytes, &p->shared_bytes, &p->swapped_bytes, &p->huge_bytes,
                                     &p->ends_ns, &p->last_ns},
                  11, err);
    if (rc == 0 && p->process_count > 0) {
        rc = load_sites(db, p, err);
        p->peak_rss_bytes = resident_peak_rss(db);
    } else {
        *p = (struct resident_peak){0};
    }
    p->untracked_bytes = p->process_count > 0 ? resident_untracked(db, 0, &p->untracked_most) : 0;
    p->peak_rss_is_least = resident_peak_rss_is_least(db);
    return rc;
}

int64_t resident_untracked(sqlite3 *db, int64_t scan_id, struct resident_part *most)
{
    static const char sql[] =
        "SELECT r.what, CAST(total(r.resident_bytes) AS INTEGER) AS bytes FROM resident_rest r JOIN resident_scan c "
        "USING(scan_id) WHERE iif(?1, scan_id = ?1, c.is_peak) AND (r.what IN ('file', 'anonymous', 'stack', "
        "'memprof') "
        "OR (r.what = 'shared' AND (SELECT count(DISTINCT process_id) FROM resident_scan) = 1)) GROUP BY r.what "
        "ORDER BY bytes DESC";
    sqlite3_stmt *s = NULL;
    struct error err;
    int64_t all = 0;
    *most = (struct resident_part){.text = ""};
    if (db_prepare(db, sql, &s, &err) == 0) {
        sqlite3_bind_int64(s, 1, scan_id);
        while (sqlite3_step(s) == SQLITE_ROW) {
            int64_t bytes = sqlite3_column_int64(s, 1);
            if (bytes < 0 || __builtin_add_overflow(all, bytes, &all))
                break; /* a damaged file */
            if (bytes > most->bytes)
                *most = (struct resident_part){bytes, resident_what_text(db_text(s, 0)),
                                               strcmp(db_text(s, 0), "anonymous") == 0};
        }
    }
    sqlite3_finalize(s);
    return all;
}

int64_t resident_peak_rss(sqlite3 *db)
{
    /* that of the coarsest level, which has some dozen rows */
    int64_t rss = db_int(db,
                         "SELECT max(rss_max_bytes) FROM timeline WHERE device_id = 0 AND level = (SELECT max(level) "
                         "FROM timeline WHERE device_id = 0)",
                         0);
    int64_t one = db_int(db, "SELECT max(peak_rss_bytes) FROM process", 0);
    rss = one > rss ? one : rss;
    return rss > 0 ? rss : 0;
}

int resident_peak_rss_is_least(sqlite3 *db)
{
    return db_int(
               db,
               "SELECT EXISTS (SELECT 1 FROM process WHERE not_recorded IS NULL AND coalesce(peak_rss_sampled, end_ns "
               "IS NULL))",
               0) != 0;
}

int resident_peak_differs(const struct resident_peak *p)
{
    return p->process_count > 0 && p->untouched_bytes > DIFFERS_BYTES &&
           p->untouched_bytes > p->live_bytes / DIFFERS_SHARE;
}

/* The kernel counts a process's pages late, by some dozens a thread. What was given back after the look hides what was
 * written after it: a look that was long before the end says nothing of the end. Of a process that was killed the peak
 * of RSS is a sample, which does not say either what was written since. */
int resident_last_is_whole(sqlite3 *db)
{
    return !db_int(db,
                   "SELECT EXISTS (SELECT 1 FROM process p JOIN (SELECT process_id, max(present_bytes) AS most, "
                   "max(time_ns) AS last_ns FROM resident_scan GROUP BY process_id) USING(process_id) "
                   "WHERE p.peak_rss_bytes > most + most / 64 + 524288 OR coalesce(p.end_ns, (SELECT value FROM meta "
                   "WHERE key = 'duration_ns')) > last_ns + (last_ns - p.start_ns) / 10 + "
                   "iif(coalesce(p.peak_rss_sampled, 1), 0, 50000000))",
                   0);
}

int64_t resident_peak_later(const struct resident_peak *p)
{
    return p->peak_rss_bytes > p->present_bytes + p->present_bytes / LATER_SHARE + SAMPLE_BYTES
               ? p->peak_rss_bytes - p->present_bytes
               : 0;
}

/* Much more. */
static int is_short(const struct resident_peak *p)
{
    return p->peak_rss_bytes > p->present_bytes / 10 * 11 + SAMPLE_BYTES;
}

int resident_peak_has_most(const struct resident_peak *p, int64_t active_bytes)
{
    return p->live_bytes >= active_bytes / 10 * 9;
}

int resident_peak_is_near(const struct resident_peak *p, int64_t active_bytes)
{
    return resident_peak_has_most(p, active_bytes) && !is_short(p);
}

static int64_t again_or(sqlite3 *db, int64_t unknown)
{
    return db_int(db,
                  "SELECT CAST(total(again_bytes) AS INTEGER) FROM resident_again JOIN resident_scan USING(scan_id) "
                  "WHERE is_peak HAVING count(*) > 0",
                  unknown);
}

int64_t resident_again_bytes(sqlite3 *db)
{
    return again_or(db, 0);
}

/* Pages that several processes of the round at the highest sum have are in that sum as often. */
void resident_again_text(sqlite3 *db, struct buf *out)
{
    static const char is_forked[] =
        "SELECT EXISTS (SELECT 1 FROM process p JOIN (SELECT time_ns, width_ns FROM timeline WHERE device_id = 0 AND "
        "level = 0 AND rss_max_bytes > 0 ORDER BY rss_max_bytes DESC LIMIT 1) t WHERE p.start_kind = 'fork' AND "
        "p.start_ns <= t.time_ns + t.width_ns AND coalesce(p.end_ns >= t.time_ns, 1))";
    char text[UNITS_TEXT];
    int64_t present = db_int(db, "SELECT CAST(total(present_bytes) AS INTEGER) FROM resident_scan WHERE is_peak", 0);
    int64_t again = again_or(db, -1);
    if (again >= 0 && again > present / AGAIN_SHARE)
        buf_printf(out, "at least %s counted again: shared by processes", units_bytes(text, again));
    else if (db_int(db, is_forked, 0))
        buf_puts(out, "what forks share is counted in each");
}

int resident_peak_rss_is_exact(sqlite3 *db)
{
    return (int)db_int(db,
                       "SELECT (SELECT count(DISTINCT first_id) FROM v_image) = 1 AND sum(peak_rss_sampled = 0) = "
                       "count(*) FROM process",
                       0);
}

void resident_peak_rss_text(sqlite3 *db, struct buf *out)
{
    char text[UNITS_TEXT];
    int64_t rss = resident_peak_rss(db), one = db_int(db, "SELECT max(peak_rss_bytes) FROM process", 0);
    int is_exact = resident_peak_rss_is_exact(db);
    struct buf again = BUF(256);
    if (rss <= 0)
        return;
    if (!is_exact && rss > one)
        resident_again_text(db, &again);
    buf_printf(out, "%s%s", !is_exact && resident_peak_rss_is_least(db) ? ">= " : "", units_bytes(text, rss));
    if (!is_exact)
        buf_printf(out, " (sampled%s%s)", again.length ? "; " : "", buf_text(&again));
    buf_free(&again);
}

void resident_peak_text(const struct resident_peak *p, struct buf *out)
{
    char text[UNITS_TEXT];
    buf_printf(out, "Resident at %s", units_ns(text, p->time_ns));
    buf_printf(out, ", the highest resident memory that was looked at: %s", units_bytes(text, p->present_bytes));
    if (p->process_count > 1)
        buf_printf(out, " of %s processes", units_count(text, p->process_count));
    if (resident_peak_later(p))
        buf_printf(out, ", of a peak RSS of %s%s", p->peak_rss_is_least ? "at least " : "",
                   units_bytes(text, p->peak_rss_bytes));
    buf_printf(out, "; %s of it was not tracked", units_bytes(text, p->untracked_bytes));
    buf_printf(out, " (took %s", units_ns(text, p->duration_ns));
    if (p->moved_count > 0)
        buf_printf(out, ", %s event%s meanwhile", units_count(text, p->moved_count), p->moved_count == 1 ? "" : "s");
    buf_printf(out, "; the last look of all was at %s, before the end)", units_ns(text, p->last_ns));
}

void resident_forget_unknown(sqlite3 *db, enum row_key by, struct rows *rows)
{
    static const char *const keys[ROW_KEY_COUNT] = {
        [ROW_LINE] = "l.line_id",   [ROW_FUNCTION] = "coalesce(l.function_id, -l.line_id)",
        [ROW_FILE] = "l.file_id",   [ROW_MODULE] = "l.module_key_id",
        [ROW_STACK] = "s.stack_id",
    };
    struct buf sql = BUF(4096);
    sqlite3_stmt *s = NULL;
    if (!keys[by])
        return;
    buf_printf(
        &sql,
        "SELECT DISTINCT coalesce(%s, 0) FROM resident_site r JOIN resident_scan c USING(scan_id) JOIN site s "
        "USING(site_id) LEFT JOIN site_line sl USING(site_id) LEFT JOIN line l USING(line_id) WHERE c.is_peak AND "
        "r.live_bytes > r.resident_bytes + r.swapped_bytes + r.untouched_bytes",
        keys[by]);
    int rc = db_prepare(db, buf_text(&sql), &s, NULL);
    while (rc == 0 && sqlite3_step(s) == SQLITE_ROW)
        for (int i = 0; i < rows->count; i++)
            if (rows->row[i].key_id == sqlite3_column_int64(s, 0) && !rows->row[i].stats.value[STAT_untouched_bytes])
                rows->row[i].stats.known &= ~(1u << STAT_untouched_bytes);
    sqlite3_finalize(s);
    buf_free(&sql);
}

const char *resident_what_text(const char *what)
{
    static const struct {
        const char *name, *text;
    } texts[] = {
        {"blocks", "live blocks"},
#define X(name, text) {#name, text},
#include "../../common/resident_rest.def"
#undef X
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (strcmp(texts[i].name, what) == 0)
            return texts[i].text;
    return what;
}
