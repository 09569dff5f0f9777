#include "peak_line.h"

#include "../../common/db.h"

#include <stddef.h>

int64_t peak_line_site(sqlite3 *db, int64_t device_id)
{
    sqlite3_stmt *s = NULL;
    int64_t site_id = -1;
    if (db_prepare(db,
                   "SELECT site_id FROM site_line JOIN site USING(site_id) WHERE device_id = ?1 AND line_id = (SELECT "
                   "key_id FROM account WHERE scope = 'line' AND inclusive = 0 AND device_id = ?1 AND kind = 'all' AND "
                   "at_peak_bytes > 0 ORDER BY at_peak_bytes DESC, alloc_bytes DESC, key_id LIMIT 1) ORDER BY "
                   "at_peak_bytes DESC, site_id LIMIT 1",
                   &s, NULL) == 0) {
        sqlite3_bind_int64(s, 1, device_id);
        if (sqlite3_step(s) == SQLITE_ROW)
            site_id = sqlite3_column_int64(s, 0);
    }
    sqlite3_finalize(s);
    return site_id;
}
