#include "report.h"

#include "../../common/db.h"
#include "../../common/units.h"
#include "../findings/notes.h"
#include "../query/at.h"
#include "../query/device.h"
#include "../query/estimate.h"
#include "../query/merged.h"
#include "../query/named_caller.h"
#include "../query/program_name.h"
#include "../query/self_module.h"
#include "../query/threads.h"
#include "forked.h"
#include "nothing.h"
#include "own_peak.h"
#include "resident.h"
#include "resident_processes.h"
#include "row_columns.h"
#include "stack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_TOP = 10, DEFAULT_STACKS = 5, PIPE_COMMAND = 500 /* columns */ };
#define MERGED_MOST 20000 /* stacks that are compared by their shown frames, for a reader; programs get sums of all */

/* A report by one key: its rows, what stands before them, and their columns. */
struct by {
    sqlite3 *db;
    const struct report_options *options;
    const struct report_out *out;
    char *cwd;
    struct rows rows;
    int sort;
    int held; /* the statistic that says what was live, at --at; -1: all statistics */
    int held_count;
    struct buf title;
    struct at_result at;
    struct walk *walk;
    struct resident_title resident, untouched, last;
};

static int is_one_kind(const struct report_options *o)
{
    return o->kind && strcmp(o->kind, "all") != 0;
}

static void choose_columns(struct by *b)
{
    const struct report_options *o = b->options;
    int at_peak = is_one_kind(o) ? STAT_at_kind_peak_bytes : STAT_at_peak_bytes;
    b->held = b->held_count = -1;
    if (o->at == REPORT_AT_PEAK) {
        b->held = at_peak;
        b->held_count = is_one_kind(o) ? -1 : STAT_at_peak_count;
    } else if (o->at != REPORT_AT_ALL) { /* at_live() puts what was live at an instant there too */
        b->held = STAT_end_bytes;
        b->held_count = STAT_end_count;
    }
    int is_counted = !report_window(o) || report_window(o)->result.is_counted;
    if (!is_counted) /* what is known of it is what was live */
        at_peak = STAT_end_bytes;
    b->sort = o->sort >= 0 ? o->sort : b->held >= 0 ? b->held : o->by == ROW_THREAD ? STAT_alloc_bytes : at_peak;
}

/* What was live at an instant, grouped by the key: in the places of end_bytes and end_count. */
static int load_live(struct by *b, struct error *err)
{
    static const struct {
        const char *keys, *group;
    } scopes[ROW_KEY_COUNT] = {
        [ROW_LINE] = {"fn.name, fn.plain_name, f.path, l.line, mk.path, l.offset, l.line_id", "l.line_id"},
        [ROW_FUNCTION] = {"fn.name, fn.plain_name, iif(fn.function_id IS NULL, f.path, df.path), "
                          "iif(fn.function_id IS NULL, l.line, fn.line), mk.path, l.offset, "
                          "coalesce(fn.function_id, -l.line_id)",
                          "coalesce(fn.function_id, -l.line_id), fn.name"},
        [ROW_FILE] = {"NULL, NULL, f.path, NULL, NULL, NULL, f.file_id", "f.file_id"},
        [ROW_MODULE] = {"NULL, NULL, NULL, NULL, m.path, NULL, m.key_id", "m.key_id"},
        [ROW_DEVICE] = {"NULL, NULL, NULL, NULL, NULL, NULL, s.device_id", "s.device_id"},
        [ROW_STACK] = {"NULL, NULL, NULL, NULL, NULL, NULL, s.stack_id", "s.stack_id"},
    };
    const struct report_options *o = b->options;
    struct estimates *estimates = estimates_open(b->db);
    struct buf sql = BUF(1 << 16);
    sqlite3_stmt *s = NULL;
    buf_printf(&sql,
               "SELECT d.name, CASE WHEN ?1 IS NULL OR ?1 = 'all' THEN 'all' ELSE s.kind END, sum(v.live_bytes), "
               "sum(v.live_count), %s"
               " FROM temp.live v JOIN site s USING(site_id) LEFT JOIN device d ON d.device_id = s.device_id"
               " LEFT JOIN site_line sl USING(site_id) LEFT JOIN line l ON l.line_id = sl.line_id"
               " LEFT JOIN function fn ON fn.function_id = l.function_id LEFT JOIN file f ON f.file_id = l.file_id"
               " LEFT JOIN file df ON df.file_id = fn.file_id LEFT JOIN module_key mk ON mk.key_id = l.module_key_id"
               "%s WHERE (?1 IS NULL OR ?1 = 'all' OR s.kind = ?1) AND " DEVICE_IS(
                   "d.name", "?2") ""
                                   " GROUP BY s.device_id, %s HAVING sum(v.live_bytes) > 0 ORDER BY 3 DESC, 11",
               scopes[o->by].keys,
               o->by == ROW_MODULE ? " LEFT JOIN temp.site_module sm USING(site_id) LEFT JOIN module_key m ON m.key_id "
                                     "= sm.key_id"
                                   : "",
               scopes[o->by].group);
    int rc = o->by == ROW_MODULE ? self_module_load(b->db, err) : 0, step = SQLITE_DONE;
    if (rc == 0)
        rc = db_prepare(b->db, sql.data, &s, err);
    if (rc == 0) {
        sqlite3_bind_text(s, 1, o->kind, -1, SQLITE_STATIC);
        sqlite3_bind_text(s, 2, o->device, -1, SQLITE_STATIC);
        while ((step = sqlite3_step(s)) == SQLITE_ROW) {
            b->rows.total_count++;
            if (o->top > 0 && b->rows.count >= o->top)
                continue;
            struct row *row = rows_add(&b->rows);
            char **texts[] = {&row->device, &row->kind};
            for (int i = 0; i < 2; i++)
                *texts[i] = sqlite3_column_type(s, i) == SQLITE_NULL ? NULL : xstrdup(db_text(s, i));
            row->stats.value[STAT_end_bytes] = sqlite3_column_int64(s, 2);
            row->stats.value[STAT_end_count] = sqlite3_column_int64(s, 3);
            row->stats.known = 1u << STAT_end_bytes | 1u << STAT_end_count;
            char **names[] = {&row->function, &row->plain_name, &row->file, NULL, &row->module};
            for (int i = 0; i < 5; i++)
                if (names[i] && sqlite3_column_type(s, 4 + i) != SQLITE_NULL)
                    *names[i] = xstrdup(db_text(s, 4 + i));
            row->stats.error[STAT_end_bytes] =
                estimates_bound(estimates, row->device, row->stats.value[STAT_end_bytes]);
            row->stats.error[STAT_end_count] = -(row->stats.error[STAT_end_bytes] > 0);
            row->line = sqlite3_column_int64(s, 7);
            row->offset = sqlite3_column_int64(s, 9);
            row->key_id = sqlite3_column_int64(s, 10);
        }
        if (step != SQLITE_DONE)
            rc = db_error(b->db, err);
    }
    sqlite3_finalize(s);
    estimates_close(estimates);
    buf_free(&sql);
    rows_find_modules(b->db, o->by, &b->rows);
    return rc ? rc : rows_name_callers(b->db, o->by, &b->rows, err);
}

static void title_at(struct by *b)
{
    char text[UNITS_TEXT];
    buf_printf(&b->title, "Live at %s, by %s", units_ns(text, b->at.time_ns), row_key_names[b->options->by]);
    at_explain(&b->at, b->options->at_ns, &b->title);
}

/* For people with the title. A pipe has no width, and the column is the last: cut is only what nobody reads, such as a
 * linker's thousands of characters. */
static void name_processes(struct by *b)
{
    for (int i = 0; i < b->rows.count && b->out->format == REPORT_TEXT; i++) {
        struct buf name = BUF(1 << 20), fitted = BUF(1 << 16);
        struct row *row = &b->rows.row[i];
        if (!row->command)
            continue;
        program_process(&name, row->title, row->command);
        if (b->out->width <= 0)
            text_fit(&fitted, buf_text(&name), PIPE_COMMAND, TEXT_CUT_RIGHT, b->out->utf8);
        free(row->command);
        row->command = buf_take(b->out->width <= 0 ? &fitted : &name);
        buf_free(&name);
        buf_free(&fitted);
    }
}

static int load(struct by *b, struct error *err)
{
    const struct report_options *o = b->options;
    char text[UNITS_TEXT];
    if (o->at == REPORT_AT_TIME) {
        if (o->by == ROW_THREAD || o->by == ROW_PROCESS || o->by == ROW_OP || o->inclusive)
            return error_set(err, EINVAL, "--at TIME does not go with %s%s; --at peak and --at end do",
                             o->inclusive ? "--inclusive" : "--by ", o->inclusive ? "" : row_key_names[o->by]);
        int rc = at_check(b->db, o->at_ns, "--at", err);
        if (rc)
            return rc;
        rc = at_load(b->db, o->at_ns, o->lens ? o->lens->pid : 0, &b->at, err);
        title_at(b);
        return rc ? rc : load_live(b, err);
    }
    struct rows_query query = {.by = o->by,
                               .inclusive = o->inclusive,
                               .device = o->device,
                               .kind = o->kind,
                               .sort = b->sort,
                               .limit = o->top,
                               .at_least = o->at == REPORT_AT_ALL ? INT64_MIN : 1,
                               .without_noise = o->inclusive && b->out->format == REPORT_TEXT};
    static const char *const where[] = {
        [REPORT_AT_ALL] = "", [REPORT_AT_PEAK] = "Live at the peak, ", [REPORT_AT_END] = "Live at the end, "};
    buf_printf(&b->title, "%s%sy %s%s, sorted by %s", where[o->at], o->at == REPORT_AT_ALL ? "B" : "b",
               row_key_names[o->by], o->inclusive ? " with what it calls" : "", stat_infos[b->sort].name);
    if (o->at == REPORT_AT_PEAK && o->device && !is_one_kind(o) && device_count(b->db, o->device) < 2) {
        int64_t peak_ns = 0;
        sqlite3_stmt *s = NULL;
        if (sqlite3_prepare_v2(b->db,
                               "SELECT peak_active_ns FROM v_total WHERE " DEVICE_IS(
                                   "device", "?1") " AND kind = 'all' AND alloc_count > 0",
                               -1, &s, NULL) == SQLITE_OK &&
            sqlite3_bind_text(s, 1, o->device, -1, SQLITE_STATIC) == SQLITE_OK && sqlite3_step(s) == SQLITE_ROW)
            peak_ns = sqlite3_column_int64(s, 0);
        sqlite3_finalize(s);
        buf_printf(&b->title, ", at %s", units_ns(text, peak_ns));
    }
    int rc = rows_load(b->db, &query, &b->rows, err);
    if (rc == 0)
        name_processes(b);
    return rc;
}

/* Bytes of the device at the instant that is shown, for shares. */
static int64_t whole_of(struct by *b, const char *device)
{
    static const char *const queries[] = {
        [REPORT_AT_ALL] = "SELECT peak_active_bytes FROM v_total WHERE device = ?1 AND kind = ?2",
        [REPORT_AT_PEAK] = "SELECT peak_active_bytes FROM v_total WHERE device = ?1 AND kind = ?2",
        [REPORT_AT_END] = "SELECT end_active_bytes FROM v_total WHERE device = ?1 AND kind = ?2",
        [REPORT_AT_TIME] =
            ("SELECT total(v.live_bytes) FROM temp.live v JOIN site s USING(site_id) JOIN device d USING(device_id)"
             " WHERE d.name = ?1 AND ?2 IN ('all', s.kind)"),
    };
    sqlite3_stmt *s = NULL;
    int64_t bytes = 0;
    if (device && sqlite3_prepare_v2(b->db, queries[b->options->at], -1, &s, NULL) == SQLITE_OK) {
        sqlite3_bind_text(s, 1, device, -1, SQLITE_STATIC);
        sqlite3_bind_text(s, 2, b->options->kind ? b->options->kind : "all", -1, SQLITE_STATIC);
        if (sqlite3_step(s) == SQLITE_ROW)
            bytes = sqlite3_column_int64(s, 0);
    }
    sqlite3_finalize(s);
    return bytes;
}

/* Sorted by what the looks at present pages saw. */
static int is_scanned(const struct by *b)
{
    return b->held < 0 && stat_infos[b->sort].how == STAT_SCANNED;
}

/* What the processes inherited, and the rest of those pages, where the rows are all that is on them. */
static int list_rest(struct by *b, struct record *document, struct error *err)
{
    const struct report_options *o = b->options;
    int is_whole = !report_is_part(o) && !is_one_kind(o) && !(o->device && strcmp(o->device, "host") != 0);
    int rc = 0;
    if (is_scanned(b) && o->by == ROW_PROCESS && !(o->device && strcmp(o->device, "host") != 0))
        rc = forked_list(b->db, o->top, document, err);
    if (rc == 0 && is_scanned(b) && is_whole && o->by == ROW_PROCESS)
        rc = resident_processes_list(b->db, o->top, document, err);
    return rc == 0 && is_scanned(b) && is_whole ? resident_list(b->db, 0, document, err) : rc;
}

static void show_scanned(struct by *b, struct row_columns *c)
{
    struct resident_peak peak;
    struct error err;
    if (resident_peak_load(b->db, &peak, &err))
        peak = (struct resident_peak){0};
    const struct {
        int stat;
        const char *title;
        int flags;
    } scanned[] = {{STAT_resident_bytes, resident_title(&peak, "resident", &b->resident), 0},
                   {STAT_resident_shared_bytes, "shared", COLUMN_OPTIONAL},
                   {STAT_resident_huge_bytes, "huge", COLUMN_OPTIONAL},
                   {STAT_swapped_bytes, "swapped", COLUMN_OPTIONAL},
                   {STAT_untouched_bytes, resident_title(&peak, "on no page", &b->untouched), 0},
                   {STAT_at_peak_bytes, "at peak", 0},
                   {STAT_resident_end_bytes, resident_last_title(&peak, &b->last), COLUMN_OPTIONAL}};
    for (size_t i = 0; i < sizeof scanned / sizeof *scanned; i++)
        row_columns_show(c, ROW_COLUMN_stats + scanned[i].stat, scanned[i].title, TEXT_CUT_NONE, scanned[i].flags);
}

/* What people see of each row: what it holds, then which it is. */
static void show_numbers(struct by *b, struct row_columns *c)
{
    static const struct {
        int stat;
        const char *title;
        int flags;
    } all[] = {{STAT_start_bytes, "live at start", 0},
               {STAT_alloc_bytes, "allocated", 0},
               {STAT_alloc_count, "allocs", 0},
               {STAT_temporary_count, "temporary", COLUMN_OPTIONAL},
               {STAT_at_peak_bytes, "at peak", 0},
               {STAT_own_peak_bytes, "own peak", COLUMN_OPTIONAL},
               {STAT_end_bytes, "live at end", COLUMN_OPTIONAL}};
    int is_sort_shown = is_scanned(b);
    if (is_scanned(b))
        show_scanned(b, c);
    for (size_t i = 0; b->held < 0 && !is_scanned(b) && i < sizeof all / sizeof *all; i++) {
        if (all[i].stat == STAT_start_bytes && !report_window(b->options))
            continue;
        int stat = all[i].stat == STAT_at_peak_bytes && is_one_kind(b->options) ? STAT_at_kind_peak_bytes : all[i].stat;
        row_columns_show(c, ROW_COLUMN_stats + stat, all[i].title, TEXT_CUT_NONE, all[i].flags);
        is_sort_shown |= stat == b->sort;
    }
    if (b->held < 0) {
        if (!is_sort_shown)
            row_columns_show(c, ROW_COLUMN_stats + b->sort, stat_infos[b->sort].name, TEXT_CUT_NONE, 0);
        return;
    }
    row_columns_show(c, ROW_COLUMN_stats + b->held, "bytes", TEXT_CUT_NONE, 0);
    row_columns_show(c, ROW_COLUMN_share, "share", TEXT_CUT_NONE, 0);
    if (b->held_count >= 0)
        row_columns_show(c, ROW_COLUMN_stats + b->held_count, "blocks", TEXT_CUT_NONE, 0);
}

static void show_keys(struct by *b, struct row_columns *c)
{
    static const struct {
        int column;
        const char *title;
        enum text_cut cut;
    } keys[ROW_KEY_COUNT][3] = {
        [ROW_LINE] = {{ROW_COLUMN_name, "function", TEXT_CUT_NAME}, {ROW_COLUMN_place, "source", TEXT_CUT_LEFT}},
        [ROW_FUNCTION] = {{ROW_COLUMN_name, "function", TEXT_CUT_NAME},
                          {ROW_COLUMN_place, "declared at", TEXT_CUT_LEFT}},
        [ROW_FILE] = {{ROW_COLUMN_file, "file", TEXT_CUT_LEFT}},
        [ROW_MODULE] = {{ROW_COLUMN_module, "module", TEXT_CUT_LEFT}},
        [ROW_THREAD] = {{ROW_COLUMN_pid, "pid", TEXT_CUT_NONE},
                        {ROW_COLUMN_tid, "tid", TEXT_CUT_NONE},
                        {ROW_COLUMN_thread, "thread", TEXT_CUT_RIGHT}},
        [ROW_OP] = {{ROW_COLUMN_op, "operator", TEXT_CUT_NAME},
                    {ROW_COLUMN_phase, "phase", TEXT_CUT_RIGHT},
                    {ROW_COLUMN_module, "module", TEXT_CUT_LEFT}},
        [ROW_PROCESS] = {{ROW_COLUMN_pid, "pid", TEXT_CUT_NONE}, {ROW_COLUMN_command, "command", TEXT_CUT_RIGHT}},
    };
    enum row_key by = b->options->by;
    if (by == ROW_DEVICE || report_has_devices(b->db, b->options->device))
        row_columns_show(c, ROW_COLUMN_device, "device", TEXT_CUT_NONE, 0);
    if (by == ROW_PROCESS && merged_count(b->db)) {
        c->columns[ROW_COLUMN_recording].key = "recording";
        c->columns[ROW_COLUMN_rank].key = "rank";
        row_columns_show(c, ROW_COLUMN_rank, "rank", TEXT_CUT_NONE, COLUMN_OPTIONAL);
        row_columns_show(c, ROW_COLUMN_recording, "recording", TEXT_CUT_LEFT, 0);
    }
    for (int i = 0; i < 3 && keys[by][i].title; i++)
        row_columns_show(c, keys[by][i].column, keys[by][i].title, keys[by][i].cut, 0);
}

/* For people a table, for programs the array "rows". */
static int list_rows(struct by *b, struct record *document, struct error *err)
{
    struct row_columns columns;
    int rc = 0, is_stack = b->options->by == ROW_STACK;
    row_columns_init(&columns, b->options->by, b->options->at == REPORT_AT_TIME, is_stack ? "frames" : NULL);
    if (estimate_mean_bytes(b->db))
        row_columns_estimates(&columns);
    show_numbers(b, &columns);
    show_keys(b, &columns);
    if (is_scanned(b) || b->out->format != REPORT_TEXT)
        resident_forget_unknown(b->db, b->options->by, &b->rows);
    struct listing *l = listing_open_in(document, "rows", columns.columns, COLUMN_COUNT_OF(columns.columns), b->cwd);
    for (int i = 0; rc == 0 && i < b->rows.count; i++) {
        const struct row *row = &b->rows.row[i];
        struct walk_stack stack;
        struct buf frames = BUF(64 << 20);
        int64_t whole = listing_shows(l, ROW_COLUMN_share) ? whole_of(b, row->device) : 0;
        if (is_stack)
            rc = walk_stack(b->walk, row->key_id, &stack, err);
        if (is_stack && rc == 0)
            stack_json(&stack, &frames);
        row_list(l, row, b->options->inclusive, b->held, whole, b->cwd, frames.data);
        buf_free(&frames);
    }
    if (rc == 0)
        listing_heading(l);
    listing_print(l);
    if (rc == 0 && listing_shows(l, ROW_COLUMN_stats + STAT_own_peak_bytes))
        own_peak_explain(b->db, b->options->by, &b->rows, b->out);
    listing_close(l);
    return rc;
}

/* A stack takes many lines: its numbers stand above it. */
static int print_stacks(struct by *b, struct error *err)
{
    int rc = 0, is_folded = 0;
    for (int i = 0; rc == 0 && i < b->rows.count; i++) {
        const struct row *row = &b->rows.row[i];
        struct walk_stack stack;
        struct buf line = BUF(4096);
        char text[4][UNITS_TEXT];
        if (b->held >= 0) {
            buf_printf(&line, "%s (%.1f %%)", units_bytes(text[0], row->stats.value[b->held]),
                       100 * (double)row->stats.value[b->held] /
                           (double)(whole_of(b, row->device) > 0 ? whole_of(b, row->device) : 1));
            if (b->held_count >= 0)
                buf_printf(&line, " in %s block%s", units_count(text[1], row->stats.value[b->held_count]),
                           row->stats.value[b->held_count] == 1 ? "" : "s");
        } else {
            if (report_window(b->options))
                buf_printf(&line, "%s at the start; ", units_bytes(text[0], row->stats.value[STAT_start_bytes]));
            buf_printf(&line, "%s at the peak; %s in %s allocation%s, %s live at the end",
                       units_bytes(text[0], row->stats.value[STAT_at_peak_bytes]),
                       units_bytes(text[1], row->stats.value[STAT_alloc_bytes]),
                       units_count(text[2], row->stats.value[STAT_alloc_count]),
                       row->stats.value[STAT_alloc_count] == 1 ? "" : "s",
                       units_bytes(text[3], row->stats.value[STAT_end_bytes]));
        }
        buf_printf(&line, "   %s, stack %lld", row->device ? row->device : "?", (long long)row->key_id);
        if (i)
            fputc('\n', b->out->file);
        table_prose(b->out, TABLE_STRONG, buf_text(&line));
        buf_free(&line);
        rc = walk_stack(b->walk, row->key_id, &stack, err);
        if (rc == 0 && b->options->frames > 0 && report_language(b->options) == TREE_BOTH) {
            walk_fold(&stack);
            is_folded |= stack.folded > 0;
        }
        if (rc == 0)
            stack_print(&stack, b->out, b->cwd, b->options->frames, "    ");
    }
    if (is_folded) {
        fputc('\n', b->out->file);
        table_prose(b->out, TABLE_DIM, WALK_FOLDED_TEXT);
    }
    return rc;
}

static int record_by(struct by *b, struct record *document, struct error *err)
{
    record_document_begin(document);
    notes_record(b->db, b->options->file, document);
    record_member_text(document, "by", row_key_names[b->options->by]);
    if (b->options->at == REPORT_AT_TIME) {
        record_member_int(document, "at_ns", b->at.time_ns);
        record_member_int(document, "is_exact", b->at.is_exact && !b->at.chunks_damaged);
    }
    record_member_int(document, "row_count", b->rows.total_count);
    int rc = list_rows(b, document, err);
    if (rc == 0)
        rc = list_rest(b, document, err);
    record_document_end(document);
    return rc;
}

/* The head of the report counts these, too. */
static void say_idle(const struct by *b)
{
    static const char all_sql[] =
        "SELECT count(DISTINCT first_id) FROM v_image JOIN process USING(process_id) WHERE not_recorded IS NULL";
    static const char idle_sql[] =
        "SELECT count(DISTINCT first_id) FROM v_image JOIN process USING(process_id) WHERE not_recorded IS NULL AND "
        "first_id NOT IN (SELECT i.first_id FROM account a JOIN thread t ON t.thread_id = a.key_id JOIN v_image i "
        "USING(process_id) WHERE a.scope = 'thread' AND a.inclusive = 0)";
    const struct report_options *o = b->options;
    if (o->by != ROW_PROCESS || o->at != REPORT_AT_ALL || report_is_part(o) || o->device || o->kind)
        return;
    char text[2][UNITS_TEXT];
    int64_t idle = db_int(b->db, idle_sql, 0);
    struct buf line = BUF(256);
    buf_printf(&line, "(%s of %s processes allocated nothing)", units_count(text[0], idle),
               units_count(text[1], db_int(b->db, all_sql, 0)));
    if (idle > 0)
        table_prose(b->out, TABLE_DIM, buf_text(&line));
    buf_free(&line);
}

/* Its numbers would be a row that is missed: those of the image before it are that image's. */
static void say_missing(const struct by *b)
{
    char count[UNITS_TEXT];
    int64_t missing = db_int(b->db, PROCESSES_NOT_RECORDED, 0);
    struct buf line = BUF(256);
    buf_printf(&line, "(%s program%s not recorded and %s no row: 'memprof info' says why)", units_count(count, missing),
               missing == 1 ? " was" : "s were", missing == 1 ? "has" : "have");
    if (missing > 0 && b->options->by == ROW_PROCESS && !report_is_part(b->options))
        table_prose(b->out, TABLE_DIM, buf_text(&line));
    buf_free(&line);
}

static int print_by(struct by *b, struct record *document, struct error *err)
{
    const struct report_options *o = b->options;
    char count[2][UNITS_TEXT];
    notes_print(b->db, b->out);
    if (b->rows.count < b->rows.total_count)
        buf_printf(&b->title, " (%s of %s)", units_count(count[0], b->rows.count),
                   units_count(count[1], b->rows.total_count));
    table_prose(b->out, TABLE_STRONG, b->title.data);
    if (b->rows.count) {
        int rc = o->by == ROW_STACK ? print_stacks(b, err) : list_rows(b, document, err);
        if (rc == 0)
            say_idle(b);
        if (rc == 0)
            say_missing(b);
        return rc ? rc : list_rest(b, document, err);
    }
    nothing_say(o, b->out);
    return 0;
}

/* Stacks that differ in hidden frames only are one to the reader. */
static int merge_stacks(struct by *b, int64_t top, struct error *err)
{
    uint64_t *keys = xcalloc((size_t)b->rows.count + 1, sizeof *keys);
    int rc = 0;
    for (int i = 0; rc == 0 && i < b->rows.count; i++) {
        struct walk_stack stack;
        rc = walk_stack(b->walk, b->rows.row[i].key_id, &stack, err);
        if (rc == 0)
            keys[i] = walk_shown_hash(&stack);
    }
    if (rc == 0)
        rows_merge(&b->rows, keys, b->sort, top);
    free(keys);
    return rc;
}

/* Programs get every row, but of stacks, which have all their frames: those of a large recording are gigabytes. */
static int64_t default_top(enum row_key by, enum report_format format)
{
    if (format != REPORT_TEXT)
        return by == ROW_STACK ? REPORT_STACK_ROWS : 0;
    return by == ROW_STACK ? DEFAULT_STACKS : DEFAULT_TOP;
}

int report_by(sqlite3 *db, const struct report_options *options, const struct report_out *out, struct error *err)
{
    struct report_options chosen = *options;
    struct record document;
    struct by b = {.db = db, .options = &chosen, .out = out, .title = BUF(4096)};
    if (chosen.top < 0)
        chosen.top = default_top(chosen.by, out->format);
    if (chosen.inclusive && (chosen.by == ROW_THREAD || chosen.by == ROW_DEVICE || chosen.by == ROW_STACK ||
                             chosen.by == ROW_PROCESS || chosen.by == ROW_OP))
        return error_set(err, EINVAL, "--inclusive does not go with --by %s: it calls nothing",
                         row_key_names[chosen.by]);
    int64_t top = chosen.top;
    int is_merged = chosen.by == ROW_STACK && report_language(options) != TREE_BOTH;
    if (is_merged)
        chosen.top = out->format == REPORT_TEXT ? MERGED_MOST : 0;
    b.cwd = db_meta_text(db, "cwd");
    choose_columns(&b);
    int rc = device_check(db, options->device, options->kind, err);
    if (rc == 0)
        rc = load(&b, err);
    if (rc == 0 && chosen.by == ROW_STACK)
        rc = walk_open(db, report_language(options), &b.walk, err);
    if (rc == 0 && is_merged && chosen.top && b.rows.count == MERGED_MOST)
        buf_printf(&b.title, "; merged from the %d largest stacks", MERGED_MOST);
    if (rc == 0 && is_merged)
        rc = merge_stacks(&b, top, err);
    record_open(&document, out);
    if (rc == 0)
        rc = out->format == REPORT_TEXT ? print_by(&b, &document, err) : record_by(&b, &document, err);
    record_close(&document);
    walk_close(b.walk);
    rows_free(&b.rows);
    buf_free(&b.title);
    free(b.cwd);
    return rc;
}
