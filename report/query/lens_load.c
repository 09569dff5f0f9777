/*
 * The sites that a lens works on, with what is known of each: all of the file, or those of a replay. Where the file has
 * them packed they come as columns, in a tenth of the time that rows by SQL take.
 */
#include "lens_private.h"

#include "../../common/buf.h"
#include "../../common/db.h"
#include "../../common/kind.h"
#include "../../common/packed.h"
#include "../../common/search.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

uint32_t lens_kind(struct lens *l, const char *name)
{
    for (uint32_t i = 0; i < l->kind_count; i++)
        if (strncmp(l->kinds[i], name, sizeof *l->kinds - 1) == 0)
            return i;
    char(*kind)[32] = ARRAY_ADD(l->kinds, l->kind_count, l->kind_capacity);
    snprintf(*kind, sizeof *kind, "%s", name);
    return l->kind_count - 1;
}

/* --- rows -------------------------------------------------------------------------------------------------------- */

static const struct replay_site *replayed(const struct lens *l, int64_t site_id)
{
    const uint32_t low = SEARCH_FIRST(l->replay.site_count, i, l->replay.sites[i].id < site_id);
    return low < l->replay.site_count && l->replay.sites[low].id == site_id ? &l->replay.sites[low] : NULL;
}

static int load_rows(struct lens *l, const char *source, struct error *err)
{
    struct buf sql = BUF(1 << 16);
    sqlite3_stmt *s = NULL;
    int step = SQLITE_DONE;
    buf_puts(&sql, "SELECT s.site_id, s.stack_id, s.process_id, s.device_id, s.kind, sl.line_id, o.op_id");
    if (!l->is_replayed)
        buf_puts(&sql, ", ");
    if (!l->is_replayed)
        stat_columns(&sql, "s.");
    buf_printf(&sql,
               " FROM %s s LEFT JOIN %s_line sl USING(site_id) LEFT JOIN site_op o USING(site_id) ORDER BY s.site_id",
               l->is_replayed ? "site" : "site_stat", source);
    int rc = db_prepare(l->db, sql.data, &s, err);
    while (rc == 0 && (step = sqlite3_step(s)) == SQLITE_ROW) {
        const struct replay_site *only = replayed(l, sqlite3_column_int64(s, 0));
        if (l->is_replayed && !only)
            continue;
        struct lens_site *site = ARRAY_ADD(l->sites, l->site_count, l->site_capacity);
        site->id = sqlite3_column_int64(s, 0);
        site->stack_id = sqlite3_column_int64(s, 1);
        site->process_id = sqlite3_column_int64(s, 2);
        site->device_id = sqlite3_column_int64(s, 3);
        site->kind = lens_kind(l, db_text(s, 4));
        site->line = site->old_line = tree_line(&l->tree, sqlite3_column_int64(s, 5));
        site->op_id = sqlite3_column_int64(s, 6);
        if (only)
            site->stats = only->stats;
        else
            stat_read(&site->stats, s, 7);
    }
    if (rc == 0 && step != SQLITE_DONE)
        rc = db_error(l->db, err);
    sqlite3_finalize(s);
    buf_free(&sql);
    return rc;
}

/* --- columns ----------------------------------------------------------------------------------------------------- */

enum { STACK, PROCESS, DEVICE, KIND, LINE, STATS, COLUMNS = STATS + STAT_COUNT };

static enum packed_column column_of(int i)
{
    static const enum packed_column fixed[] = {PACKED_site_stack_id, PACKED_site_process_id, PACKED_site_device_id,
                                               PACKED_site_kind, PACKED_site_line_id};
    return i < STATS ? fixed[i] : PACKED_STATS + (enum packed_column)(i - STATS);
}

static void take_packed(struct lens *l, const struct packed_values *const values[COLUMNS], uint32_t row,
                        const struct replay_site *only)
{
    struct lens_site *site = ARRAY_ADD(l->sites, l->site_count, l->site_capacity);
    site->id = row;
    site->stack_id = (int64_t)packed_at(values[STACK], row);
    site->process_id = (int64_t)packed_at(values[PROCESS], row);
    site->device_id = (int64_t)packed_at(values[DEVICE], row);
    site->kind = lens_kind(l, kind_name((unsigned)packed_at(values[KIND], row)));
    site->line = site->old_line = tree_line(&l->tree, (int64_t)packed_at(values[LINE], row));
    site->op_id = 0;
    if (only) {
        site->stats = only->stats;
        return;
    }
    site->stats = (struct stat_row){.known = (1u << STAT_COUNT) - 1};
    for (int i = 0; i < STAT_COUNT; i++)
        site->stats.value[i] = (int64_t)packed_at(values[STATS + i], row);
}

/* Of a replay only its sites, which are in the same order. */
static long take_columns(struct lens *l, struct packed *p)
{
    const struct packed_values *values[COLUMNS];
    const long count = packed_count(p, PACKED_TABLE_site);
    long rc = count < 0 ? count : 0;
    for (int i = 0; i < (l->is_replayed ? STATS : COLUMNS) && rc == 0; i++)
        rc = packed_read(p, column_of(i), &values[i]);
    if (rc == 0 && !l->is_replayed)
        for (uint32_t row = 1; row <= count; row++)
            take_packed(l, values, row, NULL);
    for (uint32_t i = 0; rc == 0 && l->is_replayed && i < l->replay.site_count; i++) {
        const struct replay_site *site = &l->replay.sites[i];
        if (site->id >= 1 && site->id <= count)
            take_packed(l, values, (uint32_t)site->id, site);
    }
    return rc;
}

static struct lens_site *site_of(struct lens *l, int64_t site_id)
{
    const uint32_t low = SEARCH_FIRST(l->site_count, i, l->sites[i].id < site_id);
    return low < l->site_count && l->sites[low].id == site_id ? &l->sites[low] : NULL;
}

/* What a query has of some sites beyond that: its first column is the site. */
static int add_beside(struct lens *l, const char *sql, void (*take)(struct lens_site *site, sqlite3_stmt *s),
                      struct error *err)
{
    sqlite3_stmt *s = NULL;
    int rc = db_prepare(l->db, sql, &s, err);
    while (rc == 0 && db_next(s, &rc, err)) {
        struct lens_site *site = site_of(l, sqlite3_column_int64(s, 0));
        if (site)
            take(site, s);
    }
    sqlite3_finalize(s);
    return rc;
}

static void take_op(struct lens_site *site, sqlite3_stmt *s)
{
    site->op_id = sqlite3_column_int64(s, 1);
}

static void take_resident(struct lens_site *site, sqlite3_stmt *s)
{
    for (int i = STAT_COUNT; i < STAT_SCANNED_END && site->device_id == 0; i++)
        site->stats.value[i] = sqlite3_column_int64(s, 1 + i - STAT_COUNT);
}

static void take_start(struct lens_site *site, sqlite3_stmt *s)
{
    site->stats.value[STAT_start_bytes] = sqlite3_column_int64(s, 1);
    site->stats.value[STAT_start_count] = sqlite3_column_int64(s, 2);
}

/* As the view site_stat has it. */
static int add_stats_beside(struct lens *l, struct error *err)
{
    const uint32_t windowed = 1u << STAT_start_bytes | 1u << STAT_start_count;
    const uint32_t scanned = ((1u << STAT_SCANNED_END) - 1) & ~((1u << STAT_COUNT) - 1);
    const int is_scanned = db_int(l->db, "SELECT count(*) > 0 FROM resident_scan", 0) != 0;
    for (uint32_t i = 0; i < l->site_count; i++)
        l->sites[i].stats.known |= windowed | (is_scanned && l->sites[i].device_id == 0 ? scanned : 0);
    int rc = add_beside(l, "SELECT site_id, start_bytes, start_count FROM site_start", take_start, err);
    if (rc || !is_scanned)
        return rc;
    return add_beside(l,
                      "SELECT site_id, resident_bytes, resident_shared_bytes, resident_huge_bytes, swapped_bytes, "
                      "untouched_bytes, resident_end_bytes FROM resident_sum",
                      take_resident, err);
}

static int load_columns(struct lens *l, struct packed *p, struct error *err)
{
    packed_hold(p);
    const long read = take_columns(l, p);
    packed_let(p);
    if (read)
        return error_set(err, EIO, "%s: %s", sqlite3_db_filename(l->db, "main"), packed_error(read));
    int rc = add_beside(l, "SELECT site_id, op_id FROM site_op", take_op, err);
    return rc || l->is_replayed ? rc : add_stats_beside(l, err);
}

int lens_load_sites(struct lens *l, struct error *err)
{
    struct packed *p = packed_has(l->db, PACKED_TABLE_site) ? packed_shared(l->db) : NULL;
    return p ? load_columns(l, p, err)
             : load_rows(l, packed_source(l->db, PACKED_TABLE_site), err); /* of a name that no lens changes */
}
