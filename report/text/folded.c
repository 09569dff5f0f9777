#include "folded.h"

#include "../../common/sum.h"
#include "../../common/units.h"
#include "../print/command.h"
#include "../print/table.h"

#include <string.h>

int64_t folded_count(const struct summary *s)
{
    return s->out->format == REPORT_TEXT && !s->options->inclusive ? (int64_t)s->findings.interpreter_count : 0;
}

void folded_take(const struct summary *s, struct rows *rows, int64_t limit)
{
    const struct finding_interpreter *all = s->findings.interpreter;
    for (int i = 0; i < rows->count; i++) {
        int64_t *value = rows->row[i].stats.value;
        if (!rows->row[i].device || strcmp(rows->row[i].device, "host") != 0)
            continue;
        for (size_t k = 0; k < s->findings.interpreter_count; k++)
            if (all[k].line_id == rows->row[i].key_id) {
                value[STAT_end_bytes] -= all[k].bytes;
                value[STAT_end_count] -= all[k].count;
            }
    }
    rows_again(rows, STAT_end_bytes, limit);
}

void folded_print(const struct summary *s, const struct rows *rows)
{
    struct buf line = BUF(1 << 16);
    char text[UNITS_TEXT];
    int64_t bytes = 0, count = 0;
    for (size_t i = 0; i < s->findings.interpreter_count; i++) {
        sum_add(&bytes, s->findings.interpreter[i].bytes);
        sum_add(&count, s->findings.interpreter[i].count);
    }
    buf_printf(&line, "%s: %s in ", rows->count ? "Not shown" : "\nLive at the end, not shown",
               units_bytes(text, bytes));
    buf_printf(&line,
               "%s block%s of Python's own: its start-up, what it imported, interned strings and types; 'memprof "
               "leaks",
               units_count(text, count), count == 1 ? "" : "s");
    command_add_file(&line, s->options->file);
    buf_puts(&line, " --all' shows them.");
    table_prose(s->out, TABLE_DIM, buf_text(&line));
    buf_free(&line);
}
