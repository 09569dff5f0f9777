#include "arenas.h"

#include "../../common/db.h"
#include "../print/listing.h"
#include "../query/device.h"
#include "../query/rows.h"

#include <stdlib.h>

enum { DEFAULT_TOP = 20 };

/* One row a line; those of lines that nobody knows together. At an instant those of a process that had ended are gone;
 * without one each process's at its own end count. */
int arenas_print(sqlite3 *db, const struct report_options *options, const struct report_out *out,
                 const struct instant *at, struct error *err)
{
    static const struct column columns[] = {
        COLUMN(NULL, "size", BYTES),
        COLUMN(NULL, "arenas", COUNT),
        COLUMN(NULL, "device", TEXT, .flags = COLUMN_OPTIONAL),
        COLUMN(NULL, "taken by", TEXT, .cut = TEXT_CUT_NAME, .none = "??"),
        COLUMN(NULL, "source", SOURCE, .cut = TEXT_CUT_LEFT),
        COLUMN(NULL, NULL, NUMBER),
    };
    sqlite3_stmt *s = NULL;
    int64_t top = options->top < 0 ? DEFAULT_TOP : options->top;
    int rc = db_prepare(
        db,
        "SELECT sum(g.size_bytes) AS bytes, count(*), d.name, " ROW_FUNCTION_SQL ", p.path, l.line,"
        " count(*) OVER () FROM segment g"
        " JOIN device d USING(device_id) LEFT JOIN site s ON s.stack_id = g.stack_id AND s.device_id ="
        " g.device_id AND s.kind = g.kind LEFT JOIN site_line sl ON sl.site_id = s.site_id LEFT JOIN"
        " line l ON l.line_id = sl.line_id LEFT JOIN function fn ON fn.function_id = l.function_id"
        " LEFT JOIN file p ON p.file_id = l.file_id LEFT JOIN module_key m ON m.key_id ="
        " l.module_key_id LEFT JOIN main.process pr ON"
        " pr.process_id = g.process_id LEFT JOIN teardown t ON t.process_id = g.process_id AND ?5"
        " WHERE g.kind = 'arena' AND " DEVICE_IS(
            "d.name", "?1") " AND g.alloc_ns <= coalesce(t.time_ns,"
                            " ?2) AND (g.free_ns > coalesce(t.time_ns, ?2) OR (g.free_ns IS NULL AND (NOT ?3 OR"
                            " pr.end_ns IS NULL OR pr.end_ns >= ?2)))"
                            " GROUP BY g.device_id, l.line_id ORDER BY bytes DESC, p.path, l.line LIMIT ?4",
        &s, err);
    if (rc)
        return rc;
    sqlite3_bind_text(s, 1, options->device, -1, SQLITE_STATIC);
    sqlite3_bind_int64(s, 2, at->end_ns[0]);
    sqlite3_bind_int(s, 3, at->end_ns[0] < INT64_MAX);
    sqlite3_bind_int(s, 5, at->is_before_teardown);
    sqlite3_bind_int64(s, 4, top > 0 ? top : -1);
    char *cwd = db_meta_text(db, "cwd");
    struct listing *l = listing_open(columns, COLUMN_COUNT_OF(columns), out, cwd);
    int64_t all;
    rc = listing_statement(l, s, &all, err);
    if (listing_print_under(l, "Python's arenas, by the line that made it take one more", all))
        table_prose(out, TABLE_PLAIN,
                    "Small objects are inside them, which are not seen one by one; 'memprof run --python-allocators' "
                    "counts each.");
    listing_close(l);
    free(cwd);
    sqlite3_finalize(s);
    return rc;
}
