#include "nothing.h"

#include "../../common/buf.h"
#include "../../common/db.h"

static void say_chosen(const struct report_options *o, struct buf *line)
{
    buf_puts(line, "Nothing of");
    if (o->kind)
        buf_printf(line, " --kind %s", o->kind);
    if (o->device)
        buf_printf(line, " --device %s", o->device);
    buf_puts(line, ": 'memprof report' without it shows the devices and kinds that there are.");
}

void nothing_say(const struct report_options *o, const struct report_out *out)
{
    struct buf line = BUF(1 << 12);
    if (o->kind || o->device)
        say_chosen(o, &line);
    else if (report_is_part(o))
        buf_puts(&line,
                 "Nothing in this part of the run: without --process, --from, --to and --during it is the whole.");
    else if (o->names != REPORT_NAMES_ALL || (o->at != REPORT_AT_ALL && o->by != ROW_OP))
        buf_puts(&line, "Nothing was live then: --at peak shows what was when most was.");
    else if (o->by == ROW_OP && !o->is_by_size)
        buf_puts(&line,
                 "Nothing: its rows are operators of PyTorch (aten::add), which are on no stack of this recording; "
                 "--by function has a row for each function.");
    else
        buf_puts(&line, "Nothing: no allocation was recorded; 'memprof info' says what was.");
    table_prose(out, TABLE_PLAIN, buf_text(&line));
    buf_free(&line);
}

int nothing_was_recorded(sqlite3 *db)
{
    return db_int(db, "SELECT total(alloc_count) + total(peak_active_bytes) > 0 FROM main.total WHERE kind = 'all'",
                  1) == 0;
}
