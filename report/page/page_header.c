/* What stands in the page as plain HTML: the header, and the lines that held most. For the first paint, and for readers
 * without scripts. */
#include "page_data.h"

#include "../../common/db.h"
#include "../../common/units.h"
#include "../findings/advice.h"
#include "../findings/notes.h"

#include <errno.h>
#include <signal.h>
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

static void ending(struct page *page, struct buf *b)
{
    sqlite3_stmt *s = page_query(
        page, "SELECT end_kind, exit_status, exit_signal, end_ns FROM process WHERE parent_id IS NULL OR pid = "
              "(SELECT pid FROM process ORDER BY process_id LIMIT 1) ORDER BY process_id DESC LIMIT 1");
    if (!s)
        return;
    if (sqlite3_step(s) == SQLITE_ROW) {
        char text[96] = "not seen to end";
        const char *kind = db_text(s, 0);
        if (!strcmp(kind, "exit"))
            snprintf(text, sizeof text, "exit status %d", sqlite3_column_int(s, 1));
        else if (!strcmp(kind, "signal"))
            snprintf(text, sizeof text, "killed by signal %d (%s)", sqlite3_column_int(s, 2),
                     strsignal(sqlite3_column_int(s, 2)));
        fact(b, "Ended", text);
    }
    sqlite3_finalize(s);
}

static void banner(struct buf *b, const char *title, const char *text)
{
    buf_printf(b, "<p class=\"note\" role=\"note\"><strong>%s:</strong> ", title);
    buf_html(b, text);
    buf_puts(b, "</p>\n");
}

static void add_note(void *context, enum note_kind kind, const char *note)
{
    banner(context, kind == NOTE_MISSING ? "Not whole" : "Note", note);
}

static void add_advice(void *context, const char *advice)
{
    banner(context, "Advice", advice);
}

static void card_row(struct buf *b, const char *name, const char *value, const char *more)
{
    buf_printf(b, "<div><dt>%s</dt><dd>%s%s%s%s</dd></div>\n", name, value, *more ? " <span class=\"small\">" : "",
               more, *more ? "</span>" : "");
}

static void device_card(struct buf *b, sqlite3_stmt *s)
{
    char t1[UNITS_TEXT], t2[UNITS_TEXT], more[128];
    buf_puts(b, "<div class=\"card\" data-device-card=\"");
    buf_html(b, db_text(s, 0));
    buf_puts(b, "\"><p class=\"what\">");
    buf_html(b, db_text(s, 0));
    buf_printf(b, ", peak of active bytes</p><p class=\"big\">%s</p><p class=\"small\">",
               units_bytes(t1, sqlite3_column_int64(s, 1)));
    int64_t blocks = sqlite3_column_int64(s, 8);
    buf_printf(b, "at %s, in %s block%s</p><dl>\n", units_ns(t1, sqlite3_column_int64(s, 2)), units_count(t2, blocks),
               blocks == 1 ? "" : "s");
    if (sqlite3_column_int64(s, 3) > 0)
        card_row(b, "Reserved, peak", units_bytes(t1, sqlite3_column_int64(s, 3)), "");
    snprintf(more, sizeof more, "in %s block%s", units_count(t2, sqlite3_column_int64(s, 5)),
             sqlite3_column_int64(s, 5) == 1 ? "" : "s");
    card_row(b, "At the end", units_bytes(t1, sqlite3_column_int64(s, 4)), more);
    snprintf(more, sizeof more, "%s", units_bytes(t2, sqlite3_column_int64(s, 7)));
    card_row(b, "Allocations", units_count(t1, sqlite3_column_int64(s, 6)), more);
    if (sqlite3_column_int64(s, 6) > 0) {
        snprintf(more, sizeof more, "%.1f %%",
                 100.0 * (double)sqlite3_column_int64(s, 9) / (double)sqlite3_column_int64(s, 6));
        card_row(b, "Temporary", units_count(t1, sqlite3_column_int64(s, 9)), more);
    }
    buf_puts(b, "</dl></div>\n");
}

static void cards(struct page *page, struct buf *b)
{
    sqlite3_stmt *s = page_query(
        page,
        "SELECT d.name, t.peak_active_bytes, t.peak_active_ns, t.peak_reserved_bytes, t.end_active_bytes, t.end_count, "
        "t.alloc_count, t.alloc_bytes, t.peak_active_count, t.temporary_count FROM total t JOIN device d "
        "USING(device_id) WHERE t.kind = 'all' ORDER BY d.device_id <> ?, d.device_id");
    if (s && page->device_count)
        sqlite3_bind_int64(s, 1, page->devices[page->open_device].device_id);
    for (int left = 16; s && left-- && sqlite3_step(s) == SQLITE_ROW;)
        device_card(b, s);
    sqlite3_finalize(s);
}

int page_write_header(struct page *page, FILE *out)
{
    struct buf b = BUF(4u << 20);
    char text[96], t1[UNITS_TEXT], t2[UNITS_TEXT];
    char *command = db_meta_text(page->db, "command");
    buf_puts(&b, "<p class=\"command\"><code>");
    buf_html(&b, command && *command ? command : "(command unknown)");
    buf_puts(&b, "</code></p>\n<dl class=\"facts\">\n");
    meta_fact(page, &b, "Host", "host");
    time_t seconds = (time_t)(page->start_unix_ns / 1000000000);
    struct tm tm;
    if (page->start_unix_ns > 0 && gmtime_r(&seconds, &tm) && strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &tm))
        fact(&b, "Started", text);
    fact(&b, "Ran for", units_ns(t1, page->duration_ns));
    ending(page, &b);
    int64_t processes = db_int(page->db, "SELECT count(DISTINCT pid) FROM process", 0);
    int64_t threads = db_int(page->db, "SELECT count(*) FROM thread", 0);
    snprintf(text, sizeof text, "%s, %s %s", units_count(t1, processes), units_count(t2, threads),
             threads == 1 ? "thread" : "threads");
    fact(&b, processes == 1 ? "Process" : "Processes", text);
    meta_fact(page, &b, "Directory", "cwd");
    buf_puts(&b, "</dl>\n");
    notes_each(page->db, add_note, &b);
    advice_each(page->db, add_advice, &b);
    buf_puts(&b, "<div class=\"cards\">\n");
    cards(page, &b);
    buf_puts(&b, "</div>\n");
    free(command);
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
        char *function = page_short_name(db_text(s, 0));
        buf_html(&b, function);
        free(function);
        if (*db_text(s, 1)) {
            buf_puts(&b, " ");
            char *file = page_name_copy(page_basename(db_text(s, 1)));
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
