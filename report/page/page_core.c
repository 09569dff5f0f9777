/* The page's small facts: the run, devices, totals, peaks, marks, failures, processes, counters. */
#include "page_data.h"

#include "../../common/db.h"
#include "../query/estimate.h"
#include "../query/merged.h"
#include "../query/peak_line.h"
#include "../query/program_name.h"
#include "../query/reserved.h"
#include "../query/resident.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Who held most at one: by line, as the findings and the tables have it; of a kind's peak the stack. */
static uint32_t peak_site(const struct page *page, sqlite3_stmt *s)
{
    int64_t site_id = sqlite3_column_type(s, 6) == SQLITE_NULL ? -1 : sqlite3_column_int64(s, 6);
    int64_t of_line =
        strcmp(db_text(s, 1), "all") == 0 && site_id >= 0 ? peak_line_site(page->db, sqlite3_column_int64(s, 0)) : -1;
    return site_id < 0 ? MAP_NONE : page_site(page, of_line < 0 ? site_id : of_line);
}

static int write_peaks(struct page *page, struct page_pack *pack)
{
    sqlite3_stmt *s =
        page_query(page, "SELECT device_id, kind, what, rank, time_ns, value_bytes, site_id FROM peak WHERE rank < 100 "
                         "ORDER BY device_id, kind <> 'all', what, rank LIMIT 4000");
    if (!s)
        return -EIO;
    int rc;
    pack_open(pack, "peaks", '[');
    while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
        int32_t device = page_device_index(page, sqlite3_column_int64(s, 0));
        if (device < 0)
            continue;
        uint32_t site = peak_site(page, s);
        pack_open(pack, NULL, '{');
        pack_int(pack, "device", device);
        pack_text(pack, "kind", db_text(s, 1));
        pack_text(pack, "what", db_text(s, 2));
        pack_int(pack, "rank", sqlite3_column_int64(s, 3));
        pack_int(pack, "time", sqlite3_column_int64(s, 4));
        pack_int(pack, "value", sqlite3_column_int64(s, 5));
        pack_int(pack, "line", site == MAP_NONE ? -1 : page->sites[site].line);
        pack_close(pack, '}');
    }
    pack_close(pack, ']');
    return page_query_end(page, s, rc);
}

/* The range that the page opens with, between the instants that page_instants.c stores for it. */
static void write_window(const struct page *page, struct page_pack *pack)
{
    const struct html_options *o = page->options;
    const int64_t from_ns = o->from_ns, to_ns = o->to_ns;
    if (!o->has_window)
        return;
    pack_open(pack, "open_range", '{');
    pack_int(pack, "from", from_ns > 0 ? from_ns - 1 : 0);
    pack_int(pack, "to", to_ns > page->duration_ns ? page->duration_ns : to_ns > 0 ? to_ns - 1 : 0);
    if (o->window_name)
        pack_text(pack, "name", o->window_name);
    pack_close(pack, '}');
}

static int write_devices(struct page *page, struct page_pack *pack)
{
    pack_open(pack, "devices", '[');
    for (uint32_t i = 0; i < page->device_count; i++) {
        pack_open(pack, NULL, '{');
        pack_text(pack, "name", page->devices[i].name);
        pack_int(pack, "id", page->devices[i].device_id);
        pack_int(pack, "total_bytes", page->devices[i].total_bytes);
        pack_text(pack, "reserved_mark", reserved_mark(page->db, page->devices[i].name, "all"));
        pack_close(pack, '}');
    }
    pack_close(pack, ']');
    return 0;
}

/* The highest RSS as it stands in a report, and what the sum of all processes' counts more than once; nothing where
 * that is not known of any. */
static void write_rss(struct page *page, struct page_pack *pack)
{
    struct buf peak = BUF(256), again = BUF(256);
    resident_peak_rss_text(page->db, &peak);
    resident_again_text(page->db, &again);
    if (peak.length)
        pack_text(pack, "rss_peak", buf_text(&peak));
    if (again.length)
        pack_text(pack, "rss_again", buf_text(&again));
    buf_free(&peak);
    buf_free(&again);
}

/* What was not tracked at the last look, where there was one process and that look speaks for its end. */
static void write_last_untracked(struct page *page, struct page_pack *pack)
{
    static const char sql[] =
        "SELECT max(scan_id), max(time_ns), max(present_bytes) FROM resident_scan WHERE is_last HAVING count(*) = 1 "
        "AND (SELECT count(*) FROM process WHERE not_recorded IS NULL AND end_kind IS NOT 'exec') "
        "= 1";
    struct resident_part most;
    sqlite3_stmt *s = resident_last_is_whole(page->db) ? page_query(page, sql) : NULL;
    if (s && sqlite3_step(s) == SQLITE_ROW) {
        pack_int(pack, "last_untracked", resident_untracked(page->db, sqlite3_column_int64(s, 0), &most));
        pack_int(pack, "last_untracked_ns", sqlite3_column_int64(s, 1));
        pack_int(pack, "last_present", sqlite3_column_int64(s, 2));
    }
    sqlite3_finalize(s);
}

/* What present pages held at the highest resident memory that was looked at; nothing where none were. */
static int write_resident(struct page *page, struct page_pack *pack)
{
    struct resident_peak peak;
    int rc = resident_peak_load(page->db, &peak, page->err);
    if (rc || !peak.process_count)
        return rc;
    pack_open(pack, "resident", '{');
    pack_int(pack, "time", peak.time_ns);
    pack_int(pack, "took", peak.duration_ns);
    pack_int(pack, "last", peak.last_ns);
    pack_int(pack, "processes", peak.process_count);
    pack_int(pack, "moved", peak.moved_count);
    pack_int(pack, "present", peak.present_bytes);
    pack_int(pack, "shared", peak.shared_bytes);
    pack_int(pack, "huge", peak.huge_bytes);
    pack_int(pack, "swapped", peak.swapped_bytes);
    pack_int(pack, "untouched", peak.untouched_bytes);
    pack_int(pack, "untracked", peak.untracked_bytes);
    write_last_untracked(page, pack);
    pack_int(pack, "peak_rss", peak.peak_rss_bytes);
    pack_int(pack, "is_short", resident_peak_later(&peak) > 0);
    pack_int(pack, "differs", resident_peak_differs(&peak));
    pack_int(pack, "is_near",
             resident_peak_is_near(
                 &peak, db_int(page->db, "SELECT peak_active_bytes FROM total WHERE device_id = 0 AND kind = 'all'",
                               INT64_MAX)));
    pack_open(pack, "rows", '[');
    sqlite3_stmt *s = page_query(page, "SELECT what, resident_bytes FROM v_resident ORDER BY what != 'blocks', "
                                       "resident_bytes DESC LIMIT 100");
    if (!s)
        return -EIO;
    while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
        pack_open(pack, NULL, '{');
        pack_text(pack, "what", db_text(s, 0));
        pack_text(pack, "text", resident_what_text(db_text(s, 0)));
        pack_int(pack, "bytes", sqlite3_column_int64(s, 1));
        pack_close(pack, '}');
    }
    pack_close(pack, ']');
    pack_close(pack, '}');
    return page_query_end(page, s, rc);
}

static void write_limits(struct page *page, struct page_pack *pack)
{
    pack_open(pack, "folded", '{');
    pack_int(pack, "sites", page->db_site_count);
    pack_int(pack, "folded_sites", page->folded_site_count);
    pack_int(pack, "folded_lines", page->folded_line_count);
    pack_int(pack, "damaged_chunks", page->damaged_chunks);
    pack_int(pack, "events_kept", page->events_kept);
    pack_int(pack, "net_only", page->net_only);
    pack_int(pack, "blocks_max", PAGE_BLOCKS_MAX);
    pack_int(pack, "marks_max", PAGE_MARKS_MAX);
    pack_int(pack, "marks", db_int(page->db, "SELECT count(*) FROM mark", 0));
    pack_int(pack, "rows_max", PAGE_ROWS_MAX);
    pack_int(pack, "processes", db_int(page->db, "SELECT count(*) FROM process", 0));
    pack_int(pack, "threads", db_int(page->db, "SELECT count(*) FROM thread", 0));
    pack_close(pack, '}');
}

int page_write_core(struct page *page, struct page_pack *pack)
{
    static const struct {
        const char *key, *sql;
        int limit;
    } rows[] = {
        {"totals",
         "SELECT device, kind, alloc_count, free_count, alloc_bytes, free_bytes, temporary_count, temporary_bytes, "
         "peak_active_bytes, peak_active_ns, peak_active_count, peak_reserved_bytes, peak_reserved_ns, "
         "end_active_bytes, "
         "end_count, realloc_count, lifetime_ns FROM v_total ORDER BY device, kind <> 'all', kind",
         1000},
        {"marks",
         "SELECT m.name, start_ns, end_ns, is_range, d.name AS device FROM mark m LEFT JOIN device d USING(device_id) "
         "ORDER BY coalesce(end_ns, start_ns) - start_ns DESC, start_ns",
         PAGE_MARKS_MAX},
        {"processes",
         "SELECT process_id, pid, parent_id, start_kind, exe, command_line, start_ns, end_ns, end_kind, exit_status, "
         "exit_signal, not_recorded, " PROGRAM_TITLE("p.process_id") " AS title FROM process p ORDER BY process_id",
         PAGE_ROWS_MAX},
        {"threads",
         "SELECT t.thread_id, t.process_id, t.tid, t.name, t.start_ns, t.end_ns FROM thread t ORDER BY t.thread_id",
         PAGE_ROWS_MAX},
        {"thread_totals",
         "SELECT thread_id, device, kind, alloc_count, alloc_bytes, free_count, temporary_count, at_peak_bytes, "
         "end_bytes, "
         "end_count FROM v_thread ORDER BY alloc_bytes DESC",
         PAGE_ROWS_MAX},
        {"counters",
         "SELECT name, CAST(total(value) AS INTEGER) AS value, max(text) AS text, count(process_id) AS processes "
         "FROM counter WHERE value <> 0 GROUP BY name ORDER BY name",
         PAGE_ROWS_MAX},
        {"sizes",
         "SELECT d.name AS device, kind, log2_size, alloc_count, alloc_bytes, free_count, temporary_count FROM "
         "size_class JOIN device d "
         "USING(device_id) ORDER BY device, kind, log2_size",
         2000},
    };
    pack_open(pack, NULL, '{');
    pack_int(pack, "duration_ns", page->duration_ns);
    pack_int(pack, "begin_ns", page->begin_ns);
    pack_int(pack, "open_device", page->open_device);
    write_window(page, pack);
    pack_int(pack, "is_import", db_int(page->db, "SELECT count(*) FROM meta WHERE key = 'imported_from'", 0));
    pack_int(pack, "is_profile", merged_is_profile(page->db));
    pack_int(pack, "merged", merged_count(page->db));
    pack_int(pack, "sample_bytes", estimate_mean_bytes(page->db));
    pack_int(pack, "least_bytes", db_meta_int(page->db, "least_bytes", 0));
    pack_int(pack, "start_unix_us", page->start_unix_ns / 1000);
    write_devices(page, pack);
    write_limits(page, pack);
    write_rss(page, pack);
    int rc = write_peaks(page, pack);
    if (!rc)
        rc = write_resident(page, pack);
    if (!rc)
        rc = page_write_failures(page, pack);
    for (unsigned i = 0; i < sizeof rows / sizeof *rows && !rc; i++)
        rc = pack_query(page, pack, rows[i].key, rows[i].sql, rows[i].limit);
    pack_close(pack, '}');
    return rc;
}
