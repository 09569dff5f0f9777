/* The code that broke a rule: the lines or stacks that have most of what was measured, or that grew most. */
#include "check_private.h"

#include "../../common/array.h"
#include "../../common/db.h"
#include "../query/at.h"
#include "../query/diff_text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct check_culprit *check_add_culprit(struct check_result *r)
{
    return ARRAY_ADD(r->culprits, r->culprit_count, r->culprit_capacity);
}

void check_free_culprit(struct check_culprit *culprit)
{
    free(culprit->device);
    free(culprit->function);
    free(culprit->file);
}

static int is_full(const struct check_measure *m, const struct check_result *r)
{
    return m->options->top && r->culprit_count >= m->options->top;
}

/* --- lines, by what their sites have --- */

/* What is summed over the sites of a line; live: of the instant that at.h was asked for. */
static const char *const site_values[CHECK_ID_COUNT] = {
    [CHECK_max_peak] = "sum(iif(?2 = 'all', s.at_peak_bytes, s.at_kind_peak_bytes))",
    [CHECK_max_reserved] = "sum(v.live_bytes)",
    [CHECK_max_allocs] = "sum(s.alloc_count)",
    [CHECK_max_allocated] = "sum(s.alloc_bytes)",
    [CHECK_max_temporary] = "sum(s.temporary_count)",
    [CHECK_max_largest] = "max(s.largest_bytes)",
};
/* By which of them the stack that is shown is chosen. */
static const char *const site_orders[CHECK_ID_COUNT] = {
    [CHECK_max_peak] = "max(iif(?2 = 'all', s.at_peak_bytes, s.at_kind_peak_bytes))",
    [CHECK_max_reserved] = "max(v.live_bytes)",
    [CHECK_max_allocs] = "max(s.alloc_count)",
    [CHECK_max_allocated] = "max(s.alloc_bytes)",
    [CHECK_max_temporary] = "max(s.temporary_count)",
    [CHECK_max_largest] = "max(s.largest_bytes)",
};

/* Columns: the value, what it is ordered by, stack, function, file, line; joins of the sites s. */
#define SITE_NAMES "s.stack_id, " ROW_FUNCTION_SQL ", f.path, l.line"
#define SITE_JOINS                                                                                                     \
    " JOIN device d USING(device_id) LEFT JOIN site_line sl USING(site_id) LEFT JOIN line l USING(line_id) "           \
    "LEFT JOIN function fn ON fn.function_id = l.function_id LEFT JOIN file f ON f.file_id = l.file_id "               \
    "LEFT JOIN module_key m ON m.key_id = l.module_key_id "

static void read_culprit(struct check_result *r, sqlite3_stmt *s, const char *device)
{
    *check_add_culprit(r) = (struct check_culprit){.value = sqlite3_column_int64(s, 0),
                                                   .device = xstrdup_if(device),
                                                   .stack_id = sqlite3_column_int64(s, 2),
                                                   .function = db_own_text(s, 3),
                                                   .file = db_own_text(s, 4),
                                                   .line = sqlite3_column_int64(s, 5)};
}

/* -EAGAIN: nothing is known of that instant. */
static int load_reserved(struct check_measure *m, const char *device, struct error *err)
{
    struct at_result at;
    for (int i = 0; i < m->device_count; i++) {
        if (strcmp(m->device[i].name, device) != 0)
            continue;
        int rc = at_load(m->db, m->device[i].reserved_ns, m->options->lens ? m->options->lens->pid : 0, &at, err);
        return rc ? rc : at.is_exact ? 0 : -EAGAIN;
    }
    return -EAGAIN;
}

static int find_lines(struct check_measure *m, struct check_result *r, struct error *err)
{
    struct buf sql = BUF(1 << 14);
    sqlite3_stmt *s = NULL;
    int rc = r->id == CHECK_max_reserved ? load_reserved(m, r->subject, err) : 0;
    if (rc)
        return rc == -EAGAIN ? 0 : rc;
    buf_printf(&sql, "SELECT %s AS value, %s, ", site_values[r->id], site_orders[r->id]);
    buf_puts(&sql, SITE_NAMES " FROM site s");
    buf_puts(&sql, r->id == CHECK_max_reserved ? " JOIN temp.live v USING(site_id)" : "");
    buf_puts(&sql, SITE_JOINS "WHERE d.name = ?1 AND ?2 IN ('all', s.kind) GROUP BY l.line_id HAVING value > 0 "
                              "ORDER BY value DESC, l.line_id LIMIT ?3");
    rc = db_prepare(m->db, sql.data, &s, err);
    buf_free(&sql);
    if (rc)
        return rc;
    sqlite3_bind_text(s, 1, r->subject, -1, SQLITE_STATIC);
    sqlite3_bind_text(s, 2, m->options->kind ? m->options->kind : "all", -1, SQLITE_STATIC);
    sqlite3_bind_int64(s, 3, m->options->top ? m->options->top : -1);
    while (db_next(s, &rc, err))
        read_culprit(r, s, r->subject);
    sqlite3_finalize(s);
    return rc;
}

static int is_leak(enum check_id id)
{
    return id == CHECK_max_leak || id == CHECK_max_leak_blocks;
}

static int by_value(const void *a, const void *b)
{
    const struct check_culprit *x = a, *y = b;
    if (x->value != y->value)
        return x->value > y->value ? -1 : 1;
    return (x->stack_id > y->stack_id) - (x->stack_id < y->stack_id);
}

/* Those of the device that have something of what the rule measures, most first. */
static void copy_leaks(struct check_measure *m, struct check_result *r)
{
    const struct check_device *d = NULL;
    for (int i = 0; i < m->device_count; i++)
        d = strcmp(m->device[i].name, r->subject) == 0 ? &m->device[i] : d;
    for (int i = 0; d && i < d->culprit_count; i++) {
        struct check_culprit c = d->culprit[i];
        c.value = r->id == CHECK_max_leak ? c.kept_bytes : is_leak(r->id) ? c.kept_blocks : c.live_bytes;
        if (c.value > 0)
            *check_add_culprit(r) = c;
    }
    if (r->culprit_count)
        qsort(r->culprits, (size_t)r->culprit_count, sizeof *r->culprits, by_value);
    if (m->options->top && r->culprit_count > m->options->top)
        r->culprit_count = (int)m->options->top;
    for (int i = 0; i < r->culprit_count; i++) {
        struct check_culprit *c = &r->culprits[i];
        c->device = xstrdup_if(c->device);
        c->function = xstrdup_if(c->function);
        c->file = xstrdup_if(c->file);
    }
}

/* No statistic of a line says what an interpreter freed of what it had live at the end. */
static int has_torn(const struct check_measure *m)
{
    int has = 0;
    for (int i = 0; i < m->device_count; i++)
        has |= m->device[i].torn_bytes > 0;
    return has;
}

/* --- rows of places --- */

/* Where most of a row was allocated: a line and a stack. */
static int place_row(struct check_measure *m, const struct row *row, enum row_key by, struct check_culprit *c,
                     struct error *err)
{
    static const char *const keys[ROW_KEY_COUNT] = {[ROW_LINE] = "l.line_id",
                                                    [ROW_FUNCTION] = "coalesce(l.function_id, -l.line_id)",
                                                    [ROW_FILE] = "coalesce(l.file_id, 0)"};
    struct buf sql = BUF(1 << 14);
    sqlite3_stmt *s = NULL;
    buf_puts(&sql, "SELECT 0, 0, " SITE_NAMES " FROM site s" SITE_JOINS);
    buf_printf(&sql,
               "WHERE %s = ?1 AND d.name = ?2 AND ?3 IN ('all', s.kind) ORDER BY s.own_peak_bytes DESC, s.site_id "
               "LIMIT 1",
               keys[by]);
    int rc = db_prepare(m->db, sql.data, &s, err);
    buf_free(&sql);
    if (rc)
        return rc;
    sqlite3_bind_int64(s, 1, row->key_id);
    sqlite3_bind_text(s, 2, row->device, -1, SQLITE_STATIC);
    sqlite3_bind_text(s, 3, m->options->kind ? m->options->kind : "all", -1, SQLITE_STATIC);
    if (db_next(s, &rc, err)) {
        free(c->function);
        free(c->file);
        c->function = db_own_text(s, 3);
        c->file = db_own_text(s, 4);
        c->line = sqlite3_column_int64(s, 5);
        c->stack_id = sqlite3_column_int64(s, 2);
    }
    sqlite3_finalize(s);
    return rc;
}

/* NULL: nothing is known of it. */
static char *name_of(const struct row *row)
{
    struct buf name = BUF(1 << 20);
    if (row->function || row->module)
        row_function_text(row, &name);
    return name.length ? buf_take(&name) : (buf_free(&name), NULL);
}

static int find_rows(struct check_measure *m, struct check_result *r, struct error *err)
{
    struct check_place place;
    if (check_place_parse(r->subject, &place))
        return 0;
    const struct rows *rows = check_rows_of_place(m, r->id, &place, err);
    const enum row_key by = place.line ? ROW_LINE : place.function ? ROW_FUNCTION : ROW_FILE;
    int rc = rows ? 0 : -EIO;
    /* rows are sorted by what is measured */
    for (int i = -1; rc == 0 && !is_full(m, r) && (i = check_next_of_place(&place, rows, i + 1)) >= 0;) {
        const struct row *row = &rows->row[i];
        int known;
        int64_t value = stat_value(&row->stats, STAT_own_peak_bytes, &known);
        if (!known)
            value = stat_value(&row->stats, STAT_at_peak_bytes, &known);
        if (value <= r->limit)
            continue;
        struct check_culprit *c = check_add_culprit(r);
        *c = (struct check_culprit){.value = value,
                                    .of = by == ROW_LINE       ? CULPRIT_LINE
                                          : by == ROW_FUNCTION ? CULPRIT_FUNCTION
                                                               : CULPRIT_FILE,
                                    .device = xstrdup_if(row->device),
                                    .function = name_of(row),
                                    .file = xstrdup_if(row->file),
                                    .line = row->line};
        if (r->id == CHECK_max_line) /* what its callees allocated is in no line of its own */
            rc = place_row(m, row, by, c, err);
    }
    check_place_free(&place);
    return rc;
}

/* --- against another recording --- */

static int stat_of(enum check_id id)
{
    static const struct {
        enum check_id id;
        int stat;
    } of[] = {{CHECK_max_peak, STAT_at_peak_bytes},       {CHECK_max_leak, STAT_end_bytes},
              {CHECK_max_leak_blocks, STAT_end_count},    {CHECK_max_live_at_end, STAT_end_bytes},
              {CHECK_max_allocs, STAT_alloc_count},       {CHECK_max_allocated, STAT_alloc_bytes},
              {CHECK_max_temporary, STAT_temporary_count}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        if (of[i].id == id)
            return of[i].stat;
    return -1;
}

static void add_difference(struct check_result *r, const struct diff_row *row, int64_t more)
{
    const struct diff_item *item = row->item[DIFF_NEW];
    struct buf name = BUF(1 << 20);
    if (item->function || item->module)
        diff_name_text(ROW_LINE, item, NULL, &name);
    *check_add_culprit(r) = (struct check_culprit){.value = more,
                                                   .device = xstrdup_if(row->device),
                                                   .function = name.length ? buf_take(&name) : NULL,
                                                   .file = xstrdup_if(item->file),
                                                   .line = item->line};
    buf_free(&name);
}

/* The lines that grew most. */
static int find_growth(struct check_measure *m, struct check_result *r, struct error *err)
{
    const struct diff_options what = {.by = ROW_LINE, .sort = stat_of(r->id), .device = r->subject};
    sqlite3 *const old = m->options->baseline->db, *const new = m->db;
    sqlite3 *const *const dbs[DIFF_SIDES] = {&old, &new};
    struct diff diff;
    int known, rc = diff_load(dbs, (const int[DIFF_SIDES]){1, 1}, &what, &diff, err);
    r->is_difference = 1;
    for (int i = 0; rc == 0 && i < diff.count && !is_full(m, r); i++) {
        int64_t more = diff_of(&diff.rows[i], what.sort, &known);
        if (known && more > 0 && diff.rows[i].item[DIFF_NEW])
            add_difference(r, &diff.rows[i], more);
    }
    diff_close(&diff);
    return rc;
}

int check_find_culprits(struct check_measure *m, struct check_result *r, struct error *err)
{
    if (check_infos[r->id].of == CHECK_OF_range) /* has them already */
        return 0;
    const int is_torn = is_leak(r->id) && has_torn(m);
    if (r->is_growth && m->options->baseline->db && stat_of(r->id) >= 0 && !m->options->kind && !is_torn)
        return find_growth(m, r, err);
    if (check_infos[r->id].of == CHECK_OF_place)
        return find_rows(m, r, err);
    if (is_leak(r->id) || r->id == CHECK_max_live_at_end) {
        copy_leaks(m, r);
        return 0;
    }
    return find_lines(m, r, err);
}
