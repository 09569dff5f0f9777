/* The page of several recordings: its parts, and how they are made. */
#include "many_page.h"

#include "../../common/text.h"
#include "../../common/units.h"
#include "../query/common_peak.h"
#include "page_data.h"
#include "page_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    ROWS_OF_HTML = 200,       /* of the table for readers without scripts */
    NOTES_OF_HTML = 12,       /* the others are with their files */
    BUCKETS_OF_PAGE = 200000, /* of all timelines */
    BUCKETS_LEAST = 60,
    BUCKETS_MOST = 2000,
};

struct many_page {
    struct many *many;
    const struct many_page_options *options;
    struct error *err;
    struct common_peak *common; /* by device */
    int64_t *starts_ns;
    enum many_clock clock;
    int64_t whole_ns;
    int open_device;
};

int many_page_lines(int files)
{
    int lines = 6000 / (files + 1);
    return lines < 3 ? 3 : lines > 12 ? 12 : lines;
}

static int part_title(void *of, FILE *out)
{
    const struct many_page *p = of;
    char text[UNITS_TEXT];
    fprintf(out, "%s recordings", units_count(text, p->many->list.count));
    return 0;
}

static int part_open_name(void *of, FILE *out)
{
    const struct many_page *p = of;
    struct buf b = BUF(1u << 16);
    buf_html(&b, p->many->list.recording[0].path);
    return page_write_html(&b, out);
}

static void add_note(struct buf *b, const char *path, const char *note)
{
    buf_puts(b, "<p class=\"note\" role=\"note\"><strong>");
    buf_html(b, path);
    buf_puts(b, ":</strong> ");
    buf_html(b, note);
    buf_puts(b, "</p>\n");
}

static void add_notes(const struct many_page *p, struct buf *b)
{
    int shown = 0, left = 0;
    for (int i = 0; i < p->many->list.count; i++) {
        const struct recording *r = &p->many->list.recording[i];
        const struct many_file *f = &p->many->files[i];
        for (int k = r->problem ? -1 : 0; k < f->note_count; k++) {
            if (shown == NOTES_OF_HTML) {
                left++;
                continue;
            }
            shown++;
            add_note(b, r->path, k < 0 ? recordings_reason(r) : f->notes[k]);
        }
    }
    if (left)
        buf_printf(b, "<p class=\"hint\">and %d more, which are with their files below.</p>\n", left);
    if (p->many->list.repeated_count)
        buf_printf(b, "<p class=\"hint\">%d of the files were named more than once; each counts once.</p>\n",
                   p->many->list.repeated_count);
}

static const char *const clock_texts[] = {
    [MANY_CLOCK_NONE] = "Of one at least it is not known when it began: each is drawn from its own start.",
    [MANY_CLOCK_WALLS] = "Of several machines, each by its own wall clock, which nobody compared.",
    [MANY_CLOCK_WALL] = "By the machine's wall clock, which may have been set in between.",
    [MANY_CLOCK_MACHINE] = "By the machine's own clock.",
};

/* A row a device: what the terminal says of it. */
static void add_sums(const struct many_page *p, struct buf *b)
{
    buf_puts(b,
             "<div class=\"table-wrap\"><table class=\"sums\"><thead><tr><th class=\"text\">Device</th><th>Files</th>"
             "<th>Highest peak</th><th class=\"text\">of</th><th>Mean peak</th><th title=\"The highest peak by the "
             "mean\">Imbalance</th><th title=\"Not what was held at any instant\">Sum of peaks</th><th title=\"What "
             "all held together at one instant\">Common peak</th><th>Sum of reserved peaks</th><th>Sum live at the "
             "end</th></tr></thead><tbody>\n");
    for (int i = 0; i < p->many->device_count; i++) {
        struct many_sum sum;
        char t[UNITS_TEXT];
        const struct common_peak *c = &p->common[i];
        many_add(p->many, i, &sum);
        buf_puts(b, "<tr><td class=\"text\">");
        buf_html(b, p->many->devices[i]);
        buf_printf(b, "</td><td>%d</td><td>%s</td><td class=\"text\">", sum.count, units_bytes(t, sum.most_bytes));
        buf_html(b, sum.most_file < 0 ? "" : p->many->list.recording[sum.most_file].path);
        buf_printf(b, "</td><td>%s</td><td>%.2f</td>", units_bytes(t, sum.count ? sum.peak_bytes / sum.count : 0),
                   sum.imbalance);
        buf_printf(b, "<td>%s</td><td>", units_bytes(t, sum.peak_bytes));
        buf_puts(b, units_bytes(t, c->least_bytes));
        if (c->most_bytes != c->least_bytes)
            buf_printf(b, " to %s", units_bytes(t, c->most_bytes));
        buf_printf(b, "</td><td>%s</td>", sum.reserved_bytes < 0 ? "-" : units_bytes(t, sum.reserved_bytes));
        buf_printf(b, "<td>%s</td></tr>\n", units_bytes(t, sum.end_bytes));
    }
    buf_puts(b, "</tbody></table></div>\n");
}

/* What the tables would leave unexplained. */
static void add_footnotes(const struct many *many, struct buf *b)
{
    int is_end_above = 0, is_sum = 0;
    for (int i = 0; i < many->list.count; i++)
        for (int k = 0; k < many->files[i].row_count; k++) {
            is_end_above |= many->files[i].rows[k].end_bytes > many->files[i].rows[k].peak_bytes;
            is_sum |= many->files[i].rows[k].is_sum;
        }
    if (is_end_above)
        buf_puts(b, "<p class=\"hint\">(" MANY_END_ABOVE ")</p>\n");
    if (is_sum)
        buf_puts(b, "<p class=\"hint\">(" MANY_IS_SUM ")</p>\n");
}

static int part_header(void *of, FILE *out)
{
    const struct many_page *p = of;
    struct buf b = BUF(16u << 20);
    add_sums(p, &b);
    buf_printf(&b, "<p class=\"hint\">%s</p>\n", clock_texts[p->clock]);
    add_footnotes(p->many, &b);
    add_notes(p, &b);
    return page_write_html(&b, out);
}

static void add_cell(struct buf *b, const char *text)
{
    buf_puts(b, "<td class=\"text\">");
    buf_html(b, text && *text ? text : "-");
    buf_puts(b, "</td>");
}

static void add_file(const struct many_page *p, int file, const struct many_row *row, struct buf *b)
{
    const struct recording *r = &p->many->list.recording[file];
    char t[UNITS_TEXT];
    struct buf text = BUF(1u << 20);
    buf_puts(b, "<tr>");
    add_cell(b, r->rank >= 0 ? units_count(t, r->rank) : NULL);
    add_cell(b, r->path);
    add_cell(b, row ? p->many->devices[row->device] : NULL);
    add_cell(b, row ? units_bytes(t, row->peak_bytes) : NULL);
    add_cell(b, row ? units_bytes(t, row->end_bytes) : NULL);
    if (row && row->lines.count) {
        row_function_text(&row->lines.row[0], &text);
        buf_puts(&text, " ");
        row_source_text(&row->lines.row[0], p->many->files[file].cwd, &text);
    }
    add_cell(b, text.data);
    buf_puts(b, "</tr>\n");
    buf_free(&text);
}

static int part_top_rows(void *of, FILE *out)
{
    const struct many_page *p = of;
    struct buf b = BUF(64u << 20);
    int rows = 0;
    buf_puts(&b, "<table class=\"plain\"><caption>By file</caption><thead><tr><th>Rank</th><th>File</th><th>Device</th>"
                 "<th>Peak</th><th>At the end</th><th>Line that held most</th></tr></thead><tbody>\n");
    for (int i = 0; i < p->many->list.count && rows < ROWS_OF_HTML; i++) {
        const struct many_file *f = &p->many->files[i];
        for (int k = 0; (k < f->row_count || k == 0) && rows < ROWS_OF_HTML; k++, rows++)
            add_file(p, i, k < f->row_count ? &f->rows[k] : NULL, &b);
    }
    buf_puts(&b, "</tbody></table>\n");
    return page_write_html(&b, out);
}

/* --- data --- */

static int write_core(void *of, struct page_pack *pack)
{
    const struct many_page *p = of;
    pack_open(pack, NULL, '{');
    pack_int(pack, "open_device", p->open_device);
    pack_int(pack, "whole", p->whole_ns);
    pack_int(pack, "is_aligned", p->clock != MANY_CLOCK_NONE);
    pack_open(pack, "devices", '[');
    for (int i = 0; i < p->many->device_count; i++) {
        struct many_sum sum;
        many_add(p->many, i, &sum);
        pack_open(pack, NULL, '{');
        pack_text(pack, "name", p->many->devices[i]);
        pack_int(pack, "files", sum.count);
        pack_int(pack, "most", sum.most_bytes);
        pack_int(pack, "sum", sum.peak_bytes);
        pack_int(pack, "common_least", p->common[i].least_bytes);
        pack_int(pack, "common_most", p->common[i].most_bytes);
        pack_int(pack, "common_time", p->common[i].time_ns);
        pack_close(pack, '}');
    }
    pack_close(pack, ']');
    pack_close(pack, '}');
    return 0;
}

struct column_row {
    int64_t start, least, most, most_after, last;
};

/* In fewer buckets: the extremes stay. */
static void write_timeline(const struct many_page *p, const struct many_row *row, struct page_pack *pack)
{
    uint32_t limit = (uint32_t)(BUCKETS_OF_PAGE / (p->many->list.count + 1));
    limit = limit < BUCKETS_LEAST ? BUCKETS_LEAST : limit > BUCKETS_MOST ? BUCKETS_MOST : limit;
    uint32_t step = (row->bucket_count + limit - 1) / limit, count = 0;
    struct column_row *rows = xcalloc(row->bucket_count / (step ? step : 1) + 2, sizeof *rows);
    for (uint32_t i = 0; i < row->bucket_count; i++) {
        const struct many_bucket *b = &row->buckets[i];
        struct column_row *c = i % step ? &rows[count - 1] : &rows[count++];
        if (i % step == 0)
            *c = (struct column_row){b->start_ns, b->min_bytes, -1, 0, 0};
        c->least = b->min_bytes < c->least ? b->min_bytes : c->least;
        if (b->max_bytes > c->most) {
            c->most = b->max_bytes;
            c->most_after = b->max_ns - c->start;
        }
        c->last = b->last_bytes;
    }
    int64_t width_ns;
    if (__builtin_mul_overflow(row->width_ns, step ? step : 1, &width_ns))
        width_ns = INT64_MAX;
    pack_int(pack, "width", width_ns);
    pack_column(pack, "start", count, &rows->start, sizeof *rows, 1);
    pack_column(pack, "active_min", count, &rows->least, sizeof *rows, 1);
    pack_column(pack, "active_max", count, &rows->most, sizeof *rows, 1);
    pack_column(pack, "active_max_after", count, &rows->most_after, sizeof *rows, 0);
    pack_column(pack, "active_last", count, &rows->last, sizeof *rows, 1);
    free(rows);
}

static void write_lines(const struct many_file *f, const struct many_row *row, struct page_pack *pack)
{
    pack_open(pack, "lines", '[');
    for (int i = 0; i < row->lines.count; i++) {
        const struct row *line = &row->lines.row[i];
        struct buf name = BUF(1u << 20), place = BUF(1u << 20);
        row_function_text(line, &name);
        row_source_text(line, f->cwd, &place);
        pack_open(pack, NULL, '{');
        pack_text(pack, "name", buf_text(&name));
        pack_text(pack, "place", buf_text(&place));
        pack_int(pack, "bytes", line->stats.value[STAT_at_peak_bytes]);
        pack_int(pack, "blocks", line->stats.value[STAT_at_peak_count]);
        pack_int(pack, "end", line->stats.value[STAT_end_bytes]);
        pack_close(pack, '}');
        buf_free(&name);
        buf_free(&place);
    }
    pack_close(pack, ']');
}

static void write_row(const struct many_page *p, const struct many_file *f, const struct many_row *row,
                      struct page_pack *pack)
{
    pack_open(pack, NULL, '{');
    pack_int(pack, "device", row->device);
    pack_int(pack, "peak", row->peak_bytes);
    pack_int(pack, "peak_ns", row->peak_ns);
    pack_int(pack, "peak_count", row->peak_count);
    if (row->reserved_bytes >= 0)
        pack_int(pack, "reserved", row->reserved_bytes);
    else
        pack_null(pack, "reserved");
    pack_int(pack, "end", row->end_bytes);
    pack_int(pack, "end_count", row->end_count);
    pack_int(pack, "alloc_count", row->alloc_count);
    pack_int(pack, "alloc_bytes", row->alloc_bytes);
    pack_int(pack, "temporary_count", row->temporary_count);
    write_lines(f, row, pack);
    write_timeline(p, row, pack);
    pack_close(pack, '}');
}

static void pack_known(struct page_pack *pack, const char *key, const char *text)
{
    if (text)
        pack_text(pack, key, text);
    else
        pack_null(pack, key);
}

static int write_files(void *of, struct page_pack *pack)
{
    const struct many_page *p = of;
    pack_open(pack, NULL, '[');
    for (int i = 0; i < p->many->list.count; i++) {
        const struct recording *r = &p->many->list.recording[i];
        const struct many_file *f = &p->many->files[i];
        pack_open(pack, NULL, '{');
        pack_text(pack, "path", r->path);
        if (r->rank >= 0)
            pack_int(pack, "rank", r->rank);
        pack_int(pack, "is_read", r->is_read);
        pack_known(pack, "host", r->host);
        pack_known(pack, "command", r->command);
        pack_known(pack, "state", f->state);
        pack_known(pack, "ended", f->ended);
        pack_int(pack, "has_failed", f->has_failed);
        pack_known(pack, "problem", r->problem);
        pack_int(pack, "start", p->starts_ns[i]);
        pack_int(pack, "start_unix_us", r->start_unix_ns / 1000);
        pack_int(pack, "duration", r->duration_ns);
        pack_open(pack, "notes", '[');
        for (int k = 0; k < f->note_count; k++)
            pack_text(pack, NULL, f->notes[k]);
        pack_close(pack, ']');
        pack_open(pack, "rows", '[');
        for (int k = 0; k < f->row_count; k++)
            write_row(p, f, &f->rows[k], pack);
        pack_close(pack, ']');
        pack_close(pack, '}');
    }
    pack_close(pack, ']');
    return 0;
}

static int part_core(void *of, FILE *out)
{
    return page_write_pack(out, 0, write_core, of, ((struct many_page *)of)->err);
}

static int part_files(void *of, FILE *out)
{
    return page_write_pack(out, 1, write_files, of, ((struct many_page *)of)->err);
}

static const struct page_part parts[] = {
    {"title", part_title},       {"open_name", part_open_name}, {"header", part_header},
    {"top_rows", part_top_rows}, {"core", part_core},           {"files", part_files},
};

static const enum page_template scripts[] = {
    PAGE_units_js,  PAGE_theme_js,         PAGE_model_js,      PAGE_figure_js, PAGE_timeline_js,
    PAGE_tables_js, PAGE_many_timeline_js, PAGE_many_table_js, PAGE_many_js,
};

static const struct page_form form = {.html = PAGE_many_html,
                                      .what = "memprof",
                                      .scripts = scripts,
                                      .script_count = sizeof scripts / sizeof *scripts,
                                      .parts = parts,
                                      .part_count = sizeof parts / sizeof *parts};

/* --- the page --- */

static void choose_device(struct many_page *p)
{
    int64_t most = -1;
    for (int i = 0; i < p->many->device_count; i++) {
        struct many_sum sum;
        many_add(p->many, i, &sum);
        if (sum.peak_bytes > most)
            p->open_device = i;
        most = sum.peak_bytes > most ? sum.peak_bytes : most;
    }
}

static int write_page(void *of, FILE *out, struct error *err)
{
    struct many_page p = *(const struct many_page *)of;
    const struct many *m = p.many;
    p.err = err;
    p.starts_ns = xcalloc((size_t)m->list.count + 1, sizeof *p.starts_ns);
    p.common = xcalloc((size_t)m->device_count + 1, sizeof *p.common);
    p.clock = many_align(m, p.starts_ns);
    for (int i = 0; i < m->device_count; i++)
        common_peak_find(p.many, i, &p.common[i]);
    for (int i = 0; i < m->list.count; i++)
        if (p.starts_ns[i] + m->list.recording[i].duration_ns > p.whole_ns)
            p.whole_ns = p.starts_ns[i] + m->list.recording[i].duration_ns;
    p.whole_ns += !p.whole_ns;
    choose_device(&p);
    int rc = page_file_write(&form, &p, out, err);
    free(p.starts_ns);
    free(p.common);
    return rc;
}

/* "many.html" in the directory of the first one. */
static char *page_name(const struct many *m)
{
    struct buf name = BUF(1u << 16);
    const char *first = m->list.recording[0].path;
    buf_printf(&name, "%.*smany.html", (int)(text_basename(first) - first), first);
    return buf_take(&name);
}

int many_page_write(struct many *many, const struct many_page_options *options, struct error *err)
{
    struct many_page p = {.many = many, .options = options};
    const char **originals = xcalloc((size_t)many->list.count + 1, sizeof *originals);
    for (int i = 0; i < many->list.count; i++)
        originals[i] = many->list.recording[i].path;
    char *path = options->to_stdout ? NULL : options->page_path ? xstrdup(options->page_path) : page_name(many);
    const struct page_place place = {.path = path, .originals = originals, .open = options->open};
    int rc = page_file_put(&place, write_page, &p, err);
    free(path);
    free(originals);
    return rc;
}
