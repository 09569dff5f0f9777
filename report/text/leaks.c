#include "leaks.h"

#include "../../common/array.h"
#include "../../common/db.h"
#include "../../common/units.h"
#include "../findings/notes.h"
#include "../query/noise.h"
#include "../query/walk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_TOP = 20 };

struct leak {
    int64_t stack_id, line_id, bytes, blocks, largest_bytes;
    char *device, *kind, *function, *file, *module;
    int64_t line;
    uint64_t shown; /* walk_shown_hash, where frames are hidden */
    int is_start;   /* made while the dynamic loader started the program, not by its main() or a thread */
};

struct leaks {
    sqlite3 *db;
    const struct leaks_options *options;
    const struct report_out *out;
    struct walk *walk;
    struct walk *whole; /* with the frames that walk leaves out; NULL: it leaves out none */
    char *cwd;
    struct leak *leak;
    int count, capacity;
    int64_t bytes, blocks; /* not suppressed */
    int64_t start_bytes, start_blocks;
    int64_t library_bytes, library_blocks; /* not shown, and not among the above */
    int64_t suppressed_stacks, suppressed_bytes, suppressed_blocks;
};

static int64_t plus(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

/* The first line of the files that matches any frame shown; -1 without one. */
static int suppressed_by(const struct leaks *l, const struct walk_stack *stack)
{
    const struct suppressions *s = l->options->suppressions;
    int first, end;
    walk_shown(stack, &first, &end);
    for (int k = 0; k < s->count; k++) {
        const char *pattern = s->item[k].pattern;
        for (int i = first; i < end; i++) {
            const struct walk_frame *f = stack->frames[i];
            if (suppress_matches(pattern, f->function ? f->function : "??") ||
                (f->plain_name && suppress_matches(pattern, f->plain_name)) ||
                (f->file && suppress_matches(pattern, f->file)) || (f->module && suppress_matches(pattern, f->module)))
                return k;
        }
        if (stack->count == 0 && suppress_matches(pattern, "??"))
            return k;
    }
    return -1;
}

/* The dynamic loader and the constructors that it calls: main() is not below it yet. dlopen() is loader code too, but
 * under main(). */
static int is_start(const struct walk_stack *stack)
{
    int loader = 0;
    for (int i = 0; i < stack->count; i++) {
        const struct walk_frame *f = stack->frames[i];
        const char *module = f->module ? text_basename(f->module) : "";
        loader |= strncmp(module, "ld-", 3) == 0 || strncmp(module, "ld.so", 5) == 0 || strncmp(module, "ld64", 4) == 0;
        if (f->function && (strcmp(f->function, "main") == 0 || strcmp(f->function, "start_thread") == 0))
            return 0;
    }
    return loader;
}

static void free_leak(struct leak *leak)
{
    free(leak->device);
    free(leak->kind);
    free(leak->function);
    free(leak->file);
    free(leak->module);
}

static char *own_text(sqlite3_stmt *s, int column)
{
    return sqlite3_column_type(s, column) == SQLITE_NULL ? NULL : xstrdup(db_text(s, column));
}

static int add_leak(struct leaks *l, sqlite3_stmt *s, struct error *err)
{
    struct walk_stack stack;
    struct leak leak = {.device = own_text(s, 0),
                        .kind = own_text(s, 1),
                        .stack_id = sqlite3_column_int64(s, 2),
                        .bytes = sqlite3_column_int64(s, 3),
                        .blocks = sqlite3_column_int64(s, 4),
                        .largest_bytes = sqlite3_column_int64(s, 5),
                        .line_id = sqlite3_column_int64(s, 6),
                        .function = own_text(s, 7),
                        .file = own_text(s, 8),
                        .line = sqlite3_column_int64(s, 9),
                        .module = own_text(s, 10)};
    int rc = walk_stack(l->walk, leak.stack_id, &stack, err);
    int match = rc ? -1 : suppressed_by(l, &stack);
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
    if (rc) {
        free_leak(&leak);
        return rc;
    }
    if (!l->options->all && noise_is_library(&stack)) {
        l->library_bytes = plus(l->library_bytes, leak.bytes);
        l->library_blocks = plus(l->library_blocks, leak.blocks);
        free_leak(&leak);
        return 0;
    }
    leak.is_start = is_start(&stack);
    l->bytes = plus(l->bytes, leak.bytes);
    l->blocks = plus(l->blocks, leak.blocks);
    if (leak.is_start) {
        l->start_bytes = plus(l->start_bytes, leak.bytes);
        l->start_blocks = plus(l->start_blocks, leak.blocks);
    }
    *ARRAY_ADD(l->leak, l->count, l->capacity) = leak;
    return 0;
}

static int load(struct leaks *l, struct error *err)
{
    const struct report_options *o = l->options->report;
    sqlite3_stmt *s = NULL;
    int rc = db_prepare(
        l->db,
        "SELECT d.name, s.kind, s.stack_id, sum(s.end_bytes), sum(s.end_count), max(s.largest_bytes), sl.line_id, "
        "fn.name,"
        " f.path, l.line, m.path || printf('+0x%x', l.offset)"
        " FROM site s LEFT JOIN device d ON d.device_id = s.device_id LEFT JOIN site_line sl ON sl.site_id = s.site_id"
        " LEFT JOIN line l ON l.line_id = sl.line_id LEFT JOIN function fn ON fn.function_id = l.function_id"
        " LEFT JOIN file f ON f.file_id = l.file_id LEFT JOIN module_key m ON m.key_id = l.module_key_id"
        " WHERE s.end_count > 0 AND (?1 IS NULL OR d.name = ?1) AND (?2 IS NULL OR ?2 IN ('all', s.kind))"
        " GROUP BY s.stack_id, s.device_id, s.kind ORDER BY 4 DESC, 5 DESC, s.stack_id",
        &s, err);
    int step = SQLITE_DONE;
    if (rc == 0) {
        sqlite3_bind_text(s, 1, o->device, -1, SQLITE_STATIC);
        sqlite3_bind_text(s, 2, o->kind, -1, SQLITE_STATIC);
        while (rc == 0 && (step = sqlite3_step(s)) == SQLITE_ROW)
            rc = add_leak(l, s, err);
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

static void print_lines(struct leaks *l, int shown)
{
    static const struct table_column columns[] = {{"bytes", TABLE_RIGHT, 0, 0},
                                                  {"blocks", TABLE_RIGHT, 0, 0},
                                                  {"largest", TABLE_RIGHT, 0, 0},
                                                  {"device", TABLE_LEFT, 0, 0},
                                                  {"function", TABLE_LEFT, TEXT_CUT_NAME, 0},
                                                  {"source", TABLE_LEFT, TEXT_CUT_LEFT, 0}};
    struct table *t = table_open(columns, 6);
    for (int i = 0; i < shown; i++) {
        const struct leak *leak = &l->leak[i];
        struct buf source = BUF(1 << 20);
        table_bytes(t, leak->bytes);
        table_count(t, leak->blocks);
        table_bytes(t, leak->largest_bytes);
        table_text(t, leak->device ? leak->device : "?");
        table_text(t, leak->function ? leak->function : leak->module ? text_basename(leak->module) : "??");
        if (leak->file) {
            text_path(&source, leak->file, l->cwd);
            buf_printf(&source, ":%lld", (long long)leak->line);
        }
        table_text(t, buf_text(&source));
        buf_free(&source);
    }
    table_print(t, l->out);
    table_close(t);
}

static int print_stacks(struct leaks *l, int shown, struct error *err)
{
    int rc = 0;
    for (int i = 0; rc == 0 && i < shown; i++) {
        const struct leak *leak = &l->leak[i];
        struct walk_stack stack;
        struct buf line = BUF(4096);
        char text[UNITS_TEXT];
        amount(&line, leak->bytes, leak->blocks);
        if (leak->blocks > 1)
            buf_printf(&line, ", largest %s", units_bytes(text, leak->largest_bytes));
        buf_printf(&line, " (%s %s)%s, allocated at", leak->device ? leak->device : "?", leak->kind ? leak->kind : "?",
                   leak->is_start ? ", before main()" : "");
        table_line(l->out, TABLE_STRONG, buf_text(&line));
        buf_free(&line);
        rc = walk_stack(l->walk, leak->stack_id, &stack, err);
        if (rc == 0)
            walk_print(&stack, l->out, l->cwd, l->options->report->frames, "    ");
        fputc('\n', l->out->file);
    }
    return rc;
}

static void print_suppressions(struct leaks *l)
{
    static const struct table_column columns[] = {{"stacks", TABLE_RIGHT, 0, 0},
                                                  {"blocks", TABLE_RIGHT, 0, 0},
                                                  {"bytes", TABLE_RIGHT, 0, 0},
                                                  {"suppressed by", TABLE_LEFT, TEXT_CUT_RIGHT, 0}};
    const struct suppressions *s = l->options->suppressions;
    struct table *t = table_open(columns, 4);
    for (int i = 0; i < s->count; i++) {
        if (s->item[i].stacks == 0)
            continue;
        table_count(t, s->item[i].stacks);
        table_count(t, s->item[i].blocks);
        table_bytes(t, s->item[i].bytes);
        table_text(t, s->item[i].pattern);
    }
    if (table_rows(t)) {
        fputc('\n', l->out->file);
        table_print(t, l->out);
    }
    table_close(t);
    struct buf unused = BUF(1 << 20);
    for (int i = 0; i < s->count; i++)
        if (s->item[i].stacks == 0)
            buf_printf(&unused, "%s%s",
                       unused.length ? ", " : "Suppressions that matched nothing: ", s->item[i].pattern);
    if (unused.length)
        table_line(l->out, TABLE_DIM, unused.data);
    buf_free(&unused);
}

static void print_sums(struct leaks *l, int shown)
{
    struct buf line = BUF(4096);
    int is_line = l->options->report->by == ROW_LINE;
    buf_puts(&line, l->count            ? "Live at the end: "
                    : l->library_blocks ? "Nothing of the program's was live at the end"
                                        : "Nothing was live at the end");
    if (l->count) {
        amount(&line, l->bytes, l->blocks);
        buf_printf(&line, ", from %d %s%s", l->count, is_line ? "line" : "stack", l->count == 1 ? "" : "s");
        if (shown < l->count)
            buf_printf(&line, " (%d shown; --top 0 shows all)", shown);
    }
    if (l->suppressed_stacks) {
        char text[UNITS_TEXT];
        buf_printf(&line, "; suppressed: ");
        amount(&line, l->suppressed_bytes, l->suppressed_blocks);
        buf_printf(&line, " from %s stack%s", units_count(text, l->suppressed_stacks),
                   l->suppressed_stacks == 1 ? "" : "s");
    }
    buf_puts(&line, ".");
    table_line(l->out, TABLE_STRONG, line.data);
    buf_reset(&line);
    if (l->start_blocks) {
        buf_puts(&line, "Of these, the start-up of libraries before main() holds ");
        amount(&line, l->start_bytes, l->start_blocks);
        buf_puts(&line, ".");
        table_line(l->out, TABLE_PLAIN, line.data);
    }
    if (l->library_blocks) {
        buf_reset(&line);
        buf_puts(&line, "Not shown: ");
        amount(&line, l->library_bytes, l->library_blocks);
        buf_puts(&line, " of the C and C++ libraries' start-up, buffers and locales; --all shows them.");
        table_line(l->out, TABLE_PLAIN, line.data);
    }
    if (l->count)
        table_line(l->out, TABLE_DIM,
                   "Memory that the program could still reach is included: memprof does not scan for pointers.");
    buf_free(&line);
    print_suppressions(l);
}

static int record_leak(struct leaks *l, struct record *r, const struct leak *leak, struct error *err)
{
    struct walk_stack stack;
    struct buf frames = BUF(64 << 20);
    int is_line = l->options->report->by == ROW_LINE;
    int rc = is_line || r->out->format != REPORT_JSON ? 0 : walk_stack(l->walk, leak->stack_id, &stack, err);
    if (rc)
        return rc;
    record_begin(r);
    record_text(r, "device", leak->device);
    record_text(r, "kind", leak->kind);
    record_int(r, "end_bytes", leak->bytes);
    record_int(r, "end_count", leak->blocks);
    record_int(r, "largest_bytes", leak->largest_bytes);
    record_text(r, "function", leak->function ? leak->function : leak->module);
    record_text(r, "file", leak->file);
    if (leak->line > 0)
        record_int(r, "line", leak->line);
    else
        record_null(r, "line");
    if (!is_line) {
        record_int(r, "stack_id", leak->stack_id);
        record_int(r, "before_main", leak->is_start);
    }
    if (!is_line && r->out->format == REPORT_JSON) {
        walk_json(&stack, &frames);
        record_raw(r, "frames", frames.data ? frames.data : "[]");
    }
    record_end(r);
    buf_free(&frames);
    return 0;
}

static void record_suppressions(struct leaks *l, struct record *r)
{
    const struct suppressions *s = l->options->suppressions;
    record_array_begin(r, "suppressions");
    for (int i = 0; i < s->count; i++) {
        record_begin(r);
        record_text(r, "pattern", s->item[i].pattern);
        record_int(r, "stacks", s->item[i].stacks);
        record_int(r, "end_bytes", s->item[i].bytes);
        record_int(r, "end_count", s->item[i].blocks);
        record_end(r);
    }
    record_array_end(r);
}

static int record_leaks(struct leaks *l, int shown, struct error *err)
{
    struct record r;
    int rc = 0;
    record_open(&r, l->out);
    record_document_begin(&r);
    notes_record(l->db, l->options->report->file, &r);
    record_member_int(&r, "end_bytes", l->bytes);
    record_member_int(&r, "end_count", l->blocks);
    record_member_int(&r, "before_main_bytes", l->start_bytes);
    record_member_int(&r, "before_main_count", l->start_blocks);
    record_member_int(&r, "library_bytes", l->library_bytes);
    record_member_int(&r, "library_count", l->library_blocks);
    record_member_int(&r, "suppressed_stacks", l->suppressed_stacks);
    record_member_int(&r, "suppressed_bytes", l->suppressed_bytes);
    record_member_int(&r, "suppressed_count", l->suppressed_blocks);
    record_array_begin(&r, "leaks");
    for (int i = 0; rc == 0 && i < shown; i++)
        rc = record_leak(l, &r, &l->leak[i], err);
    if (rc == 0 && record_wants_heading(&r))
        rc = record_leak(l, &r, &(struct leak){0}, err);
    record_array_end(&r);
    if (l->out->format == REPORT_JSON)
        record_suppressions(l, &r);
    record_document_end(&r);
    record_close(&r);
    return rc;
}

int leaks_report(sqlite3 *db, const struct leaks_options *options, const struct report_out *out, int *leaked,
                 struct error *err)
{
    const struct report_options *o = options->report;
    struct leaks l = {.db = db, .options = options, .out = out, .cwd = db_meta_text(db, "cwd")};
    int64_t top = o->top >= 0 ? o->top : out->format == REPORT_TEXT ? DEFAULT_TOP : 0;
    int rc = report_check_names(db, o->device, o->kind, err);
    if (rc == 0)
        rc = walk_open(db, report_language(o), &l.walk, err);
    if (rc == 0 && report_language(o) != TREE_BOTH)
        rc = walk_open(db, TREE_BOTH, &l.whole, err);
    if (rc == 0)
        rc = load(&l, err);
    if (rc == 0) {
        *leaked = l.count > 0;
        if (o->by == ROW_LINE)
            group(&l, by_line, by_bytes);
        else if (l.whole)
            group(&l, by_shown, by_bytes_and_stack);
        int shown = top > 0 && top < l.count ? (int)top : l.count;
        if (out->format != REPORT_TEXT) {
            rc = record_leaks(&l, shown, err);
        } else {
            notes_print(db, out);
            if (o->by != ROW_LINE)
                rc = print_stacks(&l, shown, err);
            else if (l.count)
                print_lines(&l, shown);
            if (o->by == ROW_LINE && l.count)
                fputc('\n', out->file);
            print_sums(&l, shown);
        }
    }
    for (int i = 0; i < l.count; i++)
        free_leak(&l.leak[i]);
    free(l.leak);
    free(l.cwd);
    walk_close(l.walk);
    walk_close(l.whole);
    return rc;
}
