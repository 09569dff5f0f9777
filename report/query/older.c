#include "older.h"

#include "../../common/buf.h"
#include "../../common/db.h"
#include "../../common/schema.h"

#include <string.h>

static int is_text_of(const struct schema_item *item, const char *sql)
{
    static const char create[] = "CREATE TABLE ";
    size_t length = sizeof create - 1;
    return strncmp(sql, create, length) == 0 && strncmp(sql + length, item->text, (size_t)item->text_bytes) == 0 &&
           strlen(sql + length) == (size_t)item->text_bytes;
}

static int has_column(sqlite3 *db, const char *table, const char *column)
{
    static const char sql[] = "SELECT 1 FROM pragma_table_xinfo(?1, 'main') WHERE lower(name) = lower(?2)";
    sqlite3_stmt *s = NULL;
    int has = 0;
    if (db_prepare(db, sql, &s, NULL) == 0) {
        sqlite3_bind_text(s, 1, table, -1, SQLITE_STATIC);
        sqlite3_bind_text(s, 2, column, -1, SQLITE_STATIC);
        has = sqlite3_step(s) == SQLITE_ROW;
    }
    sqlite3_finalize(s);
    return has;
}

/* What adds the columns that the file's table of this item has not. ours: a database of ours, for the item. */
static void compare(sqlite3 *db, sqlite3 *ours, const struct schema_item *item, struct buf *add)
{
    static const char sql[] = "SELECT t.name, c.name, c.type FROM sqlite_schema t JOIN pragma_table_info(t.name) c "
                              "WHERE t.type = 'table' ORDER BY c.cid";
    struct buf create = BUF(1 << 16);
    sqlite3_stmt *s = NULL;
    int rc = 0;
    buf_printf(&create, "CREATE TABLE %.*s", item->text_bytes, item->text);
    if (db_exec(ours, buf_text(&create), NULL) == 0 && db_prepare(ours, sql, &s, NULL) == 0)
        while (db_next(s, &rc, NULL))
            if (!has_column(db, db_text(s, 0), db_text(s, 1)))
                buf_printf(add, "ALTER TABLE main.\"%s\" ADD COLUMN \"%s\" %s;", db_text(s, 0), db_text(s, 1),
                           db_text(s, 2));
    sqlite3_finalize(s);
    buf_free(&create);
}

/* What adds the columns to the file's tables. A table whose text is ours has all of them. */
static void find_lacking(sqlite3 *db, struct buf *add)
{
    static const char sql[] = "SELECT name, sql FROM main.sqlite_schema WHERE type = 'table'";
    sqlite3_stmt *s = NULL;
    int rc = 0;
    if (db_prepare(db, sql, &s, NULL))
        return;
    while (db_next(s, &rc, NULL)) {
        const struct schema_item *item = schema_find(db_text(s, 0));
        sqlite3 *ours = NULL;
        if (!item || item->is_view || is_text_of(item, db_text(s, 1)))
            continue;
        if (sqlite3_open(":memory:", &ours) == SQLITE_OK)
            compare(db, ours, item, add);
        sqlite3_close(ours);
    }
    sqlite3_finalize(s);
}

int older_lacks(sqlite3 *db)
{
    struct buf add = BUF(1 << 16);
    find_lacking(db, &add);
    int lacks = *buf_text(&add) != 0;
    buf_free(&add);
    return lacks;
}

int older_add(sqlite3 *copy, struct error *err)
{
    struct buf add = BUF(1 << 16);
    find_lacking(copy, &add);
    int rc = db_exec(copy, buf_text(&add), err);
    buf_free(&add);
    return rc;
}
