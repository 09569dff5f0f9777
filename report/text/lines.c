#include "lines.h"

#include "../../common/db.h"
#include "../../common/units.h"
#include "../findings/notes.h"
#include "../query/ending.h"
#include "../query/source.h"
#include "lines_load.h"
#include "own_peak.h"
#include "row_columns.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    DEFAULT_GROUPS = 10, /* of those that were asked for */
    DEFAULT_BEST = 5,    /* when none was */
    GAP_LINES = 100,     /* lines without data in a row beyond which most are left out */
    GAP_CONTEXT = 5,
    AFTER_LINES = 3, /* shown after the last line with data, as far as the function goes */
    TAB = 8,
    NARROW = 100, /* columns of a terminal below which the code needs the room of the host's own peaks */
    LEFT_OUT = -1 /* in place of a line: those in between */
};

struct lines {
    sqlite3 *db;
    const struct lines_options *options;
    const struct report_out *out;
    char *cwd;
    struct source source; /* of source_file_id */
    int64_t source_file_id;
    int64_t warned_file_id;                 /* whose change on disk was said */
    int is_missing_said[2];                 /* that a source cannot be read, and [1] what helps */
    int is_device_said, is_unreserved_said; /* whose peaks the columns show */
    int is_end_said;                        /* which end net growth is until */
    int is_own_said, is_instances_said;     /* why one has none */
    struct listing *listing;
    int stats[STAT_SHOWN_COUNT]; /* those that the group's table shows */
    int stat_count;
    struct column columns[2 * STAT_SHOWN_COUNT + 9];
    char titles[STAT_SHOWN_COUNT][32];
};

static const int default_stats[] = {STAT_at_peak_bytes,       STAT_own_peak_bytes,   STAT_active_peak_bytes,
                                    STAT_reserved_peak_bytes, STAT_net_growth_bytes, STAT_alloc_count,
                                    STAT_temporary_count};

/* Of a window the device's highest values at each line are not known; what it began with is. */
static const int window_stats[] = {STAT_start_bytes, STAT_at_peak_bytes, STAT_own_peak_bytes, STAT_net_growth_bytes,
                                   STAT_end_bytes,   STAT_alloc_count,   STAT_temporary_count};

static int is_of_device(int stat)
{
    return stat == STAT_active_peak_bytes || stat == STAT_reserved_peak_bytes;
}

int lines_columns(const char *list, struct lines_options *options, struct error *err)
{
    options->stat_count = 0;
    if (!list) {
        memcpy(options->stats, default_stats, sizeof default_stats);
        options->stat_count = sizeof default_stats / sizeof *default_stats;
        options->has_default_stats = 1;
        return 0;
    }
    while (*list) {
        size_t length = strcspn(list, ", ");
        int stat = stat_find(list, length);
        if (length && stat < 0)
            return error_set(err, EINVAL, "--columns: no statistic '%.*s'; 'memprof lines --columns help' lists them",
                             (int)length, list);
        if (length && options->stat_count == STAT_SHOWN_COUNT)
            return error_set(err, EINVAL, "--columns: more than %d columns", STAT_SHOWN_COUNT);
        if (length)
            options->stats[options->stat_count++] = stat;
        list += length + (list[length] != 0);
    }
    return options->stat_count
               ? 0
               : error_set(err, EINVAL, "--columns: empty; 'memprof lines --columns help' lists the statistics");
}

/* "own.peak" -> "own\npeak"; what its name does not say well by other words. */
static void column_title(int stat, int is_window, char title[32])
{
    static const char *const titles[STAT_SHOWN_COUNT] = {
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

static void use_source(struct lines *l, const struct lines_group *g)
{
    if (l->source_file_id == g->file_id && g->file_id != 0)
        return;
    source_free(&l->source);
    l->source_file_id = g->file_id;
    if (g->path)
        source_load(l->db, g->file_id, g->path, &l->source);
}

/* A source line for people has its tabs made spaces, as columns count from the beginning of the code. */
static void list_code(struct lines *l, int64_t line)
{
    size_t length = 0, column = 0;
    const char *text = source_line(&l->source, line, &length);
    int is_people = l->out->format == REPORT_TEXT;
    struct buf code = BUF(1 << 20);
    for (size_t i = 0; text && i < length; i++) {
        size_t spaces = is_people && text[i] == '\t' ? TAB - column % TAB : 0;
        if (spaces)
            buf_printf(&code, "%*s", (int)spaces, "");
        else
            buf_putc(&code, text[i]);
        column += spaces ? spaces : 1;
    }
    listing_text(l->listing, code.data);
    buf_free(&code);
}

/* Columns before the first character; -1: there is none. */
static int64_t indent_of(struct lines *l, int64_t line, char *start)
{
    size_t length = 0;
    int64_t column = 0;
    const char *text = source_line(&l->source, line, &length);
    for (size_t i = 0; text && i < length; i++) {
        if (text[i] != ' ' && text[i] != '\t') {
            *start = text[i];
            return text[i] == '\r' || text[i] == '\n' ? -1 : column;
        }
        column += text[i] == '\t' ? (int64_t)(TAB - (size_t)column % TAB) : 1;
    }
    return -1;
}

/* "out:", which stands left of the code */
static int is_label(struct lines *l, int64_t line)
{
    size_t length = 0, i = 0;
    const char *text = source_line(&l->source, line, &length);
    while (i < length && (isalnum((unsigned char)text[i]) || text[i] == '_'))
        i++;
    return i && i < length && text[i] == ':' && !(i + 1 < length && text[i + 1] == ':');
}

enum { INSIDE, ITS_END, OUTSIDE };

/* Where a line behind the last one with data is: what follows a function is no deeper than its beginning. */
static int place_of(struct lines *l, int64_t line, int64_t function_indent)
{
    char start = 0;
    int64_t indent = indent_of(l, line, &start);
    if (start == '}' && indent >= 0 && indent <= function_indent)
        return ITS_END;
    if (indent < 0 || indent > function_indent || strchr("#)]{", start) || is_label(l, line))
        return INSIDE;
    return OUTSIDE;
}

/* First and last line to show: from the declaration to a little after the last line with data, within the function. */
static void range_of(struct lines *l, const struct lines_group *g, int64_t *first, int64_t *last)
{
    int64_t low = g->lines[0].line, high = g->lines[g->line_count - 1].line;
    *first = low;
    *last = high;
    if (g->declared_file_id == g->file_id && g->declared_line > 0 && g->declared_line < low)
        *first = g->declared_line;
    if (!l->source.text)
        return;
    int64_t next = lines_next_function(l->db, g), function_indent = -1;
    char start;
    if (*first < low && *g->name != '<') /* a module, and what has no declaration, has no end to look for */
        function_indent = indent_of(l, *first, &start);
    for (int64_t line = high + 1; line <= l->source.line_count && line - high <= AFTER_LINES && line < next; line++) {
        int place = place_of(l, line, function_indent);
        if (place == OUTSIDE && function_indent >= 0)
            break;
        start = 0;
        int64_t indent = indent_of(l, line, &start);
        if (indent >= 0)
            *last = line;
        /* a brace in the first column ends a function in every common style */
        if (place == ITS_END || (start == '}' && indent == 0))
            break;
    }
}

/* Nobody asked for certain columns: on a narrow terminal those of the host's whole memory give way to the code. */
static void choose_stats(struct lines *l, const char *device)
{
    const int is_window = l->options->has_default_stats && report_window(l->options->report) != NULL;
    int is_short =
        l->options->has_default_stats && l->out->width > 0 && l->out->width < NARROW && strcmp(device, "host") == 0;
    l->stat_count = 0;
    for (size_t i = 0; is_window && i < sizeof window_stats / sizeof *window_stats; i++)
        l->stats[l->stat_count++] = window_stats[i];
    for (int i = 0; !is_window && i < l->options->stat_count; i++)
        if (!is_short || !is_of_device(l->options->stats[i]))
            l->stats[l->stat_count++] = l->options->stats[i];
}

static void open_listing(struct lines *l, struct record *document)
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
    for (int i = 0; i < STAT_SHOWN_COUNT; i++)
        columns[count++] = stat_column(i);
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

/* data NULL: a line that did nothing. */
static void list_line(struct lines *l, const struct lines_group *g, int64_t line, const struct lines_line *data,
                      int is_heaviest)
{
    static const struct stat_row none = {0};
    struct listing *list = l->listing;
    listing_style(list, !data ? TABLE_DIM : is_heaviest ? TABLE_STRONG : TABLE_PLAIN);
    for (int i = 0, known; i < l->stat_count; i++) {
        int64_t value = data ? stat_value(&data->stats, l->stats[i], &known) : 0;
        if (data)
            listing_int_if(list, known, value);
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
}

static void fill(struct lines *l, const struct lines_group *g)
{
    int64_t first, last, line;
    int index = 0;
    range_of(l, g, &first, &last);
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
        list_line(l, g, line, has_data ? &g->lines[index] : NULL, is_heaviest);
        int64_t after = index < g->line_count
                            ? (has_data ? (index + 1 < g->line_count ? g->lines[index + 1].line : last) : next)
                            : last;
        if (after - line > GAP_LINES && (has_data || line == first)) {
            for (int i = 1; i <= GAP_CONTEXT; i++)
                list_line(l, g, line + i, NULL, 0);
            list_line(l, g, LEFT_OUT, NULL, 0);
            line = after - GAP_CONTEXT - 1;
        }
    }
}

static int has_device_peak(const struct lines *l)
{
    for (int i = 0; i < l->stat_count; i++)
        if (is_of_device(l->stats[i]))
            return 1;
    return 0;
}

/* Whether a run of its own could have kept the source: of an imported snapshot, and of <stdin>, none can. */
static int is_recorded_here(struct lines *l, const struct lines_group *g)
{
    char *from = db_meta_text(l->db, "imported_from");
    free(from);
    return !from && *g->path != '<';
}

/* Managed memory, and that of other processes, is no part of what the device has reserved. */
static int has_unreserved(const struct lines *l, const struct lines_group *g)
{
    int has = 0, active_known, reserved_known;
    for (int i = 0; i < g->line_count && has_device_peak(l) && strcmp(g->device, "host") != 0; i++) {
        int64_t active = stat_value(&g->lines[i].stats, STAT_active_peak_bytes, &active_known);
        int64_t reserved = stat_value(&g->lines[i].stats, STAT_reserved_peak_bytes, &reserved_known);
        has |= active_known && reserved_known && active > reserved;
    }
    return has;
}

/* Whether a column is of an end that is not that of the process. */
static int ends_early(const struct lines *l)
{
    const struct report_options *o = l->options->report;
    int is_shown = 0;
    for (int i = 0; i < l->stat_count; i++)
        is_shown |= l->stats[i] == STAT_net_growth_bytes;
    return is_shown && !report_window(o) && ending_is_teardown(l->db, o->lens ? o->lens->pid : 0);
}

static void print_title(struct lines *l, const struct lines_group *g)
{
    struct buf title = BUF(1 << 20);
    int64_t line = g->declared_line > 0 && g->declared_file_id == g->file_id ? g->declared_line : g->lines[0].line;
    buf_printf(&title, "## %s   ", g->name);
    if (g->path)
        text_path(&title, g->path, l->cwd);
    if (g->path)
        buf_printf(&title, ":%lld", (long long)line);
    else
        buf_puts(&title, "(no line information)");
    buf_printf(&title, "   %s", g->device);
    table_line(l->out, TABLE_STRONG, title.data);
    buf_reset(&title);
    if (l->source.is_newer && l->warned_file_id != g->file_id) {
        buf_printf(&title, "! %s was changed after the recording: numbers may stand at wrong lines", g->path);
        l->warned_file_id = g->file_id;
    } else if (g->path && !l->source.text) {
        int can_keep = is_recorded_here(l, g);
        if (!l->is_missing_said[can_keep]++)
            buf_printf(&title, "! the source cannot be read here%s",
                       can_keep ? "; 'memprof run --source' puts it into the database" : "");
    }
    if (title.length)
        table_prose(l->out, TABLE_PLAIN, title.data);
    if (has_device_peak(l) && !l->is_device_said++)
        table_prose(l->out, TABLE_DIM,
                    "(device active, reserved: the highest of the whole device while the line was on the stack)");
    if (ends_early(l) && !l->is_end_said++)
        table_prose(l->out, TABLE_DIM, "(net growth: until Python began to take itself down, as 'live at end' is)");
    if (has_unreserved(l, g) && !l->is_unreserved_said++)
        table_prose(l->out, TABLE_DIM,
                    "(more active than reserved: managed memory and that of other processes is not reserved here)");
    fputc('\n', l->out->file);
    buf_free(&title);
}

/* Why lines have no own peak: none is known, or each instance's is, and they are not to be summed. */
static void say_own_peaks(struct lines *l, const struct lines_group *g)
{
    int is_shown = 0, is_unknown = 0, is_several = 0;
    for (int i = 0; i < l->stat_count; i++)
        is_shown |= l->stats[i] == STAT_own_peak_bytes;
    for (int i = 0; i < g->line_count; i++) {
        int is_lacking = !(g->lines[i].stats.known >> STAT_own_peak_bytes & 1);
        is_unknown |= is_lacking && !g->lines[i].has_own_peaks;
        is_several |= is_lacking && g->lines[i].has_own_peaks;
    }
    if (is_shown && is_unknown && !l->is_own_said++)
        own_peak_say_unknown(l->db, ROW_LINE, l->out);
    if (is_shown && is_several && !l->is_instances_said++)
        table_prose(l->out, TABLE_DIM,
                    "(own peak -: several instances of a template, or clones, make the line; 'memprof report --by line "
                    "--inclusive' has each one's)");
}

static void print_group(struct lines *l, struct record *document, const struct lines_group *g)
{
    use_source(l, g);
    choose_stats(l, g->device);
    print_title(l, g);
    open_listing(l, document);
    fill(l, g);
    listing_print(l->listing);
    listing_close(l->listing);
    say_own_peaks(l, g);
}

static void record_groups(struct lines *l, struct record *document, const struct lines_groups *groups)
{
    int64_t top = l->options->report->top;
    record_document_begin(document);
    notes_record(l->db, l->options->report->file, document);
    open_listing(l, document);
    for (int i = 0; i < groups->count && (top <= 0 || i < top); i++) {
        const struct lines_group *g = &groups->group[i];
        use_source(l, g);
        for (int k = 0; k < g->line_count; k++)
            list_line(l, g, g->lines[k].line, &g->lines[k], 0);
    }
    listing_close(l->listing);
    record_document_end(document);
}

/* "'a', 'b'": the patterns whose bit is not set. How many. */
static int list_missing(struct buf *list, const char *const *patterns, int count, uint32_t found)
{
    int missing = 0;
    for (int i = 0; i < count; i++)
        if (!(found >> i & 1))
            buf_printf(list, "%s'%s'", missing++ ? ", " : "", patterns[i]);
    return missing;
}

/* 0, or -ENOENT with a message that names every pattern that shows nothing. */
static int missing(const struct lines_options *o, const struct lines_groups *groups, struct error *err)
{
    struct buf list = BUF(1 << 16);
    const char *on = o->report->device ? ", on " : "", *device = o->report->device ? o->report->device : "";
    int rc = 0;
    if (list_missing(&list, o->functions, o->function_count, groups->known_functions))
        rc = error_set(
            err, ENOENT,
            "no function %s in this recording; try a pattern such as '*%s*', or 'memprof report --by function'",
            list.data, o->functions[__builtin_ctz(~groups->known_functions)]);
    else if (list_missing(&list, o->files, o->file_count, groups->shown_files))
        rc = error_set(err, ENOENT,
                       "no matching function in a file %s%s%s; 'memprof report --by file' lists those that allocated",
                       list.data, on, device);
    else if (list_missing(&list, o->functions, o->function_count, groups->shown_functions))
        rc = error_set(err, ENOENT,
                       "no function %s allocated, or called what allocates%s%s; 'memprof report' lists those that did",
                       list.data, on, device);
    buf_free(&list);
    return rc;
}

static int is_default(const struct lines_options *o)
{
    return o->function_count == 0 && o->file_count == 0;
}

static int nothing(sqlite3 *db, const struct lines_options *o, struct error *err)
{
    if (db_int(db, "SELECT count(*) FROM line WHERE file_id IS NOT NULL", 0) == 0)
        return error_set(err, ENOENT,
                         "no function in this recording has line information: 'memprof report --by function' shows "
                         "them without; compile with -g, see 'memprof info'");
    if (is_default(o))
        return error_set(err, ENOENT,
                         "no function with line information holds anything itself%s%s: 'memprof report --by function' "
                         "shows those that do",
                         o->report->device ? ", on " : "", o->report->device ? o->report->device : "");
    return error_set(err, ENOENT, "nothing to show%s%s", o->report->device ? ", on " : "",
                     o->report->device ? o->report->device : "");
}

/* What functions without lines hold cannot be shown here, and is most of some recordings. */
static void print_lineless(struct lines *l)
{
    static const char sql[] =
        "SELECT CAST(total(at_peak_bytes) AS INTEGER), CAST(total(CASE WHEN file_id IS NULL THEN at_peak_bytes END) AS "
        "INTEGER) FROM account JOIN line ON line_id = key_id WHERE scope = 'line' AND inclusive = 0 AND kind = 'all' "
        "AND "
        "(?1 IS NULL OR device_id = (SELECT device_id FROM device WHERE name = ?1))";
    sqlite3_stmt *s = NULL;
    struct buf text = BUF(1024);
    if (db_prepare(l->db, sql, &s, NULL) == 0) {
        sqlite3_bind_text(s, 1, l->options->report->device, -1, SQLITE_STATIC);
        if (sqlite3_step(s) == SQLITE_ROW) {
            double all = (double)sqlite3_column_int64(s, 0), lineless = (double)sqlite3_column_int64(s, 1);
            if (lineless > all / 2)
                buf_printf(&text,
                           "! %d %% of the peak is in code without line information, which is not here: 'memprof "
                           "report --by function' shows it",
                           (int)(100 * lineless / all));
        }
    }
    sqlite3_finalize(s);
    if (text.length)
        table_prose(l->out, TABLE_STRONG, text.data);
    buf_free(&text);
}

/* Nobody asked for a certain function: those whose source can be shown say more. */
static void print_best(struct lines *l, struct record *document, const struct lines_groups *groups)
{
    const struct report_options *o = l->options->report;
    int64_t top = o->top > 0 ? o->top : o->top == 0 ? groups->count : DEFAULT_BEST;
    int printed = 0, skipped = 0;
    for (int pass = 0; pass < 2 && printed == 0; pass++) {
        for (int i = 0; i < groups->count && printed < top; i++) {
            use_source(l, &groups->group[i]);
            if (pass == 0 && !l->source.text) {
                skipped++;
                continue;
            }
            if (printed++)
                fputc('\n', l->out->file);
            print_group(l, document, &groups->group[i]);
        }
    }
    if (printed && skipped && skipped < groups->count) {
        fputc('\n', l->out->file);
        table_prose(l->out, TABLE_DIM,
                    "Functions whose source cannot be read here are left out; --func NAME shows any.");
    }
}

static void print_groups(struct lines *l, struct record *document, struct lines_groups *groups)
{
    const struct report_options *o = l->options->report;
    int64_t top = o->top >= 0 ? o->top : DEFAULT_GROUPS;
    struct buf left_out = BUF(1 << 17);
    lines_prefer_own(l->db, l->options, groups, &left_out);
    int shown = top > 0 && top < groups->count ? (int)top : groups->count;
    for (int i = 0; i < shown; i++) {
        if (i)
            fputc('\n', l->out->file);
        print_group(l, document, &groups->group[i]);
    }
    if (shown < groups->count) {
        struct buf text = BUF(256);
        char count[UNITS_TEXT];
        buf_printf(&text, "%s more function%s; --top 0 shows all", units_count(count, groups->count - shown),
                   groups->count - shown == 1 ? "" : "s");
        fputc('\n', l->out->file);
        table_prose(l->out, TABLE_DIM, text.data);
        buf_free(&text);
    }
    if (left_out.length) {
        fputc('\n', l->out->file);
        table_prose(l->out, TABLE_DIM, left_out.data);
    }
    buf_free(&left_out);
}

int lines_report(sqlite3 *db, const struct lines_options *options, const struct report_out *out, struct error *err)
{
    struct lines l = {.db = db, .options = options, .out = out, .cwd = db_meta_text(db, "cwd")};
    struct lines_groups groups = {0};
    struct record document;
    int rc = report_check_names(db, options->report->device, options->report->kind, err);
    if (rc == 0)
        rc = lines_load(db, options, &groups, err);
    if (rc == 0 && groups.count == 0)
        rc = missing(options, &groups, err);
    if (rc == 0 && groups.count == 0)
        rc = nothing(db, options, err);
    record_open(&document, out);
    if (rc == 0 && out->format == REPORT_TEXT) {
        notes_print(db, out);
        if (is_default(options)) {
            print_lineless(&l);
            print_best(&l, &document, &groups);
        } else {
            print_groups(&l, &document, &groups);
        }
    } else if (rc == 0) {
        record_groups(&l, &document, &groups);
    }
    record_close(&document);
    if (rc == 0)
        rc = missing(options, &groups, err);
    lines_unload(&groups);
    source_free(&l.source);
    free(l.cwd);
    return rc;
}
