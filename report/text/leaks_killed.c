#include "leaks_killed.h"

#include "../../common/units.h"
#include "../query/ending.h"

void leaks_say_amount(struct buf *out, int64_t bytes, int64_t blocks)
{
    char text[2][UNITS_TEXT];
    buf_printf(out, "%s in %s block%s", units_bytes(text[0], bytes), units_count(text[1], blocks),
               blocks == 1 ? "" : "s");
}

int leaks_are_of_killed(const struct leaks *l)
{
    return l->killed_blocks > 0 && (l->killed_bytes > (l->bytes - l->torn_bytes) / 2 ||
                                    ending_of_blocks(l->db, ENDING_ANY_DEVICE) == ENDING_KILLED);
}

void leaks_say_killed(const struct leaks *l, struct buf *line)
{
    int64_t counts[ENDINGS];
    ending_count(l->db, ENDING_ANY_DEVICE, counts);
    ending_killed_text(counts, line);
    if (l->killed_blocks < l->blocks - l->torn_blocks)
        buf_puts(line, ", or at the ends of the others");
}

void leaks_say_stack_killed(const struct leaks *l, const struct leak *leak, struct buf *line)
{
    if (!leak->killed_blocks || (!l->torn_blocks && l->killed_blocks >= l->blocks))
        return;
    buf_puts(line, ", ");
    if (leak->killed_blocks < leak->blocks) {
        buf_puts(line, leak->torn_blocks ? "and " : "of which ");
        leaks_say_amount(line, leak->killed_bytes, leak->killed_blocks);
        buf_puts(line, " ");
    }
    buf_puts(line, "live when processes were killed");
}

void leaks_say_all_killed(const struct leaks *l, struct buf *line)
{
    int64_t counts[ENDINGS], all = 0;
    if (!l->killed_blocks || l->torn_blocks || !leaks_are_of_end(l))
        return;
    ending_count(l->db, ENDING_ANY_DEVICE, counts);
    for (int i = 0; i < ENDINGS; i++)
        all += counts[i];
    if (l->killed_blocks < l->blocks) {
        buf_puts(line, "Of this, ");
        leaks_say_amount(line, l->killed_bytes, l->killed_blocks);
        buf_printf(line, " %s live when ", l->killed_blocks == 1 ? "was" : "were");
    } else {
        buf_puts(line, "All of it was live when ");
    }
    if (l->options->report->lens && l->options->report->lens->pid)
        buf_puts(line, "the process was killed");
    else if (all > 1)
        ending_killed_text(counts, line);
    else
        buf_puts(line, ending_is_killed(l->db) ? "the program was killed" : "a process of it was killed");
    buf_puts(line, ", and in use: what grows over the run, not this, tells a leak.");
}
