/* What stands in the page as plain HTML: the header, and the lines that held most. For the first paint, and for readers
 * without scripts. */
#include "page_data.h"

#include "../../common/db.h"
#include "../../common/units.h"
#include "../findings/advice.h"
#include "../findings/notes.h"
#include "../query/device.h"
#include "../query/ending.h"
#include "../query/estimate.h"
#include "../query/merged.h"
#include "../query/reserved.h"
#include "../query/short_name.h"
#include "../query/threads.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void fact(struct buf *b, const char *name, const char *value)
{
    if (!value || !*value)
        return;
    buf_printf(b, "<div><dt>%s</dt><dd>", name);
    buf_html(b, value);
    buf_puts(b, "</dd></div>\n");
}

static void meta_fact(struct page *page, struct buf *b, const char *name, const char *key)
{
    char *value = db_meta_text(page->db, key);
    fact(b, name, value);
    free(value);
}

static void skipped(struct page *page, struct buf *b)
{
    struct buf names = BUF(1 << 16);
    for (int i = 0; i < page->options->skip_count; i++)
        buf_printf(&names, "%s%s", i ? ", " : "", page->options->skips[i]);
    fact(b, "Skipped", names.data);
    buf_free(&names);
}

static void banner(struct buf *b, const char *title, const char *text)
{
    buf_printf(b, "<p class=\"note\" role=\"note\"><strong>%s:</strong> ", title);
    buf_html(b, text);
    buf_puts(b, "</p>\n");
}

/* What may wait behind a click: advice, and notes that take nothing from the numbers. */
struct folded {
    struct buf *b; /* what may not */
    struct buf text;
    int advice_count, note_count;
};

static void add_note(void *context, enum note_kind kind, const char *note)
{
    struct folded *f = context;
    if (kind == NOTE_MISSING) {
        banner(f->b, "Not whole", note);
        return;
    }
    if (kind == NOTE_LITTLE)
        return;
    f->note_count++;
    banner(&f->text, "Note", note);
}

static void add_advice(void *context, const char *advice)
{
    struct folded *f = context;
    f->advice_count++;
    banner(&f->text, "Advice", advice);
}

static void notes_and_advice(struct page *page, struct buf *b)
{
    struct folded f = {.b = b, .text = BUF(1u << 20)};
    notes_each(page->db, add_note, &f);
    advice_each(page->db, add_advice, &f);
    if (f.text.length) {
        buf_printf(b, "<details class=\"advice\"><summary>%s%s%s</summary>\n", f.advice_count ? "Advice" : "",
                   f.advice_count && f.note_count ? " and notes"
                   : f.note_count                 ? "Notes"
                                                  : "",
                   " on this recording");
        buf_puts(b, f.text.data);
        buf_puts(b, "</details>\n");
    }
    buf_free(&f.text);
}

static void number(struct buf *b, const char *class, const char *name, const char *value, const char *more)
{
    buf_printf(b, "<div%s><dt>%s</dt><dd>", class, name);
    buf_html(b, value);
    if (*more) {
        buf_puts(b, " <span class=\"small\">");
        buf_html(b, more);
        buf_puts(b, "</span>");
    }
    buf_puts(b, "</dd></div>");
}

/* The most that there ever was, as the report's table has it. */
static void peak_reserved(sqlite3 *db, struct buf *b, sqlite3_stmt *s)
{
    char t[UNITS_TEXT], text[UNITS_TEXT + 8] = "-", more[UNITS_TEXT + 8] = "";
    int64_t bytes = sqlite3_column_int64(s, 3);
    if (bytes > 0) {
        snprintf(text, sizeof text, "%s%s", reserved_mark(db, db_text(s, 0), "all"), units_bytes(t, bytes));
        if (sqlite3_column_type(s, 10) != SQLITE_NULL && !merged_count(db))
            snprintf(more, sizeof more, "at %s", units_ns(t, sqlite3_column_int64(s, 10)));
    }
    number(b, " class=\"reserved\"", "Peak reserved", text, more);
}

/* "1.25 GiB ±3.1%" */
static void mark(struct buf *b, int64_t value, double error)
{
    const double percent = value > 0 ? 100 * error / (double)value : 0;
    if (percent > 0)
        buf_printf(b, " \xc2\xb1%.*f%%", percent < 10, percent);
    else if (error < 0)
        buf_puts(b, " \xc2\xb1?");
}

static void add_bytes(struct buf *b, const struct stat_row *stats, int stat)
{
    char text[UNITS_TEXT];
    buf_puts(b, units_bytes(text, stats->value[stat]));
    mark(b, stats->value[stat], stats->error[stat]);
}

static void add_count(struct buf *b, const struct stat_row *stats, int stat, const char *what)
{
    char text[UNITS_TEXT];
    buf_puts(b, units_count(text, stats->value[stat]));
    mark(b, stats->value[stat], stats->error[stat]);
    if (what)
        buf_printf(b, " %s%s", what, stats->value[stat] == 1 ? "" : "s");
}

static void read_numbers(struct estimates *e, sqlite3_stmt *s, struct stat_row *stats)
{
    static const struct {
        int stat, column;
    } columns[] = {{STAT_at_peak_bytes, 1}, {STAT_at_peak_count, 8}, {STAT_end_bytes, 4},
                   {STAT_end_count, 5},     {STAT_alloc_count, 6},   {STAT_alloc_bytes, 7}};
    *stats = (struct stat_row){0};
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        stats->value[columns[i].stat] = sqlite3_column_int64(s, columns[i].column);
    estimates_fill(e, ROW_DEVICE, 0, "all", db_text(s, 0), 0, stats);
}

static void temporaries(struct buf *b, sqlite3_stmt *s)
{
    char text[UNITS_TEXT], more[32] = "";
    if (sqlite3_column_int64(s, 6) > 0)
        snprintf(more, sizeof more, "%.1f %%",
                 100.0 * (double)sqlite3_column_int64(s, 9) / (double)sqlite3_column_int64(s, 6));
    number(b, "", "Temporary", units_count(text, sqlite3_column_int64(s, 9)), more);
}

static void estimate(struct buf *b, const char *name, struct buf *value, struct buf *more)
{
    number(b, "", name, buf_text(value), buf_text(more));
    buf_reset(value);
    buf_reset(more);
}

/* A device's numbers, in one line. */
static void device_numbers(sqlite3 *db, struct buf *b, sqlite3_stmt *s)
{
    struct estimates *e = estimates_open(db);
    struct buf value = BUF(1024), more = BUF(1024);
    struct stat_row stats;
    char text[UNITS_TEXT];
    read_numbers(e, s, &stats);
    buf_puts(b, "<dl class=\"device\" data-device-card=\"");
    buf_html(b, db_text(s, 0));
    buf_puts(b, "\"><div class=\"what\"><dt>Device</dt><dd>");
    buf_html(b, db_text(s, 0));
    buf_puts(b, "</dd></div>");
    const int64_t merged = merged_count(db);
    if (merged)
        buf_printf(&more, "of %s recordings, ", units_count(text, merged));
    else
        buf_printf(&more, "at %s, ", units_ns(text, sqlite3_column_int64(s, 2)));
    add_count(&more, &stats, STAT_at_peak_count, "block");
    add_bytes(&value, &stats, STAT_at_peak_bytes);
    estimate(b, merged ? "Sum of peaks" : "Peak", &value, &more);
    peak_reserved(db, b, s);
    add_bytes(&value, &stats, STAT_end_bytes);
    add_count(&more, &stats, STAT_end_count, "block");
    if (stats.value[STAT_end_bytes] > stats.value[STAT_at_peak_bytes])
        buf_puts(&more, ", of processes that ended at different times");
    estimate(b, "At the end", &value, &more);
    add_count(&value, &stats, STAT_alloc_count, NULL);
    add_bytes(&more, &stats, STAT_alloc_bytes);
    estimate(b, "Allocations", &value, &more);
    if (!e)
        temporaries(b, s);
    buf_free(&value);
    buf_free(&more);
    estimates_close(e);
    buf_puts(b, "</dl>\n");
}

/* --- blocks that are not recorded (run --sample, --min-size): in sight, as every number is to be read with it --- */

static void thinned(struct page *page, struct buf *b)
{
    const int64_t mean_bytes = estimate_mean_bytes(page->db), least_bytes = db_meta_int(page->db, "least_bytes", 0);
    char text[256], t[3][UNITS_TEXT];
    if (mean_bytes) {
        snprintf(text, sizeof text, "one block of the heap for each %s allocated", units_bytes(t[0], mean_bytes));
        fact(b, "Sampled", text);
    }
    if (least_bytes > 0) {
        snprintf(text, sizeof text, "%s heap blocks below %s, %s",
                 units_count(t[0], db_int(page->db, "SELECT CAST(total(alloc_count) AS INTEGER) FROM left_out", 0)),
                 units_bytes(t[1], least_bytes),
                 units_bytes(t[2], db_int(page->db, "SELECT CAST(total(alloc_bytes) AS INTEGER) FROM left_out", 0)));
        fact(b, "Left out", text);
    }
}

static void left_out(struct page *page, struct buf *b)
{
    sqlite3_stmt *s = page_query(page, "SELECT CASE WHEN log2_size < 0 THEN 0 ELSE 1 << min(log2_size, 62) END, "
                                       "alloc_count, alloc_bytes FROM left_out ORDER BY log2_size LIMIT 64");
    int rows = 0;
    for (; s && sqlite3_step(s) == SQLITE_ROW; rows++) {
        char t[UNITS_TEXT];
        buf_puts(b, rows ? ""
                         : "<details class=\"advice\"><summary>What is left out, by size</summary>\n<table "
                           "class=\"plain sizes\"><tr><th>From</th><th>Blocks</th><th>Bytes</th></tr>\n");
        buf_printf(b, "<tr><td>%s</td>", units_bytes(t, sqlite3_column_int64(s, 0)));
        buf_printf(b, "<td>%s</td>", units_count(t, sqlite3_column_int64(s, 1)));
        buf_printf(b, "<td>%s</td></tr>\n", units_bytes(t, sqlite3_column_int64(s, 2)));
    }
    sqlite3_finalize(s);
    buf_puts(b, rows ? "</table></details>\n" : "");
}

static void asked_devices(struct page *page, struct buf *b)
{
    char *names = device_list(page->db, page->options->device);
    if (*names) {
        buf_puts(b, "<p class=\"asked-devices\">");
        buf_html(b, page->options->device);
        buf_puts(b, ": ");
        buf_html(b, names);
        buf_puts(b, "</p>\n");
    }
    free(names);
}

/* The first devices at once, so that the timeline stays in sight; the others behind a click. */
static void numbers(struct page *page, struct buf *b)
{
    enum { SHOWN = 3, MOST = 16 };
    int64_t all = db_int(page->db, "SELECT count(*) FROM total WHERE kind = 'all'", 0);
    sqlite3_stmt *s = page_query(
        page,
        "SELECT d.name, t.peak_active_bytes, t.peak_active_ns, t.peak_reserved_bytes, t.end_active_bytes, t.end_count, "
        "t.alloc_count, t.alloc_bytes, t.peak_active_count, t.temporary_count, t.peak_reserved_ns FROM total t JOIN "
        "device d "
        "USING(device_id) WHERE t.kind = 'all' ORDER BY d.device_id <> ?2, NOT " DEVICE_IS("d.name",
                                                                                           "?1") ", d.device_id");
    if (s && page->device_count) {
        sqlite3_bind_text(s, 1, page->options->device, -1, SQLITE_STATIC);
        sqlite3_bind_int64(s, 2, page->devices[page->open_device].device_id);
    }
    asked_devices(page, b);
    buf_puts(b, "<div class=\"numbers\">\n");
    int shown = 0, is_folded = 0;
    for (; s && shown < MOST && sqlite3_step(s) == SQLITE_ROW; shown++) {
        if (shown == SHOWN && all > SHOWN + 1) {
            char t[UNITS_TEXT];
            buf_printf(b,
                       "</div>\n<details class=\"more-devices\"><summary>%s more devices</summary>\n<div "
                       "class=\"numbers\">\n",
                       units_count(t, (all < MOST ? all : MOST) - SHOWN));
            is_folded = 1;
        }
        device_numbers(page->db, b, s);
    }
    sqlite3_finalize(s);
    buf_printf(b, "</div>%s\n", is_folded ? "</details>" : "");
    struct buf end = BUF(1024);
    ending_teardown_text(page->db, &end);
    if (end.length)
        buf_printf(b, "<p class=\"hint\">At the end: %s.</p>\n", end.data);
    buf_free(&end);
}

int page_write_header(struct page *page, FILE *out)
{
    struct buf b = BUF(4u << 20);
    char text[96], t1[UNITS_TEXT], t2[UNITS_TEXT];
    buf_puts(&b, "<dl class=\"facts\">\n");
    meta_fact(page, &b, "Host", "host");
    time_t seconds = (time_t)(page->start_unix_ns / 1000000000);
    struct tm tm;
    if (page->start_unix_ns > 0 && gmtime_r(&seconds, &tm) && strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &tm))
        fact(&b, "Started", text);
    fact(&b, page->begin_ns ? "This part" : "Ran for", units_ns(t1, page->duration_ns - page->begin_ns));
    ending_text(page->db, text);
    fact(&b, "Ended", text);
    int64_t processes = db_int(page->db, "SELECT count(DISTINCT first_id) FROM v_image", 0);
    int64_t threads = db_int(page->db, THREADS_SEEN, 0);
    int64_t missing = db_int(page->db, PROCESSES_NOT_RECORDED, 0);
    char missing_text[UNITS_TEXT + 24] = "";
    if (missing)
        snprintf(missing_text, sizeof missing_text, " (%s not recorded)", units_count(t1, missing));
    snprintf(text, sizeof text, "%s%s, %s %s", units_count(t1, processes), missing_text, units_count(t2, threads),
             threads == 1 ? "thread seen" : "threads seen");
    fact(&b, processes == 1 ? "Process" : "Processes", text);
    meta_fact(page, &b, "Directory", "cwd");
    skipped(page, &b);
    thinned(page, &b);
    buf_puts(&b, "</dl>\n");
    numbers(page, &b);
    left_out(page, &b);
    notes_and_advice(page, &b);
    int rc = b.failed ? error_set(page->err, ENOMEM, "the page's header is too large") : 0;
    if (!rc && b.length)
        fwrite(b.data, 1, b.length, out);
    buf_free(&b);
    return rc;
}

int page_write_top_lines(struct page *page, FILE *out)
{
    sqlite3_stmt *s = page_query(
        page,
        "SELECT function, file, line, at_peak_bytes, end_bytes, alloc_count, device FROM v_line WHERE kind = 'all' "
        "ORDER BY at_peak_bytes DESC, alloc_bytes DESC LIMIT 20");
    if (!s)
        return -EIO;
    struct buf b = BUF(4u << 20);
    int rc;
    buf_puts(&b, "<table class=\"plain\"><caption>The lines that held most at the peak</caption><thead><tr><th>At the "
                 "peak</th><th>At the end</th>"
                 "<th>Allocations</th><th>Device</th><th>Line</th></tr></thead><tbody>\n");
    while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
        char t1[UNITS_TEXT], t2[UNITS_TEXT], t3[UNITS_TEXT];
        buf_printf(&b, "<tr><td>%s</td><td>%s</td><td>%s</td><td>", units_bytes(t1, sqlite3_column_int64(s, 3)),
                   units_bytes(t2, sqlite3_column_int64(s, 4)), units_count(t3, sqlite3_column_int64(s, 5)));
        buf_html(&b, db_text(s, 6));
        buf_puts(&b, "</td><td>");
        char *function = short_label(db_text(s, 0));
        buf_html(&b, function);
        free(function);
        if (*db_text(s, 1)) {
            buf_puts(&b, " ");
            char *file = short_name_cut(page_basename(db_text(s, 1)));
            buf_html(&b, file);
            free(file);
            buf_printf(&b, ":%d", sqlite3_column_int(s, 2));
        }
        buf_puts(&b, "</td></tr>\n");
    }
    buf_puts(&b, "</tbody></table>\n");
    if (b.length)
        fwrite(b.data, 1, b.length, out);
    buf_free(&b);
    return page_query_end(page, s, rc);
}
