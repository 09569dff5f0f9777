#include "summary.h"

#include "../../common/db.h"
#include "../../common/units.h"
#include "../query/device.h"
#include "../query/ending.h"
#include "../query/estimate.h"
#include "../query/reserved.h"
#include "../query/source.h"
#include "../query/wrapper.h"
#include "failed.h"
#include "folded.h"
#include "forked.h"
#include "heap_lines.h"
#include "layers.h"
#include "next_steps.h"
#include "own_peak.h"
#include "resident.h"
#include "row_columns.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_TOP = 10, HELD_TOP = 3 };
enum { TOTALS_RESERVED = 9 }; /* peak_reserved_bytes among the columns of summary_totals */

int64_t summary_peak_stat(const struct summary *s)
{
    return s->options->kind && strcmp(s->options->kind, "all") != 0 ? STAT_at_kind_peak_bytes : STAT_at_peak_bytes;
}

int summary_is_whole(const struct summary *s)
{
    const struct report_options *o = s->options;
    return !report_is_part(o) && !(o->kind && strcmp(o->kind, "all") != 0) &&
           !(o->device && strcmp(o->device, "host") != 0);
}

int report_has_devices(sqlite3 *db, const char *device)
{
    return device_count(db, device) > 1;
}

void summary_plural(struct buf *out, int64_t count, const char *one, const char *many)
{
    char text[UNITS_TEXT];
    buf_printf(out, "%s %s", units_count(text, count), count == 1 ? one : many);
}

/* Rows of v_total, 'all' first; with the device and kind that were asked for. */
int summary_totals(const struct summary *s, sqlite3_stmt **statement, struct error *err)
{
    struct buf sql = BUF(1 << 14);
    buf_printf(
        &sql,
        "SELECT device, kind, alloc_count, free_count, alloc_bytes, free_bytes, temporary_count, peak_active_bytes,"
        " peak_active_ns, peak_reserved_bytes, end_active_bytes, end_count, temporary_bytes, peak_active_count,"
        " peak_reserved_ns, realloc_count, lifetime_ns, 100.0 * temporary_count / nullif(max(alloc_count, 0), 0),"
        " CASE WHEN d.device_id = 0 AND (kind = 'heap' OR (kind = 'all' AND NOT EXISTS (SELECT 1 FROM total o WHERE"
        " o.device_id = 0 AND o.kind NOT IN ('all', 'heap') AND (o.alloc_count > 0 OR o.peak_reserved_bytes > 0))))"
        " THEN ?3 END, %s"
        " FROM v_total JOIN device d ON d.name = device"
        " WHERE " DEVICE_IS("device", "?1") " AND (?2 IS NULL OR kind = ?2)"
                                            " AND (alloc_count <> 0 OR free_count > 0 OR end_count > 0 OR "
                                            "peak_active_bytes > 0 OR peak_reserved_bytes > 0 "
                                            "OR kind = 'all')"
                                            " ORDER BY d.device_id, kind != 'all', kind",
        report_window(s->options) ? "(SELECT t.start_bytes FROM total t WHERE t.device_id = d.device_id AND t.kind = "
                                    "v_total.kind), (SELECT t.start_count FROM total t WHERE t.device_id = "
                                    "d.device_id AND t.kind = v_total.kind)"
        : s->has_inherited ? "(SELECT t.start_bytes FROM total_start t WHERE t.device_id = d.device_id AND t.kind "
                             "= v_total.kind), (SELECT t.start_count FROM total_start t WHERE t.device_id = "
                             "d.device_id AND t.kind = v_total.kind)"
                           : "0, 0");
    int rc = db_prepare(s->db, buf_text(&sql), statement, err);
    buf_free(&sql);
    if (rc == 0) {
        sqlite3_bind_text(*statement, 1, s->options->device, -1, SQLITE_STATIC);
        sqlite3_bind_text(*statement, 2, s->options->kind, -1, SQLITE_STATIC);
        if (s->heap_end.is_there)
            sqlite3_bind_int64(*statement, 3, (int64_t)s->heap_end.reserved_bytes);
    }
    return rc;
}

/* The sum of the devices of a type, where that was asked for and there are several: in the columns of summary_totals.
 * Its peak is what was live on all of them at one instant, which the collector alone has seen. */
static int list_sum(const struct summary *s, struct listing *l, struct error *err)
{
    static const char sql[] =
        "SELECT ?1, ?2, sum(alloc_count), sum(free_count), sum(alloc_bytes), sum(free_bytes), sum(temporary_count), "
        "iif(?4, max(?5, 0), NULL), iif(?4, max(?6, 0), NULL), iif(?4, max(?7, 0), NULL), sum(end_active_bytes), "
        "sum(end_count), sum(temporary_bytes), NULL, iif(?4, max(?8, 0), NULL), sum(realloc_count), sum(lifetime_ns), "
        "100.0 * sum(temporary_count) / nullif(sum(max(alloc_count, 0)), 0), NULL, %s FROM total t JOIN device d "
        "USING(device_id) WHERE kind = ?2 AND " DEVICE_IS("d.name", "?1");
    static const char *const figures[] = {"active", "active_ns", "reserved", "reserved_ns"};
    const struct report_options *o = s->options;
    const char *kind = o->kind ? o->kind : "all";
    sqlite3_stmt *q = NULL;
    struct buf text = BUF(1 << 14);
    if (!o->device || device_count(s->db, o->device) < 2)
        return 0;
    buf_printf(
        &text, sql,
        report_window(o) ? "sum(start_bytes), sum(start_count)"
        : s->has_inherited
            ? "sum((SELECT b.start_bytes FROM total_start b WHERE b.device_id = t.device_id AND b.kind = t.kind)), "
              "sum((SELECT b.start_count FROM total_start b WHERE b.device_id = t.device_id AND b.kind = t.kind))"
            : "0, 0");
    int rc = db_prepare(s->db, buf_text(&text), &q, err);
    if (rc == 0) {
        int is_known = !report_is_part(o) && !strcmp(kind, "all");
        sqlite3_bind_text(q, 1, o->device, -1, SQLITE_STATIC);
        sqlite3_bind_text(q, 2, kind, -1, SQLITE_STATIC);
        for (int i = 0; i < 4; i++) {
            char key[64];
            snprintf(key, sizeof key, "type_peak_%s:%.30s", figures[i], o->device);
            int64_t value = db_meta_int(s->db, key, -1);
            is_known &= value >= 0;
            sqlite3_bind_int64(q, 5 + i, value);
        }
        sqlite3_bind_int(q, 4, is_known);
    }
    if (rc == 0 && db_next(q, &rc, err)) {
        listing_columns(l, q, 0, sqlite3_column_count(q));
        for (int i = 0; i < 4; i++) /* of devices, which are recorded whole */
            listing_null(l);
    }
    sqlite3_finalize(q);
    buf_free(&text);
    return rc;
}

/* To people, with how it may be off. */
static void list_reserved(const struct summary *s, struct listing *l, sqlite3_stmt *q)
{
    const char *mark = s->out->format == REPORT_TEXT ? reserved_mark(s->db, db_text(q, 0), db_text(q, 1)) : "";
    char text[UNITS_TEXT], marked[UNITS_TEXT + 4];
    if (*mark && sqlite3_column_int64(q, TOTALS_RESERVED) > 0) {
        snprintf(marked, sizeof marked, "%s%s", mark, units_bytes(text, sqlite3_column_int64(q, TOTALS_RESERVED)));
        listing_text(l, marked);
    } else {
        listing_columns(l, q, TOTALS_RESERVED, 1);
    }
}

/* A row of summary_totals. */
static void list_total(const struct summary *s, struct listing *l, sqlite3_stmt *q, struct estimates *estimates)
{
    static const uint8_t stats[] = {
        /* of the columns that are estimates, as a row by device has them */
        [2] = 1 + STAT_alloc_count,    [3] = 1 + STAT_free_count, [4] = 1 + STAT_alloc_bytes, [5] = 1 + STAT_free_bytes,
        [7] = 1 + STAT_own_peak_bytes, [10] = 1 + STAT_end_bytes, [11] = 1 + STAT_end_count};
    enum { TEMPORARY_COUNT = 6, TEMPORARY_BYTES = 12, TEMPORARY = 17, COLUMNS = 21 };
    const char *kind = db_text(q, 1);
    struct stat_row errors = {0};
    for (size_t i = 0; i < sizeof stats; i++)
        if (stats[i])
            errors.value[stats[i] - 1] = sqlite3_column_int64(q, (int)i);
    estimates_fill(estimates, ROW_DEVICE, 0, kind, db_text(q, 0), 0, &errors);
    if (estimates && strcmp(kind, "all") != 0)
        errors.error[STAT_own_peak_bytes] = errors.error[STAT_at_kind_peak_bytes];
    for (int i = 0; i < COLUMNS; i++) {
        int stat = i < (int)sizeof stats ? stats[i] - 1 : -1;
        if (i == TOTALS_RESERVED)
            list_reserved(s, l, q);
        else if (estimates && (i == TEMPORARY_COUNT || i == TEMPORARY_BYTES || i == TEMPORARY))
            listing_null(l);
        else if (estimates && stat >= 0)
            listing_estimate(l, sqlite3_column_type(q, i) != SQLITE_NULL, sqlite3_column_int64(q, i),
                             errors.error[stat]);
        else
            listing_columns(l, q, i, 1);
    }
    listing_int_if(l, estimates && errors.error[STAT_alloc_count] >= 0, llround(errors.error[STAT_alloc_count]));
    listing_int_if(l, estimates != NULL, llround(errors.error[STAT_alloc_bytes]));
    listing_int_if(l, estimates != NULL, llround(errors.error[STAT_own_peak_bytes]));
    listing_int_if(l, estimates != NULL, llround(errors.error[STAT_end_bytes]));
}

/* When the heap kept what the column says. */
static void print_held_note(const struct summary *s, const char *when)
{
    struct buf note = BUF(1 << 16);
    buf_printf(&note, "(reserved %s:%s%s)", when, s->heap_end.whose,
               !*s->heap_end.whose       ? " before it freed what it had as it ended"
               : s->heap_end.released_ns ? ", whose heap kept most, before it freed what it had as it ended"
                                         : ", whose heap kept most");
    table_prose(s->out, TABLE_DIM, buf_text(&note));
    buf_free(&note);
}

static int list_totals(const struct summary *s, struct record *document, struct error *err)
{
    struct buf when = BUF(1 << 10), held = BUF(1 << 10);
    heap_end_when_short(&s->heap_end, &when);
    buf_printf(&held, "reserved\n%s", buf_text(&when));
    const struct column columns[] = {
        COLUMN("device", "device", TEXT, .place = 1),
        COLUMN("kind", "kind", TEXT, .place = 2),
        COLUMN("alloc_count", "allocs", COUNT, .place = 5, .none = "-"),
        COLUMN("free_count", "frees", COUNT, .place = 6, .flags = COLUMN_OPTIONAL, .none = "-"),
        COLUMN("alloc_bytes", "allocated", BYTES, .place = 4, .none = "-"),
        COLUMN("free_bytes", NULL, BYTES),
        COLUMN("temporary_count", NULL, COUNT),
        COLUMN("peak_active_bytes", "peak\nactive", BYTES, .place = 8, .none = "-"),
        COLUMN("peak_active_ns", NULL, NS),
        COLUMN("peak_reserved_bytes", "peak\nreserved", BYTES, .place = 9,
               .none = "-"), /* none: of one process, or of a window */
        COLUMN("end_active_bytes", "live\nat end", BYTES, .place = 11),
        COLUMN("end_count", "blocks\nat end", COUNT, .place = 12, .flags = COLUMN_OPTIONAL),
        COLUMN("temporary_bytes", NULL, BYTES),
        COLUMN("peak_active_count", NULL, COUNT),
        COLUMN("peak_reserved_ns", NULL, NS),
        COLUMN("realloc_count", NULL, COUNT),
        COLUMN("lifetime_ns", NULL, NS),
        COLUMN(NULL, "temporary", PERCENT, .place = 7, .flags = COLUMN_OPTIONAL, .none = "-"),
        COLUMN("heap_end_reserved_bytes", s->heap_end.is_there ? buf_text(&held) : NULL, BYTES, .place = 10,
               .none = "-"),
        COLUMN("start_bytes",
               report_window(s->options) ? "live\nat start"
               : s->has_inherited        ? "inherited"
                                         : NULL,
               BYTES, .place = 3, .flags = s->has_inherited ? 0 : COLUMN_WINDOW),
        COLUMN("start_count", NULL, COUNT, .flags = s->has_inherited ? 0 : COLUMN_WINDOW),
        COLUMN(estimate_mean_bytes(s->db) ? "alloc_count_error" : NULL, NULL, COUNT),
        COLUMN(estimate_mean_bytes(s->db) ? "alloc_bytes_error" : NULL, NULL, BYTES),
        COLUMN(estimate_mean_bytes(s->db) ? "peak_active_bytes_error" : NULL, NULL, BYTES),
        COLUMN(estimate_mean_bytes(s->db) ? "end_active_bytes_error" : NULL, NULL, BYTES),
    };
    sqlite3_stmt *q = NULL;
    int rc = summary_totals(s, &q, err);
    if (rc) {
        buf_free(&when);
        buf_free(&held);
        return rc;
    }
    struct listing *l = listing_open_in(document, "totals", columns, COLUMN_COUNT_OF(columns), NULL);
    int is_end_above = 0;
    struct estimates *estimates = estimates_open(s->db);
    while (db_next(q, &rc, err)) {
        is_end_above |= sqlite3_column_int64(q, 10) > sqlite3_column_int64(q, 7);
        list_total(s, l, q, estimates);
    }
    estimates_close(estimates);
    if (rc == 0)
        rc = list_sum(s, l, err);
    if (s->out->format == REPORT_TEXT)
        fputc('\n', s->out->file);
    if (s->out->format == REPORT_TEXT && !listing_rows(l))
        table_prose(s->out, TABLE_PLAIN, "No allocations were recorded; 'memprof info' says what was run.");
    else
        listing_print(l);
    if (s->out->format == REPORT_TEXT && is_end_above && !report_window(s->options))
        table_prose(s->out, TABLE_DIM,
                    "(live at end is above the peak: processes ended at different times, each with what it then held)");
    folded_print_end(s);
    if (s->out->format == REPORT_TEXT && s->heap_end.is_there && (*s->heap_end.whose || s->heap_end.released_ns))
        print_held_note(s, buf_text(&when));
    listing_close(l);
    buf_free(&when);
    buf_free(&held);
    sqlite3_finalize(q);
    return rc;
}

int64_t summary_top(const struct summary *s)
{
    return s->options->top < 0 ? DEFAULT_TOP : s->options->top;
}

int summary_lines(const struct summary *s, const char *device, int sort, int64_t limit, struct rows *rows,
                  struct error *err)
{
    struct rows_query query = {.by = ROW_LINE,
                               .inclusive = s->options->inclusive,
                               .device = device,
                               .kind = s->options->kind,
                               .sort = sort,
                               .limit = limit,
                               .at_least = 1,
                               .without_noise = s->options->inclusive && s->out->format == REPORT_TEXT};
    return rows_load(s->db, &query, rows, err);
}

/* A line whose function shows something: a hundredth of a peak, or of all that was allocated. */
static int is_worth_a_look(const struct summary *s, const struct row *row)
{
    int64_t peak = db_int(s->db, "SELECT max(peak_active_bytes) FROM total WHERE kind = 'all'", 0);
    int64_t all = db_int(s->db, "SELECT max(alloc_bytes) FROM total WHERE kind = 'all'", 0);
    return row->stats.value[STAT_at_peak_bytes] > peak / 100 || row->stats.value[STAT_alloc_bytes] > all / 100;
}

void summary_hint(struct summary *s, const struct rows *rows, int64_t peak_bytes)
{
    const struct row *best = NULL;
    if (s->hint.file && peak_bytes <= s->hint_bytes)
        return;
    for (int i = 0; i < rows->count; i++) {
        const struct row *row = &rows->row[i];
        if (!row->file || !row->plain_name || strncmp(row->plain_name, "__libc_start", 12) == 0 ||
            !source_is_there(s->db, row->file) || !is_worth_a_look(s, row))
            continue;
        int own = text_relative(row->file, s->cwd) != row->file;
        if (!best || own)
            best = row;
        if (own)
            break;
    }
    if (!best)
        return;
    free(s->hint.file);
    free(s->hint.plain_name);
    s->hint.file = xstrdup(best->file);
    struct buf name = BUF(1 << 20); /* a closure's own name is every closure's */
    wrapper_skip_name(s->db, best, &name);
    s->hint.plain_name = buf_take(&name);
    s->hint_bytes = peak_bytes;
}

struct shown { /* to people */
    int stat;
    const char *title; /* NULL: no more */
};

struct section {
    const char *key, *title; /* NULL: not for people */
    int sort;
    int64_t top;
    const struct shown *shown;
};

static int list_section(struct summary *s, struct record *document, const struct section *section, struct error *err)
{
    struct row_columns columns;
    struct rows rows;
    const int64_t folded = section->sort == STAT_end_bytes ? folded_count(s) : 0;
    int rc = summary_lines(s, s->options->device, section->sort, section->top ? section->top + folded : 0, &rows, err);
    int has_callers = !section->title && s->options->callers > 0 && !s->options->inclusive;
    if (rc)
        return rc;
    if (folded)
        folded_take(s, &rows, section->top);
    row_columns_init(&columns, ROW_LINE, 0, has_callers ? "callers" : NULL);
    if (estimate_mean_bytes(s->db))
        row_columns_estimates(&columns);
    for (const struct shown *stat = section->shown; stat->title; stat++)
        row_columns_show(&columns, ROW_COLUMN_stats + stat->stat, stat->title, TEXT_CUT_NONE, 0);
    if (report_has_devices(s->db, s->options->device))
        row_columns_show(&columns, ROW_COLUMN_device, "device", TEXT_CUT_NONE, 0);
    row_columns_show(&columns, ROW_COLUMN_name, "function", TEXT_CUT_NAME, 0);
    row_columns_show(&columns, ROW_COLUMN_place, "source", TEXT_CUT_LEFT, 0);
    struct listing *l =
        listing_open_in(document, section->key, columns.columns, COLUMN_COUNT_OF(columns.columns), s->cwd);
    for (int i = 0; rc == 0 && i < rows.count; i++) {
        struct buf callers = BUF(64 << 20);
        if (has_callers)
            rc = summary_callers(s, &rows.row[i], &callers, err);
        row_list(l, &rows.row[i], s->options->inclusive, 0, 0, s->cwd, callers.data);
        buf_free(&callers);
    }
    listing_print_under(l, section->title, rows.total_count);
    if (folded)
        folded_print(s, &rows);
    if (rc == 0 && section->title && section->sort == STAT_alloc_bytes)
        own_peak_explain(s->db, ROW_LINE, &rows, s->out);
    listing_close(l);
    if (s->out->format == REPORT_TEXT)
        summary_hint(s, &rows, 0);
    rows_free(&rows);
    return rc;
}

/* What held the peak is shown to people by summary_peaks(). */
static int list_sections(struct summary *s, struct record *document, struct error *err)
{
    int is_people = s->out->format == REPORT_TEXT, rc = 0;
    int64_t top = summary_top(s), few = is_people && (top == 0 || top > 5) ? 5 : top;
    static const struct shown none[] = {{0, NULL}};
    static const struct shown allocated[] = {
        {STAT_alloc_bytes, "allocated"}, {STAT_alloc_count, "allocs"}, {STAT_own_peak_bytes, "own peak"}, {0, NULL}};
    static const struct shown temporary[] = {
        {STAT_temporary_count, "temporary"}, {STAT_alloc_count, "allocs"}, {STAT_temporary_bytes, "bytes"}, {0, NULL}};
    static const struct shown live[] = {{STAT_end_bytes, "live"}, {STAT_end_count, "blocks"}, {0, NULL}};
    static const char most[] = "Most temporaries: freed before their thread allocated again";
    const int64_t pid = s->options->lens ? s->options->lens->pid : 0;
    const int is_teardown = !report_window(s->options) && ending_is_teardown(s->db, pid);
    const int is_mixed = !pid && ending_has_others(s->db);
    const struct section sections[] = {
        {"lines_at_peak", NULL, (int)summary_peak_stat(s), top, none},
        {"lines_by_allocated", "Most bytes allocated, by line", STAT_alloc_bytes, top, allocated},
        {"lines_by_temporary", most, STAT_temporary_count, top, temporary},
        {"lines_at_end",
         !is_teardown ? "Live at the end, by line"
         : is_mixed   ? "Live at the end, of Python where it began to take itself down, by line"
                      : "Live at the end, where Python began to take itself down, by line",
         STAT_end_bytes, few, live},
    };
    for (size_t i = is_people; rc == 0 && i < sizeof sections / sizeof *sections; i++)
        rc = list_section(s, document, &sections[i], err);
    return rc;
}

static void list_held(const struct summary *s, struct record *document)
{
    struct buf title = BUF(1 << 16);
    buf_puts(&title, "What keeps memory from the kernel, ");
    heap_end_when(&s->heap_end, &title);
    heap_list_lines(&s->heap_end.heap, s->out->format == REPORT_TEXT ? HELD_TOP : 0, s->out, document, buf_text(&title),
                    s->cwd);
    if (s->out->format == REPORT_TEXT)
        heap_say_unseen(s->db, s->out);
    buf_free(&title);
}

/* What people and programs get alike; the lines of the peak are shown to people in a way of their own. */
static int list_summary(struct summary *s, struct record *document, struct error *err)
{
    const struct report_options *o = s->options;
    int rc = list_totals(s, document, err);
    if (rc == 0 && !report_is_part(o)) /* those are of the whole device and run */
        rc = layers_list(s->db, o->device, document, err);
    if (rc == 0)
        rc = failed_list(s->db, o, s->cwd, document, err);
    if (rc == 0 && s->out->format == REPORT_TEXT)
        rc = summary_peaks(s, err);
    if (rc == 0 && summary_is_whole(s))
        rc = resident_list(s->db, 1, document, err);
    if (rc == 0 && s->out->format == REPORT_JSON && o->lens && o->lens->pid)
        rc = forked_list(s->db, 0, document, err);
    if (rc == 0 && s->out->format != REPORT_CSV && s->heap_end.is_there)
        list_held(s, document);
    if (rc == 0 && s->out->format != REPORT_CSV)
        rc = list_sections(s, document, err);
    return rc;
}

/* Those of the whole recording, of all kinds of memory: a part of it is not what they are about. */
static int load_findings(struct summary *s, struct error *err)
{
    const struct report_options *o = s->options;
    if (report_is_part(o) || (o->kind && strcmp(o->kind, "all") != 0))
        return 0;
    if (device_is("host", o->device))
        heap_end_load(s->db, &s->heap_end);
    if (s->out->format == REPORT_CSV)
        return 0;
    const struct findings_options options = {
        .asked_for = FINDINGS_REPORT, .device = o->device, .file = o->file, .heap_end = &s->heap_end};
    return findings_load(s->db, &options, &s->findings, err);
}

int report_summary(sqlite3 *db, const struct report_options *options, const struct report_out *out, struct error *err)
{
    struct record document;
    struct summary s = {.db = db, .options = options, .out = out, .cwd = db_meta_text(db, "cwd"), .skip = BUF(1 << 16)};
    s.has_inherited = !report_is_part(options) && db_meta_int(db, "part", 1) > 1;
    int rc = device_check(db, options->device, options->kind, err);
    if (rc == 0)
        rc = load_findings(&s, err);
    record_open(&document, out);
    if (rc == 0 && out->format == REPORT_TEXT) {
        summary_head_print(&s);
        rc = list_summary(&s, &document, err);
        if (rc == 0)
            next_steps_print(&s);
    } else if (rc == 0) {
        summary_head_record(&s, &document);
        rc = list_summary(&s, &document, err);
        record_document_end(&document);
    }
    record_close(&document);
    findings_free(&s.findings);
    heap_end_free(&s.heap_end);
    buf_free(&s.skip);
    free(s.cwd);
    free(s.hint.file);
    free(s.hint.plain_name);
    return rc;
}
