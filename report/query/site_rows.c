#include "site_rows.h"

#include "../../common/buf.h"
#include "../../common/db.h"
#include "../../common/kind.h"
#include "views.h"

#include <errno.h>

/* That the tables are what packed_views made of them, and no lens stands before them. */
static int is_packed(sqlite3 *db)
{
    return views_are_packed(db, "site") && views_are_packed(db, "site_line");
}

static int packed_fail(sqlite3 *db, long rc, struct error *err)
{
    return error_set(err, EIO, "%s: %s", sqlite3_db_filename(db, "main"), packed_error(rc));
}

static int open_packed(struct site_rows *rows, const enum packed_column *columns, int count, struct error *err)
{
    packed_hold(rows->packed);
    long rc = packed_count(rows->packed, PACKED_TABLE_site);
    rows->count = rc > 0 ? (uint32_t)rc : 0;
    if (rows->is_of_line && rc >= 0) {
        int read = packed_read(rows->packed, PACKED_site_line_id, &rows->line);
        rc = read ? read : rc;
        rows->count = rows->line_id > 0 ? rows->count : 0; /* 0 stands for none there */
    }
    for (int i = 0; i < count && rc >= 0; i++) {
        int read = packed_read(rows->packed, columns[i], &rows->values[i]);
        rc = read ? read : rc;
    }
    return rc >= 0 ? 0 : packed_fail(rows->db, rc, err);
}

static void kind_number(struct buf *sql)
{
    buf_puts(sql, ", CASE kind");
    for (unsigned kind = 0; kind < KIND_COUNT; kind++)
        buf_printf(sql, " WHEN '%s' THEN %u", kind_name(kind), kind);
    buf_printf(sql, " ELSE %d END", KIND_COUNT);
}

/* schema: "main." for what no lens stands before, or "" */
static int open_plain(struct site_rows *rows, const char *schema, const enum packed_column *columns, int count,
                      struct error *err)
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
    if (rows->is_of_line)
        buf_printf(&sql, " FROM %ssite_line JOIN %ssite USING(site_id) WHERE line_id = %lld", schema, schema,
                   (long long)rows->line_id);
    else
        buf_printf(&sql, " FROM site%s", has_line ? " LEFT JOIN site_line USING(site_id)" : "");
    buf_puts(&sql, " ORDER BY site_id");
    int rc = db_prepare(rows->db, buf_text(&sql), &rows->s, err);
    buf_free(&sql);
    return rc;
}

int site_rows_open(sqlite3 *db, const enum packed_column *columns, int count, struct site_rows *rows, struct error *err)
{
    if (count > SITE_ROWS_COLUMNS)
        bug("%d columns of sites", count);
    *rows = (struct site_rows){.db = db, .packed = is_packed(db) ? packed_shared(db) : NULL};
    return rows->packed ? open_packed(rows, columns, count, err) : open_plain(rows, "", columns, count, err);
}

int site_rows_open_line(sqlite3 *db, int64_t line_id, int is_recorded, const enum packed_column *columns, int count,
                        struct site_rows *rows, struct error *err)
{
    int from_columns = is_recorded ? packed_has(db, PACKED_TABLE_site) : is_packed(db);
    *rows = (struct site_rows){
        .db = db, .is_of_line = 1, .line_id = line_id, .packed = from_columns ? packed_shared(db) : NULL};
    return rows->packed ? open_packed(rows, columns, count, err)
                        : open_plain(rows, is_recorded ? "main." : "", columns, count, err);
}

void site_rows_close(struct site_rows *rows)
{
    sqlite3_finalize(rows->s);
    if (rows->packed)
        packed_let(rows->packed);
    rows->packed = NULL;
    rows->s = NULL;
}

int64_t site_rows_last(sqlite3 *db)
{
    long count = is_packed(db) ? packed_count(packed_shared(db), PACKED_TABLE_site) : 0;
    return count > 0 ? count : db_int(db, "SELECT max(site_id) FROM site", -1);
}

int site_rows_step(struct site_rows *rows, struct error *err)
{
    if (rows->packed) {
        do {
            if ((uint32_t)rows->site_id == rows->count)
                return 0;
            rows->site_id++;
        } while (rows->line && (int64_t)packed_at(rows->line, (uint32_t)rows->site_id) != rows->line_id);
        return 1;
    }
    int step = sqlite3_step(rows->s);
    if (step == SQLITE_ROW)
        rows->site_id = sqlite3_column_int64(rows->s, 0);
    return step == SQLITE_ROW ? 1 : step == SQLITE_DONE ? 0 : db_error(rows->db, err);
}

int site_lines_open(sqlite3 *db, struct site_lines *lines, struct error *err)
{
    *lines = (struct site_lines){.packed = is_packed(db) ? packed_shared(db) : NULL};
    if (!lines->packed)
        return db_prepare(db, "SELECT line_id FROM site_line WHERE site_id = ?", &lines->s, err);
    packed_hold(lines->packed);
    long rc = packed_count(lines->packed, PACKED_TABLE_site);
    lines->count = rc > 0 ? rc : 0;
    if (rc >= 0)
        rc = packed_read(lines->packed, PACKED_site_line_id, &lines->values);
    return rc >= 0 ? 0 : packed_fail(db, rc, err);
}

void site_lines_close(struct site_lines *lines)
{
    sqlite3_finalize(lines->s);
    if (lines->packed)
        packed_let(lines->packed);
    *lines = (struct site_lines){0};
}

int64_t site_lines_of(const struct site_lines *lines, int64_t site_id, int64_t other)
{
    int64_t line_id = 0;
    if (lines->packed)
        line_id = site_id > 0 && site_id <= lines->count ? (int64_t)packed_at(lines->values, (uint32_t)site_id) : 0;
    else {
        sqlite3_bind_int64(lines->s, 1, site_id);
        if (sqlite3_step(lines->s) == SQLITE_ROW)
            other = sqlite3_column_int64(lines->s, 0);
        sqlite3_reset(lines->s);
    }
    return line_id ? line_id : other;
}
