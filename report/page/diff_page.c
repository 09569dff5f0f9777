/* The page of two recordings: its parts, and how they are made. */
#include "diff_page.h"

#include "../../common/db.h"
#include "../../common/units.h"
#include "../findings/notes.h"
#include "../query/device.h"
#include "../query/diff_text.h"
#include "../query/ending.h"
#include "diff_page_data.h"
#include "page_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char *const side_titles[] = {"Old", "New"};

uint32_t diff_page_device(const struct diff_page *d, const char *name)
{
    for (uint32_t i = 0; i < d->tree.device_count; i++)
        if (strcmp(d->tree.devices[i], name) == 0)
            return i;
    return MAP_NONE;
}

/* --- plain HTML: for the first paint, and for readers without scripts --- */

static int part_title(void *of, FILE *out)
{
    const struct diff_page *d = of;
    struct buf b = BUF(1u << 16);
    buf_html(&b, page_basename(d->options->database_paths[DIFF_OLD]));
    buf_puts(&b, " &rarr; ");
    buf_html(&b, page_basename(d->options->database_paths[DIFF_NEW]));
    return page_write_html(&b, out);
}

static int part_command(void *of, FILE *out)
{
    const struct diff_page *d = of;
    struct buf b = BUF(1u << 16);
    for (int side = 0; side < DIFF_SIDES; side++) {
        buf_putc(&b, ' ');
        buf_html(&b, page_basename(d->options->database_paths[side]));
    }
    return page_write_html(&b, out);
}

static void add_cell(struct buf *b, const char *text)
{
    buf_puts(b, "<td class=\"text\">");
    buf_html(b, text && *text ? text : "-");
    buf_puts(b, "</td>");
}

/* Of each device that anything was allocated on. */
static int add_peaks(const struct diff_page *d, int side, struct buf *b)
{
    sqlite3_stmt *s = NULL;
    struct buf text = BUF(1u << 16);
    int rc = db_prepare(d->dbs[side],
                        "SELECT d.name, t.peak_active_bytes FROM total t JOIN device d USING(device_id) WHERE t.kind = "
                        "'all' AND t.alloc_count > 0 ORDER BY device_id LIMIT 16",
                        &s, d->err);
    while (db_next(s, &rc, d->err)) {
        char t[UNITS_TEXT];
        buf_printf(&text, "%s%s %s", text.length ? ", " : "", db_text(s, 0),
                   units_bytes(t, sqlite3_column_int64(s, 1)));
    }
    sqlite3_finalize(s);
    add_cell(b, buf_text(&text));
    buf_free(&text);
    return rc;
}

struct banner {
    struct buf *b;
    const char *title;
};

static void add_note(void *of, enum note_kind kind, const char *note)
{
    const struct banner *n = of;
    if (kind != NOTE_MISSING)
        return;
    buf_printf(n->b, "<p class=\"note\" role=\"note\"><strong>%s, not whole:</strong> ", n->title);
    buf_html(n->b, note);
    buf_puts(n->b, "</p>\n");
}

static int add_side(const struct diff_page *d, int side, struct buf *b)
{
    sqlite3 *db = d->dbs[side];
    char t[UNITS_TEXT], when[96] = "";
    time_t seconds = (time_t)(db_meta_int(db, "start_unix_ns", 0) / 1000000000);
    struct tm tm;
    if (seconds > 0 && gmtime_r(&seconds, &tm))
        strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S UTC", &tm);
    buf_printf(b, "<tr><td class=\"text\"><span class=\"side-key %s\"></span>%s</td>", side == DIFF_OLD ? "old" : "new",
               side_titles[side]);
    add_cell(b, d->options->database_paths[side]);
    char *host = db_meta_text(db, "host");
    add_cell(b, host);
    free(host);
    add_cell(b, when);
    add_cell(b, units_ns(t, d->sides[side].duration_ns));
    add_cell(b, units_count(t, db_meta_int(db, "event_count", 0)));
    int rc = add_peaks(d, side, b);
    char *command = db_meta_text(db, "command");
    buf_puts(b, "<td class=\"text\"><div class=\"cut\"><code>");
    buf_html(b, command && *command ? command : "(command unknown)");
    buf_puts(b, "</code></div></td></tr>\n");
    free(command);
    return rc;
}

static void add_skips(const struct diff_page_options *o, struct buf *b)
{
    if (!o->skip_count)
        return;
    buf_puts(b, "<p class=\"hint\">Skipped, so that their callers have the blocks:");
    for (int i = 0; i < o->skip_count; i++) {
        buf_puts(b, i ? ", " : " ");
        buf_html(b, o->skips[i]);
    }
    buf_puts(b, "</p>\n");
}

static int part_header(void *of, FILE *out)
{
    const struct diff_page *d = of;
    struct buf b = BUF(4u << 20);
    int rc = 0;
    buf_puts(&b,
             "<div class=\"table-wrap\"><table class=\"plain sides\"><thead><tr><th></th><th>File</th><th>Host</th><th>"
             "Started</th><th>Ran for</th><th>Events</th><th>Peak</th><th>Command</th></tr></thead><tbody>\n");
    for (int side = 0; rc == 0 && side < DIFF_SIDES; side++)
        rc = add_side(d, side, &b);
    buf_puts(&b, "</tbody></table></div>\n");
    add_skips(d->options, &b);
    for (int side = 0; side < DIFF_SIDES; side++)
        notes_each(d->dbs[side], add_note, &(struct banner){&b, side_titles[side]});
    page_write_html(&b, out);
    return rc;
}

static void add_top_row(const struct diff_row *row, struct buf *b)
{
    struct buf text = BUF(1u << 20);
    char t[UNITS_TEXT];
    int known;
    buf_puts(b, "<tr>");
    for (int side = 0; side < DIFF_SIDES; side++)
        add_cell(b, units_bytes(t, stat_value(&row->stats[side], STAT_at_peak_bytes, &known)));
    add_cell(b, units_bytes(t, diff_of(row, STAT_at_peak_bytes, &known)));
    add_cell(b, units_bytes(t, diff_of(row, STAT_end_bytes, &known)));
    add_cell(b, row->device);
    diff_how_text(row, &text);
    add_cell(b, buf_text(&text));
    buf_reset(&text);
    diff_name_text(ROW_LINE, diff_shown_item(row), NULL, &text);
    buf_putc(&text, ' ');
    diff_place_text(ROW_LINE, diff_shown_item(row), NULL, &text);
    add_cell(b, buf_text(&text));
    buf_puts(b, "</tr>\n");
    buf_free(&text);
}

static int part_top_rows(void *of, FILE *out)
{
    enum { MOST = 20 };
    const struct diff_page *d = of;
    const struct diff_options options = {.by = ROW_LINE, .sort = STAT_at_peak_bytes};
    sqlite3 *const *const dbs[DIFF_SIDES] = {&d->dbs[DIFF_OLD], &d->dbs[DIFF_NEW]};
    struct buf b = BUF(64u << 20);
    struct diff diff;
    int rc = diff_load(dbs, (int[]){1, 1}, &options, &diff, d->err);
    buf_puts(&b,
             "<table class=\"plain\"><caption>The lines that differ most</caption><thead><tr><th>Old, at the peak</th>"
             "<th>New</th><th>Difference</th><th>At the end</th><th>Device</th><th>Match</th><th>Line</th></tr></thead>"
             "<tbody>\n");
    for (int i = 0; rc == 0 && i < MOST && i < diff.count; i++)
        add_top_row(&diff.rows[i], &b);
    buf_puts(&b, "</tbody></table>\n");
    diff_close(&diff);
    page_write_html(&b, out);
    return rc;
}

/* --- data --- */

static int write_peaks(const struct diff_page *d, int side, struct page_pack *pack)
{
    sqlite3_stmt *s = NULL;
    int rc = db_prepare(d->dbs[side],
                        "SELECT d.name, t.peak_active_bytes, t.peak_active_ns FROM total t JOIN device d "
                        "USING(device_id) WHERE t.kind = 'all' AND t.peak_active_bytes > 0 ORDER BY device_id LIMIT 64",
                        &s, d->err);
    pack_open(pack, "peaks", '[');
    while (db_next(s, &rc, d->err)) {
        const uint32_t device = diff_page_device(d, db_text(s, 0));
        if (device == MAP_NONE)
            continue;
        pack_open(pack, NULL, '{');
        pack_int(pack, "device", device);
        pack_int(pack, "value", sqlite3_column_int64(s, 1));
        pack_int(pack, "time", sqlite3_column_int64(s, 2));
        pack_close(pack, '}');
    }
    pack_close(pack, ']');
    sqlite3_finalize(s);
    return rc;
}

static int write_core(void *of, struct page_pack *pack)
{
    const struct diff_page *d = of;
    int rc = 0;
    pack_open(pack, NULL, '{');
    pack_int(pack, "open_device", d->open_device);
    pack_int(pack, "rows_max", PAGE_DIFF_ROWS_MAX);
    pack_open(pack, "devices", '[');
    for (uint32_t i = 0; i < d->tree.device_count; i++) {
        pack_open(pack, NULL, '{');
        pack_text(pack, "name", d->tree.devices[i]);
        pack_close(pack, '}');
    }
    pack_close(pack, ']');
    pack_open(pack, "sides", '[');
    for (int side = 0; rc == 0 && side < DIFF_SIDES; side++) {
        pack_open(pack, NULL, '{');
        pack_int(pack, "duration_ns", d->sides[side].duration_ns);
        pack_int(pack, "start_unix_us", d->sides[side].start_unix_ns / 1000);
        rc = write_peaks(d, side, pack);
        pack_close(pack, '}');
    }
    pack_close(pack, ']');
    pack_close(pack, '}');
    return rc;
}

static int write_timelines(void *of, struct page_pack *pack)
{
    struct diff_page *d = of;
    int rc = 0;
    pack_open(pack, NULL, '[');
    for (int side = 0; rc == 0 && side < DIFF_SIDES; side++)
        rc = page_write_timeline(&d->sides[side], pack);
    pack_close(pack, ']');
    return rc;
}

static int part_core(void *of, FILE *out)
{
    return page_write_pack(out, 0, write_core, of, ((struct diff_page *)of)->err);
}

static int part_timelines(void *of, FILE *out)
{
    return page_write_pack(out, 1, write_timelines, of, ((struct diff_page *)of)->err);
}

static int part_rows(void *of, FILE *out)
{
    return page_write_pack(out, 1, diff_page_write_rows, of, ((struct diff_page *)of)->err);
}

static int part_flame(void *of, FILE *out)
{
    return page_write_pack(out, 1, diff_page_write_flame, of, ((struct diff_page *)of)->err);
}

static const struct page_part parts[] = {
    {"title", part_title}, {"command", part_command},     {"header", part_header}, {"top_rows", part_top_rows},
    {"core", part_core},   {"timelines", part_timelines}, {"rows", part_rows},     {"flame", part_flame},
};

static const enum page_template scripts[] = {
    PAGE_units_js, PAGE_theme_js,         PAGE_model_js,      PAGE_figure_js,     PAGE_timeline_js, PAGE_tables_js,
    PAGE_flame_js, PAGE_diff_timeline_js, PAGE_diff_table_js, PAGE_diff_flame_js, PAGE_diff_js,
};

static const struct page_form form = {.html = PAGE_diff_html,
                                      .what = "memprof diff",
                                      .scripts = scripts,
                                      .script_count = sizeof scripts / sizeof *scripts,
                                      .parts = parts,
                                      .part_count = sizeof parts / sizeof *parts};

/* --- the page --- */

static int64_t peak_of(const struct diff_page *d, int side, const char *device)
{
    struct error unused;
    sqlite3_stmt *s = NULL;
    int64_t peak = 0;
    int rc = db_prepare(d->dbs[side],
                        "SELECT max(peak_active_bytes) FROM total JOIN device USING(device_id) WHERE kind = 'all' AND "
                        "name = ?1",
                        &s, &unused);
    if (rc == 0)
        sqlite3_bind_text(s, 1, device, -1, SQLITE_STATIC);
    if (db_next(s, &rc, &unused))
        peak = sqlite3_column_int64(s, 0);
    sqlite3_finalize(s);
    return peak > 0 ? peak : 0;
}

/* Of those asked for, or of all, the one whose peak changed most. */
static int choose_device(struct diff_page *d)
{
    int64_t most = -1;
    for (uint32_t i = 0; i < d->tree.device_count; i++) {
        if (!device_is(d->tree.devices[i], d->options->device))
            continue;
        int64_t change = peak_of(d, DIFF_NEW, d->tree.devices[i]) - peak_of(d, DIFF_OLD, d->tree.devices[i]);
        change = change < 0 ? -change : change;
        if (change > most)
            d->open_device = i;
        most = change > most ? change : most;
    }
    if (most < 0 && d->options->device)
        return error_set(d->err, EINVAL, "no device '%s' in these recordings", d->options->device);
    return 0;
}

static int load_side(struct diff_page *d, int side)
{
    struct page *page = &d->sides[side];
    sqlite3 *db = d->dbs[side];
    *page = (struct page){.db = db, .err = d->err};
    page->duration_ns = ending_duration_ns(db, 1);
    page->start_unix_ns = db_meta_int(db, "start_unix_ns", 0);
    return page_load_devices(page);
}

static int write_page(void *of, FILE *out, struct error *err)
{
    struct diff_page d = *(const struct diff_page *)of;
    d.err = err;
    int rc = diff_tree_load(d.dbs, &d.tree, err);
    for (int side = 0; rc == 0 && side < DIFF_SIDES; side++)
        rc = load_side(&d, side);
    if (rc == 0)
        rc = choose_device(&d);
    if (rc == 0)
        rc = page_file_write(&form, &d, out, err);
    diff_tree_close(&d.tree);
    for (int side = 0; side < DIFF_SIDES; side++)
        page_free(&d.sides[side]);
    return rc;
}

int diff_page_write(sqlite3 *const dbs[DIFF_SIDES], const struct diff_page_options *options, struct error *err)
{
    struct diff_page d = {.dbs = dbs, .options = options};
    const char *const originals[] = {options->database_paths[DIFF_OLD], options->database_paths[DIFF_NEW], NULL};
    char *path = options->to_stdout   ? NULL
                 : options->page_path ? xstrdup(options->page_path)
                                      : db_path_with(options->database_paths[DIFF_NEW], "-diff.html");
    const struct page_place place = {.path = path, .originals = originals, .open = options->open};
    int rc = page_file_put(&place, write_page, &d, err);
    free(path);
    return rc;
}
