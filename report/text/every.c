#include "every.h"

#include "../../common/db.h"
#include "../../common/map.h"
#include "../../common/units.h"
#include "../findings/notes.h"
#include "../print/listing.h"
#include "../query/device.h"
#include "../query/growth.h"
#include "../query/marks.h"
#include "../query/merged.h"
#include "../query/theil_sen.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_ROWS = 20, LINES_SHOWN = 10, UNEXPLAINED_LEAST = 4096, LINE_LIMIT = 1 << 20 };

struct every {
    sqlite3 *db;
    const struct every_options *options;
    const struct report_out *out;
    char *cwd;
    struct executions executions;
    struct executions_result result;
    struct growth *growth; /* NULL: too few executions */
    int64_t rest;          /* executions that growth is measured over */
    uint32_t ended;
    int has_threads, has_processes; /* executions of several */
    struct map pid_of, tid_of;
};

static const struct column columns[] = {
    COLUMN("device", NULL, TEXT),
    COLUMN("nth", "nth", COUNT),
    COLUMN("name", "name", TEXT, .cut = TEXT_CUT_MIDDLE),
    COLUMN("nth_of_name", NULL, COUNT),
    COLUMN("pid", "pid", NUMBER),
    COLUMN("tid", "thread", NUMBER),
    COLUMN("start_ns", "start", NS),
    COLUMN("lasted_ns", "lasted", NS),
    COLUMN("is_ended", NULL, NUMBER),
    COLUMN("start_bytes", "at entry", BYTES, .none = "-"),
    COLUMN("peak_bytes", "peak", BYTES, .none = "-"),
    COLUMN("end_bytes", "at exit", BYTES, .none = "-"),
    COLUMN("net_growth_bytes", "net growth", BYTES, .none = "-"),
    COLUMN("alloc_bytes", "allocated", BYTES, .none = "-", .flags = COLUMN_OPTIONAL),
    COLUMN("alloc_count", "allocs", COUNT, .none = "-", .flags = COLUMN_OPTIONAL),
    COLUMN("free_bytes", "freed", BYTES, .none = "-", .flags = COLUMN_OPTIONAL),
    COLUMN("free_count", NULL, COUNT),
};
enum { COLUMN_AT_name = 2, COLUMN_AT_pid = 4, COLUMN_AT_tid };

/* --- what is shown ----------------------------------------------------------------------------------------------- */

static int load_numbers(sqlite3 *db, const char *sql, struct map *numbers, struct error *err)
{
    sqlite3_stmt *s = NULL;
    int rc = db_prepare(db, sql, &s, err);
    while (db_next(s, &rc, err))
        map_set_number(numbers, (uint64_t)sqlite3_column_int64(s, 0), 0, (uint32_t)sqlite3_column_int64(s, 1));
    sqlite3_finalize(s);
    return rc;
}

static int load(struct every *v, struct error *err)
{
    struct executions *e = &v->executions;
    struct executions_samples samples;
    struct executions_options options = {.with_rows = 1,
                                         .kind = v->options->report->kind,
                                         .progress = v->options->progress,
                                         .progress_arg = v->options->progress_arg};
    int rc = merged_refuse(v->db, "--every", err);
    rc = rc ? rc : marks_find_executions(v->db, "--every", v->options->name, e, err);
    if (rc)
        return rc;
    for (uint32_t i = 0; i < e->count; i++) {
        v->ended += e->execution[i].is_ended;
        v->has_processes |= e->execution[i].process_id != e->execution[0].process_id;
        v->has_threads |= e->execution[i].thread_id != e->execution[0].thread_id;
    }
    rc = load_numbers(v->db, "SELECT process_id, pid FROM main.process", &v->pid_of, err);
    if (rc == 0)
        rc = load_numbers(v->db, "SELECT thread_id, tid FROM main.thread", &v->tid_of, err);
    v->growth = growth_open(e, v->options->warmup, &v->rest);
    if (v->growth) {
        growth_samples(v->growth, &samples);
        options.samples = &samples;
    }
    if (rc == 0)
        rc = executions_measure(v->db, e, &options, &v->result, err);
    if (rc == -ENODATA)
        rc = error_set(
            err, EINVAL,
            "--every needs the events, which this recording did not keep (--aggregate), or which are damaged");
    if (rc == -E2BIG)
        rc = error_set(err, EFBIG, "--every %.200s: too many stacks change in each execution", v->options->name);
    if (v->result.has_unknown_sample || v->result.chunks_damaged) {
        growth_close(v->growth);
        v->growth = NULL;
    }
    return rc;
}

static int is_shown(const struct every *v, const struct executions_device *d)
{
    const char *device = v->options->report->device;
    if (device)
        return device_is(d->name, device);
    for (uint32_t i = 0; i < v->executions.count; i++)
        if (d->rows[i].peak_bytes || d->rows[i].alloc_count || d->rows[i].free_count)
            return 1;
    return 0;
}

/* The slope of what is live at the ends, in their order, and how far it moves in all; 0 with is_known 0 where growth is
 * not known. */
static double exit_slope(const struct every *v, const struct executions_device *d, int *is_known, double *range)
{
    size_t count = 0;
    const uint32_t *ends = v->growth ? growth_ends(v->growth, &count) : NULL;
    int64_t *values = xcalloc(count + 1, sizeof *values);
    int64_t least = INT64_MAX, most = INT64_MIN;
    for (size_t i = 0; i < count; i++) {
        values[i] = d->rows[ends[i]].end_bytes;
        least = values[i] < least ? values[i] : least;
        most = values[i] > most ? values[i] : most;
    }
    *range = count ? (double)most - (double)least : 0;
    double slope = theil_sen_slope(NULL, values, count);
    *is_known = ends != NULL;
    free(values);
    return slope;
}

/* --- rows -------------------------------------------------------------------------------------------------------- */

/* People get what --during takes. */
static void list_name(const struct every *v, struct listing *l, const struct execution *x)
{
    struct buf name = BUF(LINE_LIMIT);
    buf_puts(&name, v->executions.names[x->name]);
    if (v->out->format == REPORT_TEXT)
        buf_printf(&name, "#%u", x->nth_of_name);
    listing_text(l, buf_text(&name));
    buf_free(&name);
}

static void list_row(const struct every *v, struct listing *l, const struct executions_device *d, uint32_t i)
{
    const struct execution *x = &v->executions.execution[i];
    const struct execution_row *row = &d->rows[i];
    const uint32_t pid = map_number(&v->pid_of, (uint64_t)x->process_id, 0);
    const uint32_t tid = map_number(&v->tid_of, (uint64_t)x->thread_id, 0);
    int64_t lasted_ns = 0;
    /* of one that never ended in a process that was not seen to end, too, nothing says how long */
    const int is_timed = x->end_ns < INT64_MAX && !__builtin_sub_overflow(x->end_ns, x->start_ns, &lasted_ns);
    if (!x->is_ended)
        listing_style(l, TABLE_DIM);
    listing_text(l, d->name);
    listing_int(l, i + 1);
    list_name(v, l, x);
    listing_int(l, x->nth_of_name);
    listing_int_if(l, pid != MAP_NONE, pid);
    listing_int_if(l, tid != MAP_NONE, tid);
    listing_int(l, x->start_ns);
    listing_int_if(l, is_timed, lasted_ns);
    listing_int(l, x->is_ended);
    listing_int_if(l, x->is_known, row->start_bytes);
    listing_int_if(l, x->is_known, row->peak_bytes);
    listing_int_if(l, x->is_known, row->end_bytes);
    listing_int_if(l, x->is_known, row->end_bytes - row->start_bytes);
    listing_int_if(l, x->is_known, row->alloc_bytes);
    listing_int_if(l, x->is_known, row->alloc_count);
    listing_int_if(l, x->is_known, row->free_bytes);
    listing_int_if(l, x->is_known, row->free_count);
}

static void list_gap(struct listing *l)
{
    listing_style(l, TABLE_DIM);
    for (size_t i = 0; i < COLUMN_COUNT_OF(columns); i++)
        listing_text(l, i == 1 ? "..." : "");
}

/* Long tables lose their middle. */
static void list_rows(const struct every *v, struct listing *l, const struct executions_device *d)
{
    const int64_t top = v->options->report->top, count = v->executions.count;
    const int64_t rows = v->out->format != REPORT_TEXT ? (top > 0 ? top : count) : top < 0 ? DEFAULT_ROWS : top;
    const int64_t head = !rows || rows >= count ? count : rows - rows / 2, tail = head == count ? 0 : rows / 2;
    for (int64_t i = 0; i < head; i++)
        list_row(v, l, d, (uint32_t)i);
    if (head + tail < count && v->out->format == REPORT_TEXT)
        list_gap(l);
    for (int64_t i = count - tail; i < count; i++)
        list_row(v, l, d, (uint32_t)i);
}

/* --- for people -------------------------------------------------------------------------------------------------- */

static void print_line(const struct every *v, enum table_style style, struct buf *text)
{
    table_prose(v->out, style, buf_text(text));
    buf_reset(text);
}

/* "+1024.0 B", "+60.30 KiB (61,744)": of a few KiB the part of a byte still says something. */
static const char *per_execution(char text[3 * UNITS_TEXT], double slope)
{
    char units[UNITS_TEXT], count[UNITS_TEXT];
    const int64_t whole = fabs(slope) < 9e18 ? llround(slope) : 0;
    if (fabs(slope) < 10240)
        snprintf(text, 3 * UNITS_TEXT, "%+.1f B", slope);
    else
        snprintf(text, 3 * UNITS_TEXT, "%s%s (%s)", slope > 0 ? "+" : "", units_bytes(units, whole),
                 units_count(count, whole));
    return text;
}

/* The lines that grow, and what is left of all growth. */
static void say_of_lines(const struct every *v, const struct growth_result *g, struct buf *text)
{
    char amount[3 * UNITS_TEXT];
    double rest = g->slope;
    for (int i = 0; i < g->line_count; i++)
        rest -= g->line[i].slope;
    for (int i = 0; i < g->line_count && i < LINES_SHOWN; i++) {
        const struct growth_line *line = &g->line[i];
        buf_printf(text, "  %s  %s", per_execution(amount, line->slope), line->function ? line->function : "??");
        if (line->file) {
            buf_puts(text, "  ");
            text_path(text, line->file, v->cwd);
            if (line->line > 0)
                buf_printf(text, ":%lld", (long long)line->line);
        }
        if (line->from)
            buf_printf(text, "  from execution %s or so on", units_count(amount, line->from));
        table_line(v->out, TABLE_PLAIN, buf_text(text));
        buf_reset(text);
    }
    if (g->line_count > LINES_SHOWN) {
        buf_printf(text, "  and %d more lines (--json has all)", g->line_count - LINES_SHOWN);
        print_line(v, TABLE_DIM, text);
    }
    if (g->line_count && (rest >= 0.05 || rest <= -0.05)) {
        buf_printf(text, "  %s  all other stacks together, where each is too random to tell",
                   per_execution(amount, rest));
        print_line(v, TABLE_PLAIN, text);
    }
}

/* Of what swings the slope is little of how far it moves. */
static void say_of_unexplained(const struct every *v, double slope, double steady, double range, struct buf *text)
{
    const double rise = (slope - steady) * (double)v->rest;
    if (slope < 2 * steady || rise < UNEXPLAINED_LEAST || rise < range / 2 || v->rest < 2 * GROWTH_LEAST)
        return;
    buf_printf(text,
               "What is live at exit grows by far more, which no stack does throughout. --warmup %lld looks at the "
               "second half alone.",
               (long long)(v->options->warmup + v->rest / 2));
    print_line(v, TABLE_PLAIN, text);
}

static void say_of_growth(const struct every *v, const struct executions_device *d, const struct growth_result *g,
                          struct buf *text)
{
    int is_known;
    double range;
    double slope = exit_slope(v, d, &is_known, &range);
    char count[UNITS_TEXT], amount[3 * UNITS_TEXT];
    if (!is_known && (v->result.has_unknown_sample || v->result.chunks_damaged))
        buf_puts(text, "! What grows is not known, as events are missing.");
    else if (!is_known)
        buf_printf(text,
                   "Too few to tell what grows: %s execution%s ended; the first %lld %s not count, and %d more are "
                   "needed.",
                   units_count(count, v->ended), v->ended == 1 ? "" : "s", (long long)v->options->warmup,
                   v->options->warmup == 1 ? "does" : "do", GROWTH_LEAST);
    if (text->length) {
        print_line(v, TABLE_PLAIN, text);
        return;
    }
    buf_printf(text, "At exit: %s an execution (the median slope of all pairs; the first %lld left out).",
               per_execution(amount, slope), (long long)v->options->warmup);
    print_line(v, TABLE_PLAIN, text);
    if (g->slope == 0 && !g->line_count)
        buf_puts(text, "Nothing grows steadily.");
    else
        buf_printf(text, "Steady growth: %s an execution%s", per_execution(amount, g->slope),
                   g->line_count ? ", by line:" : ".");
    print_line(v, g->slope > 0 ? TABLE_STRONG : TABLE_PLAIN, text);
    say_of_lines(v, g, text);
    say_of_unexplained(v, slope, g->slope, range, text);
}

static void say_of_executions(const struct every *v, const struct executions_device *d, struct buf *text)
{
    const struct executions *e = &v->executions;
    char bytes[UNITS_TEXT], count[UNITS_TEXT];
    uint32_t unknown = 0;
    int64_t most = -1;
    for (uint32_t i = 0; i < e->count; i++) {
        unknown += !e->execution[i].is_known;
        if (e->execution[i].is_known && (most < 0 || d->rows[i].peak_bytes > d->rows[most].peak_bytes))
            most = i;
    }
    if (most >= 0) {
        buf_printf(text, "Highest peak: %s, in execution %s.", units_bytes(bytes, d->rows[most].peak_bytes),
                   units_count(count, most + 1));
        print_line(v, TABLE_PLAIN, text);
    }
    if (v->ended < e->count) {
        buf_printf(text, "! %s never ended: shown up to the end of the process, and left out of what grows.",
                   units_count(count, e->count - v->ended));
        print_line(v, TABLE_PLAIN, text);
    }
    if (unknown) {
        buf_printf(text, "! The events of %s were not kept (--max-events).", units_count(count, unknown));
        print_line(v, TABLE_PLAIN, text);
    }
}

static void print_device(const struct every *v, const struct executions_device *d, const struct growth_result *g)
{
    struct buf text = BUF(LINE_LIMIT);
    struct column shown[COLUMN_COUNT_OF(columns)];
    const struct executions *e = &v->executions;
    char count[UNITS_TEXT];
    memcpy(shown, columns, sizeof shown);
    shown[COLUMN_AT_name].title = e->name_count > 1 ? shown[COLUMN_AT_name].title : NULL;
    shown[COLUMN_AT_pid].title = v->has_processes ? shown[COLUMN_AT_pid].title : NULL;
    shown[COLUMN_AT_tid].title = v->has_threads ? shown[COLUMN_AT_tid].title : NULL;
    buf_printf(&text, "%s: %s execution%s, %s", v->options->name, units_count(count, e->count),
               e->count == 1 ? "" : "s", d->name);
    if (v->options->report->kind)
        buf_printf(&text, ", %s", v->options->report->kind);
    print_line(v, TABLE_STRONG, &text);
    struct listing *l = listing_open(shown, COLUMN_COUNT_OF(columns), v->out, v->cwd);
    list_rows(v, l, d);
    listing_print(l);
    listing_close(l);
    const int64_t top = v->options->report->top;
    if (top && e->count > (top < 0 ? DEFAULT_ROWS : top))
        table_prose(v->out, TABLE_DIM, "The executions in the middle are left out; --top 0 shows all.");
    fputc('\n', v->out->file);
    say_of_executions(v, d, &text);
    say_of_growth(v, d, g, &text);
    buf_free(&text);
}

/* --- for programs ------------------------------------------------------------------------------------------------ */

static void record_growth(struct every *v, const struct executions_device *d, const struct growth_result *g,
                          struct record *r)
{
    int is_known;
    double range;
    double slope = exit_slope(v, d, &is_known, &range);
    record_begin(r);
    record_text(r, "device", d->name);
    if (is_known) {
        record_real(r, "exit_slope_bytes", slope);
        record_real(r, "growth_per_execution", g->slope);
    } else {
        record_null(r, "exit_slope_bytes");
        record_null(r, "growth_per_execution");
    }
    struct buf json = BUF(1 << 26);
    struct record lines;
    record_open_in(&lines, &json);
    for (int i = 0; i < g->line_count; i++) {
        record_begin(&lines);
        record_real(&lines, "growth_per_execution", g->line[i].slope);
        record_int_if(&lines, "from_execution", g->line[i].from > 0, g->line[i].from);
        record_text(&lines, "function", g->line[i].function);
        record_text(&lines, "file", g->line[i].file);
        record_int_if(&lines, "line", g->line[i].line > 0, g->line[i].line);
        record_int(&lines, "stack_id", g->line[i].stack_id);
        record_end(&lines);
    }
    record_close(&lines);
    record_raw(r, "lines", json.length ? json.data : "[]");
    buf_free(&json);
    record_end(r);
}

static void record_all(struct every *v, const struct growth_result *growth)
{
    struct record document;
    record_open(&document, v->out);
    record_document_begin(&document);
    notes_record(v->db, v->options->report->file, &document);
    record_member_text(&document, "range", v->options->name);
    record_member_int(&document, "execution_count", v->executions.count);
    record_member_int(&document, "ended_count", v->ended);
    record_member_int(&document, "warmup", v->options->warmup);
    record_member_int(&document, "chunks_damaged", v->result.chunks_damaged);
    if (v->out->format == REPORT_JSON) {
        record_array_begin(&document, "growth");
        for (uint32_t i = 0; i < v->result.device_count; i++)
            if (is_shown(v, &v->result.device[i]))
                record_growth(v, &v->result.device[i], &growth[i], &document);
        record_array_end(&document);
    }
    struct listing *l = listing_open_in(&document, "executions", columns, COLUMN_COUNT_OF(columns), NULL);
    for (uint32_t i = 0; i < v->result.device_count; i++)
        if (is_shown(v, &v->result.device[i]))
            list_rows(v, l, &v->result.device[i]);
    listing_close(l);
    record_document_end(&document);
    record_close(&document);
}

/* --- all --------------------------------------------------------------------------------------------------------- */

static int sum_up(struct every *v, struct growth_result *growth, struct error *err)
{
    const struct report_options *o = v->options->report;
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && v->growth && i < v->result.device_count; i++) {
        const struct growth_filter filter = {
            .device = v->result.device[i].name, .kind = o->kind, .language = report_language(o)};
        if (is_shown(v, &v->result.device[i]))
            rc = growth_sum_up(v->growth, v->db, &filter, 1, &growth[i], err);
    }
    return rc;
}

static void print_all(struct every *v, const struct growth_result *growth)
{
    int shown = 0;
    notes_print(v->db, v->out);
    for (uint32_t i = 0; i < v->result.device_count; i++) {
        if (!is_shown(v, &v->result.device[i]))
            continue;
        if (shown++)
            fputc('\n', v->out->file);
        print_device(v, &v->result.device[i], &growth[i]);
    }
    if (!shown)
        table_prose(v->out, TABLE_PLAIN, "Nothing was live, allocated or freed in any execution.");
}

int every_report(sqlite3 *db, const struct every_options *options, const struct report_out *out, struct error *err)
{
    struct every v = {.db = db, .options = options, .out = out, .cwd = db_meta_text(db, "cwd")};
    struct growth_result *growth = NULL;
    int rc = device_check(db, options->report->device, options->report->kind, err);
    if (rc == 0)
        rc = load(&v, err);
    if (rc == 0) {
        growth = xcalloc(v.result.device_count + 1ul, sizeof *growth);
        rc = sum_up(&v, growth, err);
    }
    if (rc == 0 && out->format == REPORT_TEXT)
        print_all(&v, growth);
    else if (rc == 0)
        record_all(&v, growth);
    for (uint32_t i = 0; growth && i < v.result.device_count; i++)
        growth_result_free(&growth[i]);
    free(growth);
    growth_close(v.growth);
    executions_result_free(&v.result);
    executions_free(&v.executions);
    map_close(&v.pid_of);
    map_close(&v.tid_of);
    free(v.cwd);
    return rc;
}
