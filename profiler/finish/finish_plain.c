/*
 * Plain rows for plain sqlite3, of a recording whose sites or stacks are packed: sites that leaked, that failed, and
 * those with the most of each statistic; their stacks, and those that other tables name.
 */
#include "../../common/array.h"
#include "../../common/kind.h"
#include "finish_private.h"

#include <errno.h>
#include <stdlib.h>

#define TOP_SITES  256u  /* of each statistic */
#define LEAK_SITES 4096u /* with the most bytes */

struct pass {
    struct model *m;
    uint8_t *is_site, *is_stack; /* 1: to be a plain row; by id */
    uint32_t *order;             /* sites by a statistic */
    uint32_t site_count, stack_count;
    const struct packed_values *columns[PACKED_COLUMNS]; /* of tables that are packed */
};

static int by_value(const void *a, const void *b, void *values)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    int64_t value_x = (int64_t)packed_at(values, x), value_y = (int64_t)packed_at(values, y);
    if (value_x != value_y)
        return value_x > value_y ? -1 : 1;
    return x < y ? -1 : 1;
}

/* A value that only as many sites reach: below the largest ones, found without sorting all. */
static int64_t least_of_top(const struct pass *p, const struct packed_values *values, uint32_t most)
{
    uint32_t counts[65] = {0};
    for (uint32_t i = 1; i <= p->site_count; i++) {
        int64_t value = (int64_t)packed_at(values, i);
        counts[value > 0 ? 64 - __builtin_clzll((uint64_t)value) : 0]++;
    }
    uint32_t sum = 0;
    int bits = 64;
    while (bits > 0 && (sum += counts[bits]) < most)
        bits--;
    return bits > 1 ? INT64_C(1) << (bits - 1) : 1;
}

static void choose_top(struct pass *p, enum packed_column column, uint32_t most)
{
    const struct packed_values *values = p->columns[column];
    int64_t least = least_of_top(p, values, most);
    uint32_t count = 0;
    for (uint32_t i = 1; i <= p->site_count; i++)
        if ((int64_t)packed_at(values, i) >= least)
            p->order[count++] = i;
    if (count > most)
        qsort_r(p->order, count, sizeof *p->order, by_value, (void *)(uintptr_t)values);
    for (uint32_t i = 0; i < count && i < most; i++)
        p->is_site[p->order[i]] = 1;
}

/* Calls take with the first column of each row. */
static int each_id(struct pass *p, const char *sql, void (*take)(struct pass *, int64_t), struct error *err)
{
    sqlite3_stmt *s = NULL;
    int rc = db_prepare(p->m->db, sql, &s, err), step;
    if (rc)
        return rc;
    while ((step = sqlite3_step(s)) == SQLITE_ROW)
        take(p, sqlite3_column_int64(s, 0));
    if (step != SQLITE_DONE)
        rc = db_error(p->m->db, err);
    sqlite3_finalize(s);
    return rc;
}

static void take_site(struct pass *p, int64_t id)
{
    if (id >= 1 && id <= p->site_count)
        p->is_site[id] = 1;
}

static void take_stack(struct pass *p, int64_t id)
{
    while (id >= 1 && id <= p->stack_count && !p->is_stack[id]) {
        p->is_stack[id] = 1;
        id = (int64_t)packed_at(p->columns[PACKED_stack_parent_id], (uint32_t)id);
    }
}

static void take_sites_of_stack(struct pass *p, int64_t id)
{
    uint32_t site = 0;
    if (packed_site_of_stack(p->m->packed, id, &site) == 0)
        for (; site; site = packed_next_site(p->m->packed, site))
            p->is_site[site] = 1;
}

static int damaged(const struct pass *p, int rc, struct error *err)
{
    return error_set(err, -rc, "%s: %s", sqlite3_db_filename(p->m->db, "main"), packed_error(rc));
}

static int choose_sites(struct pass *p, struct error *err)
{
    int rc = each_id(p, "SELECT site_id FROM peak WHERE site_id IS NOT NULL", take_site, err);
    if (rc == 0)
        rc = each_id(p, "SELECT stack_id FROM oom WHERE stack_id IS NOT NULL", take_sites_of_stack, err);
    p->order = xcalloc(p->site_count + 1ul, sizeof *p->order);
    for (enum packed_column c = PACKED_STATS; c < PACKED_STATS + STAT_COUNT; c++)
        choose_top(p, c, c == PACKED_site_end_bytes ? LEAK_SITES : TOP_SITES);
    free(p->order);
    return rc;
}

static int choose_stacks(struct pass *p, struct error *err)
{
    for (uint32_t i = 1; i <= p->site_count; i++)
        if (p->is_site[i])
            take_stack(p, (int64_t)packed_at(p->columns[PACKED_site_stack_id], i));
    return each_id(
        p,
        "SELECT stack_id FROM block UNION SELECT stack_id FROM oom UNION SELECT stack_id FROM transfer UNION "
        "SELECT stack_id FROM segment",
        take_stack, err);
}

static int step(struct pass *p, sqlite3_stmt *s, struct error *err)
{
    int rc = sqlite3_step(s) == SQLITE_DONE ? 0 : db_error(p->m->db, err);
    sqlite3_reset(s);
    return rc == 0 && finish_interrupted ? -EINTR : rc;
}

#define STAT(column, name, unit, combine, text) ", ?"
static const char site_sql[] = "INSERT INTO main.site VALUES(?, ?, ?, ?, ?"
#include "../../common/stat.def"
                               ")";
#undef STAT

static int write_sites(struct pass *p, struct error *err)
{
    sqlite3_stmt *s = NULL;
    int rc = db_exec(p->m->db, "DELETE FROM main.site", err);
    if (rc == 0)
        rc = db_prepare(p->m->db, site_sql, &s, err);
    for (uint32_t i = 1; i <= p->site_count && rc == 0; i++) {
        if (!p->is_site[i])
            continue;
        sqlite3_bind_int64(s, 1, i);
        for (enum packed_column c = PACKED_KEY_site; c < PACKED_STATS + STAT_COUNT; c++)
            sqlite3_bind_int64(s, 2 + (int)(c - PACKED_KEY_site), (int64_t)packed_at(p->columns[c], i));
        sqlite3_bind_text(s, 5, kind_name((unsigned)packed_at(p->columns[PACKED_site_kind], i)), -1, SQLITE_STATIC);
        rc = step(p, s, err);
    }
    sqlite3_finalize(s);
    return rc;
}

static int write_lines(struct pass *p, struct error *err)
{
    sqlite3_stmt *s = NULL;
    int rc = db_prepare(p->m->db, "INSERT INTO main.site_line VALUES(?, ?)", &s, err);
    for (size_t i = 0; i < p->m->site_count && rc == 0; i++) {
        const struct model_site *site = &p->m->sites[i];
        if (!p->is_site[site->id])
            continue;
        sqlite3_bind_int64(s, 1, site->id);
        sqlite3_bind_int64(s, 2, site->line_key);
        rc = step(p, s, err);
    }
    sqlite3_finalize(s);
    return rc;
}

static int write_stacks(struct pass *p, struct error *err)
{
    sqlite3_stmt *s = NULL;
    const uint32_t *depths;
    int rc = packed_depths(p->m->packed, &depths);
    if (rc)
        return damaged(p, rc, err);
    rc = db_exec(p->m->db, "DELETE FROM main.stack", err);
    if (rc == 0)
        rc = db_prepare(p->m->db, "INSERT INTO main.stack VALUES(?, ?, ?, ?, ?)", &s, err);
    for (uint32_t i = 1; i <= p->stack_count && rc == 0; i++) {
        uint32_t parent = (uint32_t)packed_at(p->columns[PACKED_stack_parent_id], i); /* less than i */
        if (!p->is_stack[i])
            continue;
        sqlite3_bind_int64(s, 1, i);
        if (parent)
            sqlite3_bind_int64(s, 2, parent);
        else
            sqlite3_bind_null(s, 2);
        sqlite3_bind_int64(s, 3, (int64_t)packed_at(p->columns[PACKED_stack_address_id], i));
        sqlite3_bind_int64(s, 4, depths[i]);
        sqlite3_bind_int64(s, 5, (int64_t)packed_at(p->columns[PACKED_stack_flags], i));
        rc = step(p, s, err);
    }
    sqlite3_finalize(s);
    return rc;
}

static int read_columns(struct pass *p, enum packed_column first, enum packed_column last, struct error *err)
{
    for (enum packed_column c = first; c <= last; c++) {
        int rc = packed_read(p->m->packed, c, &p->columns[c]);
        if (rc)
            return damaged(p, rc, err);
    }
    return 0;
}

/* The sites that are plain rows where only the stacks are packed: all. */
static int choose_plain_sites(struct pass *p, struct error *err)
{
    return each_id(p, "SELECT stack_id FROM main.site", take_stack, err);
}

static int plain_stacks(struct pass *p, int has_sites, struct error *err)
{
    int rc = read_columns(p, PACKED_KEY_stack, PACKED_stack_flags, err);
    if (rc)
        return rc;
    p->stack_count = (uint32_t)packed_count(p->m->packed, PACKED_TABLE_stack);
    p->is_stack = xcalloc(p->stack_count + 1ul, 1);
    rc = has_sites ? 0 : choose_plain_sites(p, err);
    if (rc == 0)
        rc = choose_stacks(p, err);
    return rc ? rc : write_stacks(p, err);
}

int model_plain(struct model *m, struct error *err)
{
    struct pass p = {.m = m};
    int has_sites = packed_has(m->db, PACKED_TABLE_site), rc = 0;
    if (has_sites && (rc = read_columns(&p, PACKED_KEY_site, PACKED_STATS + STAT_COUNT - 1, err)) == 0) {
        p.site_count = (uint32_t)packed_count(m->packed, PACKED_TABLE_site);
        p.is_site = xcalloc(p.site_count + 1ul, 1);
        rc = choose_sites(&p, err);
        if (rc == 0)
            rc = write_sites(&p, err);
        if (rc == 0)
            rc = write_lines(&p, err);
    }
    if (rc == 0 && packed_has(m->db, PACKED_TABLE_stack))
        rc = plain_stacks(&p, has_sites, err);
    free(p.is_site);
    free(p.is_stack);
    return rc;
}
