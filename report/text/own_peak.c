#include "own_peak.h"

#include "../../common/db.h"

#include <stdlib.h>
#include <string.h>

/* Those by what code is in were computed when the recording was finished, if they could be: the file says why not. All
 * others need the events, but for rows that --skip or the readers' merging made. */
void own_peak_say_unknown(sqlite3 *db, enum row_key by, const struct report_out *out)
{
    int is_code = by == ROW_LINE || by == ROW_FUNCTION || by == ROW_FILE || by == ROW_MODULE;
    int is_window = db_int(db, "SELECT count(*) FROM temp.window", 0) > 0;
    char *why = is_code && !is_window ? db_meta_text(db, "own_peak_incomplete") : NULL;
    char *kept = db_meta_text(db, "events_kept");
    struct buf text = BUF(1 << 16);
    if (out->format == REPORT_TEXT) {
        buf_puts(&text, "(own peaks are not known of what several stacks make");
        if (why)
            buf_printf(&text, ": %s", why);
        else if (is_window)
            buf_puts(&text, " in a window");
        else if (kept && strcmp(kept, "all") != 0)
            buf_puts(&text, ": not all events were kept");
        else if (is_code && db_int(db, "SELECT 1 FROM temp.sqlite_schema WHERE name = 'site_line'", 0)) /* a lens */
            buf_puts(&text, ": they are of all that was recorded, without --process, --skip, --native, --python-only");
        buf_putc(&text, ')');
        table_prose(out, TABLE_DIM, buf_text(&text));
    }
    buf_free(&text);
    free(kept);
    free(why);
}

void own_peak_explain(sqlite3 *db, enum row_key by, const struct rows *rows, const struct report_out *out)
{
    for (int i = 0; i < rows->count; i++)
        if (!(rows->row[i].stats.known >> STAT_own_peak_bytes & 1)) {
            own_peak_say_unknown(db, by, out);
            return;
        }
}
