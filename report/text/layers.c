#include "layers.h"

#include "../../common/db.h"
#include "../print/table.h"

#include <string.h>

static int prepare(sqlite3 *db, const char *device, sqlite3_stmt **s, struct error *err)
{
    int rc = db_prepare(db,
                        "SELECT v.device, v.instant, v.time_ns, v.allocated_bytes, v.active_bytes, v.reserved_bytes,"
                        " v.used_bytes, v.untracked_bytes, v.free_bytes, v.total_bytes FROM v_layer v JOIN device d"
                        " ON d.name = v.device WHERE ?1 IS NULL OR v.device = ?1"
                        " ORDER BY d.device_id, v.instant != 'most used'",
                        s, err);
    if (rc == 0)
        sqlite3_bind_text(*s, 1, device, -1, SQLITE_STATIC);
    return rc;
}

int layers_print(sqlite3 *db, const char *device, const struct report_out *out, struct error *err)
{
    static const struct table_column columns[] = {{"device", TABLE_LEFT, 0, 0},  {"", TABLE_LEFT, 0, 0},
                                                  {"at", TABLE_RIGHT, 0, 1},     {"allocated", TABLE_RIGHT, 0, 1},
                                                  {"active", TABLE_RIGHT, 0, 0}, {"reserved", TABLE_RIGHT, 0, 0},
                                                  {"used", TABLE_RIGHT, 0, 0},   {"not tracked", TABLE_RIGHT, 0, 0},
                                                  {"free", TABLE_RIGHT, 0, 0},   {"total", TABLE_RIGHT, 0, 1}};
    sqlite3_stmt *s = NULL;
    int rc = prepare(db, device, &s, err);
    if (rc)
        return rc;
    struct table *t = table_open(columns, sizeof columns / sizeof *columns);
    int64_t before_ns = -1;
    while (sqlite3_step(s) == SQLITE_ROW) {
        int64_t time_ns = sqlite3_column_int64(s, 2);
        if (strcmp(db_text(s, 1), "last") == 0 && time_ns == before_ns)
            continue;
        before_ns = time_ns;
        table_text(t, db_text(s, 0));
        table_text(t, db_text(s, 1));
        table_ns(t, time_ns);
        for (int c = 3; c < 10; c++)
            table_bytes(t, sqlite3_column_int64(s, c));
    }
    if (table_rows(t)) {
        fputc('\n', out->file);
        table_line(out, TABLE_STRONG, "Layers of the devices' memory, with what their driver says is used");
        table_print(t, out);
    }
    table_close(t);
    sqlite3_finalize(s);
    return 0;
}

int layers_record(sqlite3 *db, const char *device, const struct report_out *out, struct record *r, struct error *err)
{
    sqlite3_stmt *s = NULL;
    int rc = out->format == REPORT_JSON ? prepare(db, device, &s, err) : 0;
    if (rc || !s)
        return rc;
    record_array_begin(r, "layers");
    while (sqlite3_step(s) == SQLITE_ROW) {
        record_begin(r);
        for (int c = 0; c < sqlite3_column_count(s); c++)
            if (c < 2)
                record_text(r, sqlite3_column_name(s, c), db_text(s, c));
            else
                record_int(r, sqlite3_column_name(s, c), sqlite3_column_int64(s, c));
        record_end(r);
    }
    record_array_end(r);
    sqlite3_finalize(s);
    return 0;
}
