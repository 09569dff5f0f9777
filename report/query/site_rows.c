#include "site_rows.h"

#include "../../common/buf.h"
#include "../../common/db.h"
#include "../../common/kind.h"

#include <errno.h>

/* That the tables are what packed_views made of them, and no lens stands before them. */
static int is_packed(sqlite3 *db)
{
    return db_int(db,
                  "SELECT count(*) = 2 FROM temp.sqlite_schema WHERE name IN ('site', 'site_line') AND sql LIKE "
                  "'CREATE VIRTUAL TABLE%USING packed_' || name",
                  0) == 1;
}

static int open_packed(struct site_rows *rows, const enum packed_column *columns, int count, struct error *err)
{
    packed_hold(rows->packed);
    long rc = packed_count(rows->packed, PACKED_TABLE_site);
    rows->count = rc > 0 ? (uint32_t)rc : 0;
    for (int i = 0; i < count && rc >= 0; i++) {
        int read = packed_read(rows->packed, columns[i], &rows->values[i]);
        rc = read ? read : rc;
    }
    return rc >= 0 ? 0 : error_set(err, EIO, "%s: %s", sqlite3_db_filename(rows->db, "main"), packed_error(rc));
}

static void kind_number(struct buf *sql)
{
    buf_puts(sql, ", CASE kind");
    for (unsigned kind = 0; kind < KIND_COUNT; kind++)
        buf_printf(sql, " WHEN '%s' THEN %u", kind_name(kind), kind);
    buf_printf(sql, " ELSE %d END", KIND_COUNT);
}

static int open_plain(struct site_rows *rows, const enum packed_column *columns, int count, struct error *err)
{
    struct buf sql = BUF(1 << 14);
    int has_line = 0;
    buf_puts(&sql, "SELECT site_id");
    for (int i = 0; i < count; i++) {
        has_line |= columns[i] == PACKED_site_line_id;
        if (columns[i] == PACKED_site_kind)
            kind_number(&sql);
        else
            buf_printf(&sql, ", %s", packed_column_name(columns[i]));
    }
    buf_printf(&sql, " FROM site%s ORDER BY site_id", has_line ? " LEFT JOIN site_line USING(site_id)" : "");
    int rc = db_prepare(rows->db, buf_text(&sql), &rows->s, err);
    buf_free(&sql);
    return rc;
}

int site_rows_open(sqlite3 *db, const enum packed_column *columns, int count, struct site_rows *rows, struct error *err)
{
    if (count > SITE_ROWS_COLUMNS)
        bug("%d columns of sites", count);
    *rows = (struct site_rows){.db = db, .packed = is_packed(db) ? packed_shared(db) : NULL};
    return rows->packed ? open_packed(rows, columns, count, err) : open_plain(rows, columns, count, err);
}

void site_rows_close(struct site_rows *rows)
{
    sqlite3_finalize(rows->s);
    if (rows->packed)
        packed_let(rows->packed);
    rows->packed = NULL;
    rows->s = NULL;
}

int site_rows_next(struct site_rows *rows, struct error *err)
{
    if (rows->packed) {
        if ((uint32_t)rows->site_id == rows->count)
            return 0;
        rows->site_id++;
        return 1;
    }
    int step = sqlite3_step(rows->s);
    if (step == SQLITE_ROW)
        rows->site_id = sqlite3_column_int64(rows->s, 0);
    return step == SQLITE_ROW ? 1 : step == SQLITE_DONE ? 0 : db_error(rows->db, err);
}
