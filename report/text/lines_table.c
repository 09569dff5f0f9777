/* The table of a function's lines: which columns it has, and its rows. */
#include "../../common/units.h"
#include "../query/estimate.h"
#include "lines_private.h"
#include "row_columns.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    GAP_LINES = 100, /* lines without data in a row beyond which most are left out */
    GAP_CONTEXT = 5,
    NARROW = 100, /* columns of a terminal below which the code needs the room of the host's own peaks */
    LEFT_OUT = -1 /* in place of a line: those in between */
};

/* Of a window the device's highest values at each line are not known; what it began with is. */
static const int window_stats[] = {STAT_start_bytes, STAT_at_peak_bytes, STAT_own_peak_bytes, STAT_net_growth_bytes,
                                   STAT_end_bytes,   STAT_alloc_count,   STAT_temporary_count};

/* "own.peak" -> "own\npeak"; what its name does not say well by other words. */
static void column_title(int stat, int is_window, char title[32])
{
    static const char *const titles[STAT_LINES_COUNT] = {
        [STAT_at_peak_bytes] = "held.at peak",
        [STAT_active_peak_bytes] = "device.active",
        [STAT_reserved_peak_bytes] = "device.reserved",
        [STAT_alloc_count] = "allocs",
        [STAT_temporary_count] = "temp",
        [STAT_start_bytes] = "live.at start",
    };
    const char *text = is_window && stat == STAT_end_bytes ? "live.at end" : titles[stat];
    snprintf(title, 32, "%s", text ? text : stat_infos[stat].name);
    char *dot = strchr(title, '.');
    if (dot)
        *dot = '\n';
}

/* A source line for people has its tabs made spaces, as columns count from the beginning of the code. */
static void list_code(struct lines *l, int64_t line)
{
    size_t length = 0, column = 0;
    const char *text = source_line(&l->source, line, &length);
    int is_people = l->out->format == REPORT_TEXT;
    struct buf code = BUF(1 << 20);
    for (size_t i = 0; text && i < length; i++) {
        size_t spaces = is_people && text[i] == '\t' ? LINES_TAB - column % LINES_TAB : 0;
        if (spaces)
            buf_printf(&code, "%*s", (int)spaces, "");
        else
            buf_putc(&code, text[i]);
        column += spaces ? spaces : 1;
    }
    listing_text(l->listing, code.data);
    buf_free(&code);
}

/* Nobody asked for certain columns: on a narrow terminal those of the host's whole memory give way to the code. */
void lines_choose_stats(struct lines *l, const char *device)
{
    const int is_window = l->options->has_default_stats && report_window(l->options->report) != NULL;
    int is_short =
        l->options->has_default_stats && l->out->width > 0 && l->out->width < NARROW && strcmp(device, "host") == 0;
    l->stat_count = 0;
    for (size_t i = 0; is_window && i < sizeof window_stats / sizeof *window_stats; i++)
        l->stats[l->stat_count++] = window_stats[i];
    for (int i = 0; !is_window && i < l->options->stat_count; i++)
        if (!is_short || !lines_is_of_device(l->options->stats[i]))
            l->stats[l->stat_count++] = l->options->stats[i];
}

void lines_open_listing(struct lines *l, struct record *document)
{
    static const struct column each[] = {
        COLUMN("growth_per_execution", "growth\neach", NUMBER),
        COLUMN("allocs_per_execution", "allocs\neach", NUMBER),
    };
    static const struct column keys[] = {
        COLUMN("device", NULL, TEXT),
        COLUMN("kind", NULL, TEXT),
        COLUMN("function", NULL, TEXT),
        COLUMN("file", NULL, TEXT),
        COLUMN("declared_line", NULL, NUMBER),
        COLUMN("line", "line", NUMBER),
        COLUMN("code", "code", TEXT, .cut = TEXT_CUT_RIGHT),
    };
    struct column *columns = l->columns;
    const int is_sampled = estimate_mean_bytes(l->db) > 0;
    size_t count = 0;
    for (int i = 0; i < l->stat_count; i++) { /* those that people asked for */
        struct column *c = &columns[count++];
        *c = stat_column(l->stats[i]);
        column_title(l->stats[i], l->out->has_window, l->titles[i]);
        c->key = NULL;
        c->title = l->titles[i];
        if (c->unit == COLUMN_BYTES)
            c->unit = COLUMN_BYTES_SHORT;
    }
    if (l->options->execution_count) {
        memcpy(columns + count, each, sizeof each);
        count += COLUMN_COUNT_OF(each);
    }
    memcpy(columns + count, keys, sizeof keys);
    count += COLUMN_COUNT_OF(keys);
    for (int i = 0; i < STAT_LINES_COUNT; i++)
        columns[count++] = stat_column(i);
    for (int i = 0; i < STAT_SHOWN_COUNT; i++)
        columns[count++] = stat_error_column(i, is_sampled);
    l->listing = listing_open_in(document, "lines", columns, count, NULL);
}

/* What came and went within the executions: not what was live at the end of the last, for that leaves out what comes in
 * one and goes between it and the next. */
static int64_t growth_inside(const struct stat_row *stats, int *is_known)
{
    int is_freed_known;
    int64_t bytes = stat_value(stats, STAT_alloc_bytes, is_known);
    int64_t freed = stat_value(stats, STAT_free_bytes, &is_freed_known);
    *is_known = *is_known && is_freed_known && !__builtin_sub_overflow(bytes, freed, &bytes);
    return bytes;
}

/* Of --every: of an execution, on average. */
static void list_each(struct lines *l, const struct lines_line *data, int is_growth, int is_known, int64_t value)
{
    double each = (double)value / (double)l->options->execution_count;
    char text[UNITS_TEXT];
    const int is_large = each >= 10240 || each <= -10240;
    if (l->out->format == REPORT_TEXT && is_growth && is_large)
        units_bytes_short(text, llround(each));
    else
        snprintf(text, sizeof text, l->out->format == REPORT_TEXT ? "%.1f" : "%.3f", each);
    if (!data && l->out->format == REPORT_TEXT)
        listing_text(l->listing, "");
    else if (!is_known)
        listing_null(l->listing);
    else if (l->out->format == REPORT_TEXT)
        listing_text(l->listing, text);
    else
        listing_raw(l->listing, text);
}

void lines_list_line(struct lines *l, const struct lines_group *g, int64_t line, const struct lines_line *data,
                     int is_heaviest)
{
    static const struct stat_row none = {0};
    struct listing *list = l->listing;
    listing_style(list, !data ? TABLE_DIM : is_heaviest ? TABLE_STRONG : TABLE_PLAIN);
    for (int i = 0, known; i < l->stat_count; i++) {
        int64_t value = data ? lines_value(g, data, l->stats[i], &known) : 0;
        if (data)
            listing_estimate(list, known, value, stat_error(&data->stats, l->stats[i]));
        else
            listing_text(list, "");
    }
    if (l->options->execution_count) {
        int is_known = 0;
        int64_t growth = data ? growth_inside(&data->stats, &is_known) : 0;
        list_each(l, data, 1, is_known, growth);
        int64_t allocs = data ? stat_value(&data->stats, STAT_alloc_count, &is_known) : 0;
        list_each(l, data, 0, is_known, allocs);
    }
    listing_text(list, g->device);
    listing_text(list, l->options->report->kind ? l->options->report->kind : "all");
    listing_text(list, g->name);
    listing_text(list, g->path);
    listing_int_if(list, g->declared_line > 0, g->declared_line);
    if (line > 0 || l->out->format != REPORT_TEXT)
        listing_int(list, line);
    else
        listing_text(list, line == LEFT_OUT ? "..." : "?");
    list_code(l, line);
    stat_values(list, data ? &data->stats : &none);
    for (int i = STAT_SHOWN_COUNT, known = 0; i < STAT_LINES_COUNT; i++) {
        int64_t value = data ? lines_value(g, data, i, &known) : 0;
        listing_int_if(list, data && known, value);
    }
    stat_errors(list, data ? &data->stats : &none);
}

void lines_list_group(struct lines *l, const struct lines_group *g)
{
    int64_t first, last, line;
    int index = 0;
    lines_range(l, g, &first, &last);
    for (line = first; line <= last; line++) {
        while (index < g->line_count && g->lines[index].line < line)
            index++;
        int64_t next = index < g->line_count ? g->lines[index].line : last + 1;
        int has_data = next == line;
        int is_heaviest = has_data && g->line_count > 1 && g->weight_bytes[0] > 0 &&
                          g->lines[index].stats.value[STAT_at_peak_bytes] == g->weight_bytes[0];
        /* without the text only the lines with data say something */
        if (!has_data && (!l->source.text || line > l->source.line_count)) {
            if (next > last)
                break;
            line = next - 1;
            continue;
        }
        lines_list_line(l, g, line, has_data ? &g->lines[index] : NULL, is_heaviest);
        int64_t after = index < g->line_count
                            ? (has_data ? (index + 1 < g->line_count ? g->lines[index + 1].line : last) : next)
                            : last;
        if (after - line > GAP_LINES && (has_data || line == first)) {
            for (int i = 1; i <= GAP_CONTEXT; i++)
                lines_list_line(l, g, line + i, NULL, 0);
            lines_list_line(l, g, LEFT_OUT, NULL, 0);
            line = after - GAP_CONTEXT - 1;
        }
    }
}
