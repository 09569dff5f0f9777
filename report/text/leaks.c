#include "leaks.h"

#include "../../common/db.h"
#include "../../common/sum.h"
#include "../../common/units.h"
#include "../findings/notes.h"
#include "../print/listing.h"
#include "../query/estimate.h"
#include "../query/named_caller.h"
#include "../query/program_name.h"
#include "../query/unhooked.h"
#include "leaks_killed.h"
#include "leaks_read.h"
#include "stack.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_TOP = 20 };
enum { TORN = 5, STACK_ID = 10, FRAMES = 12 }; /* columns; lines do not have the last three */

/* "1.25 GiB ±3.1% in 1,024 ±4.0% blocks" */
static void estimated(const struct leaks *l, struct buf *out, int64_t bytes, double bytes_variance, int64_t blocks,
                      double blocks_variance)
{
    char text[2][UNITS_TEXT], mark[2][LISTING_MARK];
    const double errors[] = {estimate_error(bytes_variance), estimate_error(blocks_variance)};
    buf_printf(out, "%s%s in %s%s block%s", units_bytes(text[0], bytes),
               listing_mark(mark[0], l->out, bytes, errors[0]), units_count(text[1], blocks),
               listing_mark(mark[1], l->out, blocks, errors[1]), blocks == 1 ? "" : "s");
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
    listing_estimate(list, 1, leak->bytes, estimate_error(leak->bytes_variance));
    listing_estimate(list, 1, leak->blocks, estimate_error(leak->blocks_variance));
    listing_int_if(list, leak->largest_bytes >= 0, leak->largest_bytes);
    listing_int_if(list, leaks_are_of_end(l) && !report_window(l->options->report), leak->torn_bytes);
    listing_int_if(list, leaks_are_of_end(l) && !report_window(l->options->report), leak->torn_blocks);
    listing_text(list, leak->function ? leak->function : module);
    listing_text(list, leak->file ? leak->file : leak->beside);
    listing_int_if(list, leak->line > 0, leak->line);
    listing_int(list, leak->stack_id);
    listing_int(list, leak->is_start);
    if (listing_shows(list, FRAMES))
        stack_json(&stack, &frames);
    listing_raw(list, frames.data);
    listing_int(list, llround(estimate_error(leak->bytes_variance)));
    listing_int(list, llround(estimate_error(leak->blocks_variance)));
    buf_free(&frames);
    return 0;
}

/* What stands beside lines without a file in the tables of the report, for the first so many. */
static int find_beside(struct leaks *l, int shown, struct error *err)
{
    struct rows rows = {.row = xcalloc((size_t)shown + 1, sizeof *rows.row), .count = shown};
    for (int i = 0; i < shown; i++) /* strings borrowed */
        rows.row[i] =
            (struct row){.key_id = l->leak[i].line_id, .function = l->leak[i].function, .file = l->leak[i].file};
    rows_find_modules(l->db, ROW_LINE, &rows);
    int rc = rows_name_callers(l->db, ROW_LINE, &rows, err);
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
        COLUMN("device", "device", TEXT, .place = 5, .none = "?"),
        COLUMN("kind", NULL, TEXT),
        COLUMN("end_bytes", "bytes", BYTES, .place = 1),
        COLUMN("end_count", "blocks", COUNT, .place = 2),
        COLUMN("largest_bytes", "largest", BYTES, .place = 3),
        [TORN] = COLUMN("torn_down_bytes", "Python freed\nas it ended", BYTES, .place = 4, .flags = COLUMN_OPTIONAL),
        COLUMN("torn_down_count", NULL, COUNT),
        COLUMN("function", "function", TEXT, .place = 6, .cut = TEXT_CUT_NAME, .none = "??"),
        COLUMN("file", "source", SOURCE, .place = 7, .cut = TEXT_CUT_LEFT),
        COLUMN("line", NULL, NUMBER),
        [STACK_ID] = COLUMN("stack_id", NULL, NUMBER),
        COLUMN("before_main", NULL, NUMBER),
        [FRAMES] = COLUMN("frames", NULL, TEXT, .flags = COLUMN_JSON),
        COLUMN(l->is_sampled ? "end_bytes_error" : NULL, NULL, BYTES),
        COLUMN(l->is_sampled ? "end_count_error" : NULL, NULL, COUNT),
    };
    int rc = 0;
    if (l->options->report->by == ROW_LINE)
        for (int c = STACK_ID; c <= FRAMES; c++)
            columns[c].key = NULL;
    if (!l->torn_blocks)
        columns[TORN].title = NULL;
    struct listing *list = listing_open_in(document, "leaks", columns, COLUMN_COUNT_OF(columns), l->cwd);
    for (int i = 0; rc == 0 && i < shown; i++)
        rc = list_leak(l, list, &l->leak[i], err);
    listing_heading(list);
    listing_print(list);
    listing_close(list);
    return rc;
}

static int print_stack(struct leaks *l, const struct leak *leak, int *is_folded, struct error *err)
{
    struct walk_stack stack;
    struct buf line = BUF(4096);
    char text[UNITS_TEXT];
    estimated(l, &line, leak->bytes, leak->bytes_variance, leak->blocks, leak->blocks_variance);
    if (leak->blocks > 1 && leak->largest_bytes >= 0)
        buf_printf(&line, ", largest %s", units_bytes(text, leak->largest_bytes));
    buf_printf(&line, " (%s %s)%s", leak->device ? leak->device : "?", leak->kind ? leak->kind : "?",
               leak->is_start ? ", before main()" : "");
    if (leak->torn_blocks && !leak_is_torn(leak)) {
        buf_puts(&line, ", of which Python freed ");
        leaks_say_amount(&line, leak->torn_bytes, leak->torn_blocks);
        buf_puts(&line, " as it ended");
    }
    leaks_say_stack_killed(l, leak, &line);
    buf_puts(&line, leak->is_kept ? ", not all freed by the interpreter's end, allocated at" : ", allocated at");
    table_prose(l->out, TABLE_STRONG, buf_text(&line));
    buf_free(&line);
    int rc = walk_stack(l->walk, leak->stack_id, &stack, err);
    if (rc == 0 && leaks_fold(l)) {
        walk_fold(&stack);
        *is_folded |= stack.folded > 0;
    }
    if (rc == 0)
        stack_print(&stack, l->out, l->cwd, l->options->report->frames, "    ");
    fputc('\n', l->out->file);
    return rc;
}

/* Beside what Python freed, a part of that and so many bytes are little: what a forked child had is no news above its
 * parent's megabytes. */
#define LITTLE_PART  100
#define LITTLE_BYTES 16384

static int is_little_left(const struct leaks *l)
{
    const int64_t left_bytes = l->bytes - l->torn_bytes;
    return left_bytes < LITTLE_BYTES && left_bytes < l->torn_bytes / LITTLE_PART;
}

/* Those that were freed after what counts as the end, or the others; at most so many. */
static int print_stacks_of(struct leaks *l, int torn, int most, int *shown, int *is_folded, struct error *err)
{
    int rc = 0, printed = 0;
    for (int i = 0; rc == 0 && i < l->count && printed < most; i++) {
        if (leak_is_torn(&l->leak[i]) != torn)
            continue;
        if (!printed && *shown) {
            table_line(l->out, TABLE_STRONG, torn ? "Freed by Python when it took itself down:" : "Left:");
            fputc('\n', l->out->file);
        }
        printed++;
        rc = print_stack(l, &l->leak[i], is_folded, err);
    }
    *shown += printed;
    return rc;
}

/* What is to come, where what is often more comes last. */
static void print_parts(struct leaks *l)
{
    struct buf line = BUF(4096);
    if (!l->torn_blocks || l->torn_blocks == l->blocks)
        return;
    const int is_killed = leaks_are_of_killed(l);
    if (is_little_left(l)) {
        buf_puts(&line, "Freed by Python when it took itself down: ");
        leaks_say_amount(&line, l->torn_bytes, l->torn_blocks);
        buf_puts(&line, "; below, what was left: ");
        leaks_say_amount(&line, l->bytes - l->torn_bytes, l->blocks - l->torn_blocks);
        table_prose(l->out, TABLE_STRONG, buf_text(&line));
        fputc('\n', l->out->file);
        buf_free(&line);
        return;
    }
    if (is_killed) {
        buf_puts(&line, "Live when ");
        leaks_say_killed(l, &line);
    } else {
        buf_puts(&line, "Left when Python had taken itself down");
    }
    buf_puts(&line, ": ");
    leaks_say_amount(&line, l->bytes - l->torn_bytes, l->blocks - l->torn_blocks);
    buf_puts(&line, is_killed ? "; below, what Python freed as it ended: " : "; below, what it freed then: ");
    leaks_say_amount(&line, l->torn_bytes, l->torn_blocks);
    table_prose(l->out, TABLE_STRONG, buf_text(&line));
    fputc('\n', l->out->file);
    buf_free(&line);
}

/* What leaked first, if it is worth it: what Python freed at its end is often more. */
static int print_stacks(struct leaks *l, int *shown, struct error *err)
{
    int most = *shown, is_folded = 0;
    *shown = 0;
    print_parts(l);
    const int torn_first = l->torn_blocks && is_little_left(l);
    int rc = print_stacks_of(l, torn_first, most, shown, &is_folded, err);
    if (rc == 0)
        rc = print_stacks_of(l, !torn_first, most, shown, &is_folded, err);
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
        buf_puts(out, !leaks_are_of_end(l)                ? "at the peak"
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
    leaks_say_amount(line, l->torn_bytes, l->torn_blocks);
    buf_puts(line, " of this");
    if (l->blocks > l->torn_blocks) {
        buf_puts(line, "; ");
        leaks_say_amount(line, l->bytes - l->torn_bytes, l->blocks - l->torn_blocks);
        buf_printf(line, " %s ", l->blocks - l->torn_blocks == 1 ? "was" : "were");
        if (leaks_are_of_killed(l)) {
            buf_puts(line, "live when ");
            leaks_say_killed(l, line);
        } else {
            buf_puts(line, "left");
        }
        buf_puts(line, ", which --error-exitcode and 'check --max-leak' count");
    }
    buf_puts(line, ".");
    table_prose(l->out, TABLE_PLAIN, line->data);
}

static void print_hidden(struct leaks *l, struct buf *line)
{
    for (int i = NOISE_NONE + 1; i < NOISE_KINDS; i++) {
        if (!l->hidden[i].blocks)
            continue;
        buf_reset(line);
        buf_puts(line, "Not shown: ");
        leaks_say_amount(line, l->hidden[i].bytes, l->hidden[i].blocks);
        buf_printf(line, " of %s; --all shows them.", noise_texts[i]);
        table_prose(l->out, TABLE_PLAIN, line->data);
    }
}

/* Programs that have something, by name, in the order of their start; the first ones. Of those that executed another in
 * their place, or of the others. */
static void print_others_of(struct leaks *l, int is_replaced, struct buf *line)
{
    enum { NAMED = 3 };
    struct buf names = BUF(4096), seen[NAMED] = {BUF(4096), BUF(4096), BUF(4096)};
    const struct programs_process *largest = NULL;
    int named = 0;
    int64_t bytes = 0, blocks = 0;
    for (uint32_t i = 0; i < l->programs.count; i++) {
        const struct programs_process *p = &l->programs.item[i];
        if (p->blocks <= 0 || p->is_replaced != is_replaced)
            continue;
        sum_add(&bytes, p->bytes);
        sum_add(&blocks, p->blocks);
        if (!largest || p->bytes > largest->bytes)
            largest = p;
    }
    for (uint32_t i = 0; i < l->programs.count && named <= NAMED; i++) {
        const struct programs_process *p = &l->programs.item[i];
        int is_known = p->blocks <= 0 || p->is_replaced != is_replaced;
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
    leaks_say_amount(line, bytes, blocks);
    buf_printf(line, " of %s (",
               is_replaced  ? "what executed another program in its place"
               : named == 1 ? "another program"
                            : "other programs");
    for (int k = 0; k < named && k < NAMED; k++)
        buf_printf(line, "%s%s", k ? ", " : "", buf_text(&seen[k]));
    buf_puts(line, named > NAMED ? ", ...); " : "); ");
    if (largest && !is_replaced) {
        buf_printf(line, "--process PID shows one of their processes (%lld: ", (long long)largest->pid);
        program_name(line, largest->command);
        buf_puts(line, "), --all everything.");
    } else {
        buf_puts(line, "--all shows everything.");
    }
    if (blocks)
        table_prose(l->out, TABLE_PLAIN, line->data);
    buf_free(&names);
    for (int k = 0; k < NAMED; k++)
        buf_free(&seen[k]);
}

static void print_others(struct leaks *l, struct buf *line)
{
    if (!l->other_blocks)
        return;
    print_others_of(l, 0, line);
    print_others_of(l, 1, line);
}

static void print_unhooked(struct leaks *l, struct buf *line)
{
    buf_reset(line);
    unhooked_say(l->db, line);
    if (!line->length)
        return;
    buf_putc(line, '.');
    table_prose(l->out, TABLE_PLAIN, line->data);
}

static void print_sums(struct leaks *l, int shown)
{
    struct buf line = BUF(4096);
    char text[UNITS_TEXT];
    int is_line = l->options->report->by == ROW_LINE;
    buf_puts(&line, l->count        ? "Live "
                    : l->is_sampled ? "None of the sampled blocks was live "
                    : l->hidden[NOISE_LIBRARY].blocks || l->hidden[NOISE_INTERPRETER].blocks ||
                            l->hidden[NOISE_ARENA].blocks || l->other_blocks
                        ? "Nothing of the program's was live "
                        : "Nothing was live ");
    when(l, &line);
    if (l->options->report->at == REPORT_AT_TIME)
        at_explain(&l->at, l->options->report->at_ns, &line);
    if (l->count) {
        buf_puts(&line, ": ");
        estimated(l, &line, l->bytes, l->bytes_variance, l->blocks, l->blocks_variance);
        buf_printf(&line, ", from %s %s%s", units_count(text, l->count), is_line ? "line" : "stack",
                   l->count == 1 ? "" : "s");
        if (shown < l->count)
            buf_printf(&line, " (%s shown; --top 0 shows all)", units_count(text, shown));
    }
    if (l->suppressed_stacks) {
        buf_printf(&line, "; suppressed: ");
        leaks_say_amount(&line, l->suppressed_bytes, l->suppressed_blocks);
        buf_printf(&line, " from %s stack%s", units_count(text, l->suppressed_stacks),
                   l->suppressed_stacks == 1 ? "" : "s");
    }
    buf_puts(&line, ".");
    table_prose(l->out, TABLE_STRONG, line.data);
    print_teardown(l, &line);
    buf_reset(&line);
    leaks_say_all_killed(l, &line);
    if (line.length)
        table_prose(l->out, TABLE_PLAIN, line.data);
    if (l->start_blocks) {
        buf_reset(&line);
        buf_puts(&line, "Of these, the start-up of libraries before main() holds ");
        leaks_say_amount(&line, l->start_bytes, l->start_blocks);
        buf_puts(&line, ".");
        table_prose(l->out, TABLE_PLAIN, line.data);
    }
    if (l->inherited_blocks) {
        buf_reset(&line);
        buf_puts(&line, "Not counted: ");
        leaks_say_amount(&line, l->inherited_bytes, l->inherited_blocks);
        buf_puts(&line, " inherited from before this part of the recording, and live still.");
        table_prose(l->out, TABLE_PLAIN, line.data);
    }
    print_hidden(l, &line);
    print_others(l, &line);
    if (l->count)
        print_unhooked(l, &line);
    if (l->count)
        table_prose(l->out, TABLE_DIM,
                    "Memory that the program could still reach is included: memprof does not scan for pointers.");
    buf_free(&line);
}

static void record_unhooked(struct leaks *l, struct record *document)
{
    struct buf text = BUF(1 << 16);
    unhooked_say(l->db, &text);
    record_member_text(document, "not_seen", text.length ? text.data : NULL);
    buf_free(&text);
}

static int record_leaks(struct leaks *l, struct record *document, int shown, struct error *err)
{
    record_document_begin(document);
    notes_record(l->db, l->options->report->file, document);
    if (l->options->report->at == REPORT_AT_TIME) {
        record_member_int(document, "at_ns", l->at.time_ns);
        record_member_int(document, "is_exact", l->at.is_exact && !l->at.chunks_damaged);
    }
    record_member_int(document, "row_count", l->count);
    record_member_int(document, "end_bytes", l->bytes);
    record_member_int(document, "end_count", l->blocks);
    record_member_int(document, "torn_down_bytes", l->torn_bytes);
    record_member_int(document, "torn_down_count", l->torn_blocks);
    record_member_int(document, "killed_bytes", l->killed_bytes);
    record_member_int(document, "killed_count", l->killed_blocks);
    record_member_int(document, "before_main_bytes", l->start_bytes);
    record_member_int(document, "before_main_count", l->start_blocks);
    if (db_meta_int(l->db, "part", 1) > 1) {
        record_member_int(document, "inherited_bytes", l->inherited_bytes);
        record_member_int(document, "inherited_count", l->inherited_blocks);
    }
    record_member_int(document, "library_bytes", l->hidden[NOISE_LIBRARY].bytes);
    record_member_int(document, "library_count", l->hidden[NOISE_LIBRARY].blocks);
    record_member_int(document, "interpreter_bytes", l->hidden[NOISE_INTERPRETER].bytes);
    record_member_int(document, "interpreter_count", l->hidden[NOISE_INTERPRETER].blocks);
    record_member_int(document, "arena_bytes", l->hidden[NOISE_ARENA].bytes);
    record_member_int(document, "arena_count", l->hidden[NOISE_ARENA].blocks);
    record_member_int(document, "other_programs_bytes", l->other_bytes);
    record_member_int(document, "other_programs_count", l->other_blocks);
    record_unhooked(l, document);
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
        rc = print_stacks(l, &shown, err);
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

static int default_top(enum row_key by, enum report_format format)
{
    return format == REPORT_TEXT ? DEFAULT_TOP : by == ROW_LINE ? 0 : REPORT_STACK_ROWS;
}

int leaks_report(sqlite3 *db, const struct leaks_options *options, const struct report_out *out, int *leaked,
                 struct error *err)
{
    const struct report_options *o = options->report;
    struct record document;
    struct leaks l = {.db = db, .options = options, .out = out, .cwd = db_meta_text(db, "cwd")};
    int64_t top = o->top >= 0 ? o->top : default_top(o->by, out->format);
    int rc = leaks_read(&l, err);
    if (rc == 0) {
        *leaked = l.blocks > l.torn_blocks;
        int shown = top > 0 && top < l.count ? (int)top : l.count;
        record_open(&document, out);
        rc = out->format == REPORT_TEXT ? print_leaks(&l, &document, shown, err)
                                        : record_leaks(&l, &document, shown, err);
        record_close(&document);
    }
    leaks_close(&l);
    return rc;
}
