/*
 * Plain rows for plain sqlite3, of a recording whose sites or stacks are packed: sites that leaked, that failed, and
 * those with the most of each statistic; what other tables have of them; their stacks, and those that other tables
 * name.
 */
#include "../../common/array.h"
#include "../../common/kind.h"
#include "finish_private.h"

#include <errno.h>
#include <stdlib.h>

#define TOP_SITES  256u  /* of each statistic */
#define LEAK_SITES 1024u /* with the most bytes */

struct pass {
    struct model *m;
    uint8_t *is_site, *is_stack; /* 1: to be a plain row; by id */
    uint32_t site_count, stack_count;
    const struct packed_values *columns[PACKED_COLUMNS]; /* of tables that are packed */
};

/* Whether site a is rather left out than b: it has less, or came later. */
static int is_less(const struct packed_values *values, uint32_t a, uint32_t b)
{
    int64_t value_a = (int64_t)packed_at(values, a), value_b = (int64_t)packed_at(values, b);
    return value_a != value_b ? value_a < value_b : a > b;
}

/* The heap's first is the least; what was put there sinks to its place. */
static void sink(const struct packed_values *values, uint32_t *heap, uint32_t count, uint32_t at)
{
    for (uint32_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && is_less(values, heap[child + 1], heap[child]))
            child++;
        if (is_less(values, heap[at], heap[child]))
            return;
        uint32_t site = heap[at];
        heap[at] = heap[child];
        heap[child] = site;
    }
}

static void choose_top(struct pass *p, enum packed_column column, uint32_t most)
{
    const struct packed_values *values = p->columns[column];
    uint32_t heap[LEAK_SITES], count = 0;
    if (!values->narrow && !values->wide)
        return;
    for (uint32_t i = 1; i <= p->site_count; i++) {
        if ((int64_t)packed_at(values, i) <= 0)
            continue;
        if (count < most) {
            heap[count++] = i;
            for (uint32_t at = count / 2; count == most && at-- > 0;)
                sink(values, heap, count, at);
        } else if (is_less(values, heap[0], i)) {
            heap[0] = i;
            sink(values, heap, count, 0);
        }
    }
    for (uint32_t i = 0; i < count; i++)
        p->is_site[heap[i]] = 1;
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
    for (enum packed_column c = PACKED_STATS; c < PACKED_STATS + STAT_COUNT; c++)
        choose_top(p, c, c == PACKED_site_end_bytes ? LEAK_SITES : TOP_SITES);
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

static int read_columns(struct pass *p, enum packed_column first, enum packed_column last, struct error *err)
{
    for (enum packed_column c = first; c <= last; c++) {
        int rc = packed_read(p->m->packed, c, &p->columns[c]);
        if (rc)
            return damaged(p, rc, err);
    }
    return 0;
}

/* The sites' rows of another table: as many columns, the second one being column. Where the third one of a row is 0, or
 * without one the second, the site has none. */
static int write_beside(struct pass *p, const char *sql, enum packed_column column, int count, struct error *err)
{
    sqlite3_stmt *s = NULL;
    const struct packed_values *there = p->columns[column + (unsigned)count - 1];
    int rc = db_prepare(p->m->db, sql, &s, err);
    for (uint32_t i = 1; i <= p->site_count && rc == 0; i++) {
        if (!p->is_site[i] || !packed_at(there, i))
            continue;
        sqlite3_bind_int64(s, 1, i);
        for (int k = 0; k < count; k++)
            sqlite3_bind_int64(s, 2 + k, (int64_t)packed_at(p->columns[column + (unsigned)k], i));
        rc = step(p, s, err);
    }
    sqlite3_finalize(s);
    return rc;
}

/* Where the packed sites have the columns: earlier versions had plain rows of all sites. */
static int write_teardown(struct pass *p, struct error *err)
{
    sqlite3 *db = p->m->db;
    int rc = 0;
    if (packed_has_column(db, PACKED_site_torn_count)) {
        rc = db_exec(db, "DELETE FROM main.site_teardown", err);
        if (rc == 0)
            rc = write_beside(p, "INSERT INTO main.site_teardown VALUES(?, ?, ?)", PACKED_site_torn_bytes, 2, err);
    }
    if (rc == 0 && packed_has_column(db, PACKED_site_kept_count)) {
        rc = db_exec(db, "DELETE FROM main.site_kept", err);
        if (rc == 0)
            rc = write_beside(p, "INSERT INTO main.site_kept VALUES(?, ?)", PACKED_site_kept_count, 1, err);
    }
    return rc;
}

static int write_looks(struct pass *p, struct error *err)
{
    sqlite3_stmt *s = NULL;
    struct packed *packed = p->m->packed;
    if (!packed_has(p->m->db, PACKED_TABLE_resident_site))
        return 0;
    int rc = read_columns(p, PACKED_KEY_resident_site, PACKED_COLUMNS - 1, err);
    if (rc == 0)
        rc = db_exec(p->m->db, "DELETE FROM main.resident_site", err);
    if (rc == 0)
        rc =
            db_prepare(p->m->db, "INSERT OR IGNORE INTO main.resident_site VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)", &s, err);
    long count = rc ? 0 : packed_count(packed, PACKED_TABLE_resident_site);
    for (uint32_t i = 1; i <= count && rc == 0; i++) {
        uint64_t site = packed_at(p->columns[PACKED_KEY_resident_site], i);
        if (site > p->site_count || !p->is_site[site])
            continue;
        sqlite3_bind_int64(s, 1, packed_look_of(packed, i));
        for (enum packed_column c = PACKED_KEY_resident_site; c < PACKED_COLUMNS; c++)
            sqlite3_bind_int64(s, 2 + (int)(c - PACKED_KEY_resident_site), (int64_t)packed_at(p->columns[c], i));
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
    if (has_sites && (rc = read_columns(&p, PACKED_KEY_site, PACKED_site_line_id - 1, err)) == 0) {
        p.site_count = (uint32_t)packed_count(m->packed, PACKED_TABLE_site);
        p.is_site = xcalloc(p.site_count + 1ul, 1);
        rc = choose_sites(&p, err);
        if (rc == 0)
            rc = write_sites(&p, err);
        if (rc == 0)
            rc = write_lines(&p, err);
        if (rc == 0)
            rc = write_teardown(&p, err);
        if (rc == 0)
            rc = write_looks(&p, err);
    }
    if (rc == 0 && packed_has(m->db, PACKED_TABLE_stack))
        rc = plain_stacks(&p, has_sites, err);
    free(p.is_site);
    free(p.is_stack);
    return rc;
}
