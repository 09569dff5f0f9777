#include "diff.h"

#include "../../common/db.h"
#include "../../common/units.h"
#include "../../common/wrap.h"
#include "../findings/advice.h"
#include "../findings/notes.h"
#include "../print/listing.h"
#include "../query/device.h"
#include "../query/diff_text.h"
#include "../query/estimate.h"
#include "../query/rotated_part.h"
#include "../query/walk.h"
#include "diff_next.h"
#include "report.h"
#include "stack.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_TOP = 20, DEFAULT_STACKS = 5 };

static const char *const side_names[] = {"old", "new"};

struct printer {
    const struct diff_report *report;
    const struct report_out *out;
    struct diff diff;
    struct walk **walks[DIFF_SIDES]; /* by recording; opened when a stack of it is shown */
    char *cwd[DIFF_SIDES];           /* of the first recording of each */
    int device_count;                /* that have anything */
    int is_sampled;                  /* one of the recordings is */
};

/* --- numbers --- */

static const char *plain(char text[UNITS_TEXT], int stat, int64_t value)
{
    static const char *(*const forms[])(char *, int64_t) = {
        [STAT_UNIT_bytes] = units_bytes, [STAT_UNIT_count] = units_count, [STAT_UNIT_ns] = units_ns};
    return forms[stat_infos[stat].unit](text, value);
}

static const char *plus_minus(const struct printer *p)
{
    return p->out->utf8 ? "\xc2\xb1" : "+-";
}

/* The error is in the difference's own unit: per cent of a small difference would say nothing. */
static void add_difference(const struct printer *p, struct buf *out, const struct diff_row *row, int stat)
{
    char text[UNITS_TEXT];
    int known;
    int64_t difference = diff_of(row, stat, &known);
    buf_puts(out, !known ? "-" : difference > 0 ? "+" : "");
    if (known)
        buf_puts(out, plain(text, stat, difference));
    const double error = known ? diff_error(row, stat) : 0;
    if (error > 0)
        buf_printf(out, " %s%s", plus_minus(p), plain(text, stat, llround(error)));
    else if (error < 0)
        buf_printf(out, " %s?", plus_minus(p));
}

static void list_difference(const struct printer *p, struct listing *l, const struct diff_row *row, int stat)
{
    struct buf text = BUF(64);
    add_difference(p, &text, row, stat);
    listing_text(l, text.data);
    buf_free(&text);
}

static void list_value(const struct printer *p, struct listing *l, const struct diff_row *row, int side, int stat)
{
    char text[UNITS_TEXT], mark[LISTING_MARK], marked[UNITS_TEXT + LISTING_MARK];
    int known;
    int64_t value = stat_value(&row->stats[side], stat, &known);
    plain(text, stat, value);
    snprintf(marked, sizeof marked, "%s%s", text,
             listing_mark(mark, p->out, value, stat_error(&row->stats[side], stat)));
    listing_text(l, known ? marked : "-");
}

/* The directory that paths of a row are shown from. */
static const char *base_of(const struct printer *p, const struct diff_row *row)
{
    return p->cwd[row->item[DIFF_NEW] ? DIFF_NEW : DIFF_OLD];
}

/* --- the head --- */

static void add_peaks(const struct printer *p, sqlite3 *db, struct buf *out)
{
    sqlite3_stmt *s = NULL;
    struct estimates *estimates = estimates_open(db);
    char text[UNITS_TEXT];
    const int several = report_has_devices(db, NULL);
    if (sqlite3_prepare_v2(db,
                           "SELECT d.name, t.peak_active_bytes FROM total t JOIN device d USING(device_id) WHERE "
                           "t.kind = 'all' AND t.peak_active_bytes > 0 ORDER BY device_id",
                           -1, &s, NULL) == SQLITE_OK)
        while (sqlite3_step(s) == SQLITE_ROW) {
            const int64_t bytes = sqlite3_column_int64(s, 1);
            const double error = estimates_bound(estimates, db_text(s, 0), bytes);
            buf_printf(out, "%s%s%s%s", out->length ? ", " : "", several ? db_text(s, 0) : "", several ? " " : "",
                       units_bytes(text, bytes));
            if (error > 0)
                buf_printf(out, " %s%s", plus_minus(p), units_bytes(text, llround(error)));
        }
    sqlite3_finalize(s);
    estimates_close(estimates);
    if (!out->length)
        buf_puts(out, "0 B");
}

static void print_head(const struct printer *p)
{
    static const struct column columns[] = {
        COLUMN(NULL, "", TEXT),         COLUMN(NULL, "file", TEXT, .cut = TEXT_CUT_LEFT),
        COLUMN(NULL, "recorded", TEXT), COLUMN(NULL, "peak", NUMBER),
        COLUMN(NULL, "events", COUNT),  COLUMN(NULL, "command", TEXT, .cut = TEXT_CUT_RIGHT),
    };
    struct listing *l = listing_open(columns, COLUMN_COUNT_OF(columns), p->out, NULL);
    for (int side = 0; side < DIFF_SIDES; side++)
        for (int i = 0; i < p->report->counts[side]; i++) {
            sqlite3 *db = p->report->dbs[side][i];
            struct buf peaks = BUF(1 << 16);
            char date[32], *command = db_meta_text(db, "command");
            add_peaks(p, db, &peaks);
            listing_text(l, side_names[side]);
            listing_text(l, p->report->files[side][i]);
            const struct rotated_part part = rotated_part(db);
            listing_text(l, notes_date(date, wrap_add(db_meta_int(db, "start_unix_ns", 0), part.start_ns)));
            listing_text(l, peaks.data);
            listing_int(l, part.event_count);
            listing_text(l, command);
            buf_free(&peaks);
            free(command);
        }
    listing_print(l);
    listing_close(l);
    for (int side = 0; side < DIFF_SIDES; side++)
        for (int i = 0; i < p->report->counts[side]; i++)
            notes_print(p->report->dbs[side][i], p->out);
    advice_arenas_print(p->report->dbs[DIFF_OLD][0], p->report->dbs[DIFF_NEW][0], p->out);
    fputc('\n', p->out->file);
}

/* --- rows --- */

enum {
    COLUMN_match,
    COLUMN_is_by_number,
    COLUMN_is_noise,
    COLUMN_device,
    COLUMN_function,
    COLUMN_file,
    COLUMN_line,
    COLUMN_module,
    COLUMN_offset,
    COLUMN_caller,
    COLUMN_other_callers,
    COLUMN_op,
    COLUMN_phase,
    COLUMN_old_function,
    COLUMN_old_file,
    COLUMN_old_line,
    COLUMN_old_module,
    COLUMN_old,
    COLUMN_new,
    COLUMN_difference,
    COLUMN_difference_error,
    COLUMN_old_least,
    COLUMN_old_most,
    COLUMN_new_least,
    COLUMN_new_most,
    COLUMN_stats,
    COLUMN_frames = COLUMN_stats + 12, /* diff_stats, old and new */
    COLUMN_people,                     /* those below are for people */
    COLUMN_COUNT_ALL = COLUMN_people + 10
};

static const struct column rows_columns[COLUMN_COUNT_ALL] = {
    [COLUMN_match] = COLUMN("match", NULL, TEXT),
    [COLUMN_is_by_number] = COLUMN("is_by_number", NULL, NUMBER),
    [COLUMN_is_noise] = COLUMN("is_noise", NULL, NUMBER),
    [COLUMN_device] = COLUMN("device", NULL, TEXT),
    [COLUMN_function] = COLUMN("function", NULL, TEXT),
    [COLUMN_file] = COLUMN("file", NULL, TEXT),
    [COLUMN_line] = COLUMN("line", NULL, NUMBER),
    [COLUMN_module] = COLUMN("module", NULL, TEXT),
    [COLUMN_offset] = COLUMN("offset", NULL, NUMBER),
    [COLUMN_caller] = COLUMN("caller", NULL, TEXT),
    [COLUMN_other_callers] = COLUMN("other_callers", NULL, NUMBER),
    [COLUMN_op] = COLUMN("op", NULL, TEXT),
    [COLUMN_phase] = COLUMN("phase", NULL, TEXT),
    [COLUMN_old_function] = COLUMN("old_function", NULL, TEXT),
    [COLUMN_old_file] = COLUMN("old_file", NULL, TEXT),
    [COLUMN_old_line] = COLUMN("old_line", NULL, NUMBER),
    [COLUMN_old_module] = COLUMN("old_module", NULL, TEXT),
    [COLUMN_old] = COLUMN("old", NULL, NUMBER),
    [COLUMN_new] = COLUMN("new", NULL, NUMBER),
    [COLUMN_difference] = COLUMN("difference", NULL, NUMBER),
    [COLUMN_difference_error] = COLUMN(NULL, NULL, NUMBER),
    [COLUMN_old_least] = COLUMN("old_least", NULL, NUMBER),
    [COLUMN_old_most] = COLUMN("old_most", NULL, NUMBER),
    [COLUMN_new_least] = COLUMN("new_least", NULL, NUMBER),
    [COLUMN_new_most] = COLUMN("new_most", NULL, NUMBER),
    [COLUMN_stats] = COLUMN("at_peak_bytes_old", NULL, NUMBER),
    COLUMN("at_peak_bytes_new", NULL, NUMBER),
    COLUMN("own_peak_bytes_old", NULL, NUMBER),
    COLUMN("own_peak_bytes_new", NULL, NUMBER),
    COLUMN("end_bytes_old", NULL, NUMBER),
    COLUMN("end_bytes_new", NULL, NUMBER),
    COLUMN("alloc_bytes_old", NULL, NUMBER),
    COLUMN("alloc_bytes_new", NULL, NUMBER),
    COLUMN("alloc_count_old", NULL, NUMBER),
    COLUMN("alloc_count_new", NULL, NUMBER),
    COLUMN("temporary_count_old", NULL, NUMBER),
    COLUMN("temporary_count_new", NULL, NUMBER),
    [COLUMN_frames] = COLUMN(NULL, NULL, TEXT),
    [COLUMN_people] = COLUMN(NULL, "old", NUMBER),
    COLUMN(NULL, "new", NUMBER),
    COLUMN(NULL, "difference", NUMBER),
    COLUMN(NULL, "live at\nthe end", NUMBER, .flags = COLUMN_OPTIONAL),
    COLUMN(NULL, "allocated", NUMBER, .flags = COLUMN_OPTIONAL),
    COLUMN(NULL, "allocs", NUMBER, .flags = COLUMN_OPTIONAL),
    COLUMN(NULL, "device", TEXT),
    COLUMN(NULL, "match", TEXT),
    COLUMN(NULL, "", TEXT, .cut = TEXT_CUT_NAME),
    COLUMN(NULL, "", TEXT, .cut = TEXT_CUT_LEFT),
};

static void list_stat(struct listing *l, const struct diff_row *row, int side, int stat)
{
    int known;
    int64_t value = stat_value(&row->stats[side], stat, &known);
    listing_int_if(l, known, value);
}

static void list_keys(struct listing *l, const struct diff_row *row)
{
    static const struct diff_item nothing = {0};
    const struct diff_item *item = diff_shown_item(row), *old = row->item[DIFF_OLD];
    item = item ? item : &nothing;
    old = old ? old : &nothing;
    listing_text(l, row->device);
    listing_text(l, item->function);
    listing_text(l, item->file);
    listing_int_if(l, item->line > 0, item->line);
    listing_text(l, item->module);
    listing_int_if(l, item->module && !item->function && !item->op && item->offset > 0, item->offset);
    listing_text(l, item->caller);
    listing_int_if(l, item->caller != NULL, item->other_callers);
    listing_text(l, item->op);
    listing_text(l, item->phase);
    listing_text(l, old->function);
    listing_text(l, old->file);
    listing_int_if(l, old->line > 0, old->line);
    listing_text(l, old->module);
}

static void list_numbers(struct listing *l, const struct diff_row *row, int sort)
{
    int known;
    int64_t difference = diff_of(row, sort, &known);
    list_stat(l, row, DIFF_OLD, sort);
    list_stat(l, row, DIFF_NEW, sort);
    listing_int_if(l, known, difference);
    const double error = known ? diff_error(row, sort) : -1;
    listing_int_if(l, error >= 0, error < 9e18 ? llround(error) : INT64_MAX);
    for (int side = 0; side < DIFF_SIDES; side++) {
        listing_int_if(l, known, row->range[side].least);
        listing_int_if(l, known, row->range[side].most);
    }
    for (int i = 0; diff_stats[i] >= 0; i++)
        for (int side = 0; side < DIFF_SIDES; side++)
            list_stat(l, row, side, diff_stats[i]);
}

/* name: instead of the row's own. */
static void list_people(const struct printer *p, struct listing *l, const struct diff_row *row, const char *name)
{
    const int sort = p->report->what.sort;
    struct buf texts[3] = {BUF(1 << 20), BUF(1 << 20), BUF(1 << 20)};
    list_value(p, l, row, DIFF_OLD, sort);
    list_value(p, l, row, DIFF_NEW, sort);
    list_difference(p, l, row, sort);
    list_difference(p, l, row, STAT_end_bytes);
    list_difference(p, l, row, STAT_alloc_bytes);
    list_difference(p, l, row, STAT_alloc_count);
    listing_text(l, row->device);
    if (!name && p->out->format == REPORT_TEXT) {
        diff_how_text(row, &texts[0]);
        diff_name_text(p->report->what.by, diff_shown_item(row), base_of(p, row), &texts[1]);
        diff_place_text(p->report->what.by, diff_shown_item(row), base_of(p, row), &texts[2]);
    }
    listing_text(l, texts[0].data);
    listing_text(l, name ? name : texts[1].data);
    listing_text(l, texts[2].data);
    for (int i = 0; i < 3; i++)
        buf_free(&texts[i]);
}

static int read_stack(struct printer *p, const struct diff_row *row, struct walk_stack *stack, struct error *err)
{
    const struct diff_item *item = diff_shown_item(row);
    const int side = row->item[DIFF_NEW] ? DIFF_NEW : DIFF_OLD;
    struct walk **walk = &p->walks[side][item->recording];
    int rc = *walk ? 0 : walk_open(p->report->dbs[side][item->recording], TREE_BOTH, walk, err);
    return rc ? rc : walk_stack(*walk, item->stack_id, stack, err);
}

static int list_row(struct printer *p, struct listing *l, const struct diff_row *row, struct error *err)
{
    struct buf frames = BUF(64 << 20);
    struct walk_stack stack;
    int rc = 0;
    if (p->report->what.by == ROW_STACK && !diff_shown_item(row)->is_rest) {
        rc = read_stack(p, row, &stack, err);
        if (rc == 0)
            stack_json(&stack, &frames);
    }
    listing_text(l, diff_match_names[row->match]);
    listing_int(l, row->is_by_number);
    listing_int(l, row->is_noise);
    list_keys(l, row);
    list_numbers(l, row, p->report->what.sort);
    listing_raw(l, frames.data);
    list_people(p, l, row, NULL);
    buf_free(&frames);
    return rc;
}

static void list_total(const struct printer *p, struct listing *l, const struct diff_row *row)
{
    listing_style(l, TABLE_STRONG);
    for (int i = 0; i < COLUMN_people; i++)
        listing_null(l);
    list_people(p, l, row, "total");
}

static void choose_columns(const struct printer *p, struct column columns[COLUMN_COUNT_ALL])
{
    static const char *const names[ROW_KEY_COUNT][2] = {
        [ROW_LINE] = {"function", "source"}, [ROW_FUNCTION] = {"function", "declared at"}, [ROW_FILE] = {"file"},
        [ROW_MODULE] = {"module"},           [ROW_OP] = {"operator", "phase, module"},
    };
    const enum row_key by = p->report->what.by;
    struct column *people = &columns[COLUMN_people];
    const int sort = p->report->what.sort;
    memcpy(columns, rows_columns, sizeof rows_columns);
    for (int i = 0; i < COLUMN_COUNT_ALL - COLUMN_people; i++)
        people[i].place = i + 1;
    people[8].title = names[by][0] ? names[by][0] : "";
    people[9].title = names[by][1];
    if (p->device_count < 2 && by != ROW_DEVICE)
        people[6].title = NULL;
    const int shown[] = {STAT_end_bytes, STAT_alloc_bytes, STAT_alloc_count};
    for (int i = 0; i < 3; i++)
        if (sort == shown[i])
            people[3 + i].title = NULL;
    columns[COLUMN_difference_error].key = p->is_sampled ? "difference_error" : NULL;
    if (by == ROW_STACK)
        columns[COLUMN_frames].key = "frames";
}

static int is_used(const struct diff_row *total)
{
    int known, is_used = 0;
    for (int side = 0; side < DIFF_SIDES; side++)
        for (int i = 0; diff_stats[i] >= 0; i++)
            is_used |= stat_value(&total->stats[side], diff_stats[i], &known) != 0;
    return is_used;
}

static int rows_shown(const struct printer *p)
{
    int64_t top = p->report->top;
    if (top < 0)
        top = p->out->format != REPORT_TEXT ? 0 : p->report->what.by == ROW_STACK ? DEFAULT_STACKS : DEFAULT_TOP;
    int count = p->out->format == REPORT_TEXT ? p->diff.count - p->diff.hidden_count : p->diff.count;
    return top > 0 && top < count ? (int)top : count;
}

static int list_rows(struct printer *p, struct record *document, struct error *err)
{
    struct column columns[COLUMN_COUNT_ALL];
    int rc = 0;
    choose_columns(p, columns);
    struct listing *l = listing_open_in(document, "rows", columns, COLUMN_COUNT_ALL, NULL);
    for (int i = 0; rc == 0 && i < rows_shown(p); i++)
        rc = list_row(p, l, &p->diff.rows[i], err);
    for (int i = 0; p->out->format == REPORT_TEXT && i < p->diff.total_count; i++)
        if (is_used(&p->diff.totals[i]))
            list_total(p, l, &p->diff.totals[i]);
    if (rc == 0)
        listing_heading(l);
    listing_print(l);
    listing_close(l);
    return rc;
}

/* --- text --- */

static int print_stacks(struct printer *p, struct error *err)
{
    int rc = 0;
    for (int i = 0; rc == 0 && i < rows_shown(p); i++) {
        const struct diff_row *row = &p->diff.rows[i];
        const int sort = p->report->what.sort;
        struct buf line = BUF(1 << 20);
        char texts[2][UNITS_TEXT];
        struct walk_stack stack;
        int known;
        add_difference(p, &line, row, sort);
        buf_printf(&line, " (%s -> %s)", plain(texts[0], sort, stat_value(&row->stats[DIFF_OLD], sort, &known)),
                   plain(texts[1], sort, stat_value(&row->stats[DIFF_NEW], sort, &known)));
        buf_puts(&line, "; live at the end ");
        add_difference(p, &line, row, STAT_end_bytes);
        buf_puts(&line, ", allocated ");
        add_difference(p, &line, row, STAT_alloc_bytes);
        buf_printf(&line, "   %s, ", row->device);
        if (diff_shown_item(row)->is_rest)
            buf_puts(&line, "in no stack");
        else
            buf_printf(&line, "%s%s", diff_match_names[row->match], row->is_noise ? ", noise" : "");
        table_prose(p->out, TABLE_STRONG, buf_text(&line));
        buf_free(&line);
        if (!diff_shown_item(row)->is_rest)
            rc = read_stack(p, row, &stack, err);
        if (rc == 0 && !diff_shown_item(row)->is_rest)
            stack_print(&stack, p->out, base_of(p, row), p->report->frames, "    ");
        fputc('\n', p->out->file);
    }
    return rc;
}

static void print_title(const struct printer *p)
{
    const struct diff_options *what = &p->report->what;
    const int is_several = p->report->counts[DIFF_OLD] + p->report->counts[DIFF_NEW] > DIFF_SIDES;
    struct buf title = BUF(4096);
    char text[UNITS_TEXT];
    buf_printf(&title, "What changed, by %s: %s (%s)%s", row_key_names[what->by], stat_infos[what->sort].name,
               stat_infos[what->sort].text, is_several ? ", medians" : "");
    if (rows_shown(p) < p->diff.count - p->diff.hidden_count)
        buf_printf(&title, " (%d of %s)", rows_shown(p), units_count(text, p->diff.count - p->diff.hidden_count));
    table_prose(p->out, TABLE_STRONG, title.data);
    buf_free(&title);
}

static void print_hidden(const struct printer *p)
{
    struct buf line = BUF(4096);
    char text[UNITS_TEXT];
    if (!p->diff.hidden_count)
        return;
    buf_printf(&line, "%s more: only own peaks or temporary blocks changed (--sort own.peak, --sort temporary)",
               units_count(text, p->diff.hidden_count));
    table_prose(p->out, TABLE_DIM, buf_text(&line));
    buf_free(&line);
}

static void print_total(const struct printer *p, const struct diff_row *total)
{
    struct buf line = BUF(1 << 16);
    buf_puts(&line, "total ");
    add_difference(p, &line, total, p->report->what.sort);
    buf_printf(&line, "   %s", total->device);
    table_prose(p->out, TABLE_STRONG, buf_text(&line));
    buf_free(&line);
}

static int print_diff(struct printer *p, struct record *document, struct error *err)
{
    int rc = 0;
    print_head(p);
    print_title(p);
    if (!p->diff.count)
        table_line(p->out, TABLE_PLAIN, "Nothing differs.");
    else if (p->diff.count == p->diff.hidden_count)
        table_line(p->out, TABLE_PLAIN, "Nothing differs in these.");
    else if (p->report->what.by != ROW_STACK)
        rc = list_rows(p, document, err);
    else
        rc = print_stacks(p, err);
    for (int i = 0; rc == 0 && p->report->what.by == ROW_STACK && i < p->diff.total_count; i++)
        if (is_used(&p->diff.totals[i]))
            print_total(p, &p->diff.totals[i]);
    if (rc == 0) {
        print_hidden(p);
        diff_next_print(p->report, &p->diff, p->out);
    }
    return rc;
}

/* --- programs --- */

static void record_files(const struct printer *p, struct record *document, int side)
{
    record_array_begin(document, side_names[side]);
    for (int i = 0; i < p->report->counts[side]; i++) {
        sqlite3 *db = p->report->dbs[side][i];
        char *command = db_meta_text(db, "command");
        record_begin(document);
        record_text(document, "file", p->report->files[side][i]);
        record_text(document, "command", command);
        record_int(document, "start_unix_ns", db_meta_int(db, "start_unix_ns", 0));
        record_int(document, "event_count", rotated_part(db).event_count);
        record_end(document);
        free(command);
    }
    record_array_end(document);
}

static void record_totals(const struct printer *p, struct record *document)
{
    struct column columns[COLUMN_stats + 12 - COLUMN_old + 2];
    columns[0] = rows_columns[COLUMN_device];
    columns[1] = rows_columns[COLUMN_is_noise];
    memcpy(columns + 2, rows_columns + COLUMN_old, sizeof columns - 2 * sizeof *columns);
    columns[2 + COLUMN_difference_error - COLUMN_old].key = p->is_sampled ? "difference_error" : NULL;
    struct listing *l = listing_open_in(document, "totals", columns, COLUMN_COUNT_OF(columns), NULL);
    for (int i = 0; i < p->diff.total_count; i++) {
        if (!is_used(&p->diff.totals[i]))
            continue;
        listing_text(l, p->diff.totals[i].device);
        listing_int(l, p->diff.totals[i].is_noise);
        list_numbers(l, &p->diff.totals[i], p->report->what.sort);
    }
    listing_close(l);
}

static int record_diff(struct printer *p, struct record *document, struct error *err)
{
    record_document_begin(document);
    if (p->out->format == REPORT_JSON) {
        record_files(p, document, DIFF_OLD);
        record_files(p, document, DIFF_NEW);
        record_member_text(document, "by", row_key_names[p->report->what.by]);
        record_member_text(document, "statistic", stat_infos[p->report->what.sort].column);
        record_totals(p, document);
        record_member_int(document, "row_count", p->diff.count);
        record_member_int(document, "same_row_count", p->diff.same_count);
    }
    int rc = list_rows(p, document, err);
    record_document_end(document);
    return rc;
}

static int check_device(const struct diff_report *report, struct error *err)
{
    struct error first;
    for (int side = 0; side < DIFF_SIDES; side++)
        for (int i = 0; i < report->counts[side]; i++)
            if (device_check(report->dbs[side][i], report->what.device, NULL, side || i ? &first : err) == 0)
                return 0;
    return -EINVAL;
}

int diff_report(const struct diff_report *report, const struct report_out *out, struct error *err)
{
    struct printer p = {.report = report, .out = out};
    struct record document;
    record_open(&document, out);
    int rc = check_device(report, err);
    for (int side = 0; side < DIFF_SIDES; side++) {
        p.walks[side] = xcalloc((size_t)report->counts[side], sizeof(struct walk *));
        p.cwd[side] = db_meta_text(report->dbs[side][0], "cwd");
        p.is_sampled |= estimate_mean_bytes(report->dbs[side][0]) > 0;
    }
    if (rc == 0)
        rc = diff_load(report->dbs, report->counts, &report->what, &p.diff, err);
    if (rc == 0)
        rc = diff_name_callers(&p.diff, rows_shown(&p), err);
    for (int i = 0; i < p.diff.total_count; i++)
        p.device_count += is_used(&p.diff.totals[i]);
    if (rc == 0)
        rc = out->format == REPORT_TEXT ? print_diff(&p, &document, err) : record_diff(&p, &document, err);
    record_close(&document);
    for (int side = 0; side < DIFF_SIDES; side++) {
        for (int i = 0; i < report->counts[side]; i++)
            walk_close(p.walks[side][i]);
        free(p.walks[side]);
        free(p.cwd[side]);
    }
    diff_close(&p.diff);
    return rc;
}
