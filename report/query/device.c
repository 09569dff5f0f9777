#include "device.h"

#include "../../common/buf.h"
#include "../../common/db.h"
#include "../../common/error.h"

#include <string.h>

int device_is(const char *name, const char *wanted)
{
    size_t length = wanted ? strlen(wanted) : 0;
    return !wanted || (strncmp(name, wanted, length) == 0 && (!name[length] || name[length] == ':'));
}

#define USED                                                                                                           \
    " FROM total t JOIN device d USING(device_id) WHERE t.kind = 'all' AND (t.alloc_count > 0 OR "                     \
    "t.peak_reserved_bytes > 0) AND " DEVICE_IS("d.name", "?1")

int device_count(sqlite3 *db, const char *wanted)
{
    sqlite3_stmt *s = NULL;
    int count = 0;
    if (db_prepare(db, "SELECT count(*)" USED, &s, NULL) == 0) {
        sqlite3_bind_text(s, 1, wanted, -1, SQLITE_STATIC);
        count = sqlite3_step(s) == SQLITE_ROW ? sqlite3_column_int(s, 0) : 0;
    }
    sqlite3_finalize(s);
    return count;
}

char *device_list(sqlite3 *db, const char *wanted)
{
    struct buf names = BUF(1 << 14);
    sqlite3_stmt *s = NULL;
    if (wanted && db_prepare(db, "SELECT d.name" USED " AND d.name <> ?1 ORDER BY d.device_id", &s, NULL) == 0) {
        sqlite3_bind_text(s, 1, wanted, -1, SQLITE_STATIC);
        while (sqlite3_step(s) == SQLITE_ROW)
            buf_printf(&names, "%s%s", names.length ? ", " : "", db_text(s, 0));
    }
    sqlite3_finalize(s);
    char *list = xstrdup(buf_text(&names));
    buf_free(&names);
    return list;
}
