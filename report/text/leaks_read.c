#include "leaks_read.h"

#include "../../common/array.h"
#include "../../common/db.h"
#include "../../common/sum.h"
#include "../../common/text.h"
#include "../query/device.h"
#include "../query/estimate.h"
#include "stack.h"

#include <stdlib.h>
#include <string.h>

int leaks_are_of_end(const struct leaks *l)
{
    return l->options->report->at == REPORT_AT_ALL || l->options->report->at == REPORT_AT_END;
}

/* Without what an interpreter freed as it took itself down. */
static int64_t kept_bytes(const struct leak *leak)
{
    return leak->bytes - leak->torn_bytes;
}

static int64_t kept_blocks(const struct leak *leak)
{
    return leak->blocks - leak->torn_blocks;
}

int leak_is_torn(const struct leak *leak)
{
    return leak->torn_blocks > 0 && kept_blocks(leak) == 0;
}

int leaks_fold(const struct leaks *l)
{
    int is_people = !l->out || l->out->format == REPORT_TEXT;
    return is_people && !l->whole && l->options->report->frames > 0;
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

/* A part of what there is, and neither below zero: a damaged file may have it otherwise. */
static void make_sane(int64_t *all, int64_t *part)
{
    *all = *all > 0 ? *all : 0;
    *part = *part < 0 ? 0 : *part > *all ? *all : *part;
}

/* No more than is left of it, which a damaged file may have otherwise. */
static int64_t take(int64_t *rest, int64_t amount)
{
    const int64_t taken = amount < 0 ? 0 : amount < *rest ? amount : *rest;
    *rest -= taken;
    return taken;
}

/* What one process had of it: another program's is not counted. */
static void split_off(struct leaks *l, struct leak *leak, struct programs_process *process,
                      const struct process_part *part)
{
    if (process && !process->is_named) {
        sum_add(&process->bytes, part->bytes);
        sum_add(&process->blocks, part->count);
        sum_add(&l->other_bytes, part->bytes);
        sum_add(&l->other_blocks, part->count);
        leak->bytes -= part->bytes;
        leak->blocks -= part->count;
        leak->torn_bytes -= part->torn_bytes;
        leak->torn_blocks -= part->torn_count;
    } else if (process && process->is_killed) {
        leak->killed_bytes += part->bytes - part->torn_bytes;
        leak->killed_blocks += part->count - part->torn_count;
    } else if (process && process->is_torn && part->count > part->torn_count) {
        leak->is_kept = 1;
    }
}

/* Sites that several programs have in common. What no part is known of goes with the process that first allocated. */
static void split(struct leaks *l, sqlite3_stmt *s, struct leak *leak)
{
    struct process_part rest = {leak->bytes, leak->blocks, leak->torn_bytes, leak->torn_blocks, 0, 0};
    const char *sites = l->has_parts ? db_text(s, 15) : "";
    const int was_kept = leak->is_kept;
    const int64_t blocks = leak->blocks;
    char *end;
    leak->is_kept = 0;
    for (int64_t id; *sites; sites = *end ? end + 1 : end) {
        id = strtoll(sites, &end, 10);
        for (const struct process_part *p = NULL; (p = process_parts_next(&l->parts, id, p));) {
            struct process_part part = {.bytes = take(&rest.bytes, p->bytes), .count = take(&rest.count, p->count)};
            part.torn_bytes = take(&rest.torn_bytes, p->torn_bytes < part.bytes ? p->torn_bytes : part.bytes);
            part.torn_count = take(&rest.torn_count, p->torn_count < part.count ? p->torn_count : part.count);
            split_off(l, leak, programs_find(&l->programs, p->process_id), &part);
        }
    }
    const int is_kept = rest.count == blocks ? was_kept : leak->is_kept;
    rest.torn_bytes = rest.torn_bytes < rest.bytes ? rest.torn_bytes : rest.bytes;
    rest.torn_count = rest.torn_count < rest.count ? rest.torn_count : rest.count;
    split_off(l, leak, programs_find(&l->programs, sqlite3_column_int64(s, 14)), &rest);
    leak->is_kept = is_kept;
    make_sane(&leak->bytes, &leak->torn_bytes);
    make_sane(&leak->blocks, &leak->torn_blocks);
    if (leak->blocks < blocks && leak->largest_bytes >= 0) /* it may be another program's */
        leak->largest_bytes = leak->blocks == 1 ? leak->bytes : -1;
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
                        .is_kept = sqlite3_column_int64(s, 13) > 0,
                        .bytes_variance = sqlite3_column_double(s, 16),
                        .blocks_variance = sqlite3_column_double(s, 17)};
    int rc = walk_stack(l->walk, leak.stack_id, &stack, err);
    int match = rc ? -1 : suppressed_by(l->options->suppressions, &stack);
    make_sane(&leak.bytes, &leak.torn_bytes);
    make_sane(&leak.blocks, &leak.torn_blocks);
    if (rc || match >= 0) {
        if (match >= 0) {
            struct suppression *item = &l->options->suppressions->item[match];
            item->stacks++;
            sum_add(&item->bytes, leak.bytes);
            sum_add(&item->blocks, leak.blocks);
            l->suppressed_stacks++;
            sum_add(&l->suppressed_bytes, leak.bytes);
            sum_add(&l->suppressed_blocks, leak.blocks);
        }
        free_leak(&leak);
        return rc;
    }
    if (l->whole) { /* whose code it is says the whole stack */
        leak.shown = walk_shown_hash(&stack);
        rc = walk_stack(l->whole, leak.stack_id, &stack, err);
    }
    int is_map = leak.kind && strcmp(leak.kind, "map") == 0;
    int noise = rc || l->options->all ? rc : noise_of(l->noise, leak.stack_id, is_map, err);
    if (noise < 0) {
        free_leak(&leak);
        return noise;
    }
    if (noise > 0) {
        sum_add(&l->hidden[noise].bytes, leak.bytes);
        sum_add(&l->hidden[noise].blocks, leak.blocks);
        free_leak(&leak);
        return 0;
    }
    split(l, s, &leak);
    if (leak.blocks == 0) {
        free_leak(&leak);
        return 0;
    }
    leak.is_start = is_start(&stack);
    if (leaks_fold(l)) {
        walk_fold(&stack);
        leak.shown = walk_shown_hash(&stack);
    }
    sum_add(&l->bytes, leak.bytes);
    sum_add(&l->blocks, leak.blocks);
    l->bytes_variance += leak.bytes_variance;
    l->blocks_variance += leak.blocks_variance;
    sum_add(&l->torn_bytes, leak.torn_bytes);
    sum_add(&l->torn_blocks, leak.torn_blocks);
    sum_add(&l->killed_bytes, leak.killed_bytes);
    sum_add(&l->killed_blocks, leak.killed_blocks);
    if (leak.is_start) {
        sum_add(&l->start_bytes, leak.bytes);
        sum_add(&l->start_blocks, leak.blocks);
    }
    *ARRAY_ADD(l->leak, l->count, l->capacity) = leak;
    return 0;
}

/* Of a window: what was allocated in it, and is live at its end. */
enum { INSTANT_SURVIVORS = REPORT_AT_TIME + 1, INSTANT_COUNTED_AGAIN };

/* What each instant takes the bytes and blocks of a site from, what of them a teardown freed, and whether one left any.
 */
#define SPREAD_SQL(bytes, count)                                                                                       \
    "total(" bytes " * 1.0 * (SELECT y.excess_bytes FROM site_sample y WHERE y.site_id = s.site_id)), "                \
    "total(" count " * (SELECT y.count_spread FROM site_sample y WHERE y.site_id = s.site_id))"
#define TORN_SQL  "sum(x.freed_bytes), sum(x.freed_count), max(coalesce(k.kept_count, 0))"
#define FROM_TORN "FROM site s LEFT JOIN site_teardown x USING(site_id) LEFT JOIN site_kept k USING(site_id)"
static const char *const instants[][4] = {
    [REPORT_AT_ALL] = {"sum(s.end_bytes - coalesce(i.start_bytes - i.left_bytes, 0)), sum(s.end_count - "
                       "coalesce(i.start_count - i.left_count, 0)), nullif(max(s.largest_bytes), 0)",
                       TORN_SQL, FROM_TORN " LEFT JOIN site_start i USING(site_id)",
                       SPREAD_SQL("s.end_bytes", "s.end_count")},
    [INSTANT_COUNTED_AGAIN] = {"sum(s.end_bytes), sum(s.end_count), max(s.largest_bytes)", TORN_SQL, FROM_TORN,
                               SPREAD_SQL("s.end_bytes", "s.end_count")},
    [REPORT_AT_PEAK] = {"sum(s.at_peak_bytes), sum(s.at_peak_count), NULL", "0, 0, 0", "FROM site s",
                        SPREAD_SQL("s.at_peak_bytes", "s.at_peak_count")},
    [INSTANT_SURVIVORS] = {"sum(v.live_bytes), sum(v.live_count), NULL", "0, 0, 0",
                           "FROM temp.survivor v JOIN site s USING(site_id)",
                           SPREAD_SQL("v.live_bytes", "v.live_count")},
    [REPORT_AT_TIME] = {"sum(v.live_bytes), sum(v.live_count), NULL", "0, 0, 0",
                        "FROM temp.live v JOIN site s USING(site_id)", SPREAD_SQL("v.live_bytes", "v.live_count")},
};

static int load(struct leaks *l, struct error *err)
{
    const struct report_options *o = l->options->report;
    const char *const *from = instants[!leaks_are_of_end(l) ? (int)o->at
                                       : report_window(o)   ? (int)INSTANT_SURVIVORS
                                       : report_is_part(o)  ? (int)INSTANT_COUNTED_AGAIN
                                                            : REPORT_AT_ALL];
    struct buf sql = BUF(1 << 14);
    sqlite3_stmt *s = NULL;
    buf_printf(
        &sql,
        "SELECT d.name, s.kind, s.stack_id, %s, sl.line_id, fn.name, f.path, l.line, m.path || printf('+0x%%x', "
        "l.offset), %s, max(s.process_id), CASE WHEN ?3 THEN group_concat(s.site_id) END, %s %s LEFT JOIN device d "
        "ON d.device_id = s.device_id LEFT JOIN "
        "site_line sl ON sl.site_id = "
        "s.site_id LEFT JOIN line l ON l.line_id = sl.line_id LEFT JOIN function fn ON fn.function_id = "
        "l.function_id LEFT JOIN file f ON f.file_id = l.file_id LEFT JOIN module_key m ON m.key_id = "
        "l.module_key_id WHERE " DEVICE_IS("d.name",
                                           "?1") " AND (?2 IS NULL OR ?2 IN ('all', s.kind)) GROUP BY "
                                                 "s.stack_id, s.device_id, s.kind ORDER BY 4 DESC, 5 DESC, s.stack_id",
        from[0], from[1], from[3], from[2]);
    int rc = db_prepare(l->db, sql.data, &s, err), step = SQLITE_DONE;
    buf_free(&sql);
    if (rc == 0) {
        sqlite3_bind_text(s, 1, o->device, -1, SQLITE_STATIC);
        sqlite3_bind_text(s, 2, o->kind, -1, SQLITE_STATIC);
        sqlite3_bind_int(s, 3, l->has_parts);
        while (rc == 0 && (step = sqlite3_step(s)) == SQLITE_ROW)
            rc = sqlite3_column_int64(s, 4) > 0 ? add_leak(l, s, err) : 0;
        if (rc == 0 && step != SQLITE_DONE)
            rc = db_error(l->db, err);
    }
    sqlite3_finalize(s);
    return rc;
}

/* Of what a part of a rotated recording inherited, what is live at its end still. */
static int load_inherited(struct leaks *l, struct error *err)
{
    const struct report_options *o = l->options->report;
    sqlite3_stmt *s = NULL;
    if (!leaks_are_of_end(l) || report_is_part(o))
        return 0;
    int rc = db_prepare(l->db,
                        "SELECT sum(i.start_bytes - i.left_bytes), sum(i.start_count - i.left_count) FROM site_start i "
                        "JOIN site s USING(site_id) JOIN device d USING(device_id) WHERE " DEVICE_IS(
                            "d.name", "?1") " AND (?2 IS NULL OR ?2 IN ('all', s.kind))",
                        &s, err);
    if (rc == 0) {
        sqlite3_bind_text(s, 1, o->device, -1, SQLITE_STATIC);
        sqlite3_bind_text(s, 2, o->kind, -1, SQLITE_STATIC);
    }
    if (rc == 0 && db_next(s, &rc, err)) {
        l->inherited_bytes = sqlite3_column_int64(s, 0);
        l->inherited_blocks = sqlite3_column_int64(s, 1);
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
        sum_add(&into->bytes, from->bytes);
        sum_add(&into->blocks, from->blocks);
        into->bytes_variance += from->bytes_variance;
        into->blocks_variance += from->blocks_variance;
        sum_add(&into->torn_bytes, from->torn_bytes);
        sum_add(&into->torn_blocks, from->torn_blocks);
        sum_add(&into->killed_bytes, from->killed_bytes);
        sum_add(&into->killed_blocks, from->killed_blocks);
        into->is_kept |= from->is_kept;
        if (from->largest_bytes > into->largest_bytes || from->largest_bytes < 0)
            into->largest_bytes = into->largest_bytes < 0 ? -1 : from->largest_bytes;
        if (from->stack_id < into->stack_id)
            into->stack_id = from->stack_id;
        free_leak(from);
    }
    l->count = kept + 1;
    qsort(l->leak, (size_t)l->count, sizeof *l->leak, result);
}

/* Whether processes' parts of what is live at the end are told apart. */
static int wants_parts(const struct leaks *l)
{
    int of[2] = {0}, ends_apart = 0;
    for (uint32_t i = 0; i < l->programs.count; i++) {
        of[l->programs.item[i].is_named != 0] = 1;
        ends_apart |= l->programs.item[i].is_torn || l->programs.item[i].is_killed;
    }
    return ((of[0] && of[1]) || (ends_apart && l->programs.count > 1)) && leaks_are_of_end(l) &&
           !report_window(l->options->report);
}

/* Of one process that a signal killed it is all of it. */
static int load_killed(struct leaks *l, struct error *err)
{
    const struct report_options *o = l->options->report;
    sqlite3_stmt *s = NULL;
    if (!o->lens || !o->lens->pid || !leaks_are_of_end(l))
        return 0;
    int rc = db_prepare(l->db, "SELECT max(end_kind = 'signal') FROM process WHERE pid = ?", &s, err);
    if (rc == 0) {
        sqlite3_bind_int64(s, 1, o->lens->pid);
        if (sqlite3_step(s) == SQLITE_ROW && sqlite3_column_int(s, 0)) {
            l->killed_bytes = l->bytes - l->torn_bytes;
            l->killed_blocks = l->blocks - l->torn_blocks;
        }
    }
    sqlite3_finalize(s);
    return rc;
}

int leaks_read(struct leaks *l, struct error *err)
{
    const struct report_options *o = l->options->report;
    int rc = device_check(l->db, o->device, o->kind, err);
    l->is_sampled = estimate_mean_bytes(l->db) > 0;
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
    if (rc == 0 && wants_parts(l)) {
        l->has_parts = 1;
        rc = process_parts_load(l->db, &l->parts, err);
    }
    if (rc == 0)
        rc = load(l, err);
    if (rc == 0)
        rc = load_inherited(l, err);
    if (rc == 0)
        rc = load_killed(l, err);
    if (rc == 0 && o->by == ROW_LINE)
        group(l, by_line, by_bytes);
    else if (rc == 0 && (l->whole || leaks_fold(l)))
        group(l, by_shown, by_bytes_and_stack);
    return rc;
}

void leaks_close(struct leaks *l)
{
    for (int i = 0; i < l->count; i++)
        free_leak(&l->leak[i]);
    free(l->leak);
    programs_free(&l->programs);
    process_parts_free(&l->parts);
    free(l->cwd);
    noise_close(l->noise);
    walk_close(l->walk);
    walk_close(l->whole);
}

int leaks_each(sqlite3 *db, const struct leaks_options *options, leaks_take *take, void *arg, struct error *err)
{
    struct leaks l = {.db = db, .options = options};
    int rc = leaks_read(&l, err);
    for (int i = 0; rc == 0 && i < l.count; i++) {
        const struct leak *leak = &l.leak[i];
        take(arg, &(struct leaks_row){leak->device, leak->function, leak->file, leak->module, leak->line,
                                      leak->stack_id, leak->bytes, leak->blocks, kept_bytes(leak), kept_blocks(leak)});
    }
    leaks_close(&l);
    return rc;
}
