#include "views.h"

#include "../../common/buf.h"
#include "../../common/db.h"
#include "../../common/packed.h"
#include "../../common/schema.h"

#include <stdlib.h>
#include <string.h>

/* Tables that files of older versions of the same schema lack. They are empty there. */
static const char *const later[] = {
    "oom_had",        "address_limit",     "heap_range",      "teardown",       "site_teardown", "site_kept",
    "snapshot_entry", "snapshot_unfiled",  "resident_scan",   "resident_site",  "resident_rest", "resident_account",
    "resident_fork",  "resident_again",    "packed",          "block_touch",    "site_touch",    "upload_again",
    "recording",      "recording_process", "recording_total", "common_peak",    "block_name",    "chunk_sum",
    "chunk_free",     "free_site",         "site_sample",     "account_spread", "left_out",      "site_start",
    "total_start",    "account_start",     "unhooked_module"};

static int is_later(const struct schema_item *item)
{
    for (size_t i = 0; i < sizeof later / sizeof *later; i++)
        if (strlen(later[i]) == (size_t)item->name_bytes && strncmp(item->text, later[i], strlen(later[i])) == 0)
            return 1;
    return 0;
}

/* Which of ours are in the file, as whatever: one flag for each. */
static int find_there(sqlite3 *db, const struct schema_item *items, unsigned char *is_there, struct error *err)
{
    sqlite3_stmt *s = NULL;
    int rc = db_prepare(db, "SELECT name FROM main.sqlite_schema WHERE type IN ('table', 'view')", &s, err);
    while (rc == 0 && db_next(s, &rc, err)) {
        const struct schema_item *item = schema_find(db_text(s, 0));
        if (item)
            is_there[item - items] = 1;
    }
    sqlite3_finalize(s);
    return rc;
}

int views_are_packed(sqlite3 *db, const char *table)
{
    static const char sql[] = "SELECT 1 FROM temp.sqlite_schema WHERE name = ?1 AND sql LIKE 'CREATE VIRTUAL "
                              "TABLE%USING packed_' || name";
    sqlite3_stmt *s = NULL;
    int are = 0;
    if (db_prepare(db, sql, &s, NULL) == 0) {
        sqlite3_bind_text(s, 1, table, -1, SQLITE_STATIC);
        are = sqlite3_step(s) == SQLITE_ROW;
    }
    sqlite3_finalize(s);
    return are;
}

int views_own(sqlite3 *db, struct error *err)
{
    size_t count;
    const struct schema_item *items = schema_items(&count);
    unsigned char *is_there = xcalloc(count, 1);
    struct buf sql = BUF(1 << 20);
    int rc = find_there(db, items, is_there, err);
    buf_puts(&sql, "PRAGMA temp_store = MEMORY; SAVEPOINT own;");
    for (size_t i = 0; i < count; i++)
        if (items[i].is_view || (!is_there[i] && is_later(&items[i])))
            buf_printf(&sql, "CREATE TEMP %s %.*s;", items[i].is_view ? "VIEW" : "TABLE", items[i].text_bytes,
                       items[i].text);
    buf_puts(&sql, "RELEASE own");
    if (rc == 0)
        rc = db_exec(db, buf_text(&sql), err);
    buf_free(&sql);
    free(is_there);
    return rc ? rc : packed_views(db, err);
}
