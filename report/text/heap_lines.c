#include "heap_lines.h"

#include "../print/listing.h"
#include "../query/process_label.h"
#include "../query/unseen.h"

#include <stdlib.h>

enum { DEFAULT_RANGES = 10, INHERITED = 19 /* column */ };

static int is_glibc(const struct heap_range *r)
{
    return r->kind <= HEAP_OWN;
}

static void list_range(sqlite3_stmt *labels, struct listing *l, const struct heap *heap, const struct heap_range *r,
                       int is_people)
{
    char name[HEAP_NAME];
    int has_pages = !r->is_unknown, has_top = has_pages && r->kind != HEAP_OWN;
    struct buf process = BUF(1 << 16);
    int64_t pid = process_label(labels, r->process_id, &process);
    const struct block *top = r->kind == HEAP_OWN || !r->last.address ? NULL : &r->last;
    const struct heap_line *line = top ? heap_line_of_block(heap, top) : NULL;
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
    listing_int(l, r->is_forked);
    listing_text(l, line && line->function ? line->function : top && is_people ? "??" : NULL);
    listing_text(l, line ? line->file : NULL);
    listing_int_if(l, line && line->line > 0, line ? line->line : 0);
    listing_int_if(l, top != NULL, top ? (int64_t)top->size_bytes : 0);
    listing_int_if(l, top != NULL, top ? (int64_t)top->time_ns : 0);
    listing_int_if(l, has_pages, (int64_t)r->inherited_bytes);
    listing_int_if(l, has_pages, (int64_t)r->inherited_count);
    buf_free(&process);
}

/* A heap's range, and which of the two heaps it is of. */
struct place {
    const struct heap *heap;
    const struct heap_range *range;
};

static int by_size(const void *x, const void *y)
{
    const struct heap_range *a = ((const struct place *)x)->range, *b = ((const struct place *)y)->range;
    if (a->size_bytes != b->size_bytes)
        return a->size_bytes > b->size_bytes ? -1 : 1;
    if (a->process_id != b->process_id)
        return a->process_id < b->process_id ? -1 : 1;
    return a->address < b->address ? -1 : a->address > b->address;
}

static size_t add_places(const struct heap *heap, struct place *places, size_t count)
{
    for (size_t i = 0; heap && i < heap->range_count; i++)
        if (is_glibc(&heap->ranges[i]))
            places[count++] = (struct place){heap, &heap->ranges[i]};
    return count;
}

/* Ranges of forked children of whose pages is known what is_unknown says. */
static int has_forked(const struct heap *heap, int is_unknown)
{
    for (size_t i = 0; heap->forked && i < heap->forked->range_count; i++)
        if (heap->forked->ranges[i].is_unknown == is_unknown)
            return 1;
    return 0;
}

static void explain_forked(const struct heap *heap, const struct report_out *out)
{
    if (has_forked(heap, 0))
        table_prose(
            out, TABLE_DIM,
            "(inherited: blocks that a forked process has of its parent, beside live, which it allocated "
            "itself. Pages that neither has written to since the fork are both's. The heap's size counts in the "
            "parent's as well, and only there in 'peak reserved' of 'report')");
    if (has_forked(heap, 1))
        table_prose(out, TABLE_DIM,
                    "(?: of a process that was forked, of whose parent's blocks it is not known which it has: live is "
                    "what it allocated itself; its heap's size has what it took over, too. That is in the parent's "
                    "size as well, and only there in 'peak reserved' of 'report')");
}

void heap_list_ranges(sqlite3 *db, const struct heap *heap, const struct report_options *options,
                      const struct report_out *out, const char *cwd)
{
    struct column columns[] = {
        COLUMN("size_bytes", "heap\nsize", BYTES),
        COLUMN("live_bytes", "live", BYTES),
        COLUMN("live_count", NULL, COUNT),
        COLUMN(NULL, "pinned\npages", BYTES, .place = 2, .none = "?"),
        COLUMN("pinned_page_bytes", NULL, BYTES),
        COLUMN("shared_page_bytes", NULL, BYTES),
        COLUMN("held_page_bytes", "free pages\nbelow top", BYTES, .place = 2, .none = "-"),
        COLUMN("top_page_bytes", "free at\nthe top", BYTES, .place = 2, .none = "-"),
        COLUMN("name", "heap", TEXT, .place = 2),
        COLUMN("address", NULL, NUMBER),
        COLUMN("process_id", NULL, NUMBER),
        COLUMN("pid", "pid", NUMBER, .place = 2),
        COLUMN("process", "process", TEXT, .place = 2, .cut = TEXT_CUT_RIGHT),
        COLUMN("is_forked", NULL, NUMBER),
        COLUMN("top_function", "top kept by", TEXT, .place = 2, .cut = TEXT_CUT_NAME, .none = "-"),
        COLUMN("top_file", "source", SOURCE, .place = 2, .cut = TEXT_CUT_LEFT),
        COLUMN("top_line", NULL, NUMBER),
        COLUMN("top_bytes", "block", BYTES, .place = 2, .flags = COLUMN_OPTIONAL, .none = ""),
        COLUMN("top_ns", "since", NS, .place = 2, .flags = COLUMN_OPTIONAL, .none = ""),
        [INHERITED] = COLUMN("inherited_bytes", "inherited", BYTES, .place = 1, .none = "?"),
        COLUMN("inherited_count", NULL, COUNT),
    };
    size_t forked = heap->forked ? heap->forked->range_count : 0;
    struct place *places = xcalloc(heap->range_count + forked + 1, sizeof *places);
    int is_people = out->format == REPORT_TEXT;
    size_t count = add_places(heap->forked, places, add_places(heap, places, 0));
    size_t top = options->top >= 0 ? (size_t)options->top : is_people ? DEFAULT_RANGES : 0;
    if (count)
        qsort(places, count, sizeof *places, by_size);
    if (!has_forked(heap, 0))
        columns[INHERITED].title = NULL;
    struct listing *l = listing_open(columns, COLUMN_COUNT_OF(columns), out, cwd);
    sqlite3_stmt *labels = process_label_query(db);
    for (size_t i = 0; i < count && (!top || i < top); i++)
        list_range(labels, l, places[i].heap, places[i].range, is_people);
    sqlite3_finalize(labels);
    if (listing_print_under(l, "Heaps of glibc, as sampled", (int64_t)count))
        explain_forked(heap, out);
    listing_close(l);
    free(places);
}

static void list_shared(struct listing *l, uint64_t bytes, int is_forked)
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
    listing_int(l, is_forked);
    listing_null(l);
    listing_null(l);
    listing_null(l);
}

static void list_line(struct listing *l, const struct heap_line *line, int is_people, int is_forked)
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
    listing_int(l, is_forked);
    listing_int(l, line->is_inherited != 0);
    listing_int(l, line->process_count);
    listing_text(l, line->is_inherited ? "inherited" : "own");
}

/* The pages of several lines stand where they belong by their weight. Returns how many rows there are without a limit.
 */
static uint32_t list_lines(struct listing *l, const struct heap *heap, int64_t top, int is_people, int is_forked)
{
    uint32_t shown = 0;
    int is_shared = heap->shared_bytes == 0;
    for (uint32_t i = 0; i <= heap->line_count && (top <= 0 || shown < top); i++) {
        const struct heap_line *line = i < heap->line_count ? &heap->lines[i] : NULL;
        if (!is_shared && (!line || heap->shared_bytes > line->pinned_bytes + line->shared_bytes + line->held_bytes)) {
            is_shared = 1;
            shown++;
            list_shared(l, heap->shared_bytes, is_forked);
        }
        if (!line || (top > 0 && shown >= top))
            break;
        list_line(l, line, is_people, is_forked);
        shown++;
    }
    return heap->line_count + (heap->shared_bytes > 0);
}

/* Of forked children it is said how many have a line's blocks, and whose they are. */
#define LINE_COLUMNS(children, whose)                                                                                  \
    COLUMN("live_bytes", "live", BYTES, .none = ""), COLUMN("live_count", "blocks", COUNT, .none = ""),                \
        COLUMN("pinned_bytes", "pins", BYTES),                                                                         \
        COLUMN("held_bytes", "holds below\nthe top", BYTES, .place = 2, .none = ""),                                   \
        COLUMN("trim_bytes", NULL, BYTES), COLUMN("function", "function", TEXT, .place = 3, .cut = TEXT_CUT_NAME),     \
        COLUMN("file", "source", SOURCE, .place = 3, .cut = TEXT_CUT_LEFT), COLUMN("line", NULL, NUMBER),              \
        COLUMN("shared_bytes", "its part\nof shared", BYTES, .place = 1, .none = ""),                                  \
        COLUMN("is_forked", NULL, NUMBER), COLUMN("is_inherited", NULL, NUMBER),                                       \
        COLUMN("process_count", children, COUNT, .place = 2, .none = ""),                                              \
        COLUMN(NULL, whose, TEXT, .place = 2, .none = "")

static const struct column line_columns[] = {LINE_COLUMNS(NULL, NULL)};
static const struct column forked_columns[] = {LINE_COLUMNS("in\nchildren", "blocks\nare")};

int heap_list_lines(const struct heap *heap, int64_t top, const struct report_out *out, struct record *document,
                    const char *title, const char *cwd)
{
    int is_people = out->format == REPORT_TEXT;
    size_t columns = COLUMN_COUNT_OF(line_columns);
    struct listing *l = document ? listing_open_in(document, "lines_holding", line_columns, columns, cwd)
                                 : listing_open(line_columns, columns, out, cwd);
    uint32_t count = list_lines(l, heap, top, is_people, 0);
    if (!is_people && heap->forked && !document)
        list_lines(l, heap->forked, top, is_people, 1);
    int has_rows = is_people ? listing_print_under(l, title, count) : listing_rows(l) > 0;
    listing_close(l);
    return has_rows;
}

void heap_say_unseen(sqlite3 *db, const struct report_out *out)
{
    struct buf text = BUF(1 << 12);
    unseen_say(db, &text);
    if (text.length)
        table_prose(out, TABLE_DIM, buf_text(&text));
    buf_free(&text);
}

void heap_list_forked_lines(const struct heap *heap, int64_t top, const struct report_out *out, const char *cwd)
{
    if (!heap->forked || !heap->forked->line_count)
        return;
    struct listing *l = listing_open(forked_columns, COLUMN_COUNT_OF(forked_columns), out, cwd);
    uint32_t count = list_lines(l, heap->forked, top, 1, 1);
    if (listing_print_under(l, "What keeps the heaps of forked children from shrinking, by line", count))
        table_prose(out, TABLE_DIM,
                    "(inherited: blocks of the parent at the fork that the child has not freed. Summed up over the "
                    "children that have them)");
    listing_close(l);
}
