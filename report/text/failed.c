#include "failed.h"

#include "../../common/db.h"
#include "../../common/units.h"
#include "../findings/failure.h"
#include "../print/command.h"
#include "../print/listing.h"
#include "../query/device.h"

#include <string.h>

enum { SHOWN = 10, RECORDED = 1000 };

#define FROM                                                                                                           \
    " FROM v_oom v LEFT JOIN main.process p ON p.process_id = v.process_id WHERE " DEVICE_IS(                          \
        "v.device", "?1") ""                                                                                           \
                          " AND (?2 IS NULL OR v.kind = ?2 OR ?2 = 'all') AND (?3 = 0 OR p.pid = ?3)"                  \
                          " AND v.time_ns >= ?6 AND v.time_ns < ?7"

static int prepare(sqlite3 *db, const struct report_options *o, const char *sql, sqlite3_stmt **s, struct error *err)
{
    int rc = db_prepare(db, sql, s, err);
    if (rc)
        return rc;
    sqlite3_bind_text(*s, 1, o->device, -1, SQLITE_STATIC);
    sqlite3_bind_text(*s, 2, o->kind, -1, SQLITE_STATIC);
    const struct lens_window *w = report_window(o);
    sqlite3_bind_int64(*s, 3, o->lens ? o->lens->pid : 0);
    sqlite3_bind_int64(*s, 6, w ? w->ranges[0].from_ns : INT64_MIN);
    sqlite3_bind_int64(*s, 7, w ? w->ranges[w->count - 1].to_ns : INT64_MAX);
    return 0;
}

/* Those that a program made good: a probe, another try; and sizes that no machine has. */
static void print_handled(sqlite3 *db, const struct report_options *o, const struct report_out *out)
{
    static const char sql[] = "SELECT " FAILURE_HANDLED FROM " AND v.is_handled GROUP BY v.is_impossible ORDER BY 1";
    struct error err;
    sqlite3_stmt *s = NULL;
    int is_first = 1;
    if (prepare(db, o, sql, &s, &err))
        return;
    for (; sqlite3_step(s) == SQLITE_ROW; is_first = 0) {
        struct buf text = BUF(1 << 16);
        failure_handled(db, s, &text);
        if (is_first)
            fputc('\n', out->file);
        table_prose(out, TABLE_DIM, buf_text(&text));
        buf_free(&text);
    }
    sqlite3_finalize(s);
}

/* No number above has them. */
static void print_unlisted(sqlite3 *db, const struct report_out *out)
{
    struct buf text = BUF(1 << 10);
    failure_unlisted(db, &text);
    if (text.length)
        table_prose(out, TABLE_DIM, text.data);
    buf_free(&text);
}

int failed_list(sqlite3 *db, const struct report_options *o, const char *cwd, struct record *document,
                struct error *err)
{
    static const struct column columns[] = {
        COLUMN("time_ns", "at", NS, .place = 2),
        COLUMN("size_bytes", "asked for", BYTES, .place = 1),
        COLUMN("active_bytes", "active", BYTES, .place = 3, .none = "-"),
        COLUMN("device_free_bytes", "device\nfree", BYTES, .place = 4, .none = "-"),
        COLUMN("device_total_bytes", "device\ntotal", BYTES, .place = 5, .none = "-", .flags = COLUMN_OPTIONAL),
        COLUMN("device", "device", TEXT, .place = 6),
        COLUMN("kind", "kind", TEXT, .place = 7, .flags = COLUMN_OPTIONAL),
        COLUMN("function", "function", TEXT, .place = 8, .cut = TEXT_CUT_NAME),
        COLUMN("file", "source", SOURCE, .place = 9, .cut = TEXT_CUT_LEFT),
        COLUMN("line", NULL, NUMBER),
        COLUMN("is_handled", NULL, NUMBER),
        COLUMN("is_impossible", NULL, NUMBER),
    };
    const struct report_out *out = document->out;
    sqlite3_stmt *s = NULL;
    if (out->format == REPORT_CSV)
        return 0;
    int rc = prepare(db, o,
                     "SELECT v.time_ns, v.size_bytes, v.active_bytes, v.device_free_bytes, v.device_total_bytes, "
                     "v.device, v.kind, v.function, v.file, v.line, v.is_handled, v.is_impossible, "
                     "count(*) OVER ()" FROM " AND (?5 OR NOT v.is_handled) ORDER BY v.oom_id LIMIT ?4",
                     &s, err);
    if (rc)
        return rc;
    sqlite3_bind_int64(s, 4, out->format == REPORT_TEXT ? SHOWN : RECORDED);
    sqlite3_bind_int(s, 5, out->format != REPORT_TEXT);
    struct listing *l = listing_open_in(document, "failed_allocations", columns, COLUMN_COUNT_OF(columns), cwd);
    int64_t all = 0, first_ns = 0;
    for (; db_next(s, &rc, err); all = sqlite3_column_int64(s, 12)) {
        first_ns = all ? first_ns : sqlite3_column_int64(s, 0);
        listing_row(l, s);
    }
    if (listing_print_under(l, "Allocations that failed", all)) {
        struct buf text = BUF(1 << 16);
        buf_puts(&text, "What was live at the first of them: memprof report");
        command_add_file(&text, o->file);
        buf_printf(&text, " --at %lldns", (long long)first_ns);
        table_line(out, TABLE_DIM, text.data);
        buf_free(&text);
    }
    listing_close(l);
    sqlite3_finalize(s);
    if (out->format == REPORT_TEXT) {
        print_handled(db, o, out);
        print_unlisted(db, out);
    }
    return rc;
}
