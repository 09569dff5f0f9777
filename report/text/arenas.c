#include "arenas.h"

#include "../../common/db.h"
#include "../../common/text.h"
#include "../print/table.h"

#include <stdlib.h>

enum { DEFAULT_TOP = 20 };

/* One row a line; those of lines that nobody knows together. At an instant those of a process that had ended are gone;
 * without one each process's at its own end count. */
static int prepare(sqlite3 *db, const char *device, int64_t at_ns, sqlite3_stmt **s, struct error *err)
{
    int rc = db_prepare(db,
                        "SELECT sum(g.size_bytes) AS bytes, count(*), d.name, fn.name, p.path, l.line FROM segment g"
                        " JOIN device d USING(device_id) LEFT JOIN site s ON s.stack_id = g.stack_id AND s.device_id ="
                        " g.device_id AND s.kind = g.kind LEFT JOIN site_line sl ON sl.site_id = s.site_id LEFT JOIN"
                        " line l ON l.line_id = sl.line_id LEFT JOIN function fn ON fn.function_id = l.function_id"
                        " LEFT JOIN file p ON p.file_id = l.file_id LEFT JOIN main.process pr ON"
                        " pr.process_id = g.process_id WHERE g.kind = 'arena' AND (?1 IS NULL OR d.name ="
                        " ?1) AND g.alloc_ns <= ?2 AND (g.free_ns > ?2 OR (g.free_ns IS NULL AND (NOT ?3 OR"
                        " pr.end_ns IS NULL OR pr.end_ns >= ?2)))"
                        " GROUP BY g.device_id, l.line_id ORDER BY bytes DESC, p.path, l.line",
                        s, err);
    if (rc == 0) {
        sqlite3_bind_text(*s, 1, device, -1, SQLITE_STATIC);
        sqlite3_bind_int64(*s, 2, at_ns);
        sqlite3_bind_int(*s, 3, at_ns < INT64_MAX);
    }
    return rc;
}

static void add_row(struct table *t, sqlite3_stmt *s, const char *cwd)
{
    struct buf source = BUF(1 << 16);
    table_bytes(t, sqlite3_column_int64(s, 0));
    table_count(t, sqlite3_column_int64(s, 1));
    table_text(t, db_text(s, 2));
    table_text(t, sqlite3_column_type(s, 3) == SQLITE_NULL ? "??" : db_text(s, 3));
    if (sqlite3_column_type(s, 4) != SQLITE_NULL && sqlite3_column_int64(s, 5) > 0)
        buf_printf(&source, "%s:%lld", text_relative(db_text(s, 4), cwd), (long long)sqlite3_column_int64(s, 5));
    table_text(t, source.length ? source.data : "");
    buf_free(&source);
}

int arenas_print(sqlite3 *db, const struct report_options *options, const struct report_out *out, int64_t at_ns,
                 struct error *err)
{
    static const struct table_column columns[] = {{"size", TABLE_RIGHT, 0, 0},
                                                  {"arenas", TABLE_RIGHT, 0, 0},
                                                  {"device", TABLE_LEFT, 0, 1},
                                                  {"taken by", TABLE_LEFT, TEXT_CUT_NAME, 0},
                                                  {"source", TABLE_LEFT, TEXT_CUT_LEFT, 0}};
    sqlite3_stmt *s = NULL;
    int64_t top = options->top < 0 ? DEFAULT_TOP : options->top ? options->top : INT64_MAX, shown = 0, all = 0;
    int rc = prepare(db, options->device, at_ns, &s, err);
    if (rc)
        return rc;
    struct table *t = table_open(columns, sizeof columns / sizeof *columns);
    char *cwd = db_meta_text(db, "cwd");
    for (; sqlite3_step(s) == SQLITE_ROW; all++)
        if (shown < top) {
            add_row(t, s, cwd);
            shown++;
        }
    sqlite3_finalize(s);
    if (all) {
        report_heading(out, "Python's arenas, by the line that made it take one more", shown, all);
        table_print(t, out);
        table_line(out, TABLE_PLAIN,
                   "Small objects are inside them, which are not seen one by one; 'memprof run --python-allocators' "
                   "counts each.");
    }
    table_close(t);
    free(cwd);
    return 0;
}
