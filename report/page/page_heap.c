/* The heaps of glibc at the end as strips of address space: HTML alone, as a finding leads to it. */
#include "page_data.h"

#include "../../common/units.h"
#include "../query/short_name.h"

#include <inttypes.h>
#include <stdlib.h>

#define CELLS       240 /* of a strip; of pages that share a cell the most pages count */
#define RANGES_MOST 12
#define COLOURS     6 /* lines with a colour of their own */

enum { CELL_LINE, CELL_OTHER = CELL_LINE + COLOURS, CELL_SHARED, CELL_HELD, CELL_TOP, CELL_KINDS };

static const char *const cell_class[CELL_KINDS] = {"l0", "l1", "l2", "l3", "l4", "l5", "lo", "ls", "lh", "lt"};

static unsigned kind_of(const struct heap *h, const struct heap_run *run)
{
    const struct heap_line *line = heap_line_of(h, run);
    if (run->line == HEAP_TOP)
        return CELL_TOP;
    if (run->line == HEAP_SHARED)
        return CELL_SHARED;
    if (run->is_free || !line)
        return CELL_HELD;
    size_t i = (size_t)(line - h->lines);
    return i < COLOURS ? CELL_LINE + (unsigned)i : CELL_OTHER;
}

/* Pages of each kind by cell. A live page is worth more than a free one: one of many keeps the rest. */
static void fill_cells(const struct heap *h, const struct heap_range *r, double cells[CELLS][CELL_KINDS])
{
    double page = 0, pages = (double)(r->page_bytes / h->page), width = pages / CELLS;
    for (size_t i = 0; i < r->run_count; i++) {
        const struct heap_run *run = &h->runs[r->first_run + i];
        double end = page + (double)run->pages;
        unsigned kind = kind_of(h, run);
        for (unsigned c = (unsigned)(page / width); c < CELLS && c * width < end; c++) {
            double low = c * width > page ? c * width : page, high = (c + 1) * width < end ? (c + 1) * width : end;
            cells[c][kind] += high > low ? high - low : 0;
        }
        page = end;
    }
}

static unsigned main_kind(const double *cell)
{
    unsigned best = CELL_TOP;
    for (unsigned k = 0; k < CELL_KINDS; k++)
        if (cell[k] > cell[best])
            best = k;
    return best;
}

static double live_part(const double *cell)
{
    double live = 0, all = 0;
    for (unsigned k = 0; k < CELL_KINDS; k++) {
        all += cell[k];
        live += k < CELL_HELD ? cell[k] : 0;
    }
    return all > 0 ? live / all : 0;
}

static unsigned live_kind(const double *cell)
{
    unsigned best = 0;
    for (unsigned k = 1; k < CELL_HELD; k++)
        if (cell[k] > cell[best])
            best = k;
    return best;
}

/* A column a cell: what most of it is, and over it, from below, the part of its pages that is live. */
static void write_strip(const struct heap *h, const struct heap_range *r, struct buf *b)
{
    static double cells[CELLS][CELL_KINDS];
    char name[HEAP_NAME], t[4][UNITS_TEXT];
    memset(cells, 0, sizeof cells);
    fill_cells(h, r, cells);
    buf_printf(b,
               "<figure class=\"heap\"><figcaption>%s: %s reserved, %s live, %s pinned, %s free below the "
               "top</figcaption>\n<svg viewBox=\"0 0 %d 24\" preserveAspectRatio=\"none\" role=\"img\" "
               "aria-label=\"%s by address\">",
               heap_name(name, r), units_bytes(t[0], (int64_t)r->page_bytes), units_bytes(t[1], (int64_t)r->live_bytes),
               units_bytes(t[2], (int64_t)(r->pinned_bytes + r->shared_bytes)),
               units_bytes(t[3], (int64_t)r->held_bytes), CELLS, name);
    for (unsigned c = 0, n; c < CELLS; c += n) {
        unsigned kind = main_kind(cells[c]);
        for (n = 1; c + n < CELLS && main_kind(cells[c + n]) == kind;)
            n++;
        buf_printf(b, "<rect class=\"%s\" x=\"%u\" y=\"0\" width=\"%u\" height=\"24\"/>", cell_class[kind], c, n);
    }
    for (unsigned c = 0; c < CELLS; c++) {
        double part = live_part(cells[c]), height = part * 24 < 2 ? 2 : part * 24;
        if (part > 0 && main_kind(cells[c]) >= CELL_HELD)
            buf_printf(b, "<rect class=\"%s\" x=\"%u\" y=\"%.1f\" width=\"1\" height=\"%.1f\"/>",
                       cell_class[live_kind(cells[c])], c, 24 - height, height);
    }
    buf_puts(b, "</svg></figure>\n");
}

static void write_line(struct buf *b, unsigned i, const struct heap_line *line)
{
    char t[3][UNITS_TEXT];
    char *name = short_label(line->function ? line->function : "??");
    buf_printf(b, "<tr><td><span class=\"heap-key %s\"></span></td><td>%s</td><td>%s</td><td>%s</td><td>",
               cell_class[i < COLOURS ? CELL_LINE + i : CELL_OTHER], units_bytes(t[0], (int64_t)line->live_bytes),
               units_bytes(t[1], (int64_t)line->pinned_bytes), units_bytes(t[2], (int64_t)line->held_bytes));
    buf_html(b, name);
    free(name);
    if (line->file) {
        char *file = short_name_cut(page_basename(line->file));
        buf_puts(b, " ");
        buf_html(b, file);
        buf_printf(b, ":%" PRId64, line->line);
        free(file);
    }
    buf_puts(b, "</td></tr>\n");
}

static int by_size(const void *x, const void *y)
{
    const struct heap_range *a = *(const struct heap_range *const *)x, *b = *(const struct heap_range *const *)y;
    if (a->page_bytes != b->page_bytes)
        return a->page_bytes > b->page_bytes ? -1 : 1;
    return a->address < b->address ? -1 : a->address > b->address;
}

static void write_strips(const struct heap *h, struct buf *b)
{
    const struct heap_range **shown = xcalloc(h->range_count + 1, sizeof *shown);
    size_t count = 0;
    for (size_t i = 0; i < h->range_count; i++)
        if (h->ranges[i].kind <= HEAP_THREAD && h->ranges[i].page_bytes)
            shown[count++] = &h->ranges[i];
    if (count)
        qsort(shown, count, sizeof *shown, by_size);
    for (size_t i = 0; i < count && i < RANGES_MOST; i++)
        write_strip(h, shown[i], b);
    if (count > RANGES_MOST)
        buf_printf(b, "<p class=\"hint\">The largest %d of %zu.</p>\n", RANGES_MOST, count);
    free(shown);
}

int page_write_heap(struct page *page, FILE *out)
{
    const struct heap_end *end = &page->heap_end;
    const struct heap *h = &end->heap;
    struct buf b = BUF(4u << 20);
    char t[UNITS_TEXT];
    if (!end->is_there || end->is_segments) /* those may be thousands: --segments has them */
        return 0;
    buf_puts(
        &b,
        "<section id=\"heap\" aria-labelledby=\"heap-title\">\n<h2 id=\"heap-title\">The heap at the end</h2>\n"
        "<p class=\"hint\">Addresses from left to right. Coloured: pages that hold a live byte, by line; "
        "<span class=\"heap-key lh\"></span> free pages below a live block, which malloc_trim(0) would give back (");
    buf_printf(
        &b,
        "%s with those at the top), <span class=\"heap-key lt\"></span> free at the top, <span class=\"heap-key ls\">"
        "</span> of several lines. The end of each heap was sampled.</p>\n",
        units_bytes(t, (int64_t)end->trim_bytes));
    write_strips(h, &b);
    buf_puts(&b, "<div class=\"table-wrap\"><table "
                 "class=\"plain\"><thead><tr><th></th><th>Live</th><th>Pins</th><th>Holds below the top</th>"
                 "<th>Line</th></tr></thead><tbody>\n");
    for (unsigned i = 0; i < h->line_count && i < COLOURS; i++)
        write_line(&b, i, &h->lines[i]);
    buf_puts(&b, "</tbody></table></div>\n</section>\n");
    fwrite(b.data, 1, b.length, out);
    buf_free(&b);
    return 0;
}
