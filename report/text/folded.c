#include "folded.h"

#include "../../common/map.h"
#include "../../common/sum.h"
#include "../../common/units.h"
#include "../print/command.h"
#include "../print/table.h"
#include "../query/ending.h"
#include "../query/noise.h"

#include <string.h>

int64_t folded_count(const struct summary *s)
{
    return s->out->format == REPORT_TEXT && !s->options->inclusive ? (int64_t)s->findings.kept_count : 0;
}

void folded_take(const struct summary *s, struct rows *rows, int64_t limit)
{
    struct map row_of = {0}; /* line_id: place + 1 */
    for (int i = 0; i < rows->count; i++)
        if (rows->row[i].device && strcmp(rows->row[i].device, "host") == 0)
            *map_slot(&row_of, (uint64_t)rows->row[i].key_id, 0) = (uint64_t)i + 1;
    for (size_t k = 0; k < s->findings.kept_count; k++) {
        const struct finding_kept *kept = &s->findings.kept[k];
        const uint64_t place = map_get(&row_of, (uint64_t)kept->line_id, 0);
        if (!place)
            continue;
        int64_t *value = rows->row[place - 1].stats.value;
        value[STAT_end_bytes] -= kept->bytes;
        value[STAT_end_count] -= kept->count;
    }
    map_close(&row_of);
    rows_again(rows, STAT_end_bytes, limit);
}

struct finding_kept folded_kept(const struct summary *s, int noise)
{
    struct finding_kept sum = {.noise = noise};
    for (size_t i = 0; i < s->findings.kept_count; i++)
        if (s->findings.kept[i].noise == noise) {
            sum_add(&sum.bytes, s->findings.kept[i].bytes);
            sum_add(&sum.count, s->findings.kept[i].count);
        }
    return sum;
}

void folded_print(const struct summary *s, const struct rows *rows)
{
    struct buf line = BUF(1 << 16);
    const char *head = rows->count ? "Not shown" : "Live at the end, not shown";
    int is_first = !rows->count;
    for (int noise = NOISE_NONE + 1; noise < NOISE_KINDS; noise++) {
        const struct finding_kept sum = folded_kept(s, noise);
        char bytes[UNITS_TEXT], count[UNITS_TEXT];
        if (!sum.count)
            continue;
        buf_reset(&line);
        if (is_first)
            fputc('\n', s->out->file);
        is_first = 0;
        buf_printf(&line, "%s: %s in %s block%s of %s; 'memprof leaks", head, units_bytes(bytes, sum.bytes),
                   units_count(count, sum.count), sum.count == 1 ? "" : "s", noise_texts[noise]);
        command_add_file(&line, s->options->file);
        buf_puts(&line, " --all' shows them.");
        table_prose(s->out, TABLE_DIM, buf_text(&line));
        head = "Not shown";
    }
    buf_free(&line);
}

void folded_print_end(const struct summary *s)
{
    struct buf text = BUF(1 << 12), line = BUF(1 << 12);
    if (s->out->format == REPORT_TEXT && !report_is_part(s->options))
        ending_teardown_text(s->db, &text);
    if (text.length) {
        buf_printf(&line, "(live at end: %s)", text.data);
        table_prose(s->out, TABLE_DIM, line.data);
    }
    buf_free(&text);
    buf_free(&line);
}
