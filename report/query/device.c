#include "device.h"

#include "../../common/buf.h"
#include "../../common/db.h"

#include <errno.h>
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

int device_check(sqlite3 *db, const char *device, const char *kind, struct error *err)
{
    /* a type of devices stands behind them */
    static const char *const queries[] = {"SELECT name FROM device UNION ALL SELECT DISTINCT substr(name, 1, "
                                          "instr(name, ':') - 1) FROM device WHERE instr(name, ':') > 1",
                                          "SELECT DISTINCT kind FROM total"};
    const char *names[] = {device, kind}, *words[] = {"device", "kind"};
    int rc = 0;
    for (int i = 0; rc == 0 && i < 2; i++) {
        sqlite3_stmt *s = NULL;
        struct buf known = BUF(1024);
        int found = !names[i];
        rc = found ? 0 : db_prepare(db, queries[i], &s, err);
        while (rc == 0 && !found && sqlite3_step(s) == SQLITE_ROW) {
            found = strcmp(db_text(s, 0), names[i]) == 0;
            buf_printf(&known, "%s%s", known.length ? ", " : "", db_text(s, 0));
        }
        if (rc == 0 && !found)
            rc = error_set(err, EINVAL, "no %s '%s' in this recording; it has: %s", words[i], names[i],
                           known.data ? known.data : "none");
        sqlite3_finalize(s);
        buf_free(&known);
    }
    return rc;
}
