/* The heaps of glibc at the end, or another allocator's segments, as strips of address space: HTML alone, as a finding
 * leads to it. */
#include "page_data.h"

#include "../../common/db.h"
#include "../../common/units.h"
#include "../query/short_name.h"
#include "../query/unseen.h"

#include <inttypes.h>
#include <stdlib.h>

#define CELLS       240 /* of a strip; of pages that share a cell the most pages count */
#define RANGES_MOST 12
#define NAME        128
#define COLOURS     6 /* lines with a colour of their own */

enum { CELL_LINE, CELL_OTHER = CELL_LINE + COLOURS, CELL_SHARED, CELL_HELD, CELL_TOP, CELL_KINDS };

static const char *const cell_class[CELL_KINDS] = {"l0", "l1", "l2", "l3", "l4", "l5", "lo", "ls", "lh", "lt"};

/* Of segments that are shown together: Python's arenas lie among another allocator's. */
static int is_in_strip(const struct heap_range *r, enum heap_kind kind)
{
    return r->kind == kind && r->page_bytes;
}

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

/* One heap, or all segments of a process, one after the other by address: there may be thousands. */
struct strip {
    const struct heap_range *ranges;
    size_t count;
    struct heap_range sum; /* its bytes */
};

/* Pages of each kind by cell. A live page is worth more than a free one: one of many keeps the rest. */
static void fill_cells(const struct heap *h, const struct strip *strip, double cells[CELLS][CELL_KINDS])
{
    double page = 0, pages = (double)(strip->sum.page_bytes / h->page), width = pages / CELLS;
    for (const struct heap_range *r = strip->ranges; r < strip->ranges + strip->count; r++)
        for (size_t i = 0; i < r->run_count && is_in_strip(r, strip->ranges->kind); i++) {
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
static void write_strip(const struct heap *h, const struct strip *strip, const char *name, struct buf *b)
{
    static double cells[CELLS][CELL_KINDS];
    const struct heap_range *r = &strip->sum;
    char t[4][UNITS_TEXT];
    memset(cells, 0, sizeof cells);
    fill_cells(h, strip, cells);
    buf_printf(b,
               "<figure class=\"heap\"><figcaption>%s: %s reserved, %s live, %s pinned, %s free below the "
               "top</figcaption>\n<svg viewBox=\"0 0 %d 24\" preserveAspectRatio=\"none\" role=\"img\" "
               "aria-label=\"%s by address\">",
               name, units_bytes(t[0], (int64_t)r->page_bytes), units_bytes(t[1], (int64_t)r->live_bytes),
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

static void write_other(struct buf *b, unsigned kind, const char *live, uint64_t pinned_bytes, const char *held,
                        const char *name)
{
    char t[UNITS_TEXT];
    buf_printf(b, "<tr><td><span class=\"heap-key %s\"></span></td><td>%s</td><td>%s</td><td>%s</td><td>%s</td></tr>\n",
               cell_class[kind], live, units_bytes(t, (int64_t)pinned_bytes), held, name);
}

/* What the first lines lack of the sums: pages of several, and the other lines. */
static void write_others(struct buf *b, const struct heap *h)
{
    uint64_t live = 0, pinned = 0, held = 0;
    char t[3][UNITS_TEXT], name[64];
    if (h->shared_bytes)
        write_other(b, CELL_SHARED, "", h->shared_bytes, "", "(shared by several lines)");
    for (uint32_t i = COLOURS; i < h->line_count; i++) {
        live += h->lines[i].live_bytes;
        pinned += h->lines[i].pinned_bytes;
        held += h->lines[i].held_bytes;
    }
    if (h->line_count <= COLOURS)
        return;
    snprintf(name, sizeof name, "(%s other lines)", units_count(t[0], (int64_t)h->line_count - COLOURS));
    write_other(b, CELL_OTHER, units_bytes(t[1], (int64_t)live), pinned, units_bytes(t[2], (int64_t)held), name);
}

static int by_size(const void *x, const void *y)
{
    const struct strip *a = x, *b = y;
    if (a->sum.page_bytes != b->sum.page_bytes)
        return a->sum.page_bytes > b->sum.page_bytes ? -1 : 1;
    if (a->sum.process_id != b->sum.process_id)
        return a->sum.process_id < b->sum.process_id ? -1 : 1;
    return a->sum.address < b->sum.address ? -1 : a->sum.address > b->sum.address;
}

static void add_sums(struct strip *strip, const struct heap_range *r)
{
    strip->count = (size_t)(r - strip->ranges) + 1;
    strip->sum.page_bytes += r->page_bytes;
    strip->sum.live_bytes += r->live_bytes;
    strip->sum.pinned_bytes += r->pinned_bytes;
    strip->sum.shared_bytes += r->shared_bytes;
    strip->sum.held_bytes += r->held_bytes;
    strip->sum.run_count++; /* ranges */
}

static size_t find_strips(const struct heap *h, int is_segments, struct strip *strips)
{
    size_t count = 0;
    for (size_t i = 0; i < h->range_count; i++) {
        const struct heap_range *r = &h->ranges[i];
        struct strip *last = count ? &strips[count - 1] : NULL;
        if (!r->page_bytes || (is_segments ? r->kind != HEAP_SEGMENT : r->kind > HEAP_THREAD))
            continue;
        if (!is_segments || !last || last->sum.process_id != r->process_id) {
            last = &strips[count++];
            *last = (struct strip){.ranges = r, .sum = {.kind = r->kind}};
        }
        last->sum.process_id = r->process_id;
        last->sum.address = last->ranges->address;
        last->sum.arena = last->ranges->arena;
        add_sums(last, r);
    }
    return count;
}

static void name_strip(struct page *page, const struct strip *strip, char name[NAME])
{
    char heap[HEAP_NAME], count[UNITS_TEXT], *loaded = db_meta_text(page->db, "mallocs");
    if (strip->sum.kind != HEAP_SEGMENT)
        snprintf(name, NAME, "%s", heap_name(heap, &strip->sum));
    else
        snprintf(name, NAME, "%s segment%s%s%s", units_count(count, (int64_t)strip->sum.run_count),
                 strip->sum.run_count == 1 ? "" : "s", loaded && !strpbrk(loaded, ",<&\"") ? " of " : "",
                 loaded && !strpbrk(loaded, ",<&\"") ? loaded : "");
    free(loaded);
}

static void write_strips(struct page *page, struct buf *b)
{
    const struct heap *h = &page->heap_end.heap;
    struct strip *strips = xcalloc(h->range_count + 1, sizeof *strips);
    size_t count = find_strips(h, page->heap_end.is_segments, strips);
    char name[NAME];
    if (count)
        qsort(strips, count, sizeof *strips, by_size);
    for (size_t i = 0; i < count && i < RANGES_MOST; i++) {
        name_strip(page, &strips[i], name);
        write_strip(h, &strips[i], name, b);
    }
    if (count > RANGES_MOST)
        buf_printf(b, "<p class=\"hint\">The largest %d of %zu.</p>\n", RANGES_MOST, count);
    free(strips);
}

int page_write_heap(struct page *page, FILE *out)
{
    const struct heap_end *end = &page->heap_end;
    const struct heap *h = &end->heap;
    struct buf b = BUF(4u << 20), when = BUF(1 << 16), unseen = BUF(1 << 12);
    char t[UNITS_TEXT];
    if (!end->is_there)
        return 0;
    buf_puts(&b, "<section id=\"heap\" aria-labelledby=\"heap-title\">\n<h2 id=\"heap-title\">The heap ");
    heap_end_when(end, &when);
    buf_html(&b, buf_text(&when));
    buf_free(&when);
    buf_puts(&b, "</h2>\n<p class=\"hint\">Addresses from left to right. Coloured: pages that hold a live byte, by "
                 "line; <span class=\"heap-key lh\"></span> free pages below a live block, ");
    if (end->is_segments)
        buf_printf(&b, "which their allocator may give back (%s of free pages were resident), ",
                   units_bytes(t, (int64_t)end->trim_bytes));
    else
        buf_printf(&b, "which malloc_trim(0) would give back (%s with those at the top), ",
                   units_bytes(t, (int64_t)end->trim_bytes));
    buf_puts(&b, "<span class=\"heap-key lt\"></span> free at the top, <span class=\"heap-key ls\"></span> of several "
                 "lines. ");
    buf_puts(&b,
             end->is_segments ? "The segments of a process stand side by side." : "The end of each heap was sampled.");
    unseen_say(page->db, &unseen);
    buf_puts(&b, unseen.length ? " " : "");
    buf_html(&b, buf_text(&unseen));
    buf_free(&unseen);
    buf_puts(&b, "</p>\n");
    write_strips(page, &b);
    buf_puts(&b, "<div class=\"table-wrap\"><table "
                 "class=\"plain\"><thead><tr><th></th><th>Live</th><th>Pins</th><th>Holds below the top</th>"
                 "<th>Line</th></tr></thead><tbody>\n");
    for (unsigned i = 0; i < h->line_count && i < COLOURS; i++)
        write_line(&b, i, &h->lines[i]);
    write_others(&b, h);
    buf_puts(&b, "</tbody></table></div>\n</section>\n");
    fwrite(b.data, 1, b.length, out);
    buf_free(&b);
    return 0;
}
