#include "failed.h"

#include "../../common/db.h"
#include "../../common/text.h"
#include "../../common/units.h"
#include "../print/table.h"

#include <string.h>

enum { SHOWN = 10, RECORDED = 1000 };

static int prepare(sqlite3 *db, const struct report_options *o, sqlite3_stmt **s, struct error *err)
{
    int rc = db_prepare(
        db,
        "SELECT v.time_ns, v.size_bytes, v.active_bytes, v.device_free_bytes, v.device_total_bytes, v.device,"
        " v.kind, v.function, v.file, v.line, count(*) OVER () FROM v_oom v LEFT JOIN main.process p"
        " ON p.process_id = v.process_id WHERE (?1 IS NULL OR v.device = ?1) AND (?2 IS NULL OR v.kind = ?2"
        " OR ?2 = 'all') AND (?3 = 0 OR p.pid = ?3) ORDER BY v.oom_id",
        s, err);
    if (rc == 0) {
        sqlite3_bind_text(*s, 1, o->device, -1, SQLITE_STATIC);
        sqlite3_bind_text(*s, 2, o->kind, -1, SQLITE_STATIC);
        sqlite3_bind_int64(*s, 3, o->lens ? o->lens->pid : 0);
    }
    return rc;
}

static void bytes_or_dash(struct table *t, sqlite3_stmt *s, int column)
{
    if (sqlite3_column_type(s, column) == SQLITE_NULL)
        table_text(t, "-");
    else
        table_bytes(t, sqlite3_column_int64(s, column));
}

int failed_print(sqlite3 *db, const struct report_options *options, const char *cwd, const struct report_out *out,
                 struct error *err)
{
    static const struct table_column columns[] = {{"asked for", TABLE_RIGHT, 0, 0},
                                                  {"at", TABLE_RIGHT, 0, 0},
                                                  {"active", TABLE_RIGHT, 0, 0},
                                                  {"device\nfree", TABLE_RIGHT, 0, 0},
                                                  {"device\ntotal", TABLE_RIGHT, 0, 1},
                                                  {"device", TABLE_LEFT, 0, 0},
                                                  {"kind", TABLE_LEFT, 0, 1},
                                                  {"function", TABLE_LEFT, TEXT_CUT_NAME, 0},
                                                  {"source", TABLE_LEFT, TEXT_CUT_LEFT, 0}};
    sqlite3_stmt *s = NULL;
    int rc = prepare(db, options, &s, err);
    if (rc)
        return rc;
    struct table *t = table_open(columns, sizeof columns / sizeof *columns);
    struct buf text = BUF(1 << 16);
    int64_t all = 0, first_ns = 0;
    for (int i = 0; i < SHOWN && sqlite3_step(s) == SQLITE_ROW; i++) {
        all = sqlite3_column_int64(s, 10);
        first_ns = i ? first_ns : sqlite3_column_int64(s, 0);
        table_bytes(t, sqlite3_column_int64(s, 1));
        table_ns(t, sqlite3_column_int64(s, 0));
        for (int c = 2; c < 5; c++)
            bytes_or_dash(t, s, c);
        for (int c = 5; c < 8; c++)
            table_text(t, db_text(s, c));
        buf_reset(&text);
        if (sqlite3_column_type(s, 8) != SQLITE_NULL)
            buf_printf(&text, "%s:%lld", text_relative(db_text(s, 8), cwd), (long long)sqlite3_column_int64(s, 9));
        table_text(t, text.length ? text.data : "");
    }
    if (table_rows(t)) {
        report_heading(out, "Allocations that failed", table_rows(t), all);
        table_print(t, out);
        buf_reset(&text);
        buf_puts(&text, "What was live at the first of them: memprof report ");
        if (options->file && strcmp(options->file, "out.db") != 0) {
            buf_shell(&text, options->file);
            buf_putc(&text, ' ');
        }
        buf_printf(&text, "--at %lldns", (long long)first_ns);
        table_line(out, TABLE_DIM, text.data);
    }
    table_close(t);
    buf_free(&text);
    sqlite3_finalize(s);
    return 0;
}

int failed_record(sqlite3 *db, const struct report_options *options, const struct report_out *out, struct record *r,
                  struct error *err)
{
    static const char *const keys[] = {
        "time_ns",  "size_bytes", "active_bytes", "device_free_bytes", "device_total_bytes", "device", "kind",
        "function", "file",       "line"};
    sqlite3_stmt *s = NULL;
    int rc = out->format == REPORT_JSON ? prepare(db, options, &s, err) : 0;
    if (rc || !s)
        return rc;
    record_array_begin(r, "failed_allocations");
    for (int i = 0; i < RECORDED && sqlite3_step(s) == SQLITE_ROW; i++) {
        record_begin(r);
        for (int c = 0; c < 10; c++)
            if (sqlite3_column_type(s, c) == SQLITE_NULL)
                record_null(r, keys[c]);
            else if (c >= 5 && c < 9)
                record_text(r, keys[c], db_text(s, c));
            else
                record_int(r, keys[c], sqlite3_column_int64(s, c));
        record_end(r);
    }
    record_array_end(r);
    sqlite3_finalize(s);
    return 0;
}
