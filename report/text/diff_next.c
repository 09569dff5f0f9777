#include "diff_next.h"

#include "../print/table.h"

/* The function of the first row where one side's source shows it. */
static const struct diff_item *first_function(const struct diff *diff, int *side)
{
    for (int i = 0; i < diff->count - diff->hidden_count; i++)
        for (*side = DIFF_NEW; *side >= DIFF_OLD; --*side) {
            const struct diff_item *item = diff->rows[i].item[*side];
            if (item && item->name && item->file && *item->name != '<' && !text_is_endless(item->name))
                return item;
        }
    return NULL;
}

static void print_command(struct buf *line, int *is_first, const struct report_out *out)
{
    struct buf whole = BUF(1 << 18);
    buf_printf(&whole, "%s%s", *is_first ? "Next: " : "      ", buf_text(line));
    table_line(out, TABLE_DIM, buf_text(&whole));
    buf_free(&whole);
    buf_reset(line);
    *is_first = 0;
}

static void add_diff(const struct diff_report *report, struct buf *line)
{
    buf_puts(line, "memprof diff");
    for (int side = DIFF_OLD; side <= DIFF_NEW; side++) {
        buf_putc(line, ' ');
        buf_shell(line, report->files[side][0]);
    }
}

/* The page has all of it, and takes neither. */
static void add_options(const struct diff_report *report, struct buf *line)
{
    if (report->what.device) {
        buf_puts(line, " --device ");
        buf_shell(line, report->what.device);
    }
    if (report->what.is_sorted)
        buf_printf(line, " --sort %s", stat_infos[report->what.sort].name);
}

void diff_next_print(const struct diff_report *report, const struct diff *diff, const struct report_out *out)
{
    const int is_of_lines = report->what.by == ROW_LINE || report->what.by == ROW_FUNCTION;
    struct buf line = BUF(1 << 18);
    int is_first = 1, side;
    if (report->counts[DIFF_OLD] != 1 || report->counts[DIFF_NEW] != 1 || diff->count == diff->hidden_count)
        return;
    fputc('\n', out->file);
    const struct diff_item *item = is_of_lines ? first_function(diff, &side) : NULL;
    if (item) {
        buf_puts(&line, "memprof lines ");
        buf_shell(&line, report->files[side][0]);
        buf_puts(&line, " --func ");
        buf_shell(&line, item->name);
        print_command(&line, &is_first, out);
    }
    if (report->what.by != ROW_STACK) {
        add_diff(report, &line);
        buf_puts(&line, " --by stack");
        add_options(report, &line);
        print_command(&line, &is_first, out);
    }
    add_diff(report, &line);
    buf_puts(&line, " --html");
    print_command(&line, &is_first, out);
    buf_free(&line);
}
