#include "heap_lines.h"

#include "../print/listing.h"
#include "../query/process_label.h"

#include <stdlib.h>

enum { DEFAULT_RANGES = 10 };

static int is_glibc(const struct heap_range *r)
{
    return r->kind <= HEAP_OWN;
}

static int by_size(const void *x, const void *y)
{
    const struct heap_range *a = *(const struct heap_range *const *)x, *b = *(const struct heap_range *const *)y;
    if (a->size_bytes != b->size_bytes)
        return a->size_bytes > b->size_bytes ? -1 : 1;
    return a->address < b->address ? -1 : a->address > b->address;
}

static const struct heap_line *line_of_block(const struct heap *heap, const struct block *b)
{
    uint64_t known = b ? map_get(&heap->site_of, b->site_id, 0) : 0;
    return known ? &heap->lines[heap->place[known - 1]] : NULL;
}

static int is_forked(const struct heap *heap, const struct heap_range *r)
{
    return r >= heap->forked && r < heap->forked + heap->forked_count;
}

static void list_range(sqlite3_stmt *labels, struct listing *l, const struct heap *heap, const struct heap_range *r,
                       int is_people)
{
    char name[HEAP_NAME];
    int has_pages = !is_forked(heap, r), has_top = has_pages && r->kind != HEAP_OWN;
    struct buf process = BUF(1 << 16);
    int64_t pid = process_label(labels, r->process_id, &process);
    const struct block *top = r->kind == HEAP_OWN ? NULL : r->last;
    const struct heap_line *line = line_of_block(heap, top);
    listing_int(l, (int64_t)r->size_bytes);
    listing_int(l, (int64_t)r->live_bytes);
    listing_int(l, (int64_t)r->block_count);
    listing_int_if(l, has_pages, (int64_t)(r->pinned_bytes + r->shared_bytes));
    listing_int_if(l, has_pages, (int64_t)r->pinned_bytes);
    listing_int_if(l, has_pages, (int64_t)r->shared_bytes);
    listing_int_if(l, has_top, (int64_t)r->held_bytes);
    listing_int_if(l, has_top, (int64_t)r->top_bytes);
    listing_text(l, heap_name(name, r));
    listing_int_if(l, r->kind != HEAP_OWN, (int64_t)r->address);
    listing_int(l, r->process_id);
    listing_int_if(l, pid >= 0, pid);
    listing_text(l, pid >= 0 ? buf_text(&process) : NULL);
    listing_int(l, !has_pages);
    listing_text(l, line && line->function ? line->function : top && is_people ? "??" : NULL);
    listing_text(l, line ? line->file : NULL);
    listing_int_if(l, line && line->line > 0, line ? line->line : 0);
    listing_int_if(l, top != NULL, top ? (int64_t)top->size_bytes : 0);
    listing_int_if(l, top != NULL, top ? (int64_t)top->time_ns : 0);
    buf_free(&process);
}

void heap_list_ranges(sqlite3 *db, const struct heap *heap, const struct report_options *options,
                      const struct report_out *out, const char *cwd)
{
    static const struct column columns[] = {
        COLUMN("size_bytes", "heap\nsize", BYTES),
        COLUMN("live_bytes", "live", BYTES),
        COLUMN("live_count", NULL, COUNT),
        COLUMN(NULL, "pinned\npages", BYTES, .none = "?"),
        COLUMN("pinned_page_bytes", NULL, BYTES),
        COLUMN("shared_page_bytes", NULL, BYTES),
        COLUMN("held_page_bytes", "free pages\nbelow top", BYTES, .none = "-"),
        COLUMN("top_page_bytes", "free at\nthe top", BYTES, .none = "-"),
        COLUMN("name", "heap", TEXT),
        COLUMN("address", NULL, NUMBER),
        COLUMN("process_id", NULL, NUMBER),
        COLUMN("pid", "pid", NUMBER),
        COLUMN("process", "process", TEXT, .cut = TEXT_CUT_RIGHT),
        COLUMN("is_forked", NULL, NUMBER),
        COLUMN("top_function", "top kept by", TEXT, .cut = TEXT_CUT_NAME, .none = "-"),
        COLUMN("top_file", "source", SOURCE, .cut = TEXT_CUT_LEFT),
        COLUMN("top_line", NULL, NUMBER),
        COLUMN("top_bytes", "block", BYTES, .flags = COLUMN_OPTIONAL, .none = ""),
        COLUMN("top_ns", "since", NS, .flags = COLUMN_OPTIONAL, .none = ""),
    };
    const struct heap_range **glibc = xcalloc(heap->range_count + heap->forked_count + 1, sizeof(void *));
    int is_people = out->format == REPORT_TEXT;
    size_t count = 0, top = options->top >= 0 ? (size_t)options->top : is_people ? DEFAULT_RANGES : 0;
    for (size_t i = 0; i < heap->range_count; i++)
        if (is_glibc(&heap->ranges[i]))
            glibc[count++] = &heap->ranges[i];
    for (size_t i = 0; i < heap->forked_count; i++)
        glibc[count++] = &heap->forked[i];
    if (count)
        qsort(glibc, count, sizeof *glibc, by_size);
    struct listing *l = listing_open(columns, COLUMN_COUNT_OF(columns), out, cwd);
    sqlite3_stmt *labels = process_label_query(db);
    for (size_t i = 0; i < count && (!top || i < top); i++)
        list_range(labels, l, heap, glibc[i], is_people);
    sqlite3_finalize(labels);
    if (listing_print_under(l, "Heaps of glibc, as sampled", (int64_t)count) && heap->forked_count)
        table_prose(
            out, TABLE_DIM,
            "(?: of a process that was forked: live is what it allocated itself; its heap's size has what it took over "
            "from its parent, too. That is in the parent's size as well, and only there in 'peak reserved' of "
            "'report')");
    listing_close(l);
    free(glibc);
}

static void list_shared(struct listing *l, uint64_t bytes)
{
    listing_null(l);
    listing_null(l);
    listing_int(l, (int64_t)bytes);
    listing_null(l);
    listing_null(l);
    listing_text(l, "(shared by several lines)");
    listing_null(l);
    listing_null(l);
    listing_null(l);
}

static void list_line(struct listing *l, const struct heap_line *line, int is_people)
{
    listing_int(l, (int64_t)line->live_bytes);
    listing_int(l, (int64_t)line->block_count);
    listing_int(l, (int64_t)line->pinned_bytes);
    listing_int(l, (int64_t)line->held_bytes);
    listing_int(l, (int64_t)line->trim_bytes);
    listing_text(l, line->function || !is_people ? line->function : "??");
    listing_text(l, line->file || !is_people ? line->file : line->beside);
    listing_int_if(l, line->line > 0, line->line);
    listing_int(l, (int64_t)line->shared_bytes);
}

int heap_list_lines(const struct heap *heap, int64_t top, const struct report_out *out, struct record *document,
                    const char *title, const char *cwd)
{
    static const struct column columns[] = {
        COLUMN("live_bytes", "live", BYTES, .none = ""),
        COLUMN("live_count", "blocks", COUNT, .none = ""),
        COLUMN("pinned_bytes", "pins", BYTES),
        COLUMN("held_bytes", "holds below\nthe top", BYTES, .place = 2, .none = ""),
        COLUMN("trim_bytes", NULL, BYTES),
        COLUMN("function", "function", TEXT, .place = 2, .cut = TEXT_CUT_NAME),
        COLUMN("file", "source", SOURCE, .place = 2, .cut = TEXT_CUT_LEFT),
        COLUMN("line", NULL, NUMBER),
        COLUMN("shared_bytes", "its part\nof shared", BYTES, .place = 1, .none = ""),
    };
    int is_people = out->format == REPORT_TEXT, is_shared = 0;
    uint32_t count = heap->line_count + (heap->shared_bytes > 0), shown = 0;
    struct listing *l = document ? listing_open_in(document, "lines_holding", columns, COLUMN_COUNT_OF(columns), cwd)
                                 : listing_open(columns, COLUMN_COUNT_OF(columns), out, cwd);
    for (uint32_t i = 0; i < heap->line_count && (top <= 0 || shown < top); i++) {
        const struct heap_line *line = &heap->lines[i];
        if (!is_shared && heap->shared_bytes > line->pinned_bytes + line->shared_bytes + line->held_bytes) {
            is_shared = 1;
            shown++;
            list_shared(l, heap->shared_bytes);
            if (top > 0 && shown >= top)
                break;
        }
        list_line(l, line, is_people);
        shown++;
    }
    if (!is_shared && heap->shared_bytes && (top <= 0 || shown < top))
        list_shared(l, heap->shared_bytes);
    int has_rows = is_people ? listing_print_under(l, title, count) : listing_rows(l) > 0;
    listing_close(l);
    return has_rows;
}
