/* Copies and fills by line, device and direction. */
#include "report.h"

#include "../../common/db.h"
#include "../../common/text.h"
#include "../../common/units.h"
#include "../print/record.h"
#include "../print/table.h"

#include <stdlib.h>

enum { DEFAULT_TOP = 20 };

static int prepare(sqlite3 *db, const struct report_options *o, int64_t top, sqlite3_stmt **s, struct error *err)
{
    int rc = db_prepare(db,
                        "SELECT device, direction, sum(transfer_count) AS transfer_count, sum(transfer_bytes) AS "
                        "transfer_bytes, function, file, line, count(*) OVER () FROM v_transfer"
                        " WHERE ?1 IS NULL OR device = ?1 GROUP BY device, direction, function, file, line"
                        " ORDER BY 4 DESC, 3 DESC, function, line LIMIT ?2",
                        s, err);
    if (rc == 0) {
        sqlite3_bind_text(*s, 1, o->device, -1, SQLITE_STATIC);
        sqlite3_bind_int64(*s, 2, top > 0 ? top : -1);
    }
    return rc;
}

static int print_directions(sqlite3 *db, const struct report_options *o, const struct report_out *out,
                            struct error *err)
{
    static const struct table_column columns[] = {{"device", TABLE_LEFT, 0, 0},
                                                  {"direction", TABLE_LEFT, 0, 0},
                                                  {"bytes", TABLE_RIGHT, 0, 0},
                                                  {"calls", TABLE_RIGHT, 0, 0},
                                                  {"bytes\na call", TABLE_RIGHT, 0, 1}};
    sqlite3_stmt *s = NULL;
    int rc = db_prepare(db,
                        "SELECT d.name, direction, sum(transfer_bytes), sum(transfer_count) FROM transfer JOIN device d"
                        " USING(device_id) WHERE ?1 IS NULL OR d.name = ?1 GROUP BY device_id, direction"
                        " ORDER BY device_id, 3 DESC",
                        &s, err);
    if (rc)
        return rc;
    sqlite3_bind_text(s, 1, o->device, -1, SQLITE_STATIC);
    struct table *t = table_open(columns, 5);
    while (sqlite3_step(s) == SQLITE_ROW) {
        int64_t bytes = sqlite3_column_int64(s, 2), count = sqlite3_column_int64(s, 3);
        table_text(t, db_text(s, 0));
        table_text(t, db_text(s, 1));
        table_bytes(t, bytes);
        table_count(t, count);
        table_bytes(t, count > 0 ? bytes / count : 0);
    }
    if (table_rows(t))
        table_print(t, out);
    else
        table_line(out, TABLE_PLAIN, "No copies or fills of a device's memory were recorded.");
    table_close(t);
    sqlite3_finalize(s);
    return 0;
}

static void source_text(sqlite3_stmt *s, const char *cwd, struct buf *text)
{
    buf_reset(text);
    if (sqlite3_column_type(s, 5) != SQLITE_NULL)
        buf_printf(text, "%s:%lld", text_relative(db_text(s, 5), cwd), (long long)sqlite3_column_int64(s, 6));
    else
        buf_puts(text, "");
}

static int print_lines(sqlite3 *db, const struct report_options *o, const struct report_out *out, struct error *err)
{
    static const struct table_column columns[] = {{"bytes", TABLE_RIGHT, 0, 0},
                                                  {"calls", TABLE_RIGHT, 0, 0},
                                                  {"direction", TABLE_LEFT, 0, 0},
                                                  {"device", TABLE_LEFT, 0, 0},
                                                  {"function", TABLE_LEFT, TEXT_CUT_NAME, 0},
                                                  {"source", TABLE_LEFT, TEXT_CUT_LEFT, 0}};
    sqlite3_stmt *s = NULL;
    int rc = prepare(db, o, o->top < 0 ? DEFAULT_TOP : o->top, &s, err);
    if (rc)
        return rc;
    char *cwd = db_meta_text(db, "cwd");
    struct buf text = BUF(1 << 16);
    struct table *t = table_open(columns, 6);
    int64_t all = 0;
    while (sqlite3_step(s) == SQLITE_ROW) {
        table_bytes(t, sqlite3_column_int64(s, 3));
        table_count(t, sqlite3_column_int64(s, 2));
        table_text(t, db_text(s, 1));
        table_text(t, db_text(s, 0));
        table_text(t, db_text(s, 4));
        source_text(s, cwd, &text);
        table_text(t, buf_text(&text));
        all = sqlite3_column_int64(s, 7);
    }
    if (table_rows(t)) {
        report_heading(out, "Copies and fills, by line", table_rows(t), all);
        table_print(t, out);
    }
    table_close(t);
    buf_free(&text);
    free(cwd);
    sqlite3_finalize(s);
    return 0;
}

static int record_lines(sqlite3 *db, const struct report_options *o, const struct report_out *out, struct error *err)
{
    sqlite3_stmt *s = NULL;
    struct record r;
    int rc = prepare(db, o, o->top < 0 ? 0 : o->top, &s, err);
    if (rc)
        return rc;
    record_open(&r, out);
    record_array_begin(&r, NULL);
    while (sqlite3_step(s) == SQLITE_ROW || record_wants_heading(&r)) {
        record_begin(&r);
        record_text(&r, "device", db_text(s, 0));
        record_text(&r, "direction", db_text(s, 1));
        record_int(&r, "transfer_count", sqlite3_column_int64(s, 2));
        record_int(&r, "transfer_bytes", sqlite3_column_int64(s, 3));
        record_text(&r, "function", db_text(s, 4));
        record_text(&r, "file", sqlite3_column_type(s, 5) == SQLITE_NULL ? NULL : db_text(s, 5));
        if (sqlite3_column_type(s, 6) == SQLITE_NULL)
            record_null(&r, "line");
        else
            record_int(&r, "line", sqlite3_column_int64(s, 6));
        record_end(&r);
    }
    record_array_end(&r);
    record_close(&r);
    sqlite3_finalize(s);
    return 0;
}

int report_transfers(sqlite3 *db, const struct report_options *o, const struct report_out *out, struct error *err)
{
    int rc = report_check_names(db, o->device, NULL, err);
    if (rc == 0 && out->format != REPORT_TEXT)
        return record_lines(db, o, out, err);
    if (rc == 0)
        rc = print_directions(db, o, out, err);
    if (rc == 0)
        rc = print_lines(db, o, out, err);
    return rc;
}
