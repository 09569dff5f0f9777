#include "lines.h"

#include "../../common/db.h"
#include "../findings/notes.h"
#include "../print/table.h"
#include "../query/source.h"
#include "lines_load.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    DEFAULT_GROUPS = 10, /* of those that were asked for */
    DEFAULT_BEST = 5,    /* when none was */
    GAP_LINES = 100,     /* lines without data in a row beyond which most are left out */
    GAP_CONTEXT = 5,
    AFTER_LINES = 3, /* shown after the last line with data, as far as the function goes */
    TAB = 8
};

struct lines {
    sqlite3 *db;
    const struct lines_options *options;
    const struct report_out *out;
    char *cwd;
    struct source source; /* of source_file_id */
    int64_t source_file_id;
    int64_t warned_file_id; /* whose change on disk was said */
    int is_missing_said[2]; /* that a source cannot be read, and [1] what helps */
    int is_device_said;     /* whose peaks the columns show */
};

static const int default_stats[] = {STAT_active_peak_bytes, STAT_reserved_peak_bytes, STAT_net_growth, STAT_alloc_count,
                                    STAT_temporary_count};

int lines_columns(const char *list, struct lines_options *options, struct error *err)
{
    options->stat_count = 0;
    if (!list) {
        memcpy(options->stats, default_stats, sizeof default_stats);
        options->stat_count = sizeof default_stats / sizeof *default_stats;
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

/* "active.peak" -> "active\npeak"; counts of allocations and temporaries by their short names. */
static void column_title(int stat, char title[32])
{
    if (stat == STAT_alloc_count)
        strcpy(title, "allocs");
    else if (stat == STAT_temporary_count)
        strcpy(title, "temp");
    else
        snprintf(title, 32, "%s", stat_infos[stat].name);
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

/* Source text with its tabs made spaces, as columns count from the beginning of the code. */
static void add_code(struct table *t, const struct source *source, int64_t line)
{
    size_t length = 0, column = 0;
    const char *text = source_line(source, line, &length);
    struct buf code = BUF(1 << 16);
    for (size_t i = 0; text && i < length; i++) {
        size_t spaces = text[i] == '\t' ? TAB - column % TAB : 0;
        if (spaces)
            buf_printf(&code, "%*s", (int)spaces, "");
        else
            buf_putc(&code, text[i]);
        column += spaces ? spaces : 1;
    }
    table_text(t, buf_text(&code));
    buf_free(&code);
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
    int64_t next = lines_next_function(l->db, g);
    for (int64_t line = high + 1; line <= l->source.line_count && line - high <= AFTER_LINES && line < next; line++) {
        size_t length;
        const char *text = source_line(&l->source, line, &length);
        *last = line;
        /* a brace in the first column ends a function in every common style */
        if (length && text[0] == '}')
            break;
    }
}

static void add_row(struct lines *l, struct table *t, int64_t line, const struct stat_row *stats, int is_heaviest)
{
    char number[32];
    table_row_style(t, !stats ? TABLE_DIM : is_heaviest ? TABLE_STRONG : TABLE_PLAIN);
    for (int i = 0; i < l->options->stat_count; i++) {
        if (stats)
            stat_cell(t, stats, l->options->stats[i], 1);
        else
            table_text(t, "");
    }
    snprintf(number, sizeof number, "%lld", (long long)line);
    table_text(t, line > 0 ? number : "?");
    add_code(t, &l->source, line);
}

static void add_gap(struct lines *l, struct table *t)
{
    table_row_style(t, TABLE_DIM);
    for (int i = 0; i < l->options->stat_count; i++)
        table_text(t, "");
    table_text(t, "...");
    table_text(t, "");
}

static void fill(struct lines *l, const struct lines_group *g, struct table *t)
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
        add_row(l, t, line, has_data ? &g->lines[index].stats : NULL, is_heaviest);
        int64_t after = index < g->line_count
                            ? (has_data ? (index + 1 < g->line_count ? g->lines[index + 1].line : last) : next)
                            : last;
        if (after - line > GAP_LINES && (has_data || line == first)) {
            for (int i = 1; i <= GAP_CONTEXT; i++)
                add_row(l, t, line + i, NULL, 0);
            add_gap(l, t);
            line = after - GAP_CONTEXT - 1;
        }
    }
}

static int has_device_peak(const struct lines_options *o)
{
    for (int i = 0; i < o->stat_count; i++)
        if (o->stats[i] == STAT_active_peak_bytes || o->stats[i] == STAT_reserved_peak_bytes)
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
        table_line(l->out, TABLE_PLAIN, title.data);
    if (has_device_peak(l->options) && !l->is_device_said++)
        table_line(l->out, TABLE_DIM,
                   "(active peak, reserved peak: the highest of the whole device while the line was on the stack)");
    fputc('\n', l->out->file);
    buf_free(&title);
}

static void print_group(struct lines *l, const struct lines_group *g)
{
    struct table_column columns[TABLE_COLUMNS_MAX];
    char titles[STAT_SHOWN_COUNT][32];
    int count = 0;
    for (int i = 0; i < l->options->stat_count; i++) {
        column_title(l->options->stats[i], titles[i]);
        columns[count++] = (struct table_column){titles[i], TABLE_RIGHT, TEXT_CUT_NONE, 0};
    }
    columns[count++] = (struct table_column){"line", TABLE_RIGHT, TEXT_CUT_NONE, 0};
    columns[count++] = (struct table_column){"code", TABLE_LEFT, TEXT_CUT_RIGHT, 0};
    use_source(l, g);
    print_title(l, g);
    struct table *t = table_open(columns, count);
    fill(l, g, t);
    table_print(t, l->out);
    table_close(t);
}

static void record_group(struct lines *l, struct record *r, const struct lines_group *g)
{
    use_source(l, g);
    for (int i = 0; i < g->line_count; i++) {
        size_t length = 0;
        struct buf code = BUF(1 << 20);
        const char *text = source_line(&l->source, g->lines[i].line, &length);
        if (text)
            buf_add(&code, text, length);
        record_begin(r);
        record_text(r, "device", g->device);
        record_text(r, "kind", l->options->report->kind ? l->options->report->kind : "all");
        record_text(r, "function", g->name);
        record_text(r, "file", g->path);
        if (g->declared_line > 0)
            record_int(r, "declared_line", g->declared_line);
        else
            record_null(r, "declared_line");
        record_int(r, "line", g->lines[i].line);
        record_text(r, "code", text ? code.data : NULL);
        stat_record(r, &g->lines[i].stats);
        record_end(r);
        buf_free(&code);
    }
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

static int nothing(sqlite3 *db, const struct lines_options *o, struct error *err)
{
    if (db_int(db, "SELECT count(*) FROM line WHERE file_id IS NOT NULL", 0) == 0)
        return error_set(err, ENOENT,
                         "no function in this recording has line information; compile with -g, see 'memprof info'");
    return error_set(err, ENOENT, "nothing to show%s%s", o->report->device ? ", on " : "",
                     o->report->device ? o->report->device : "");
}

static int is_default(const struct lines_options *o)
{
    return o->function_count == 0 && o->file_count == 0;
}

/* Nobody asked for a certain function: those whose source can be shown say more. */
static void print_best(struct lines *l, const struct lines_groups *groups)
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
            print_group(l, &groups->group[i]);
        }
    }
    if (printed && skipped && skipped < groups->count) {
        fputc('\n', l->out->file);
        table_line(l->out, TABLE_DIM,
                   "Functions whose source cannot be read here are left out; --func NAME shows any.");
    }
}

static void print_groups(struct lines *l, const struct lines_groups *groups)
{
    const struct report_options *o = l->options->report;
    int64_t top = o->top >= 0 ? o->top : DEFAULT_GROUPS;
    int shown = top > 0 && top < groups->count ? (int)top : groups->count;
    for (int i = 0; i < shown; i++) {
        if (i)
            fputc('\n', l->out->file);
        print_group(l, &groups->group[i]);
    }
    if (shown < groups->count) {
        struct buf text = BUF(256);
        buf_printf(&text, "%d more function%s; --top 0 shows all", groups->count - shown,
                   groups->count - shown == 1 ? "" : "s");
        fputc('\n', l->out->file);
        table_line(l->out, TABLE_DIM, text.data);
        buf_free(&text);
    }
}

int lines_report(sqlite3 *db, const struct lines_options *options, const struct report_out *out, struct error *err)
{
    struct lines l = {.db = db, .options = options, .out = out, .cwd = db_meta_text(db, "cwd")};
    struct lines_groups groups = {0};
    struct record r;
    int rc = report_check_names(db, options->report->device, options->report->kind, err);
    if (rc == 0)
        rc = lines_load(db, options, &groups, err);
    if (rc == 0 && groups.count == 0)
        rc = missing(options, &groups, err);
    if (rc == 0 && groups.count == 0)
        rc = nothing(db, options, err);
    if (rc == 0 && out->format == REPORT_TEXT) {
        notes_print(db, out);
        if (is_default(options))
            print_best(&l, &groups);
        else
            print_groups(&l, &groups);
    } else if (rc == 0) {
        record_open(&r, out);
        record_document_begin(&r);
        notes_record(db, options->report->file, &r);
        record_array_begin(&r, "lines");
        for (int i = 0; i < groups.count; i++)
            if (options->report->top <= 0 || i < options->report->top)
                record_group(&l, &r, &groups.group[i]);
        record_array_end(&r);
        record_document_end(&r);
        record_close(&r);
    }
    if (rc == 0)
        rc = missing(options, &groups, err);
    lines_unload(&groups);
    source_free(&l.source);
    free(l.cwd);
    return rc;
}
