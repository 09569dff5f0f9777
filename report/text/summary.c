#include "summary.h"

#include "../../common/db.h"
#include "../../common/units.h"
#include "../findings/advice.h"
#include "../findings/notes.h"
#include "../query/source.h"
#include "failed.h"
#include "layers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_TOP = 10 };

int report_check_names(sqlite3 *db, const char *device, const char *kind, struct error *err)
{
    static const char *const queries[] = {"SELECT name FROM device", "SELECT DISTINCT kind FROM total"};
    const char *names[] = {device, kind}, *words[] = {"device", "kind"};
    int rc = 0;
    for (int i = 0; rc == 0 && i < 2; i++) {
        sqlite3_stmt *s = NULL;
        struct buf known = BUF(1024);
        int found = !names[i];
        rc = found ? 0 : db_prepare(db, queries[i], &s, err);
        while (rc == 0 && !found && sqlite3_step(s) == SQLITE_ROW) {
            found = strcmp(db_text(s, 0), names[i]) == 0;
            buf_printf(&known, "%s%s", known.length ? ", " : "", db_text(s, 0));
        }
        if (rc == 0 && !found)
            rc = error_set(err, EINVAL, "no %s '%s' in this recording; it has: %s", words[i], names[i],
                           known.data ? known.data : "none");
        sqlite3_finalize(s);
        buf_free(&known);
    }
    return rc;
}

void report_heading(const struct report_out *out, const char *title, int64_t shown, int64_t all)
{
    struct buf line = BUF(4096);
    char count[2][UNITS_TEXT];
    buf_puts(&line, title);
    if (shown < all)
        buf_printf(&line, " (%s of %s)", units_count(count[0], shown), units_count(count[1], all));
    fputc('\n', out->file);
    table_line(out, TABLE_STRONG, buf_text(&line));
    buf_free(&line);
}

int64_t summary_peak_stat(const struct summary *s)
{
    return s->options->kind && strcmp(s->options->kind, "all") != 0 ? STAT_at_kind_peak_bytes : STAT_at_peak_bytes;
}

int report_has_devices(sqlite3 *db, const char *device)
{
    return !device &&
           db_int(db, "SELECT count(*) FROM total WHERE kind = 'all' AND (alloc_count > 0 OR peak_reserved_bytes > 0)",
                  0) > 1;
}

void summary_plural(struct buf *out, int64_t count, const char *one, const char *many)
{
    char text[UNITS_TEXT];
    buf_printf(out, "%s %s", units_count(text, count), count == 1 ? one : many);
}

/* One line at most on a terminal: a command may be a whole script. */
static void print_command(const struct summary *s, const char *command)
{
    struct buf line = BUF(1 << 20), fitted = BUF(1 << 20);
    for (const char *p = command; *p; p++)
        buf_putc(&line, *p == '\n' || *p == '\t' ? ' ' : *p);
    if (line.data && s->out->width > 0)
        text_fit(&fitted, line.data, s->out->width, TEXT_CUT_RIGHT, s->out->utf8);
    table_line(s->out, TABLE_STRONG, fitted.data ? fitted.data : buf_text(&line));
    buf_free(&line);
    buf_free(&fitted);
}

static void print_head(const struct summary *s)
{
    struct buf line = BUF(1 << 16);
    char *command = db_meta_text(s->db, "command"), *host = db_meta_text(s->db, "host");
    char date[32], duration[UNITS_TEXT];
    int64_t threads = db_int(s->db, "SELECT count(*) FROM thread", 0);
    print_command(s, command ? command : "(unknown command)");
    buf_puts(&line, notes_date(date, db_meta_int(s->db, "start_unix_ns", 0)));
    if (host) /* an imported snapshot does not say */
        buf_printf(&line, " on %s", host);
    buf_printf(&line, ", %s, ", units_ns(duration, db_meta_int(s->db, "duration_ns", 0)));
    summary_plural(&line, db_int(s->db, "SELECT count(DISTINCT pid) FROM process", 0), "process", "processes");
    buf_puts(&line, ", ");
    summary_plural(&line, threads, "thread", "threads");
    buf_puts(&line, ", ");
    summary_plural(&line, db_meta_int(s->db, "event_count", 0), "event", "events");
    int64_t rss = db_int(s->db, "SELECT max(rss_max_bytes) FROM timeline WHERE device_id = 0", 0);
    if (rss > 0 && !(s->options->lens && s->options->lens->pid))
        buf_printf(&line, ", peak RSS %s", units_bytes(duration, rss));
    table_line(s->out, TABLE_PLAIN, buf_text(&line));
    notes_print(s->db, s->out);
    advice_print(s->db, s->out);
    buf_free(&line);
    free(command);
    free(host);
}

/* Rows of v_total, 'all' first; with the device and kind that were asked for. */
int summary_totals(const struct summary *s, sqlite3_stmt **statement, struct error *err)
{
    int rc = db_prepare(
        s->db,
        "SELECT device, kind, alloc_count, free_count, alloc_bytes, free_bytes, temporary_count, peak_active_bytes,"
        " peak_active_ns, peak_reserved_bytes, end_active_bytes, end_count, temporary_bytes, peak_active_count,"
        " peak_reserved_ns, realloc_count, lifetime_ns FROM v_total JOIN device d ON d.name = device"
        " WHERE (?1 IS NULL OR device = ?1) AND (?2 IS NULL OR kind = ?2)"
        " AND (alloc_count > 0 OR peak_active_bytes > 0 OR peak_reserved_bytes > 0 OR kind = 'all')"
        " ORDER BY d.device_id, kind != 'all', kind",
        statement, err);
    if (rc == 0) {
        sqlite3_bind_text(*statement, 1, s->options->device, -1, SQLITE_STATIC);
        sqlite3_bind_text(*statement, 2, s->options->kind, -1, SQLITE_STATIC);
    }
    return rc;
}

static int print_totals(const struct summary *s, struct error *err)
{
    static const struct table_column columns[] = {
        {"device", TABLE_LEFT, 0, 0},        {"kind", TABLE_LEFT, 0, 0},
        {"allocated", TABLE_RIGHT, 0, 0},    {"allocs", TABLE_RIGHT, 0, 0},
        {"frees", TABLE_RIGHT, 0, 1},        {"temporary", TABLE_RIGHT, 0, 1},
        {"peak\nactive", TABLE_RIGHT, 0, 0}, {"peak\nreserved", TABLE_RIGHT, 0, 0},
        {"live\nat end", TABLE_RIGHT, 0, 0}, {"blocks\nat end", TABLE_RIGHT, 0, 1}};
    sqlite3_stmt *q = NULL;
    int rc = summary_totals(s, &q, err);
    if (rc)
        return rc;
    struct table *t = table_open(columns, sizeof columns / sizeof *columns);
    while (sqlite3_step(q) == SQLITE_ROW) {
        table_text(t, db_text(q, 0));
        table_text(t, db_text(q, 1));
        table_bytes(t, sqlite3_column_int64(q, 4));
        table_count(t, sqlite3_column_int64(q, 2));
        table_count(t, sqlite3_column_int64(q, 3));
        table_share(t, sqlite3_column_int64(q, 6), sqlite3_column_int64(q, 2));
        table_bytes(t, sqlite3_column_int64(q, 7));
        if (sqlite3_column_type(q, 9) == SQLITE_NULL) /* of one process */
            table_text(t, "-");
        else
            table_bytes(t, sqlite3_column_int64(q, 9));
        table_bytes(t, sqlite3_column_int64(q, 10));
        table_count(t, sqlite3_column_int64(q, 11));
    }
    fputc('\n', s->out->file);
    if (table_rows(t))
        table_print(t, s->out);
    else
        table_line(s->out, TABLE_PLAIN, "No allocations were recorded; 'memprof info' says what was run.");
    table_close(t);
    sqlite3_finalize(q);
    return 0;
}

void summary_names(struct table *t, const struct row *row, const char *cwd)
{
    struct buf text = BUF(1 << 20);
    row_function_text(row, &text);
    table_text(t, text.data);
    buf_reset(&text);
    row_source_text(row, cwd, &text);
    table_text(t, text.data);
    buf_free(&text);
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

void summary_hint(struct summary *s, const struct rows *rows, int64_t peak_bytes)
{
    const struct row *best = NULL;
    if (s->hint.file && peak_bytes <= s->hint_bytes)
        return;
    for (int i = 0; i < rows->count; i++) {
        const struct row *row = &rows->row[i];
        if (!row->file || !row->plain_name || strncmp(row->plain_name, "__libc_start", 12) == 0 ||
            !source_is_there(s->db, row->file))
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
    s->hint.plain_name = xstrdup(best->plain_name);
    s->hint_bytes = peak_bytes;
}

struct section {
    const char *title;
    int sort;
    int64_t top;
    const int *stats; /* columns, -1 at the end */
};

static int print_section(struct summary *s, const struct section *section, struct error *err)
{
    static const struct {
        int stat;
        const char *title;
    } titles[] = {{STAT_alloc_bytes, "allocated"},     {STAT_alloc_count, "allocs"},
                  {STAT_temporary_count, "temporary"}, {STAT_temporary_bytes, "bytes"},
                  {STAT_own_peak_bytes, "own peak"},   {STAT_end_bytes, "live"},
                  {STAT_end_count, "blocks"},          {STAT_free_count, "frees"}};
    struct table_column columns[TABLE_COLUMNS_MAX];
    struct rows rows;
    int count = 0, devices = 0;
    int rc = summary_lines(s, s->options->device, section->sort, section->top, &rows, err);
    if (rc || rows.count == 0)
        return rc;
    for (const int *stat = section->stats; *stat >= 0; stat++)
        for (size_t i = 0; i < sizeof titles / sizeof *titles; i++)
            if (titles[i].stat == *stat)
                columns[count++] = (struct table_column){titles[i].title, TABLE_RIGHT, TEXT_CUT_NONE, 0};
    devices = report_has_devices(s->db, s->options->device);
    if (devices)
        columns[count++] = (struct table_column){"device", TABLE_LEFT, TEXT_CUT_NONE, 0};
    columns[count++] = (struct table_column){"function", TABLE_LEFT, TEXT_CUT_NAME, 0};
    columns[count++] = (struct table_column){"source", TABLE_LEFT, TEXT_CUT_LEFT, 0};
    struct table *t = table_open(columns, count);
    for (int i = 0; i < rows.count; i++) {
        for (const int *stat = section->stats; *stat >= 0; stat++)
            stat_cell(t, &rows.row[i].stats, *stat, 0);
        if (devices)
            table_text(t, rows.row[i].device ? rows.row[i].device : "?");
        summary_names(t, &rows.row[i], s->cwd);
    }
    report_heading(s->out, section->title, rows.count, rows.total_count);
    table_print(t, s->out);
    table_close(t);
    summary_hint(s, &rows, 0);
    rows_free(&rows);
    return 0;
}

static int print_sections(struct summary *s, struct error *err)
{
    static const int allocated[] = {STAT_alloc_bytes, STAT_alloc_count, STAT_own_peak_bytes, -1};
    static const int temporary[] = {STAT_temporary_count, STAT_alloc_count, STAT_temporary_bytes, -1};
    static const int live[] = {STAT_end_bytes, STAT_end_count, -1};
    int64_t top = summary_top(s), few = top == 0 || top > 5 ? 5 : top;
    const struct section sections[] = {
        {"Most bytes allocated, by line", STAT_alloc_bytes, top, allocated},
        {"Most temporaries: freed before their thread allocated again", STAT_temporary_count, top, temporary},
        {"Live at the end, by line", STAT_end_bytes, few, live},
    };
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < sizeof sections / sizeof *sections; i++)
        rc = print_section(s, &sections[i], err);
    return rc;
}

static void print_hints(const struct summary *s)
{
    struct buf file = BUF(1 << 16), line = BUF(1 << 16);
    if (s->options->file && strcmp(s->options->file, "out.db") != 0) {
        buf_putc(&file, ' ');
        buf_shell(&file, s->options->file);
    }
    const char *name = buf_text(&file), *head = "Next: ";
    fputc('\n', s->out->file);
    if (s->hint.plain_name) {
        buf_printf(&line, "%smemprof lines%s --func ", head, name);
        buf_shell(&line, s->hint.plain_name);
        table_line(s->out, TABLE_DIM, buf_text(&line));
        head = "      ";
    }
    if (s->skip.length) {
        const struct lens_options *lens = s->options->lens;
        buf_reset(&line);
        buf_printf(&line, "%smemprof report%s", head, name);
        for (int i = 0; lens && i < lens->skip_count; i++) {
            buf_puts(&line, " --skip ");
            buf_shell(&line, lens->skips[i]);
        }
        buf_printf(&line, "%s   (counts what these only pass on to their callers)", s->skip.data);
        table_line(s->out, TABLE_DIM, buf_text(&line));
        head = "      ";
    }
    static const char *const forms[] = {"%smemprof leaks%s", "%smemprof report%s --by function --inclusive",
                                        "%smemprof report%s --html"};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++, head = "      ") {
        buf_reset(&line);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        buf_printf(&line, forms[i], head, name);
#pragma GCC diagnostic pop
        table_line(s->out, TABLE_DIM, buf_text(&line));
    }
    buf_free(&file);
    buf_free(&line);
}

static void record_totals(struct record *r, sqlite3_stmt *q)
{
    record_array_begin(r, "totals");
    while (sqlite3_step(q) == SQLITE_ROW) {
        record_begin(r);
        for (int c = 0; c < sqlite3_column_count(q); c++) {
            if (c < 2)
                record_text(r, sqlite3_column_name(q, c), db_text(q, c));
            else if (sqlite3_column_type(q, c) == SQLITE_NULL)
                record_null(r, sqlite3_column_name(q, c));
            else
                record_int(r, sqlite3_column_name(q, c), sqlite3_column_int64(q, c));
        }
        record_end(r);
    }
    record_array_end(r);
}

static int record_lines(struct summary *s, struct record *r, const char *key, int sort, struct error *err)
{
    struct rows rows;
    int rc = summary_lines(s, s->options->device, sort, summary_top(s), &rows, err);
    if (rc)
        return rc;
    record_array_begin(r, key);
    for (int i = 0; rc == 0 && i < rows.count; i++) {
        struct buf callers = BUF(64 << 20);
        if (sort == summary_peak_stat(s) && s->options->callers > 0 && !s->options->inclusive)
            rc = summary_callers(s, &rows.row[i], &callers, err);
        row_record(r, &rows.row[i], s->options->inclusive, 0, "callers", callers.data);
        buf_free(&callers);
    }
    record_array_end(r);
    rows_free(&rows);
    return rc;
}

static int record_summary(struct summary *s, struct error *err)
{
    struct record r;
    sqlite3_stmt *q = NULL;
    int rc = summary_totals(s, &q, err);
    if (rc)
        return rc;
    record_open(&r, s->out);
    record_document_begin(&r);
    notes_record(s->db, s->options->file, &r);
    advice_record(s->db, &r);
    record_totals(&r, q);
    if (!(s->options->lens && s->options->lens->pid))
        rc = layers_record(s->db, s->options->device, s->out, &r, err);
    if (rc == 0)
        rc = failed_record(s->db, s->options, s->out, &r, err);
    if (rc == 0 && s->out->format == REPORT_JSON) {
        rc = record_lines(s, &r, "lines_at_peak", (int)summary_peak_stat(s), err);
        if (rc == 0)
            rc = record_lines(s, &r, "lines_by_allocated", STAT_alloc_bytes, err);
        if (rc == 0)
            rc = record_lines(s, &r, "lines_by_temporary", STAT_temporary_count, err);
        if (rc == 0)
            rc = record_lines(s, &r, "lines_at_end", STAT_end_bytes, err);
    }
    record_document_end(&r);
    record_close(&r);
    sqlite3_finalize(q);
    return rc;
}

int report_summary(sqlite3 *db, const struct report_options *options, const struct report_out *out, struct error *err)
{
    struct summary s = {.db = db, .options = options, .out = out, .cwd = db_meta_text(db, "cwd"), .skip = BUF(1 << 16)};
    int rc = report_check_names(db, options->device, options->kind, err);
    if (rc == 0 && out->format != REPORT_TEXT) {
        rc = record_summary(&s, err);
    } else if (rc == 0) {
        print_head(&s);
        rc = print_totals(&s, err);
        if (rc == 0 && !(options->lens && options->lens->pid)) /* those are of the whole device */
            rc = layers_print(db, options->device, out, err);
        if (rc == 0)
            rc = failed_print(db, options, s.cwd, out, err);
        if (rc == 0)
            rc = summary_peaks(&s, err);
        if (rc == 0)
            rc = print_sections(&s, err);
        if (rc == 0)
            print_hints(&s);
    }
    buf_free(&s.skip);
    free(s.cwd);
    free(s.hint.file);
    free(s.hint.plain_name);
    return rc;
}
