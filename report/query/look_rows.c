#include "look_rows.h"

#include "../../common/buf.h"
#include "../../common/db.h"
#include "views.h"

#include <errno.h>

static const char *const which_column[] = {[LOOKS_PEAK] = "is_peak", [LOOKS_LAST] = "is_last"};

static int read_columns(struct look_rows *rows, const enum packed_column *columns, int count, struct error *err)
{
    long held = packed_count(rows->packed, PACKED_TABLE_resident_site);
    int rc = held < 0 ? (int)held : packed_read(rows->packed, PACKED_resident_site_site_id, &rows->site);
    for (int i = 0; i < count && rc == 0; i++)
        rc = packed_read(rows->packed, columns[i], &rows->values[i]);
    return rc ? error_set(err, EIO, "%s: %s", sqlite3_db_filename(rows->db, "main"), packed_error(rc)) : 0;
}

int look_rows_open(sqlite3 *db, enum looks which, const enum packed_column *columns, int count, struct look_rows *rows,
                   struct error *err)
{
    if (count > LOOK_ROWS_COLUMNS)
        bug("%d columns of looks", count);
    *rows = (struct look_rows){
        .db = db, .row = 1, .packed = views_are_packed(db, "resident_site") ? packed_shared(db) : NULL};
    struct buf sql = BUF(512);
    int rc = 0;
    if (rows->packed) {
        packed_hold(rows->packed);
        rc = read_columns(rows, columns, count, err);
        buf_printf(&sql, "SELECT scan_id FROM resident_scan WHERE %s", which_column[which]);
    } else {
        buf_puts(&sql, "SELECT r.site_id");
        for (int i = 0; i < count; i++)
            buf_printf(&sql, ", r.%s", packed_column_name(columns[i]));
        buf_printf(&sql, " FROM resident_site r JOIN resident_scan c USING(scan_id) WHERE c.%s", which_column[which]);
    }
    rc = rc ? rc : db_prepare(db, buf_text(&sql), &rows->s, err);
    buf_free(&sql);
    return rc;
}

void look_rows_close(struct look_rows *rows)
{
    sqlite3_finalize(rows->s);
    if (rows->packed)
        packed_let(rows->packed);
    rows->packed = NULL;
    rows->s = NULL;
}

int look_rows_next(struct look_rows *rows, struct error *err)
{
    rows->row++;
    while (!rows->packed || rows->row > rows->last) {
        int step = sqlite3_step(rows->s);
        if (step != SQLITE_ROW)
            return step == SQLITE_DONE ? 0 : db_error(rows->db, err);
        if (!rows->packed) {
            rows->site_id = sqlite3_column_int64(rows->s, 0);
            return 1;
        }
        packed_look_rows(rows->packed, sqlite3_column_int64(rows->s, 0), &rows->row, &rows->last);
    }
    rows->site_id = (int64_t)packed_at(rows->site, rows->row);
    return 1;
}
