/* What stands in the page as plain HTML: the header, and the lines that held most. For the first paint, and for readers
 * without scripts. */
#include "page_data.h"

#include "../common/db.h"
#include "../common/units.h"
#include "notes.h"

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
    sqlite3_stmt *s = page_query(page, "SELECT end_kind, exit_status, exit_signal, end_ns FROM process WHERE parent_id IS NULL OR pid = "
                                       "(SELECT pid FROM process ORDER BY process_id LIMIT 1) ORDER BY process_id DESC LIMIT 1");
    if (!s)
        return;
    if (sqlite3_step(s) == SQLITE_ROW) {
        char text[96] = "not seen to end";
        const char *kind = db_text(s, 0);
        if (!strcmp(kind, "exit"))
            snprintf(text, sizeof text, "exit status %d", sqlite3_column_int(s, 1));
        else if (!strcmp(kind, "signal"))
            snprintf(text, sizeof text, "killed by signal %d (%s)", sqlite3_column_int(s, 2), strsignal(sqlite3_column_int(s, 2)));
        fact(b, "Ended", text);
    }
    sqlite3_finalize(s);
}

static void add_note(void *context, const char *note)
{
    struct buf *b = context;
    buf_puts(b, "<p class=\"note\" role=\"note\"><strong>Not whole:</strong> ");
    buf_html(b, note);
    buf_puts(b, "</p>\n");
}

static void card(struct buf *b, const char *title, const char *big, const char *small)
{
    buf_printf(b, "<div class=\"card\"><p class=\"what\">");
    buf_html(b, title);
    buf_printf(b, "</p><p class=\"big\">%s</p><p class=\"small\">%s</p></div>\n", big, small);
}

static void cards(struct page *page, struct buf *b)
{
    sqlite3_stmt *s = page_query(page, "SELECT d.name, t.peak_active_bytes, t.peak_active_ns, t.peak_reserved_bytes, t.end_active_bytes, t.end_count, "
                                       "t.alloc_count, t.alloc_bytes, t.peak_active_count FROM total t JOIN device d USING(device_id) "
                                       "WHERE t.kind = 'all' ORDER BY d.device_id");
    if (!s)
        return;
    for (int left = 8; left-- && sqlite3_step(s) == SQLITE_ROW;) {
        char title[128], big[UNITS_TEXT], small[160], t1[UNITS_TEXT], t2[UNITS_TEXT];
        const char *device = db_text(s, 0);
        snprintf(title, sizeof title, "%.40s peak, active", device);
        snprintf(small, sizeof small, "at %s, in %s blocks", units_ns(t1, sqlite3_column_int64(s, 2)), units_count(t2, sqlite3_column_int64(s, 8)));
        card(b, title, units_bytes(big, sqlite3_column_int64(s, 1)), small);
        if (sqlite3_column_int64(s, 3) > 0) {
            snprintf(title, sizeof title, "%.40s peak, reserved", device);
            card(b, title, units_bytes(big, sqlite3_column_int64(s, 3)), "held by the allocator from the layer below");
        }
        snprintf(title, sizeof title, "%.40s, still live at the end", device);
        snprintf(small, sizeof small, "in %s blocks", units_count(t1, sqlite3_column_int64(s, 5)));
        card(b, title, units_bytes(big, sqlite3_column_int64(s, 4)), small);
        snprintf(title, sizeof title, "%.40s allocations", device);
        snprintf(small, sizeof small, "%s in all", units_bytes(t1, sqlite3_column_int64(s, 7)));
        card(b, title, units_count(big, sqlite3_column_int64(s, 6)), small);
    }
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
    snprintf(text, sizeof text, "%s, %s %s", units_count(t1, processes), units_count(t2, threads), threads == 1 ? "thread" : "threads");
    fact(&b, processes == 1 ? "Process" : "Processes", text);
    meta_fact(page, &b, "Directory", "cwd");
    buf_puts(&b, "</dl>\n");
    notes_each(page->db, add_note, &b);
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
    sqlite3_stmt *s = page_query(page, "SELECT function, file, line, at_peak_bytes, end_bytes, alloc_count, device FROM v_line WHERE kind = 'all' "
                                       "ORDER BY at_peak_bytes DESC, alloc_bytes DESC LIMIT 20");
    if (!s)
        return -EIO;
    struct buf b = BUF(4u << 20);
    int rc;
    buf_puts(&b, "<table class=\"plain\"><caption>The lines that held most at the peak</caption><thead><tr><th>At the peak</th><th>At the end</th>"
                 "<th>Allocations</th><th>Device</th><th>Line</th></tr></thead><tbody>\n");
    while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
        char t1[UNITS_TEXT], t2[UNITS_TEXT], t3[UNITS_TEXT];
        buf_printf(&b, "<tr><td>%s</td><td>%s</td><td>%s</td><td>", units_bytes(t1, sqlite3_column_int64(s, 3)),
                   units_bytes(t2, sqlite3_column_int64(s, 4)), units_count(t3, sqlite3_column_int64(s, 5)));
        buf_html(&b, db_text(s, 6));
        buf_puts(&b, "</td><td>");
        char *function = page_name_copy(db_text(s, 0));
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
