#include "leaks.h"

#include "../../common/array.h"
#include "../../common/db.h"
#include "../../common/units.h"
#include "../findings/notes.h"
#include "../print/listing.h"
#include "../query/at.h"
#include "../query/named_caller.h"
#include "../query/noise.h"
#include "../query/program_name.h"
#include "../query/programs.h"
#include "../query/rows.h"
#include "stack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_TOP = 20 };
enum { HIDDEN_LIBRARY = NOISE_LIBRARY - 1, HIDDEN_INTERPRETER = NOISE_INTERPRETER - 1, HIDDEN_ARENAS, HIDDEN_COUNT };
enum { STACK_ID = 10, FRAMES = 12 }; /* columns that lines do not have */

struct leak {
    int64_t stack_id, line_id, bytes, blocks, largest_bytes;
    int64_t torn_bytes, torn_blocks; /* of them: freed while the interpreter took itself down */
    char *device, *kind, *function, *file, *module;
    char *beside; /* of a line without a file, for people: the module, or who called it; NULL: not known */
    int64_t line;
    uint64_t shown; /* walk_shown_hash, where frames are hidden */
    int is_start;   /* made while the dynamic loader started the program, not by its main() or a thread */
    int is_kept;    /* by a process that took its interpreter down, which did not free all of it */
};

struct leaks {
    sqlite3 *db;
    const struct leaks_options *options;
    const struct report_out *out;
    struct walk *walk;
    struct walk *whole; /* with the frames that walk leaves out; NULL: it leaves out none */
    struct noise *noise;
    char *cwd;
    struct programs programs; /* none: all count */
    struct at_result at;      /* with REPORT_AT_TIME */
    struct leak *leak;
    int count, capacity;
    int64_t bytes, blocks; /* not suppressed */
    int64_t start_bytes, start_blocks;
    int64_t torn_bytes, torn_blocks;
    struct {
        int64_t bytes, blocks;
    } hidden[HIDDEN_COUNT];            /* not shown, and not among the above */
    int64_t other_bytes, other_blocks; /* the same, of other programs than the one that was named */
    int64_t suppressed_stacks, suppressed_bytes, suppressed_blocks;
};

static int64_t plus(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

static int is_end(const struct leaks *l)
{
    return l->options->report->at == REPORT_AT_ALL || l->options->report->at == REPORT_AT_END;
}

/* People are shown what a traceback of Python has, unless they ask for all frames. */
static int folds(const struct leaks *l)
{
    return l->out && l->out->format == REPORT_TEXT && !l->whole && l->options->report->frames > 0;
}

/* Whether all of it is called by the loader's own start: a library that is loaded later, or a thread that is made, has
 * the loader further in, below the program's or a thread's. */
static int is_start(const struct walk_stack *stack)
{
    const struct walk_frame *outermost = stack->count ? stack->frames[stack->count - 1] : NULL;
    const char *module = outermost && outermost->module ? text_basename(outermost->module) : "";
    return strncmp(module, "ld-", 3) == 0 || strncmp(module, "ld.so", 5) == 0 || strncmp(module, "ld64", 4) == 0;
}

static void free_leak(struct leak *leak)
{
    free(leak->device);
    free(leak->kind);
    free(leak->function);
    free(leak->file);
    free(leak->module);
    free(leak->beside);
}

static int add_leak(struct leaks *l, sqlite3_stmt *s, struct error *err)
{
    struct walk_stack stack;
    struct leak leak = {.device = db_own_text(s, 0),
                        .kind = db_own_text(s, 1),
                        .stack_id = sqlite3_column_int64(s, 2),
                        .bytes = sqlite3_column_int64(s, 3),
                        .blocks = sqlite3_column_int64(s, 4),
                        .largest_bytes = sqlite3_column_type(s, 5) == SQLITE_NULL ? -1 : sqlite3_column_int64(s, 5),
                        .line_id = sqlite3_column_int64(s, 6),
                        .function = db_own_text(s, 7),
                        .file = db_own_text(s, 8),
                        .line = sqlite3_column_int64(s, 9),
                        .module = db_own_text(s, 10),
                        .torn_bytes = sqlite3_column_int64(s, 11),
                        .torn_blocks = sqlite3_column_int64(s, 12),
                        .is_kept = sqlite3_column_int64(s, 13) > 0};
    int rc = walk_stack(l->walk, leak.stack_id, &stack, err);
    int match = rc ? -1 : suppressed_by(l->options->suppressions, &stack);
    if (rc || match >= 0) {
        if (match >= 0) {
            struct suppression *item = &l->options->suppressions->item[match];
            item->stacks++;
            item->bytes = plus(item->bytes, leak.bytes);
            item->blocks = plus(item->blocks, leak.blocks);
            l->suppressed_stacks++;
            l->suppressed_bytes = plus(l->suppressed_bytes, leak.bytes);
            l->suppressed_blocks = plus(l->suppressed_blocks, leak.blocks);
        }
        free_leak(&leak);
        return rc;
    }
    if (l->whole) { /* whose code it is says the whole stack */
        leak.shown = walk_shown_hash(&stack);
        rc = walk_stack(l->whole, leak.stack_id, &stack, err);
    }
    int noise = rc || l->options->all ? rc : noise_of(l->noise, leak.stack_id, err);
    if (noise == NOISE_NONE && !l->options->all && leak.kind && strcmp(leak.kind, "map") == 0) {
        noise = noise_is_arena(l->noise, leak.stack_id, err);
        noise = noise > 0 ? HIDDEN_ARENAS + 1 : noise;
    }
    if (noise < 0) {
        free_leak(&leak);
        return noise;
    }
    if (noise > 0) {
        l->hidden[noise - 1].bytes = plus(l->hidden[noise - 1].bytes, leak.bytes);
        l->hidden[noise - 1].blocks = plus(l->hidden[noise - 1].blocks, leak.blocks);
        free_leak(&leak);
        return 0;
    }
    struct programs_process *process = programs_find(&l->programs, sqlite3_column_int64(s, 14));
    if (process && !process->is_named) {
        process->bytes = plus(process->bytes, leak.bytes);
        process->blocks = plus(process->blocks, leak.blocks);
        l->other_bytes = plus(l->other_bytes, leak.bytes);
        l->other_blocks = plus(l->other_blocks, leak.blocks);
        free_leak(&leak);
        return 0;
    }
    leak.is_start = is_start(&stack);
    if (folds(l)) {
        walk_fold(&stack);
        leak.shown = walk_shown_hash(&stack);
    }
    l->bytes = plus(l->bytes, leak.bytes);
    l->blocks = plus(l->blocks, leak.blocks);
    l->torn_bytes = plus(l->torn_bytes, leak.torn_bytes);
    l->torn_blocks = plus(l->torn_blocks, leak.torn_blocks);
    if (leak.is_start) {
        l->start_bytes = plus(l->start_bytes, leak.bytes);
        l->start_blocks = plus(l->start_blocks, leak.blocks);
    }
    *ARRAY_ADD(l->leak, l->count, l->capacity) = leak;
    return 0;
}

/* Of a window: what was allocated in it, and is live at its end. */
enum { INSTANT_SURVIVORS = REPORT_AT_TIME + 1 };

/* What each instant takes the bytes and blocks of a site from, what of them a teardown freed, and whether one left any.
 */
static const char *const instants[][3] = {
    [REPORT_AT_ALL] = {"sum(s.end_bytes), sum(s.end_count), max(s.largest_bytes)",
                       "sum(x.freed_bytes), sum(x.freed_count), max(coalesce(k.kept_count, 0))",
                       "FROM site s LEFT JOIN site_teardown x USING(site_id) LEFT JOIN site_kept k USING(site_id)"},
    [REPORT_AT_PEAK] = {"sum(s.at_peak_bytes), sum(s.at_peak_count), NULL", "0, 0, 0", "FROM site s"},
    [INSTANT_SURVIVORS] = {"sum(v.live_bytes), sum(v.live_count), NULL", "0, 0, 0",
                           "FROM temp.survivor v JOIN site s USING(site_id)"},
    [REPORT_AT_TIME] = {"sum(v.live_bytes), sum(v.live_count), NULL", "0, 0, 0",
                        "FROM temp.live v JOIN site s USING(site_id)"},
};

static int load(struct leaks *l, struct error *err)
{
    const struct report_options *o = l->options->report;
    const char *const *from = instants[!is_end(l)         ? (int)o->at
                                       : report_window(o) ? (int)INSTANT_SURVIVORS
                                                          : REPORT_AT_ALL];
    struct buf sql = BUF(1 << 14);
    sqlite3_stmt *s = NULL;
    buf_printf(&sql,
               "SELECT d.name, s.kind, s.stack_id, %s, sl.line_id, fn.name, f.path, l.line, m.path || printf('+0x%%x', "
               "l.offset), %s, max(s.process_id) %s LEFT JOIN device d ON d.device_id = s.device_id LEFT JOIN "
               "site_line sl ON sl.site_id = "
               "s.site_id LEFT JOIN line l ON l.line_id = sl.line_id LEFT JOIN function fn ON fn.function_id = "
               "l.function_id LEFT JOIN file f ON f.file_id = l.file_id LEFT JOIN module_key m ON m.key_id = "
               "l.module_key_id WHERE (?1 IS NULL OR d.name = ?1) AND (?2 IS NULL OR ?2 IN ('all', s.kind)) GROUP BY "
               "s.stack_id, s.device_id, s.kind ORDER BY 4 DESC, 5 DESC, s.stack_id",
               from[0], from[1], from[2]);
    int rc = db_prepare(l->db, sql.data, &s, err), step = SQLITE_DONE;
    buf_free(&sql);
    if (rc == 0) {
        sqlite3_bind_text(s, 1, o->device, -1, SQLITE_STATIC);
        sqlite3_bind_text(s, 2, o->kind, -1, SQLITE_STATIC);
        while (rc == 0 && (step = sqlite3_step(s)) == SQLITE_ROW)
            rc = sqlite3_column_int64(s, 4) > 0 ? add_leak(l, s, err) : 0;
        if (rc == 0 && step != SQLITE_DONE)
            rc = db_error(l->db, err);
    }
    sqlite3_finalize(s);
    return rc;
}

static int by_line(const void *a, const void *b)
{
    const struct leak *x = a, *y = b;
    if (x->line_id != y->line_id)
        return x->line_id < y->line_id ? -1 : 1;
    return strcmp(x->device ? x->device : "", y->device ? y->device : "");
}

static int by_bytes(const void *a, const void *b)
{
    const struct leak *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return (x->line_id > y->line_id) - (x->line_id < y->line_id);
}

static int order(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int by_shown(const void *a, const void *b)
{
    const struct leak *x = a, *y = b;
    if (x->shown != y->shown)
        return x->shown < y->shown ? -1 : 1;
    int device = strcmp(x->device ? x->device : "", y->device ? y->device : "");
    int kind = strcmp(x->kind ? x->kind : "", y->kind ? y->kind : "");
    return device ? device : kind ? kind : order(x->is_start, y->is_start);
}

static int by_bytes_and_stack(const void *a, const void *b)
{
    const struct leak *x = a, *y = b;
    if (x->bytes != y->bytes)
        return order(y->bytes, x->bytes);
    return x->blocks != y->blocks ? order(y->blocks, x->blocks) : order(x->stack_id, y->stack_id);
}

/* Entries that are the same to same become one; result sorts them again. */
static void group(struct leaks *l, int (*same)(const void *, const void *), int (*result)(const void *, const void *))
{
    int kept = 0;
    if (l->count == 0)
        return;
    qsort(l->leak, (size_t)l->count, sizeof *l->leak, same);
    for (int i = 1; i < l->count; i++) {
        struct leak *into = &l->leak[kept], *from = &l->leak[i];
        if (same(into, from) != 0) {
            l->leak[++kept] = *from;
            continue;
        }
        into->bytes = plus(into->bytes, from->bytes);
        into->blocks = plus(into->blocks, from->blocks);
        into->torn_bytes = plus(into->torn_bytes, from->torn_bytes);
        into->torn_blocks = plus(into->torn_blocks, from->torn_blocks);
        into->is_kept |= from->is_kept;
        if (from->largest_bytes > into->largest_bytes)
            into->largest_bytes = from->largest_bytes;
        if (from->stack_id < into->stack_id)
            into->stack_id = from->stack_id;
        free_leak(from);
    }
    l->count = kept + 1;
    qsort(l->leak, (size_t)l->count, sizeof *l->leak, result);
}

static void amount(struct buf *out, int64_t bytes, int64_t blocks)
{
    char text[2][UNITS_TEXT];
    buf_printf(out, "%s in %s block%s", units_bytes(text[0], bytes), units_count(text[1], blocks),
               blocks == 1 ? "" : "s");
}

static int list_leak(struct leaks *l, struct listing *list, const struct leak *leak, struct error *err)
{
    struct walk_stack stack;
    struct buf frames = BUF(64 << 20);
    int is_people = l->out->format == REPORT_TEXT, rc = 0;
    const char *module = leak->module && is_people ? text_basename(leak->module) : leak->module;
    if (listing_shows(list, FRAMES))
        rc = walk_stack(l->walk, leak->stack_id, &stack, err);
    if (rc)
        return rc;
    listing_text(list, leak->device);
    listing_text(list, leak->kind);
    listing_int(list, leak->bytes);
    listing_int(list, leak->blocks);
    listing_int_if(list, leak->largest_bytes >= 0, leak->largest_bytes);
    listing_int_if(list, is_end(l) && !report_window(l->options->report), leak->torn_bytes);
    listing_int_if(list, is_end(l) && !report_window(l->options->report), leak->torn_blocks);
    listing_text(list, leak->function ? leak->function : module);
    listing_text(list, leak->file ? leak->file : leak->beside);
    listing_int_if(list, leak->line > 0, leak->line);
    listing_int(list, leak->stack_id);
    listing_int(list, leak->is_start);
    if (listing_shows(list, FRAMES))
        stack_json(&stack, &frames);
    listing_raw(list, frames.data);
    buf_free(&frames);
    return 0;
}

/* What stands beside lines without a file in the tables of the report, for the first so many. */
static int find_beside(struct leaks *l, int shown, struct error *err)
{
    const struct report_options *o = l->options->report;
    const struct named_callers_of of = {o->device, o->kind,
                                        is_end(l)                 ? STAT_end_bytes
                                        : o->at == REPORT_AT_PEAK ? STAT_at_peak_bytes
                                                                  : NAMED_CALLERS_LIVE};
    struct rows rows = {.row = xcalloc((size_t)shown + 1, sizeof *rows.row), .count = shown};
    for (int i = 0; i < shown; i++) /* strings borrowed */
        rows.row[i] =
            (struct row){.key_id = l->leak[i].line_id, .function = l->leak[i].function, .file = l->leak[i].file};
    rows_find_modules(l->db, ROW_LINE, &rows);
    int rc = rows_name_callers(l->db, ROW_LINE, &of, &rows, err);
    for (int i = 0; i < shown; i++) {
        struct buf text = BUF(1 << 20);
        if (!rows.row[i].file)
            row_source_text(&rows.row[i], NULL, &text);
        if (text.length)
            l->leak[i].beside = buf_take(&text);
        buf_free(&text);
        free(rows.row[i].module);
        free(rows.row[i].caller);
    }
    free(rows.row);
    return rc;
}

/* For programs an array of the document; for people a table of lines (their stacks are print_stacks). */
static int list_leaks(struct leaks *l, struct record *document, int shown, struct error *err)
{
    struct column columns[] = {
        COLUMN("device", "device", TEXT, .place = 4, .none = "?"),
        COLUMN("kind", NULL, TEXT),
        COLUMN("end_bytes", "bytes", BYTES, .place = 1),
        COLUMN("end_count", "blocks", COUNT, .place = 2),
        COLUMN("largest_bytes", "largest", BYTES, .place = 3),
        COLUMN("torn_down_bytes", NULL, BYTES),
        COLUMN("torn_down_count", NULL, COUNT),
        COLUMN("function", "function", TEXT, .place = 5, .cut = TEXT_CUT_NAME, .none = "??"),
        COLUMN("file", "source", SOURCE, .place = 6, .cut = TEXT_CUT_LEFT),
        COLUMN("line", NULL, NUMBER),
        [STACK_ID] = COLUMN("stack_id", NULL, NUMBER),
        COLUMN("before_main", NULL, NUMBER),
        [FRAMES] = COLUMN("frames", NULL, TEXT, .flags = COLUMN_JSON),
    };
    int rc = 0;
    if (l->options->report->by == ROW_LINE)
        for (int c = STACK_ID; c <= FRAMES; c++)
            columns[c].key = NULL;
    struct listing *list = listing_open_in(document, "leaks", columns, COLUMN_COUNT_OF(columns), l->cwd);
    for (int i = 0; rc == 0 && i < shown; i++)
        rc = list_leak(l, list, &l->leak[i], err);
    listing_heading(list);
    listing_print(list);
    listing_close(list);
    return rc;
}

static int print_stacks(struct leaks *l, int shown, struct error *err)
{
    int rc = 0, is_folded = 0;
    for (int i = 0; rc == 0 && i < shown; i++) {
        const struct leak *leak = &l->leak[i];
        struct walk_stack stack;
        struct buf line = BUF(4096);
        char text[UNITS_TEXT];
        amount(&line, leak->bytes, leak->blocks);
        if (leak->blocks > 1 && leak->largest_bytes >= 0)
            buf_printf(&line, ", largest %s", units_bytes(text, leak->largest_bytes));
        buf_printf(&line, " (%s %s)%s%s, allocated at", leak->device ? leak->device : "?",
                   leak->kind ? leak->kind : "?", leak->is_start ? ", before main()" : "",
                   leak->is_kept ? ", not all freed by the interpreter's end" : "");
        table_line(l->out, TABLE_STRONG, buf_text(&line));
        buf_free(&line);
        rc = walk_stack(l->walk, leak->stack_id, &stack, err);
        if (rc == 0 && folds(l)) {
            walk_fold(&stack);
            is_folded |= stack.folded > 0;
        }
        if (rc == 0)
            stack_print(&stack, l->out, l->cwd, l->options->report->frames, "    ");
        fputc('\n', l->out->file);
    }
    if (is_folded) {
        table_prose(l->out, TABLE_DIM, WALK_FOLDED_TEXT);
        fputc('\n', l->out->file);
    }
    return rc;
}

/* People are shown those that matched; what others there are stands below. */
static void list_suppressions(struct leaks *l, struct record *document)
{
    static const struct column columns[] = {
        COLUMN("pattern", "suppressed by", TEXT, .place = 4, .cut = TEXT_CUT_RIGHT),
        COLUMN("stacks", "stacks", COUNT, .place = 1),
        COLUMN("end_bytes", "bytes", BYTES, .place = 3),
        COLUMN("end_count", "blocks", COUNT, .place = 2),
    };
    const struct suppressions *s = l->options->suppressions;
    int is_people = l->out->format == REPORT_TEXT;
    struct buf unused = BUF(1 << 20);
    struct listing *list = listing_open_in(document, "suppressions", columns, COLUMN_COUNT_OF(columns), NULL);
    for (int i = 0; i < s->count; i++) {
        const struct suppression *item = &s->item[i];
        if (item->stacks == 0)
            buf_printf(&unused, "%s%s", unused.length ? ", " : "Suppressions that matched nothing: ", item->pattern);
        if (item->stacks == 0 && is_people)
            continue;
        listing_text(list, item->pattern);
        listing_int(list, item->stacks);
        listing_int(list, item->bytes);
        listing_int(list, item->blocks);
    }
    if (is_people && listing_rows(list))
        fputc('\n', l->out->file);
    if (listing_rows(list))
        listing_print(list);
    listing_close(list);
    if (is_people && unused.length)
        table_prose(l->out, TABLE_DIM, unused.data);
    buf_free(&unused);
}

static void when(const struct leaks *l, struct buf *out)
{
    char text[UNITS_TEXT];
    if (l->options->report->at == REPORT_AT_TIME)
        buf_printf(out, "at %s", units_ns(text, l->at.time_ns));
    else
        buf_puts(out, !is_end(l)                          ? "at the peak"
                      : report_window(l->options->report) ? "at the end of the window, and allocated in it"
                                                          : "at the end");
}

/* The end of a program in Python is where its interpreter began to take itself down. */
static void print_teardown(struct leaks *l, struct buf *line)
{
    if (!l->torn_blocks)
        return;
    buf_reset(line);
    buf_puts(line, "The end is where the interpreter began to take itself down, which then freed ");
    amount(line, l->torn_bytes, l->torn_blocks);
    buf_puts(line, " of this.");
    table_prose(l->out, TABLE_PLAIN, line->data);
}

static void print_hidden(struct leaks *l, struct buf *line)
{
    static const char *const of[HIDDEN_COUNT] = {
        [HIDDEN_LIBRARY] = "the C, C++ and OpenMP libraries' own: start-up, threads, buffers, caches",
        [HIDDEN_INTERPRETER] = "Python's own: its start-up, what it imported, interned strings and types",
        [HIDDEN_ARENAS] = "an allocator within the program, whose blocks were not seen: its mappings",
    };
    for (int i = 0; i < HIDDEN_COUNT; i++) {
        if (!l->hidden[i].blocks)
            continue;
        buf_reset(line);
        buf_puts(line, "Not shown: ");
        amount(line, l->hidden[i].bytes, l->hidden[i].blocks);
        buf_printf(line, " of %s; --all shows them.", of[i]);
        table_prose(l->out, TABLE_PLAIN, line->data);
    }
}

/* Programs that have something, by name, in the order of their start; the first ones. */
static void print_others(struct leaks *l, struct buf *line)
{
    enum { NAMED = 3 };
    struct buf names = BUF(4096), seen[NAMED] = {BUF(4096), BUF(4096), BUF(4096)};
    const struct programs_process *largest = NULL;
    int named = 0;
    if (!l->other_blocks)
        return;
    for (uint32_t i = 0; i < l->programs.count; i++) {
        const struct programs_process *p = &l->programs.item[i];
        if (p->blocks > 0 && (!largest || p->bytes > largest->bytes))
            largest = p;
    }
    for (uint32_t i = 0; i < l->programs.count && named <= NAMED; i++) {
        const struct programs_process *p = &l->programs.item[i];
        int is_known = p->blocks <= 0;
        buf_reset(&names);
        program_name(&names, p->command);
        for (int k = 0; k < named && k < NAMED && !is_known; k++)
            is_known = strcmp(buf_text(&names), buf_text(&seen[k])) == 0;
        if (is_known)
            continue;
        if (named < NAMED)
            buf_puts(&seen[named], buf_text(&names));
        named++;
    }
    buf_reset(line);
    buf_puts(line, "Not counted: ");
    amount(line, l->other_bytes, l->other_blocks);
    buf_printf(line, " of %s (", named == 1 ? "another program" : "other programs");
    for (int k = 0; k < named && k < NAMED; k++)
        buf_printf(line, "%s%s", k ? ", " : "", buf_text(&seen[k]));
    buf_printf(line, "%s); --process PID shows one of their processes (%lld: ", named > NAMED ? ", ..." : "",
               (long long)largest->pid);
    program_name(line, largest->command);
    buf_puts(line, "), --all everything.");
    table_prose(l->out, TABLE_PLAIN, line->data);
    buf_free(&names);
    for (int k = 0; k < NAMED; k++)
        buf_free(&seen[k]);
}

static void print_sums(struct leaks *l, int shown)
{
    struct buf line = BUF(4096);
    char text[UNITS_TEXT];
    int is_line = l->options->report->by == ROW_LINE;
    buf_puts(&line, l->count ? "Live "
                    : l->hidden[HIDDEN_LIBRARY].blocks || l->hidden[HIDDEN_INTERPRETER].blocks ||
                            l->hidden[HIDDEN_ARENAS].blocks || l->other_blocks
                        ? "Nothing of the program's was live "
                        : "Nothing was live ");
    when(l, &line);
    if (l->options->report->at == REPORT_AT_TIME)
        at_explain(&l->at, l->options->report->at_ns, &line);
    if (l->count) {
        buf_puts(&line, ": ");
        amount(&line, l->bytes, l->blocks);
        buf_printf(&line, ", from %s %s%s", units_count(text, l->count), is_line ? "line" : "stack",
                   l->count == 1 ? "" : "s");
        if (shown < l->count)
            buf_printf(&line, " (%s shown; --top 0 shows all)", units_count(text, shown));
    }
    if (l->suppressed_stacks) {
        buf_printf(&line, "; suppressed: ");
        amount(&line, l->suppressed_bytes, l->suppressed_blocks);
        buf_printf(&line, " from %s stack%s", units_count(text, l->suppressed_stacks),
                   l->suppressed_stacks == 1 ? "" : "s");
    }
    buf_puts(&line, ".");
    table_prose(l->out, TABLE_STRONG, line.data);
    print_teardown(l, &line);
    if (l->start_blocks) {
        buf_reset(&line);
        buf_puts(&line, "Of these, the start-up of libraries before main() holds ");
        amount(&line, l->start_bytes, l->start_blocks);
        buf_puts(&line, ".");
        table_prose(l->out, TABLE_PLAIN, line.data);
    }
    print_hidden(l, &line);
    print_others(l, &line);
    if (l->count)
        table_prose(l->out, TABLE_DIM,
                    "Memory that the program could still reach is included: memprof does not scan for pointers.");
    buf_free(&line);
}

static int record_leaks(struct leaks *l, struct record *document, int shown, struct error *err)
{
    record_document_begin(document);
    notes_record(l->db, l->options->report->file, document);
    if (l->options->report->at == REPORT_AT_TIME) {
        record_member_int(document, "at_ns", l->at.time_ns);
        record_member_int(document, "is_exact", l->at.is_exact && !l->at.chunks_damaged);
    }
    record_member_int(document, "end_bytes", l->bytes);
    record_member_int(document, "end_count", l->blocks);
    record_member_int(document, "torn_down_bytes", l->torn_bytes);
    record_member_int(document, "torn_down_count", l->torn_blocks);
    record_member_int(document, "before_main_bytes", l->start_bytes);
    record_member_int(document, "before_main_count", l->start_blocks);
    record_member_int(document, "library_bytes", l->hidden[HIDDEN_LIBRARY].bytes);
    record_member_int(document, "library_count", l->hidden[HIDDEN_LIBRARY].blocks);
    record_member_int(document, "interpreter_bytes", l->hidden[HIDDEN_INTERPRETER].bytes);
    record_member_int(document, "interpreter_count", l->hidden[HIDDEN_INTERPRETER].blocks);
    record_member_int(document, "arena_bytes", l->hidden[HIDDEN_ARENAS].bytes);
    record_member_int(document, "arena_count", l->hidden[HIDDEN_ARENAS].blocks);
    record_member_int(document, "other_programs_bytes", l->other_bytes);
    record_member_int(document, "other_programs_count", l->other_blocks);
    record_member_int(document, "suppressed_stacks", l->suppressed_stacks);
    record_member_int(document, "suppressed_bytes", l->suppressed_bytes);
    record_member_int(document, "suppressed_count", l->suppressed_blocks);
    int rc = list_leaks(l, document, shown, err);
    if (l->out->format == REPORT_JSON)
        list_suppressions(l, document);
    record_document_end(document);
    return rc;
}

static int print_leaks(struct leaks *l, struct record *document, int shown, struct error *err)
{
    int rc = 0;
    notes_print(l->db, l->out);
    if (l->options->report->by != ROW_LINE) {
        rc = print_stacks(l, shown, err);
    } else if (l->count) {
        rc = find_beside(l, shown, err);
        if (rc == 0)
            rc = list_leaks(l, document, shown, err);
        fputc('\n', l->out->file);
    }
    print_sums(l, shown);
    list_suppressions(l, document);
    return rc;
}

/* Those that are not suppressed, largest first. */
static int read_leaks(struct leaks *l, struct error *err)
{
    const struct report_options *o = l->options->report;
    int rc = report_check_names(l->db, o->device, o->kind, err);
    if (rc == 0)
        rc = walk_open(l->db, report_language(o), &l->walk, err);
    if (rc == 0 && report_language(o) != TREE_BOTH)
        rc = walk_open(l->db, TREE_BOTH, &l->whole, err);
    l->noise = noise_open(l->walk);
    if (rc == 0 && o->at == REPORT_AT_TIME)
        rc = at_check(l->db, o->at_ns, "--at", err);
    if (rc == 0 && o->at == REPORT_AT_TIME)
        rc = at_load(l->db, o->at_ns, o->lens ? o->lens->pid : 0, &l->at, err);
    if (rc == 0 && !l->options->all && !(o->lens && o->lens->pid))
        rc = programs_load(l->db, &l->programs, err);
    if (rc == 0)
        rc = load(l, err);
    if (rc == 0 && o->by == ROW_LINE)
        group(l, by_line, by_bytes);
    else if (rc == 0 && (l->whole || folds(l)))
        group(l, by_shown, by_bytes_and_stack);
    return rc;
}

static void close_leaks(struct leaks *l)
{
    for (int i = 0; i < l->count; i++)
        free_leak(&l->leak[i]);
    free(l->leak);
    programs_free(&l->programs);
    free(l->cwd);
    noise_close(l->noise);
    walk_close(l->walk);
    walk_close(l->whole);
}

int leaks_report(sqlite3 *db, const struct leaks_options *options, const struct report_out *out, int *leaked,
                 struct error *err)
{
    const struct report_options *o = options->report;
    struct record document;
    struct leaks l = {.db = db, .options = options, .out = out, .cwd = db_meta_text(db, "cwd")};
    int64_t top = o->top >= 0 ? o->top : out->format == REPORT_TEXT ? DEFAULT_TOP : 0;
    int rc = read_leaks(&l, err);
    if (rc == 0) {
        *leaked = l.count > 0;
        int shown = top > 0 && top < l.count ? (int)top : l.count;
        record_open(&document, out);
        rc = out->format == REPORT_TEXT ? print_leaks(&l, &document, shown, err)
                                        : record_leaks(&l, &document, shown, err);
        record_close(&document);
    }
    close_leaks(&l);
    return rc;
}

int leaks_each(sqlite3 *db, const struct leaks_options *options, leaks_take *take, void *arg, struct error *err)
{
    struct leaks l = {.db = db, .options = options};
    int rc = read_leaks(&l, err);
    for (int i = 0; rc == 0 && i < l.count; i++) {
        const struct leak *leak = &l.leak[i];
        take(arg, &(struct leaks_row){leak->device, leak->function, leak->file, leak->module, leak->line,
                                      leak->stack_id, leak->bytes, leak->blocks});
    }
    close_leaks(&l);
    return rc;
}
