#include "merged.h"

#include "../../common/db.h"
#include "../../common/units.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int64_t merged_count(sqlite3 *db)
{
    int64_t count = db_meta_int(db, "merged", 0);
    return count > 0 ? count : 0;
}

int merged_is_profile(sqlite3 *db)
{
    return db_int(
               db,
               "SELECT EXISTS(SELECT 1 FROM meta WHERE key = 'imported_form') AND EXISTS(SELECT 1 FROM meta WHERE key "
               "= 'events_kept' AND value = 'none')",
               0) == 1;
}

int merged_refuse(sqlite3 *db, const char *option, struct error *err)
{
    if (merged_is_profile(db))
        return error_set(err, EINVAL,
                         "%s: an imported profile holds sums of the instant when it was written, and knows no other",
                         option);
    if (!merged_count(db))
        return 0;
    return error_set(err, EINVAL,
                     "%s: a merged file has no events, so no instant of it is known but the peak and the end; ask the "
                     "recordings that it was made of ('memprof info' lists them)",
                     option);
}

/* "1.2 MiB at 3 s", or "between 1.2 MiB and 1.4 MiB" where only bounds are known, of each device that several have. */
static void add_common(sqlite3 *db, struct buf *text)
{
    static const char sql[] = "SELECT d.name, c.least_bytes, c.most_bytes, c.time_ns FROM common_peak c JOIN device d "
                              "USING(device_id) WHERE c.most_bytes > 0 ORDER BY device_id LIMIT 8";
    sqlite3_stmt *s = NULL;
    char least[UNITS_TEXT], most[UNITS_TEXT];
    int count = 0;
    if (db_prepare(db, sql, &s, NULL))
        return;
    while (sqlite3_step(s) == SQLITE_ROW) {
        int is_exact = sqlite3_column_int64(s, 1) == sqlite3_column_int64(s, 2);
        buf_printf(text, "%s%s %s%s", count++ ? ", " : ". At one instant all together held at most: ", db_text(s, 0),
                   is_exact ? "" : "between ", units_bytes(least, sqlite3_column_int64(s, 1)));
        if (is_exact)
            buf_printf(text, " at %s", units_ns(most, sqlite3_column_int64(s, 3)));
        else
            buf_printf(text, " and %s", units_bytes(most, sqlite3_column_int64(s, 2)));
    }
    sqlite3_finalize(s);
}

void merged_explain(sqlite3 *db, struct buf *text)
{
    char count[UNITS_TEXT];
    char *clock = db_meta_text(db, "merged_clock");
    buf_printf(text,
               "merged from %s recordings: peaks, and what was live at them, are sums of what each one had at its own "
               "peak",
               units_count(count, merged_count(db)));
    if (clock && strcmp(clock, "several") == 0)
        buf_puts(text, ". What they held at one instant is not known: their machines' clocks may differ (memprof merge "
                       "--align MARK)");
    else
        add_common(db, text);
    if (clock && strcmp(clock, "several") != 0 && strcmp(clock, "one") != 0)
        buf_printf(text, "; times are aligned by '%.200s'", clock);
    free(clock);
}
