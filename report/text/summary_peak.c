#include "summary.h"

#include "../../common/db.h"
#include "../../common/units.h"
#include "../print/listing.h"
#include "../query/callers.h"
#include "../query/estimate.h"
#include "../query/merged.h"
#include "../query/walk.h"
#include "../query/wrapper.h"
#include "resident.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    DEFAULT_CALLERS = 3,      /* shown of a line */
    DEFAULT_LINES = 3,        /* that they are shown for, */
    LEAST_PERCENT = 10,       /* which hold so much of the peak, */
    LEAST_SITES = 4,          /* from so many stacks, */
    LEAST_CALLER_PERCENT = 5, /* and of the line so much; */
    WRAPPER_LINES = 1000      /* looked at for more wrappers where the first ones hold most */
};

struct peak {
    struct summary *s;
    const char *device;
    int64_t bytes, rest, wrapped;
    int64_t heap_bytes, heap_wrapped; /* of these: of malloc, which is what wrappers pass on; 0: not asked for */
    int sort;
    int has_resident; /* which differs from the bytes */
    struct resident_peak resident;
    struct walk *walk;
    struct estimates *estimates; /* NULL: the recording is not sampled */
    struct listing *listing;
    struct buf skip;
    char *wrapper_module; /* of the first one; NULL: it has source, or there is none */
};

static enum callers_of callers_of(const struct peak *p)
{
    return p->sort == STAT_at_kind_peak_bytes ? CALLERS_OF_KIND_PEAK : CALLERS_OF_PEAK;
}

/* Of what is no line of the table the bound. */
static double error_of(const struct peak *p, int64_t bytes)
{
    return estimates_bound(p->estimates, p->device, bytes);
}

/* row NULL: of several, whose blocks nobody counted. of_line: it is one that the table is of, no caller. */
static void list_row(struct peak *p, int64_t bytes, int64_t blocks, const struct buf *name, const struct row *row,
                     int of_line)
{
    struct buf place = BUF(1 << 20);
    if (row)
        row_source_text(row, p->s->cwd, &place);
    listing_estimate(p->listing, 1, bytes, of_line && row ? row->stats.error[p->sort] : error_of(p, bytes));
    listing_share(p->listing, bytes, p->bytes);
    if (row) /* blocks are counted at the device's peak only */
        listing_estimate(p->listing, p->sort != STAT_at_kind_peak_bytes, blocks,
                         of_line ? row->stats.error[STAT_at_peak_count] : -(error_of(p, bytes) > 0));
    else
        listing_text(p->listing, "");
    if (p->has_resident && of_line)
        listing_int_if(p->listing, row->stats.known >> STAT_resident_bytes & 1, row->stats.value[STAT_resident_bytes]);
    else if (p->has_resident)
        listing_text(p->listing, "");
    listing_text(p->listing, name->data);
    listing_text(p->listing, place.data);
    buf_free(&place);
}

/* "  <- forward" under the line that it calls */
static void print_caller(struct peak *p, const struct caller *c, int depth)
{
    struct buf text = BUF(1 << 20);
    listing_style(p->listing, TABLE_DIM);
    buf_printf(&text, "%*s<- ", 2 * depth + 2, "");
    if (c->row.module)
        row_function_text(&c->row, &text);
    else
        buf_puts(&text, "(no caller known)");
    list_row(p, c->bytes, c->blocks, &text, &c->row, 0);
    buf_free(&text);
}

static int is_large(const struct peak *p, int64_t bytes)
{
    return p->bytes > 0 && (double)bytes * 100 >= (double)p->bytes * LEAST_PERCENT;
}

/* What malloc gave of a row's bytes, or of the whole device's: maps of a program's own (shared memory, a runtime's
 * heap) go through no wrapper. */
static int64_t heap_bytes(const struct peak *p, const struct row *row)
{
    sqlite3_stmt *s = NULL;
    int64_t bytes = 0;
    if (p->sort != STAT_at_peak_bytes ||
        db_prepare(p->s->db,
                   "SELECT CAST(total(at_peak_bytes) AS INTEGER) FROM account JOIN device d USING(device_id) WHERE "
                   "scope = iif(?2, 'line', 'thread') AND inclusive = 0 AND kind = 'heap' AND d.name = ?1 AND (NOT ?2 "
                   "OR key_id = ?3)",
                   &s, NULL))
        return 0;
    sqlite3_bind_text(s, 1, p->device, -1, SQLITE_STATIC);
    sqlite3_bind_int(s, 2, row != NULL);
    sqlite3_bind_int64(s, 3, row ? row->key_id : 0);
    if (sqlite3_step(s) == SQLITE_ROW)
        bytes = sqlite3_column_int64(s, 0);
    sqlite3_finalize(s);
    return bytes;
}

static int is_large_of_heap(const struct peak *p, int64_t bytes)
{
    return p->heap_bytes > 0 && (double)bytes * 100 >= (double)p->heap_bytes * LEAST_PERCENT;
}

/* A function that only passes memory on: --skip would say more. */
static void note_wrapper(struct peak *p, const struct row *row, const struct callers *callers, int64_t bytes)
{
    if (!wrapper_is(p->walk, row, callers))
        return;
    p->wrapped += bytes;
    p->heap_wrapped += bytes ? heap_bytes(p, row) : 0;
    if (!p->skip.length && row->module)
        p->wrapper_module = xstrdup(row->module);
    wrapper_add_skips(p->s->db, row, callers, &p->skip);
}

/* In the module of the first wrapper, or with source as that. */
static int is_beside(const struct peak *p, const struct row *row)
{
    return p->wrapper_module && row->module ? strcmp(row->module, p->wrapper_module) == 0
                                            : !p->wrapper_module && !row->module;
}

/* Most of the peak went through wrappers: the program's other ones, by their names, belong into the same command. */
static int note_more_wrappers(struct peak *p, struct error *err)
{
    struct rows rows;
    int rc = summary_lines(p->s, p->device, p->sort, WRAPPER_LINES, &rows, err);
    if (rc)
        return rc;
    for (int i = 0; i < rows.count && rc == 0; i++) {
        const struct row *row = &rows.row[i];
        struct callers_line *line = NULL;
        struct callers callers = {0};
        if (!row->function || !is_beside(p, row) || !wrapper_is_named(row) || row->stats.value[p->sort] <= 0)
            continue;
        rc = callers_open(p->s->db, p->walk, row, callers_of(p), p->s->options->kind, &line, err);
        if (rc == 0)
            rc = callers_load(line, 0, &callers, err);
        if (rc == 0)
            note_wrapper(p, row, &callers, 0);
        callers_close(line);
        callers_free(&callers);
    }
    rows_free(&rows);
    return rc;
}

static void print_chain(struct peak *p, const struct wrapper_chain *chain, int count, int64_t most, int64_t least_bytes)
{
    for (int depth = 0; depth < count; depth++)
        for (int i = 0; i < chain->callers[depth].count && i < most; i++)
            if (chain->callers[depth].item[i].bytes >= least_bytes)
                print_caller(p, &chain->callers[depth].item[i], depth);
}

static int print_callers(struct peak *p, int number, const struct row *row, struct error *err)
{
    int64_t asked = p->s->options->callers, bytes = row->stats.value[p->sort];
    struct wrapper_chain chain;
    int is_default = asked < 0, is_shown = number < DEFAULT_LINES && is_large(p, bytes);
    int is_candidate = is_shown || (number < DEFAULT_LINES && is_large_of_heap(p, bytes));
    if (p->s->options->inclusive || (!is_candidate && asked <= 0))
        return 0;
    int rc = wrapper_chain_load(p->s->db, p->walk, row, callers_of(p), p->s->options->kind, &chain, err);
    const struct callers *last = wrapper_chain_last(&chain);
    int has_parted = last->count > 1;
    if (is_candidate && !rc)
        note_wrapper(p, row, last, bytes);
    for (int i = 0; i < chain.count - 1 && is_candidate && !rc; i++)
        if (has_parted && p->skip.length)
            note_wrapper(p, &chain.callers[i].item[0].row, last, 0);
    if (!rc && is_default && is_shown && has_parted && last->site_count >= LEAST_SITES)
        print_chain(p, &chain, chain.count, DEFAULT_CALLERS, bytes / 100 * LEAST_CALLER_PERCENT);
    else if (!rc && asked > 0)
        print_chain(p, &chain, has_parted ? chain.count : 1, asked, 0);
    wrapper_chain_free(&chain);
    return rc;
}

static void print_rest(struct peak *p, int64_t count)
{
    struct buf text = BUF(128);
    summary_plural(&text, count, "more line", "more lines");
    listing_style(p->listing, TABLE_DIM);
    list_row(p, p->rest, 0, &text, NULL, 0);
    buf_free(&text);
}

static int print_lines(struct peak *p, struct error *err)
{
    static const struct column columns[] = {
        COLUMN(NULL, "bytes", BYTES),
        COLUMN(NULL, "share", PERCENT),
        COLUMN(NULL, "blocks", COUNT, .flags = COLUMN_OPTIONAL, .none = "-"),
        COLUMN(NULL, "resident", BYTES, .none = "-"), /* left out where it says nothing */
        COLUMN(NULL, "function", TEXT, .cut = TEXT_CUT_NAME),
        COLUMN(NULL, "source", TEXT, .cut = TEXT_CUT_LEFT),
    };
    enum { COUNT = COLUMN_COUNT_OF(columns), RESIDENT = 3 };
    struct column shown[COUNT];
    struct resident_title title;
    struct rows rows;
    memcpy(shown, columns, sizeof shown);
    shown[RESIDENT].title = resident_title(&p->resident, "resident", &title);
    if (!p->has_resident)
        memmove(shown + RESIDENT, shown + RESIDENT + 1, (COUNT - RESIDENT - 1) * sizeof *shown);
    int rc = summary_lines(p->s, p->device, p->sort, summary_top(p->s), &rows, err);
    if (rc)
        return rc;
    p->listing = listing_open(shown, COUNT - !p->has_resident, p->s->out, NULL);
    for (int i = 0; rc == 0 && i < rows.count; i++) {
        const struct row *row = &rows.row[i];
        int64_t bytes = row->stats.value[p->sort];
        struct buf name = BUF(1 << 20);
        row_function_text(row, &name);
        list_row(p, bytes, row->stats.value[STAT_at_peak_count], &name, row, 1);
        buf_free(&name);
        rc = print_callers(p, i, row, err);
        if (__builtin_sub_overflow(p->rest, bytes, &p->rest))
            p->rest = 0;
    }
    if (!p->s->options->inclusive && p->rest > 0 && rows.total_count > rows.count)
        print_rest(p, rows.total_count - rows.count);
    if (rc == 0 && listing_rows(p->listing))
        listing_print(p->listing);
    listing_close(p->listing);
    summary_hint(p->s, &rows, p->bytes);
    rows_free(&rows);
    return rc;
}

/* "1.25 GiB ±3.1% in 1,024 ±4.0% blocks" */
static void add_held(const struct peak *p, const char *kind, int64_t blocks, struct buf *line)
{
    char text[2][UNITS_TEXT], mark[2][LISTING_MARK];
    struct stat_row stats = {0};
    stats.value[p->sort] = p->bytes;
    stats.value[STAT_at_peak_count] = blocks;
    estimates_fill(p->estimates, ROW_DEVICE, 0, kind, p->device, 0, &stats);
    if (p->sort == STAT_at_kind_peak_bytes) /* the blocks are those of another instant */
        stats.error[STAT_at_peak_count] = -(stats.error[p->sort] > 0);
    buf_printf(line, "%s%s in %s%s %s", units_bytes(text[0], p->bytes),
               listing_mark(mark[0], p->s->out, p->bytes, stats.error[p->sort]), units_count(text[1], blocks),
               listing_mark(mark[1], p->s->out, blocks, stats.error[STAT_at_peak_count]),
               blocks == 1 ? "block" : "blocks");
}

static int print_peak(struct summary *s, sqlite3_stmt *q, struct error *err)
{
    char text[2][UNITS_TEXT];
    const char *kind = s->options->kind ? s->options->kind : "all";
    int64_t duration_ns = db_meta_int(s->db, "duration_ns", 0);
    struct peak p = {.s = s,
                     .device = db_text(q, 0),
                     .bytes = sqlite3_column_int64(q, 7),
                     .rest = sqlite3_column_int64(q, 7),
                     .sort = (int)summary_peak_stat(s),
                     .estimates = estimates_open(s->db),
                     .skip = BUF(1 << 16)};
    struct buf line = BUF(4096);
    int64_t merged = merged_count(s->db);
    buf_printf(&line, "%s of %s%s%s: ", merged ? "Sum of peaks" : "Peak", p.device, *kind != 'a' ? " " : "",
               *kind != 'a' ? kind : "");
    add_held(&p, kind, sqlite3_column_int64(q, 13), &line);
    if (merged)
        buf_printf(&line, " of %s recordings", units_count(text[0], merged));
    else
        buf_printf(&line, " at %s", units_ns(text[0], sqlite3_column_int64(q, 8)));
    if (duration_ns > 0 && !merged)
        buf_printf(&line, " of %s", units_ns(text[1], duration_ns));
    buf_puts(&line, s->options->inclusive ? ", held by (with callees)" : ", held by");
    table_heading(s->out, buf_text(&line), 0, 0);
    buf_free(&line);
    if (strcmp(p.device, "host") == 0 && summary_is_whole(s))
        p.has_resident = resident_peak_load(s->db, &p.resident, err) == 0 && resident_peak_differs(&p.resident) &&
                         resident_peak_is_near(&p.resident, p.bytes);
    int rc = walk_open(s->db, report_language(s->options), &p.walk, err);
    p.heap_bytes = heap_bytes(&p, NULL);
    if (rc == 0)
        rc = print_lines(&p, err);
    int is_most = p.wrapped > p.bytes / 2 || (is_large(&p, p.heap_bytes) && p.heap_wrapped > p.heap_bytes / 2);
    int is_hint = is_most && !s->skip.length && p.skip.length;
    if (rc == 0 && is_hint)
        rc = note_more_wrappers(&p, err);
    if (is_hint)
        buf_puts(&s->skip, p.skip.data);
    buf_free(&p.skip);
    free(p.wrapper_module);
    estimates_close(p.estimates);
    walk_close(p.walk);
    return rc;
}

int summary_peaks(struct summary *s, struct error *err)
{
    sqlite3_stmt *q = NULL;
    const char *kind = s->options->kind ? s->options->kind : "all";
    int rc = summary_totals(s, &q, err);
    while (rc == 0 && sqlite3_step(q) == SQLITE_ROW)
        if (strcmp(db_text(q, 1), kind) == 0 && sqlite3_column_int64(q, 7) > 0)
            rc = print_peak(s, q, err);
    sqlite3_finalize(q);
    return rc;
}

int summary_callers(struct summary *s, const struct row *called, struct buf *json, struct error *err)
{
    struct callers callers = {0};
    struct callers_line *line = NULL;
    struct record r;
    struct walk *walk = NULL;
    int rc = walk_open(s->db, report_language(s->options), &walk, err);
    if (rc == 0)
        rc = callers_open(s->db, walk, called,
                          summary_peak_stat(s) == STAT_at_kind_peak_bytes ? CALLERS_OF_KIND_PEAK : CALLERS_OF_PEAK,
                          s->options->kind, &line, err);
    if (rc == 0)
        rc = callers_load(line, 0, &callers, err);
    callers_close(line);
    record_open_in(&r, json);
    for (int i = 0; i < callers.count && i < s->options->callers; i++) {
        const struct row *row = &callers.item[i].row;
        record_begin(&r);
        record_text(&r, "function", row->function);
        record_text(&r, "file", row->file);
        record_int_if(&r, "line", row->line > 0, row->line);
        record_text(&r, "module", row->module && *row->module ? row->module : NULL);
        record_int(&r, "offset", row->offset);
        record_int(&r, "at_peak_bytes", callers.item[i].bytes);
        record_int(&r, "at_peak_count", callers.item[i].blocks);
        record_end(&r);
    }
    record_close(&r);
    callers_free(&callers);
    walk_close(walk);
    return rc;
}
