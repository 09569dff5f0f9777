/*
 * The lens of who wants sites alone (exports): what was replayed goes row by row into a table, so that of a recording
 * with many sites neither its stacks nor accounts that nobody reads are in memory. Accounts by line are sums over the
 * sites, and made when somebody asks for them. Lines are those of the file, or of lens_own_lines.c.
 */
#include "lens_private.h"

#include "../../common/buf.h"
#include "../../common/db.h"
#include "../../common/packed.h"

struct sink {
    struct lens *lens;
    sqlite3_stmt *insert;
    struct error *err;
    int rc;
};

static void take_site(void *arg, const struct replay_site *site)
{
    struct sink *k = arg;
    if (k->rc)
        return;
    sqlite3_bind_int64(k->insert, 1, site->id);
    lens_bind_stats(k->insert, 2, &site->stats, 0, STAT_COUNT);
    lens_bind_stats(k->insert, 2 + STAT_COUNT, &site->stats, STAT_SCANNED_END, STAT_VALUE_COUNT);
    k->rc = sqlite3_step(k->insert) == SQLITE_DONE ? 0 : db_error(k->lens->db, k->err);
    sqlite3_reset(k->insert);
}

/* Each statistic that the table has. */
static void each_stat(struct buf *sql, void (*put)(struct buf *sql, const struct stat_info *stat))
{
    for (int i = 0; i < STAT_VALUE_COUNT; i++)
        if (i < STAT_COUNT || i >= STAT_SCANNED_END)
            put(sql, &stat_infos[i]);
}

static void put_name(struct buf *sql, const struct stat_info *stat)
{
    buf_printf(sql, ", %s", stat->column);
}

/* As stat_add does. */
static void put_sum(struct buf *sql, const struct stat_info *stat)
{
    if (stat->combine == STAT_COMBINE_exact)
        buf_printf(sql, ", iif(count(*) = 1, max(%s), NULL) AS %s", stat->column, stat->column);
    else
        buf_printf(sql, ", iif(count(%s) = count(*), %s(%s), NULL) AS %s", stat->column,
                   stat->combine == STAT_COMBINE_sum ? "sum" : "max", stat->column, stat->column);
}

static int make_table(struct lens *l, struct sink *k, struct error *err)
{
    struct buf sql = BUF(1 << 12);
    buf_puts(&sql, "CREATE TEMP TABLE lens_stat(site_id INTEGER PRIMARY KEY");
    each_stat(&sql, put_name);
    buf_puts(&sql, ")");
    int rc = db_exec(l->db, buf_text(&sql), err);
    buf_free(&sql);
    return rc ? rc : lens_prepare_insert(l->db, "lens_stat", 1 + STAT_COUNT + LENS_WINDOWED_COUNT, &k->insert, err);
}

/* What stands before the file's sites and accounts. */
static int make_views(struct lens *l, struct error *err)
{
    struct buf sql = BUF(1 << 14);
    buf_puts(&sql, "CREATE TEMP VIEW lens_site AS SELECT t.site_id, s.stack_id, s.process_id, s.device_id, s.kind");
    each_stat(&sql, put_name);
    buf_printf(&sql,
               " FROM temp.lens_stat t CROSS JOIN (SELECT site_id, stack_id, process_id, device_id, kind FROM %s) "
               "s USING(site_id);",
               packed_source(l->db, PACKED_TABLE_site));
    buf_puts(&sql, "CREATE TEMP VIEW account AS SELECT 'line' AS scope, sl.line_id AS key_id, 0 AS inclusive, "
                   "s.device_id, s.kind");
    each_stat(&sql, put_sum);
    buf_puts(&sql, " FROM temp.lens_site s JOIN site_line sl USING(site_id) GROUP BY sl.line_id, s.device_id, s.kind;"
                   "DROP VIEW temp.account_stat; DROP VIEW temp.site_stat");
    int rc = db_exec(l->db, buf_text(&sql), err);
    buf_free(&sql);
    return rc;
}

/* Nothing was replayed: the sites are the file's, and of lines that have the same sites as there the own peak, too. */
static int make_line_view(struct lens *l, struct error *err)
{
    struct buf sql = BUF(1 << 14);
    buf_puts(&sql,
             "DROP VIEW temp.account_stat; CREATE TEMP VIEW account_stat AS SELECT 'line' AS scope, sl.line_id AS "
             "key_id, 0 AS inclusive, s.device_id, s.kind");
    for (int i = 0; i < STAT_VALUE_COUNT; i++)
        if (i == STAT_own_peak_bytes)
            buf_puts(&sql,
                     ", coalesce((SELECT a.own_peak_bytes FROM main.account a WHERE a.scope = 'line' AND "
                     "a.inclusive = 0 AND a.device_id = s.device_id AND a.kind = s.kind AND a.key_id = sl.line_id "
                     "AND a.key_id NOT IN (SELECT line_id FROM temp.lens_changed)), iif(count(*) = 1, "
                     "max(own_peak_bytes), NULL)) AS own_peak_bytes");
        else
            put_sum(&sql, &stat_infos[i]);
    buf_puts(&sql, " FROM site_stat s JOIN site_line sl USING(site_id) GROUP BY sl.line_id, s.device_id, s.kind");
    int rc = db_exec(l->db, buf_text(&sql), err);
    buf_free(&sql);
    return rc;
}

int lens_apply_sites(struct lens *l, struct error *err)
{
    struct sink k = {.lens = l, .err = err};
    int rc = db_exec(l->db, "SAVEPOINT lens", err);
    const int has_lines = l->options->skip_count || l->options->language != TREE_BOTH;
    if (rc == 0 && has_lines)
        rc = lens_own_lines(l, err);
    if (rc == 0)
        rc = make_table(l, &k, err);
    l->replay.take = take_site;
    l->replay.take_arg = &k;
    if (rc == 0)
        rc = lens_load_replay(l, err);
    sqlite3_finalize(k.insert);
    rc = rc ? rc : k.rc;
    if (rc == 0 && l->is_replayed)
        rc = make_views(l, err);
    else if (rc == 0 && has_lines)
        rc = make_line_view(l, err);
    if (rc == 0 && l->is_replayed)
        rc = lens_write_replayed(l, err);
    if (rc == 0)
        rc = db_exec(l->db, "RELEASE lens", err);
    replay_free(&l->replay);
    return rc;
}
