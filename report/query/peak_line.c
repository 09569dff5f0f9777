#include "peak_line.h"

#include "../../common/db.h"
#include "site_rows.h"

#include <stddef.h>

enum { DEVICE, PEAK, COLUMNS };
static const enum packed_column columns[COLUMNS] = {PACKED_site_device_id, PACKED_site_at_peak_bytes};

static int64_t peak_line(sqlite3 *db, int64_t device_id)
{
    sqlite3_stmt *s = NULL;
    int64_t line_id = 0;
    if (db_prepare(db,
                   "SELECT key_id FROM account WHERE scope = 'line' AND inclusive = 0 AND device_id = ? AND kind = "
                   "'all' AND at_peak_bytes > 0 ORDER BY at_peak_bytes DESC, alloc_bytes DESC, key_id LIMIT 1",
                   &s, NULL) == 0) {
        sqlite3_bind_int64(s, 1, device_id);
        if (sqlite3_step(s) == SQLITE_ROW)
            line_id = sqlite3_column_int64(s, 0);
    }
    sqlite3_finalize(s);
    return line_id;
}

int64_t peak_line_site(sqlite3 *db, int64_t device_id)
{
    const int64_t line_id = peak_line(db, device_id);
    int64_t site_id = -1, most = 0;
    struct site_rows rows;
    struct error err;
    if (!line_id)
        return -1;
    int rc = site_rows_open_line(db, line_id, 0, columns, COLUMNS, &rows, &err);
    while (rc == 0 && site_rows_next(&rows, &err) == 1)
        if (site_rows_value(&rows, DEVICE) == device_id && (site_id < 0 || site_rows_value(&rows, PEAK) > most)) {
            site_id = rows.site_id;
            most = site_rows_value(&rows, PEAK);
        }
    site_rows_close(&rows);
    return site_id;
}
