#include "rotated_part.h"

#include "../../common/db.h"
#include "../../common/rotated.h"
#include "../../common/units.h"

#include <errno.h>

static int64_t inherited(sqlite3 *db, const char *sql)
{
    return rotated_has_start(db) ? db_int(db, sql, 0) : 0;
}

struct rotated_part rotated_part(sqlite3 *db)
{
    struct rotated_part p = {
        .number = db_meta_int(db, "part", 0),
        .end_ns = db_meta_int(db, "part_end_ns", 0),
        .event_count = db_meta_int(db, "event_count", 0),
    };
    p.is_running = !p.end_ns;
    if (p.is_running)
        p.end_ns = db_meta_int(db, "duration_ns", 0);
    if (p.number <= 1)
        return p;
    p.start_ns = db_meta_int(db, "part_start_ns", 0);
    p.event_count -= db_meta_int(db, "part_first_event", 0);
    p.start_bytes = inherited(db, "SELECT CAST(total(start_bytes) AS INTEGER) FROM total_start WHERE kind = 'all'");
    p.start_count = inherited(db, "SELECT CAST(total(start_count) AS INTEGER) FROM total_start WHERE kind = 'all'");
    return p;
}

void rotated_part_explain(sqlite3 *db, struct buf *text)
{
    char t[4][UNITS_TEXT];
    struct rotated_part p = rotated_part(db);
    if (p.number <= 1)
        return;
    buf_printf(text, "part %s of a rotated recording, from %s to %s: ", units_count(t[0], p.number),
               units_ns(t[1], p.start_ns), units_ns(t[2], p.end_ns));
    if (p.start_count)
        buf_printf(text, "%s in %s %s, live when it began, %s in what is live and in peaks, not in what is allocated",
                   units_bytes(t[1], p.start_bytes), units_count(t[3], p.start_count),
                   p.start_count == 1 ? "block" : "blocks", p.start_count == 1 ? "is" : "are");
    else
        buf_puts(text, "nothing was live when it began");
}

int rotated_part_check(sqlite3 *db, int64_t time_ns, const char *option, struct error *err)
{
    char t[2][UNITS_TEXT];
    int64_t start_ns = rotated_part(db).start_ns;
    if (time_ns >= start_ns)
        return 0;
    return error_set(err, EINVAL, "%s %s: this part of the recording begins at %s; what was before is in other files",
                     option, units_ns(t[0], time_ns), units_ns(t[1], start_ns));
}
