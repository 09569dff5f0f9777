#include "rows.h"

#include "../../common/array.h"
#include "../../common/db.h"
#include "../../common/kind.h"
#include "../../common/text.h"
#include "bare_code.h"
#include "device.h"
#include "estimate.h"
#include "named_caller.h"
#include "program_name.h"
#include "recorded.h"
#include "replay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char *const row_key_names[ROW_KEY_COUNT] = {
#define ROW_KEY(id, name) name,
#include "row_keys.def"
};

/* The columns that say what a row is, in the order of read_key(); and the joins that they need. a: the account. */
static const struct {
    const char *keys;
    const char *joins;
} scopes[ROW_KEY_COUNT] = {
    [ROW_LINE] = {"fn.name, fn.plain_name, f.path, l.line, m.path, l.offset, NULL, NULL, NULL, NULL, NULL, NULL",
                  "LEFT JOIN line l ON l.line_id = a.key_id LEFT JOIN function fn ON fn.function_id = l.function_id "
                  "LEFT JOIN file f ON f.file_id = l.file_id LEFT JOIN module_key m ON m.key_id = l.module_key_id"},
    [ROW_FUNCTION] = {"fn.name, fn.plain_name, f.path, coalesce(fn.line, l.line), m.path, l.offset, NULL, NULL, NULL, "
                      "NULL, NULL, NULL",
                      "LEFT JOIN function fn ON fn.function_id = a.key_id LEFT JOIN line l ON l.line_id = -a.key_id "
                      "LEFT JOIN module_key m ON m.key_id = l.module_key_id "
                      "LEFT JOIN file f ON f.file_id = coalesce(fn.file_id, l.file_id)"},
    [ROW_FILE] = {"NULL, NULL, f.path, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL",
                  "LEFT JOIN file f ON f.file_id = a.key_id"},
    [ROW_MODULE] = {"NULL, NULL, NULL, NULL, m.path, NULL, NULL, NULL, NULL, NULL, NULL, NULL",
                    "LEFT JOIN module_key m ON m.key_id = a.key_id"},
    [ROW_THREAD] = {"NULL, NULL, NULL, NULL, NULL, NULL, t.name, t.process_id, p.pid, t.tid, NULL, NULL",
                    "LEFT JOIN thread t ON t.thread_id = a.key_id LEFT JOIN process p ON p.process_id = t.process_id"},
    [ROW_PROCESS] = {"NULL, NULL, NULL, NULL, NULL, NULL, NULL, p.process_id, p.pid, NULL, NULL, NULL",
                     "LEFT JOIN process p ON p.process_id = a.key_id"},
    [ROW_OP] = {"NULL, NULL, NULL, NULL, o.module, NULL, NULL, NULL, NULL, NULL, o.name, o.phase",
                "LEFT JOIN op o ON o.op_id = a.key_id"},
};

/* Of a merged file: which recording a process is of. */
#define RECORDING_OF(column)                                                                                           \
    "(SELECT r." column " FROM recording_process x JOIN recording r USING(recording_id) WHERE x.process_id = "         \
    "p.process_id)"
/* What a process was last: an exec makes another image of it. */
#define LAST_IMAGE LAST_RECORDED("temp.process_image", "p.process_id")
static const char names[] = "(SELECT command_line FROM process WHERE process_id = " LAST_IMAGE
                            "), " PROGRAM_TITLE(LAST_IMAGE) ", " RECORDING_OF("path") ", " RECORDING_OF("rank");

/* A scan is of one process, whoever allocated first at its sites. */
static void process_scanned(struct buf *sql, int stat)
{
    static const struct {
        const char *column, *when;
    } of[STAT_VALUE_COUNT] = {[STAT_resident_bytes] = {"resident_bytes", "is_peak"},
                              [STAT_resident_shared_bytes] = {"shared_bytes", "is_peak"},
                              [STAT_resident_huge_bytes] = {"huge_bytes", "is_peak"},
                              [STAT_swapped_bytes] = {"swapped_bytes", "is_peak"},
                              [STAT_untouched_bytes] = {"untouched_bytes", "is_peak"},
                              [STAT_resident_end_bytes] = {"resident_bytes", "is_last"}};
    buf_printf(sql,
               ", iif(account.device_id = 0, (SELECT sum(r.%s) FROM resident_site r JOIN resident_scan c USING(scan_id)"
               " JOIN temp.process_image q USING(process_id) JOIN site s USING(site_id)"
               " WHERE c.%s AND q.first_id = i.first_id AND ?3 IN ('all', s.kind)), NULL) AS %s",
               of[stat].column, of[stat].when, stat_infos[stat].column);
}

/* How several rows become one; own: the own peak of the sum, where it is known otherwise: of processes. */
static void sum_columns(struct buf *sql, const char *own)
{
    const int of_process = own != NULL;
    static const char *const forms[] = {[STAT_COMBINE_sum] = "sum(%s)",
                                        [STAT_COMBINE_max] = "max(%s)",
                                        [STAT_COMBINE_exact] = "CASE WHEN count(*) = 1 THEN max(%s) END"};
    for (int i = 0; i < STAT_COUNT; i++) {
        buf_puts(sql, i ? ", " : "");
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        if (i == STAT_own_peak_bytes && own)
            buf_printf(sql, "coalesce(%s, ", own);
        buf_printf(sql, forms[stat_infos[i].combine], stat_infos[i].column);
#pragma GCC diagnostic pop
        buf_printf(sql, "%s AS %s", i == STAT_own_peak_bytes && own ? ")" : "", stat_infos[i].column);
    }
    for (int i = STAT_COUNT; i < STAT_VALUE_COUNT; i++)
        if (of_process && stat_infos[i].how == STAT_SCANNED)
            process_scanned(sql, i);
        else
            buf_printf(sql, ", sum(%s) AS %s", stat_infos[i].column, stat_infos[i].column);
}

/* The rows of `total` under the names of stat.def, as far as they have them. */
static void device_columns(struct buf *sql)
{
    static const char *const same[] = {"alloc_count",     "alloc_bytes",     "free_count", "free_bytes",
                                       "temporary_count", "temporary_bytes", "end_count",  "lifetime_ns"};
    static const struct {
        const char *column, *expression;
    } other[] = {{"at_peak_bytes", "peak_active_bytes"},
                 {"at_peak_count", "peak_active_count"},
                 {"at_kind_peak_bytes", /* of all kinds each at its own, as other rows have it */
                  "coalesce((SELECT sum(k.peak_active_bytes) FROM total k WHERE total.kind = 'all' AND k.kind <> 'all' "
                  "AND k.device_id = total.device_id), peak_active_bytes)"},
                 {"own_peak_bytes", "peak_active_bytes"},
                 {"end_bytes", "end_active_bytes"},
                 {"active_peak_bytes", "peak_active_bytes"},
                 {"reserved_peak_bytes", "peak_reserved_bytes"}};
    for (int i = 0; i < STAT_COUNT; i++) {
        const char *expression = "NULL", *column = stat_infos[i].column;
        for (size_t k = 0; k < sizeof same / sizeof *same; k++)
            if (strcmp(same[k], column) == 0)
                expression = column;
        for (size_t k = 0; k < sizeof other / sizeof *other; k++)
            if (strcmp(other[k].column, column) == 0)
                expression = other[k].expression;
        buf_printf(sql, "%s%s AS %s", i ? ", " : "", expression, column);
    }
    for (int i = STAT_COUNT; i < STAT_VALUE_COUNT; i++)
        buf_printf(
            sql,
            ", (SELECT sum(s.%s) FROM account_stat s WHERE s.scope = 'line' AND s.inclusive = 0 AND s.device_id = "
            "total.device_id AND s.kind = ?3) AS %s",
            stat_infos[i].column, stat_infos[i].column);
}

/* Whether a row is an account, and what it is sorted by is of that alone, and not of what stands beside it. */
static int is_account(const struct rows_query *q)
{
    return q->by != ROW_STACK && q->by != ROW_DEVICE && q->by != ROW_PROCESS && !stat_is_of_view(q->sort);
}

/* FROM ... of the rows before sorting: device_id, kind, key_id and all statistics; of accounts their own. */
static void source_of(const struct rows_query *q, struct buf *sql)
{
    if (q->by == ROW_STACK) {
        buf_puts(sql, "(SELECT device_id, CASE WHEN ?3 = 'all' THEN 'all' ELSE kind END AS kind, stack_id AS key_id, ");
        sum_columns(sql, NULL);
        buf_puts(sql, " FROM site_stat WHERE ?3 IN ('all', kind) GROUP BY device_id, stack_id)");
    } else if (q->by == ROW_DEVICE) {
        buf_puts(sql, "(SELECT device_id, kind, device_id AS key_id, ");
        device_columns(sql);
        buf_puts(sql, " FROM total WHERE kind = ?3)");
    } else if (q->by == ROW_PROCESS) {
        buf_puts(sql, "(SELECT device_id, kind, first_id AS key_id, ");
        sum_columns(sql, "(SELECT max(peak_bytes) FROM temp.process_peak pp WHERE pp.first_id = i.first_id AND "
                         "pp.device_id = account.device_id)");
        buf_puts(sql,
                 " FROM account_stat account JOIN thread t ON t.thread_id = account.key_id JOIN temp.process_image i"
                 " USING(process_id)"
                 " WHERE scope = 'thread' AND inclusive = 0 AND kind = ?3 GROUP BY device_id, first_id)");
    } else {
        buf_printf(sql, "(SELECT * FROM %s WHERE scope = ?1 AND inclusive = ?2 AND kind = ?3)",
                   is_account(q) ? "account" : "account_stat");
    }
}

/* Functions below main() or a thread's own, and those of the allocator family: with what they call they hold
 * everything. */
static void leave_out(const struct rows_query *q, struct buf *sql)
{
    static const char noise[] =
        "SELECT function_id FROM function WHERE is_allocator OR plain_name IN ('_start', 'start_thread', 'clone', "
        "'clone3', '__clone', '__clone3', '_dl_start_user') OR plain_name GLOB '__libc_start*'";
    if (!q->without_noise || (q->by != ROW_LINE && q->by != ROW_FUNCTION))
        return;
    if (q->by == ROW_FUNCTION)
        buf_printf(sql, " AND key_id NOT IN (%s)", noise);
    else
        buf_printf(sql, " AND key_id NOT IN (SELECT line_id FROM line WHERE function_id IN (%s))", noise);
}

/* FROM ... of the rows in their order, as many as are wanted. Of accounts those are found first, and then alone looked
 * at beside what else is known of them. */
static void sorted_source(const struct rows_query *q, struct buf *sql)
{
    buf_printf(sql, "(SELECT %s, coalesce(",
               is_account(q) ? "scope, inclusive, device_id, kind, key_id, alloc_bytes AS sort_bytes" : "*");
    stat_expression(q->sort, sql);
    buf_puts(sql, ", 0) AS sort_value FROM ");
    source_of(q, sql);
    buf_puts(sql, " WHERE " DEVICE_ID_IS("device_id", "?4") " AND sort_value >= ?5");
    leave_out(q, sql);
    buf_puts(sql, " ORDER BY sort_value DESC, alloc_bytes DESC, key_id LIMIT ?6)");
    if (is_account(q))
        buf_puts(sql, " o CROSS JOIN account_stat a USING(scope, inclusive, device_id, kind, key_id)");
    else
        buf_puts(sql, " a");
}

static void build_sql(const struct rows_query *q, struct buf *sql)
{
    const char *keys = scopes[q->by].keys;
    buf_printf(sql, "SELECT d.name, a.kind, a.key_id, %s, %s, ",
               keys ? keys : "NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL",
               q->by == ROW_PROCESS ? names : "NULL, NULL, NULL, NULL");
    stat_columns(sql, "a.");
    buf_puts(sql, " FROM ");
    sorted_source(q, sql);
    buf_puts(sql, " LEFT JOIN device d ON d.device_id = a.device_id ");
    buf_puts(sql, scopes[q->by].joins ? scopes[q->by].joins : "");
    buf_puts(sql, " ORDER BY sort_value DESC, a.alloc_bytes DESC, a.key_id");
}

static void bind(sqlite3_stmt *s, const struct rows_query *q)
{
    sqlite3_bind_text(s, 1, row_key_names[q->by], -1, SQLITE_STATIC);
    sqlite3_bind_int(s, 2, q->inclusive);
    sqlite3_bind_text(s, 3, q->kind ? q->kind : "all", -1, SQLITE_TRANSIENT);
    sqlite3_bind_text(s, 4, q->device, -1, SQLITE_STATIC);
    sqlite3_bind_int64(s, 5, q->at_least);
    sqlite3_bind_int64(s, 6, q->limit > 0 ? q->limit : -1);
}

struct row *rows_add(struct rows *rows)
{
    struct row *row = ARRAY_ADD(rows->row, rows->count, rows->capacity);
    return row;
}

static void read_key(struct row *row, sqlite3_stmt *s)
{
    row->device = db_own_text(s, 0);
    row->kind = db_own_text(s, 1);
    row->key_id = sqlite3_column_int64(s, 2);
    row->function = db_own_text(s, 3);
    row->plain_name = db_own_text(s, 4);
    row->file = db_own_text(s, 5);
    row->line = sqlite3_column_int64(s, 6);
    row->module = db_own_text(s, 7);
    row->offset = sqlite3_column_int64(s, 8);
    row->thread = db_own_text(s, 9);
    row->process_id = sqlite3_column_int64(s, 10);
    row->pid = sqlite3_column_int64(s, 11);
    row->tid = sqlite3_column_int64(s, 12);
    row->op = db_own_text(s, 13);
    row->phase = db_own_text(s, 14);
    row->command = db_own_text(s, 15);
    row->title = db_own_text(s, 16);
    row->recording = db_own_text(s, 17);
    row->rank = sqlite3_column_type(s, 18) == SQLITE_NULL ? -1 : sqlite3_column_int64(s, 18);
}

/* A function without a source position is better shown with the module that it is in; for so few rows that a look at
 * all frames costs little. */
void rows_find_modules(sqlite3 *db, enum row_key by, struct rows *rows)
{
    struct buf names = BUF(1 << 16);
    sqlite3_stmt *s = NULL;
    int is_code = by == ROW_LINE || by == ROW_FUNCTION;
    for (int i = 0; is_code && i < rows->count && rows->count <= 1000; i++)
        if (!rows->row[i].file && !rows->row[i].module && rows->row[i].function)
            buf_printf(&names, "%s%lld", names.length ? "," : "[", (long long)rows->row[i].key_id);
    buf_puts(&names, "]");
    if (names.length > 1 && !names.failed &&
        sqlite3_prepare_v2(
            db,
            by == ROW_LINE
                ? "SELECT l.line_id, min(m.path) FROM line l JOIN frame fr ON fr.function_id = l.function_id "
                  "JOIN address a USING(address_id) JOIN module m ON m.module_id = a.module_id "
                  "WHERE l.line_id IN (SELECT value FROM json_each(?1)) GROUP BY l.line_id"
                : "SELECT fr.function_id, min(m.path) FROM frame fr JOIN address a USING(address_id) "
                  "JOIN module m ON m.module_id = a.module_id "
                  "WHERE fr.function_id IN (SELECT value FROM json_each(?1)) GROUP BY fr.function_id",
            -1, &s, NULL) == SQLITE_OK) {
        sqlite3_bind_text(s, 1, names.data, -1, SQLITE_STATIC);
        while (sqlite3_step(s) == SQLITE_ROW)
            for (int i = 0; i < rows->count; i++)
                if (rows->row[i].key_id == sqlite3_column_int64(s, 0) && !rows->row[i].module && !rows->row[i].file)
                    rows->row[i].module = db_own_text(s, 1);
    }
    sqlite3_finalize(s);
    buf_free(&names);
}

static int count_rows(sqlite3 *db, const struct rows_query *q, struct rows *rows, struct error *err)
{
    struct buf sql = BUF(1 << 16);
    sqlite3_stmt *s = NULL;
    buf_puts(&sql, "SELECT count(*) FROM (SELECT device_id, key_id, coalesce(");
    stat_expression(q->sort, &sql);
    buf_puts(&sql, ", 0) AS sort_value FROM ");
    source_of(q, &sql);
    buf_puts(&sql, ") WHERE " DEVICE_ID_IS("device_id", "?4") " AND sort_value >= ?5 AND ?6 = ?6");
    leave_out(q, &sql);
    int rc = db_prepare(db, sql.data, &s, err);
    if (rc == 0) {
        bind(s, q);
        rows->total_count = sqlite3_step(s) == SQLITE_ROW ? sqlite3_column_int64(s, 0) : rows->count;
    }
    sqlite3_finalize(s);
    buf_free(&sql);
    return rc;
}

static void free_row(struct row *row)
{
    char *texts[] = {row->device,  row->kind,  row->function, row->plain_name, row->file,   row->module,   row->thread,
                     row->command, row->title, row->op,       row->phase,      row->caller, row->recording};
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++)
        free(texts[k]);
}

static int kind_number(const char *name)
{
    for (int kind = 0; name && kind < KIND_COUNT; kind++)
        if (strcmp(kind_name((unsigned)kind), name) == 0)
            return kind;
    return KIND_all;
}

int rows_load(sqlite3 *db, const struct rows_query *q, struct rows *rows, struct error *err)
{
    struct buf sql = BUF(1 << 16);
    sqlite3_stmt *s = NULL;
    int step = SQLITE_DONE;
    struct estimates *estimates = estimates_open(db);
    *rows = (struct rows){0};
    int rc = q->by == ROW_PROCESS ? replay_peaks(db, kind_number(q->kind), err) : 0;
    build_sql(q, &sql);
    if (rc == 0)
        rc = db_prepare(db, sql.data, &s, err);
    if (rc == 0) {
        bind(s, q);
        while ((step = sqlite3_step(s)) == SQLITE_ROW) {
            struct row *row = rows_add(rows);
            read_key(row, s);
            stat_read(&row->stats, s, 19);
            estimates_fill(estimates, q->by, q->inclusive, q->kind, row->device, row->key_id, &row->stats);
        }
        if (step != SQLITE_DONE)
            rc = db_error(db, err);
    }
    sqlite3_finalize(s);
    estimates_close(estimates);
    buf_free(&sql);
    rows->total_count = rows->count;
    if (rc == 0 && q->limit > 0 && rows->count >= q->limit)
        rc = count_rows(db, q, rows, err);
    if (rc == 0)
        rows_find_modules(db, q->by, rows);
    if (rc == 0)
        rc = rows_name_callers(db, q->by, rows, err);
    if (rc)
        rows_free(rows);
    return rc;
}

struct merged {
    struct row row;
    uint64_t key;
    int sort, place;
};

static int by_key(const void *a, const void *b)
{
    const struct merged *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    int device = strcmp(x->row.device ? x->row.device : "", y->row.device ? y->row.device : "");
    return device ? device : strcmp(x->row.kind ? x->row.kind : "", y->row.kind ? y->row.kind : "");
}

static int by_key_and_place(const void *a, const void *b)
{
    int key = by_key(a, b);
    return key ? key : ((const struct merged *)a)->place - ((const struct merged *)b)->place;
}

static int by_sort(const void *a, const void *b)
{
    const struct merged *x = a, *y = b;
    int64_t left = x->row.stats.value[x->sort], right = y->row.stats.value[x->sort];
    return left != right ? (left > right ? -1 : 1) : x->place - y->place;
}

static void take_sorted(struct rows *rows, struct merged *m, int count, int64_t limit)
{
    qsort(m, (size_t)count, sizeof *m, by_sort);
    rows->count = 0;
    for (int i = 0; i < count; i++)
        if (limit <= 0 || i < limit)
            rows->row[rows->count++] = m[i].row;
        else
            free_row(&m[i].row);
}

void rows_merge(struct rows *rows, const uint64_t *keys, int sort, int64_t limit)
{
    int count = 0;
    struct merged *m = xcalloc((size_t)rows->count + 1, sizeof *m);
    for (int i = 0; i < rows->count; i++)
        m[i] = (struct merged){rows->row[i], keys[i], sort, i};
    qsort(m, (size_t)rows->count, sizeof *m, by_key_and_place);
    for (int i = 0; i < rows->count; i++) {
        if (count == 0 || by_key(&m[count - 1], &m[i]) != 0) {
            m[count++] = m[i];
            continue;
        }
        stat_add(&m[count - 1].row.stats, &m[i].row.stats, 0);
        free_row(&m[i].row);
    }
    rows->total_count = count;
    take_sorted(rows, m, count, limit);
    free(m);
}

void rows_again(struct rows *rows, int sort, int64_t limit)
{
    int count = 0;
    struct merged *m = xcalloc((size_t)rows->count + 1, sizeof *m);
    for (int i = 0; i < rows->count; i++)
        if (rows->row[i].stats.value[sort] > 0)
            m[count++] = (struct merged){rows->row[i], 0, sort, i};
        else
            free_row(&rows->row[i]);
    rows->total_count -= rows->count - count;
    take_sorted(rows, m, count, limit);
    free(m);
}

void rows_free(struct rows *rows)
{
    for (int i = 0; i < rows->count; i++)
        free_row(&rows->row[i]);
    free(rows->row);
    *rows = (struct rows){0};
}

void row_function_text(const struct row *row, struct buf *out)
{
    if (row->function)
        buf_puts(out, row->function);
    else if (row->module)
        bare_code_name(row->module, row->offset, out);
    else
        buf_puts(out, "??");
}

void row_source_text(const struct row *row, const char *base, struct buf *out)
{
    if (row->file)
        text_path(out, row->file, base);
    if (row->file && row->line > 0)
        buf_printf(out, ":%lld", (long long)row->line);
    if (!row->file && row->function && row->module)
        buf_printf(out, "[%s]", text_basename(row->module));
    if (!row->file && !row->function && row->caller)
        named_caller_text(row->caller, row->other_callers, out);
    if (!out->data)
        buf_puts(out, "");
}
