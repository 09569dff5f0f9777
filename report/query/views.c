#include "views.h"

#include "../../common/buf.h"
#include "../../common/db.h"
#include "../../common/packed.h"

#include <errno.h>
#include <string.h>

extern const char common_schema_sql[];

/* Tables that files of older versions of the same schema lack. They are empty there. */
static const char *const later[] = {
    "oom_had",           "heap_range",      "teardown",      "site_teardown", "site_kept",        "snapshot_entry",
    "snapshot_unfiled",  "resident_scan",   "resident_site", "resident_rest", "resident_account", "resident_fork",
    "resident_again",    "packed",          "block_touch",   "site_touch",    "upload_again",     "recording",
    "recording_process", "recording_total", "common_peak",   "block_name",    "chunk_sum"};

static int add_later(sqlite3 *db, const char *name, const char *definition, struct error *err)
{
    static const char head[] = "CREATE TABLE ";
    int rc = 0;
    for (size_t i = 0; i < sizeof later / sizeof *later; i++) {
        if (strcmp(name, later[i]) != 0)
            continue;
        struct buf sql = BUF(1 << 16);
        buf_printf(&sql, "CREATE TEMP TABLE %s", definition + sizeof head - 1);
        rc = db_exec(db, sql.data, err);
        buf_free(&sql);
    }
    return rc;
}

/* One that is missing is an error when asked, unless it is a later one. */
static int check_table(sqlite3 *db, const char *name, const char *definition, struct error *err)
{
    sqlite3_stmt *s = NULL;
    int rc = db_prepare(db, "SELECT 1 FROM main.sqlite_schema WHERE name = ?", &s, err);
    if (rc == 0) {
        sqlite3_bind_text(s, 1, name, -1, SQLITE_STATIC);
        int step = sqlite3_step(s);
        if (step == SQLITE_DONE)
            rc = add_later(db, name, definition, err);
        else if (step != SQLITE_ROW)
            rc = db_error(db, err);
    }
    sqlite3_finalize(s);
    return rc;
}

static int add_view(sqlite3 *db, const char *definition, struct error *err)
{
    static const char head[] = "CREATE VIEW ";
    struct buf sql = BUF(1 << 16);
    if (strncmp(definition, head, sizeof head - 1) != 0)
        bug("schema.sql has a view that begins otherwise: %.40s", definition);
    buf_printf(&sql, "CREATE TEMP VIEW %s", definition + sizeof head - 1);
    int rc = db_exec(db, sql.data, err);
    buf_free(&sql);
    return rc;
}

int views_own(sqlite3 *db, struct error *err)
{
    sqlite3 *schema = NULL;
    sqlite3_stmt *s = NULL;
    int rc = 0;
    if (sqlite3_open(":memory:", &schema) != SQLITE_OK)
        rc = db_error(schema, err);
    if (rc == 0)
        rc = db_exec(db, "PRAGMA temp_store = MEMORY", err);
    if (rc == 0)
        rc = db_exec(schema, common_schema_sql, err);
    if (rc == 0)
        rc = db_prepare(schema, "SELECT type, name, sql FROM sqlite_schema WHERE type IN ('table', 'view')", &s, err);
    while (rc == 0 && sqlite3_step(s) == SQLITE_ROW) {
        if (strcmp(db_text(s, 0), "table") == 0)
            rc = check_table(db, db_text(s, 1), db_text(s, 2), err);
        else
            rc = add_view(db, db_text(s, 2), err);
    }
    sqlite3_finalize(s);
    sqlite3_close(schema);
    return rc ? rc : packed_views(db, err);
}
