#include "lens_private.h"

#include "../../common/buf.h"
#include "../../common/db.h"
#include "../../common/kind.h"

#include <errno.h>

/* The statistics of windows, which the tables of the file do not have. */
#define WINDOWED ", 0 AS start_bytes, 0 AS start_count"
_Static_assert(LENS_WINDOWED_COUNT == 2, "as WINDOWED has them");

void lens_bind_stats(sqlite3_stmt *s, int at, const struct stat_row *stats, int first, int end)
{
    for (int i = first; i < end; i++) {
        if (stats->known >> i & 1)
            sqlite3_bind_int64(s, at + i - first, stats->value[i]);
        else
            sqlite3_bind_null(s, at + i - first);
    }
}

static int step(struct lens *l, sqlite3_stmt *s, struct error *err)
{
    int rc = sqlite3_step(s) == SQLITE_DONE ? 0 : db_error(l->db, err);
    sqlite3_reset(s);
    return rc;
}

int lens_prepare_insert(sqlite3 *db, const char *table, int columns, sqlite3_stmt **s, struct error *err)
{
    struct buf sql = BUF(1 << 12);
    buf_printf(&sql, "INSERT INTO temp.%s VALUES(?", table);
    for (int i = 1; i < columns; i++)
        buf_puts(&sql, ", ?");
    buf_puts(&sql, ")");
    int rc = db_prepare(db, sql.data, s, err);
    buf_free(&sql);
    return rc;
}

static void bind_key(const struct lens *l, const struct lens_row *row, sqlite3_stmt *s)
{
    sqlite3_bind_text(s, 1, lens_scope_names[row->scope], -1, SQLITE_STATIC);
    sqlite3_bind_int64(s, 2, lens_row_key(l, row));
    sqlite3_bind_int(s, 3, row->inclusive);
    sqlite3_bind_int64(s, 4, row->device_id);
    sqlite3_bind_text(s, 5, l->kinds[row->kind], -1, SQLITE_STATIC);
}

static int write_accounts(struct lens *l, struct error *err)
{
    sqlite3_stmt *s = NULL;
    int rc = db_exec(l->db, "CREATE TEMP TABLE lens_account AS SELECT *" WINDOWED " FROM main.account WHERE 0", err);
    if (rc == 0)
        rc = lens_prepare_insert(l->db, "lens_account", 5 + STAT_COUNT + LENS_WINDOWED_COUNT, &s, err);
    for (uint32_t i = 0; rc == 0 && i < l->row_count; i++) {
        const struct lens_row *row = &l->rows[i];
        bind_key(l, row, s);
        lens_bind_stats(s, 6, &row->stats, 0, STAT_COUNT);
        lens_bind_stats(s, 6 + STAT_COUNT, &row->stats, STAT_SCANNED_END, STAT_VALUE_COUNT);
        rc = step(l, s, err);
    }
    sqlite3_finalize(s);
    return rc;
}

/* What the looks at present pages saw, of the sites as they are shown; with what rows call it stays as it is. Of one
 * process alone it is not known: a site may be of several. */
static int write_scanned(struct lens *l, struct error *err)
{
    sqlite3_stmt *s = NULL;
    int rc = db_exec(l->db,
                     "CREATE TEMP TABLE lens_resident AS SELECT * FROM resident_account WHERE inclusive = 1 OR scope = "
                     "'op';" /* as show_accounts has them */
                     "CREATE UNIQUE INDEX temp.lens_resident_key ON lens_resident(scope, inclusive, device_id, kind, "
                     "key_id);"
                     "DROP VIEW temp.account_stat; DROP VIEW temp.site_stat",
                     err);
    if (rc == 0)
        rc = lens_prepare_insert(l->db, "lens_resident", 5 + STAT_SCANNED_END - STAT_COUNT, &s, err);
    for (uint32_t i = 0; rc == 0 && i < l->row_count; i++) {
        const struct lens_row *row = &l->rows[i];
        if (row->inclusive || !(row->stats.known >> STAT_resident_bytes & 1))
            continue;
        bind_key(l, row, s);
        lens_bind_stats(s, 6, &row->stats, STAT_COUNT, STAT_SCANNED_END);
        rc = step(l, s, err);
    }
    sqlite3_finalize(s);
    return rc;
}

static void scanned_columns(const struct lens *l, const char *table, struct buf *sql)
{
    for (int i = STAT_COUNT; i < STAT_SCANNED_END; i++)
        if (l->is_replayed)
            buf_printf(sql, ", NULL AS %s", stat_infos[i].column);
        else
            buf_printf(sql, ", iif(k.is_known AND %s.device_id = 0, coalesce(r.%s, 0), NULL) AS %s", table,
                       stat_infos[i].column, stat_infos[i].column);
}

/* The views account_stat and site_stat over what is shown. */
static int show_scanned(struct lens *l, struct error *err)
{
    static const char known[] = " LEFT JOIN (SELECT count(*) > 0 AS is_known FROM resident_scan) k";
    struct buf sql = BUF(1 << 14);
    buf_puts(&sql, "CREATE TEMP VIEW account_stat AS SELECT a.*");
    scanned_columns(l, "a", &sql);
    buf_puts(&sql, " FROM account a");
    if (!l->is_replayed)
        buf_printf(&sql, " LEFT JOIN temp.lens_resident r USING(scope, inclusive, device_id, kind, key_id)%s ON %s",
                   known, "a.scope <> 'thread'");
    buf_puts(&sql, "; CREATE TEMP VIEW site_stat AS SELECT s.*");
    scanned_columns(l, "s", &sql);
    buf_printf(&sql, "%s FROM site s", l->is_replayed ? "" : WINDOWED);
    if (!l->is_replayed)
        buf_printf(&sql, " LEFT JOIN resident_sum r USING(site_id)%s", known);
    int rc = sql.failed ? error_set(err, ENOMEM, "no memory") : db_exec(l->db, sql.data, err);
    buf_free(&sql);
    return rc;
}

static int write_lines(struct lens *l, struct error *err)
{
    const struct tree *t = &l->tree;
    sqlite3_stmt *s = NULL;
    int rc = db_exec(l->db, "CREATE TEMP TABLE lens_line AS SELECT * FROM main.line WHERE 0", err);
    if (rc == 0)
        rc = lens_prepare_insert(l->db, "lens_line", 6, &s, err);
    for (uint32_t i = t->stored_lines; rc == 0 && i < t->line_count; i++) {
        const struct tree_line *line = &t->lines[i];
        sqlite3_bind_int64(s, 1, line->id);
        if (line->function)
            sqlite3_bind_int64(s, 2, t->functions[line->function].id);
        else
            sqlite3_bind_null(s, 2);
        if (line->file_id)
            sqlite3_bind_int64(s, 3, line->file_id);
        else
            sqlite3_bind_null(s, 3);
        sqlite3_bind_int64(s, 4, line->line);
        if (line->module_key_id)
            sqlite3_bind_int64(s, 5, line->module_key_id);
        else
            sqlite3_bind_null(s, 5);
        sqlite3_bind_int64(s, 6, line->offset);
        rc = step(l, s, err);
    }
    sqlite3_finalize(s);
    return rc;
}

static int write_sites(struct lens *l, struct error *err)
{
    sqlite3_stmt *s = NULL, *lines = NULL;
    int rc = db_exec(l->db,
                     "DROP TABLE IF EXISTS temp.site_line; CREATE TEMP TABLE site_line(site_id INTEGER PRIMARY KEY, "
                     "line_id INTEGER);"
                     "CREATE TEMP TABLE lens_site AS SELECT *" WINDOWED " FROM main.site WHERE 0",
                     err);
    if (rc == 0)
        rc = lens_prepare_insert(l->db, "lens_site", 5 + STAT_COUNT + LENS_WINDOWED_COUNT, &s, err);
    if (rc == 0)
        rc = lens_prepare_insert(l->db, "site_line", 2, &lines, err);
    for (uint32_t i = 0; rc == 0 && i < l->site_count; i++) {
        const struct lens_site *site = &l->sites[i];
        if (site->line) {
            sqlite3_bind_int64(lines, 1, site->id);
            sqlite3_bind_int64(lines, 2, l->tree.lines[site->line].id);
            rc = step(l, lines, err);
        }
        const int64_t values[] = {site->id, site->stack_id, site->process_id, site->device_id};
        for (int k = 0; k < 4; k++)
            sqlite3_bind_int64(s, k + 1, values[k]);
        sqlite3_bind_text(s, 5, l->kinds[site->kind], -1, SQLITE_STATIC);
        lens_bind_stats(s, 6, &site->stats, 0, STAT_COUNT);
        lens_bind_stats(s, 6 + STAT_COUNT, &site->stats, STAT_SCANNED_END, STAT_VALUE_COUNT);
        if (rc == 0 && l->is_replayed)
            rc = step(l, s, err);
    }
    sqlite3_finalize(s);
    sqlite3_finalize(lines);
    return rc;
}

/* What the process still had when it ended, if it took its interpreter down. */
static int write_kept(struct lens *l, struct error *err)
{
    sqlite3_stmt *s = NULL;
    int is_torn = 0;
    int rc = db_prepare(l->db, "SELECT 1 FROM teardown JOIN main.process USING(process_id) WHERE pid = ?", &s, err);
    if (rc == 0) {
        sqlite3_bind_int64(s, 1, l->options->pid);
        is_torn = sqlite3_step(s) == SQLITE_ROW;
    }
    sqlite3_finalize(s);
    s = NULL;
    if (rc == 0)
        rc = db_exec(l->db,
                     "DROP TABLE IF EXISTS temp.site_kept; CREATE TEMP TABLE site_kept(site_id INTEGER PRIMARY KEY, "
                     "kept_count INTEGER)",
                     err);
    if (rc == 0 && is_torn)
        rc = lens_prepare_insert(l->db, "site_kept", 2, &s, err);
    for (uint32_t i = 0; rc == 0 && is_torn && i < l->replay.site_count; i++) {
        const struct replay_site *site = &l->replay.sites[i];
        int64_t kept = site->stats.value[STAT_end_count] - site->torn_count;
        if (kept <= 0)
            continue;
        sqlite3_bind_int64(s, 1, site->id);
        sqlite3_bind_int64(s, 2, kept);
        rc = step(l, s, err);
    }
    sqlite3_finalize(s);
    return rc;
}

static int write_teardowns(struct lens *l, struct error *err)
{
    sqlite3_stmt *s = NULL;
    int rc = db_exec(l->db,
                     "DROP TABLE IF EXISTS temp.site_teardown; CREATE TEMP TABLE site_teardown(site_id INTEGER "
                     "PRIMARY KEY, freed_bytes INTEGER, freed_count INTEGER)",
                     err);
    if (rc == 0)
        rc = lens_prepare_insert(l->db, "site_teardown", 3, &s, err);
    for (uint32_t i = 0; rc == 0 && i < l->replay.site_count; i++) {
        const struct replay_site *site = &l->replay.sites[i];
        if (!site->torn_count)
            continue;
        sqlite3_bind_int64(s, 1, site->id);
        sqlite3_bind_int64(s, 2, site->torn_bytes);
        sqlite3_bind_int64(s, 3, site->torn_count);
        rc = step(l, s, err);
    }
    sqlite3_finalize(s);
    return rc ? rc : write_kept(l, err);
}

/* In the order of the table: the statistics that are not the process's own are not known. */
static int write_totals(struct lens *l, struct error *err)
{
    sqlite3_stmt *s = NULL;
    int rc = db_exec(l->db, "CREATE TEMP TABLE total AS SELECT *" WINDOWED " FROM main.total WHERE 0", err);
    if (rc == 0)
        rc = lens_prepare_insert(l->db, "total", 17 + LENS_WINDOWED_COUNT, &s, err);
    for (uint32_t i = 0; rc == 0 && i < l->replay.total_count; i++) {
        const struct replay_total *t = &l->replay.totals[i];
        const int64_t *v = t->stats.value;
        static const int stats[] = {/* that have to be known for each */
                                    STAT_alloc_count,         STAT_free_count,          STAT_alloc_bytes,
                                    STAT_free_bytes,          STAT_temporary_count,     STAT_temporary_bytes,
                                    STAT_at_peak_bytes,       STAT_at_peak_bytes,       STAT_at_peak_count,
                                    STAT_reserved_peak_bytes, STAT_reserved_peak_bytes, STAT_end_bytes,
                                    STAT_end_count,           STAT_lifetime_ns,         STAT_lifetime_ns,
                                    STAT_start_bytes,         STAT_start_count};
        const int64_t values[] = {v[STAT_alloc_count],
                                  v[STAT_free_count],
                                  v[STAT_alloc_bytes],
                                  v[STAT_free_bytes],
                                  v[STAT_temporary_count],
                                  v[STAT_temporary_bytes],
                                  v[STAT_at_peak_bytes],
                                  t->peak_active_ns,
                                  t->peak_active_count,
                                  0,
                                  0,
                                  v[STAT_end_bytes],
                                  v[STAT_end_count],
                                  t->realloc_count,
                                  v[STAT_lifetime_ns],
                                  v[STAT_start_bytes],
                                  v[STAT_start_count]};
        sqlite3_bind_int(s, 1, t->device);
        sqlite3_bind_text(s, 2, kind_name(t->kind), -1, SQLITE_STATIC);
        for (int k = 0; k < 15 + LENS_WINDOWED_COUNT; k++)
            if (stats[k] == STAT_reserved_peak_bytes || !(t->stats.known >> stats[k] & 1))
                sqlite3_bind_null(s, 3 + k);
            else
                sqlite3_bind_int64(s, 3 + k, values[k]);
        rc = step(l, s, err);
    }
    sqlite3_finalize(s);
    return rc;
}

/* The accounts that stay as they are: of threads, and with callees, as far as code is shown. */
static int show_accounts(struct lens *l, struct error *err)
{
    struct buf sql = BUF(1 << 14);
    long long pid = l->options->pid;
    const char *equal = l->options->language == TREE_PYTHON ? "=" : "<>";
    buf_puts(&sql, "CREATE TEMP VIEW account AS SELECT * FROM temp.lens_account UNION ALL SELECT *" WINDOWED
                   " FROM main.account WHERE scope = 'thread'");
    if (l->options->window)
        buf_puts(&sql, " AND 0"); /* those of the window are among lens_account */
    else if (l->is_replayed)
        buf_printf(&sql,
                   " AND key_id IN (SELECT thread_id FROM main.thread JOIN main.process USING(process_id) WHERE pid = "
                   "%lld)",
                   pid);
    else if (l->options->language == TREE_BOTH)
        buf_puts(&sql, " OR inclusive = 1 OR scope = 'op'");
    else
        buf_printf(
            &sql,
            " OR scope = 'op' OR (inclusive = 1 AND ((scope = 'function' AND key_id IN (SELECT function_id FROM "
            "main.frame "
            "WHERE language %s 'python')) OR (scope = 'file' AND key_id IN (SELECT file_id FROM main.frame WHERE "
            "language %s 'python')) OR (scope = 'line' AND key_id IN (SELECT line_id FROM main.line WHERE "
            "function_id IN (SELECT function_id FROM main.frame WHERE language %s 'python')))%s))",
            equal, equal, equal,
            l->options->language == TREE_PYTHON
                ? ""
                : " OR scope = 'module' OR (scope = 'function' AND key_id < 0) OR (scope = 'file' AND key_id = 0) OR "
                  "(scope = 'line' AND key_id IN (SELECT line_id FROM main.line WHERE "
                  "function_id IS NULL))");
    int rc = db_exec(l->db, sql.data, err);
    buf_free(&sql);
    return rc;
}

/* Numbers only are put into the text of a view, which takes no parameters. */
static int show_replayed(struct lens *l, struct error *err)
{
    struct buf sql = BUF(1 << 12);
    long long pid = l->options->pid;
    buf_printf(
        &sql,
        "DROP TABLE IF EXISTS temp.site; CREATE TEMP VIEW site AS SELECT * FROM temp.lens_site;"
        "CREATE TEMP VIEW meta AS SELECT key, CASE key WHEN 'event_count' THEN '%lld' WHEN 'part_first_event' THEN '0' "
        "ELSE value END AS value FROM main.meta;",
        (long long)l->replay.event_count);
    if (pid)
        buf_printf(&sql,
                   "CREATE TEMP VIEW process AS SELECT * FROM main.process WHERE pid = %lld;"
                   "CREATE TEMP VIEW thread AS SELECT * FROM main.thread WHERE process_id IN (SELECT process_id FROM "
                   "main.process WHERE pid = %lld);",
                   pid, pid);
    int rc = db_exec(l->db, sql.data, err);
    buf_free(&sql);
    return rc;
}

/* What of the window a reader has to know, in one row. */
static int write_window(struct lens *l, struct error *err)
{
    const struct lens_window *w = l->options->window;
    sqlite3_stmt *s = NULL;
    int64_t lasted_ns = 0;
    for (size_t i = 0; i < w->count; i++)
        if (__builtin_add_overflow(lasted_ns, w->ranges[i].to_ns - w->ranges[i].from_ns, &lasted_ns))
            lasted_ns = INT64_MAX;
    const int64_t values[] = {w->nth,
                              w->of,
                              (int64_t)w->count,
                              w->ranges[0].from_ns,
                              w->ranges[w->count - 1].to_ns,
                              lasted_ns,
                              w->result.is_counted,
                              w->result.start_ns,
                              w->result.end_ns,
                              w->result.chunks_damaged};
    int rc = db_exec(l->db,
                     "CREATE TEMP TABLE window(name TEXT, nth INTEGER, of INTEGER, range_count INTEGER, from_ns "
                     "INTEGER, to_ns INTEGER, lasted_ns INTEGER, is_counted INTEGER, start_ns INTEGER, end_ns INTEGER, "
                     "chunks_damaged INTEGER)",
                     err);
    if (rc == 0)
        rc = lens_prepare_insert(l->db, "window", 11, &s, err);
    if (rc == 0) {
        sqlite3_bind_text(s, 1, w->name, -1, SQLITE_STATIC);
        for (size_t i = 0; i < sizeof values / sizeof *values; i++)
            sqlite3_bind_int64(s, (int)i + 2, values[i]);
        rc = step(l, s, err);
    }
    sqlite3_finalize(s);
    return rc;
}

/* Of a replay by event. */
static int write_peaks(struct lens *l, struct error *err)
{
    sqlite3_stmt *s = NULL;
    int rc = db_exec(l->db,
                     "CREATE TEMP TABLE window_process_peak(process_id INTEGER, device_id INTEGER, kind INTEGER, "
                     "peak_bytes INTEGER)",
                     err);
    if (rc == 0)
        rc = lens_prepare_insert(l->db, "window_process_peak", 4, &s, err);
    for (uint32_t i = 0; rc == 0 && i < l->replay.process_count; i++) {
        const struct replay_process *p = &l->replay.processes[i];
        const int64_t values[] = {p->process_id, p->device, p->kind, p->peak_bytes};
        for (int k = 0; k < 4; k++)
            sqlite3_bind_int64(s, 1 + k, values[k]);
        rc = step(l, s, err);
    }
    sqlite3_finalize(s);
    return rc;
}

/* As table size_class: of a replay by event. */
static int write_sizes(struct lens *l, struct error *err)
{
    sqlite3_stmt *s = NULL;
    int rc = db_exec(l->db, "CREATE TEMP TABLE size_class AS SELECT * FROM main.size_class WHERE 0", err);
    if (rc == 0)
        rc = lens_prepare_insert(l->db, "size_class", 8, &s, err);
    for (uint32_t i = 0; rc == 0 && i < l->replay.size_count; i++) {
        const struct replay_size *size = &l->replay.sizes[i];
        const int64_t values[] = {size->log2_size,  size->alloc_count,     size->alloc_bytes,
                                  size->free_count, size->temporary_count, size->lifetime_ns};
        sqlite3_bind_int(s, 1, size->device);
        sqlite3_bind_text(s, 2, kind_name(size->kind), -1, SQLITE_STATIC);
        for (int k = 0; k < 6; k++)
            sqlite3_bind_int64(s, 3 + k, values[k]);
        if (!l->replay.has_lifetimes)
            sqlite3_bind_null(s, 8);
        rc = step(l, s, err);
    }
    sqlite3_finalize(s);
    return rc;
}

int lens_write_replayed(struct lens *l, struct error *err)
{
    int rc = l->is_replayed ? write_totals(l, err) : 0;
    if (rc == 0 && l->is_replayed)
        rc = show_replayed(l, err);
    if (rc == 0)
        rc = show_scanned(l, err);
    if (rc == 0 && l->options->window)
        rc = write_window(l, err);
    return rc;
}

/* What was added stands behind what the file has; of most recordings it is nothing, and their tables stay. */
static int show_lines(struct lens *l, struct error *err)
{
    if (l->tree.line_count == l->tree.stored_lines)
        return 0;
    return db_exec(l->db,
                   "CREATE INDEX temp.lens_line_id ON lens_line(line_id);"
                   "CREATE TEMP VIEW line AS SELECT * FROM main.line UNION ALL SELECT * FROM temp.lens_line",
                   err);
}

static int show_no_frame(struct lens *l, struct error *err)
{
    if (!l->no_frame)
        return 0;
    return db_exec(l->db,
                   l->options->language == TREE_PYTHON
                       ? "CREATE TEMP VIEW function AS SELECT * FROM main.function UNION ALL SELECT "
                         "max(function_id) + 1, '(no Python frame)', '(no Python frame)', '', NULL, NULL, 0 FROM "
                         "main.function"
                       : "CREATE TEMP VIEW function AS SELECT * FROM main.function UNION ALL SELECT "
                         "max(function_id) + 1, '(no native frame)', '(no native frame)', '', NULL, NULL, 0 FROM "
                         "main.function",
                   err);
}

int lens_write_lines(struct lens *l, struct error *err)
{
    int rc = write_lines(l, err);
    rc = rc ? rc : show_lines(l, err);
    return rc ? rc : show_no_frame(l, err);
}

int lens_write(struct lens *l, struct error *err)
{
    int rc = db_exec(l->db, "SAVEPOINT lens", err);
    if (rc == 0)
        rc = write_accounts(l, err);
    if (rc == 0)
        rc = write_scanned(l, err);
    if (rc == 0)
        rc = write_lines(l, err);
    if (rc == 0)
        rc = write_sites(l, err);
    if (rc == 0)
        rc = db_exec(l->db,
                     "CREATE INDEX temp.lens_account_key ON lens_account(scope, inclusive, device_id, kind, key_id)",
                     err);
    if (rc == 0)
        rc = show_lines(l, err);
    if (rc == 0)
        rc = show_accounts(l, err);
    if (rc == 0)
        rc = show_no_frame(l, err);
    if (rc == 0 && l->is_replayed)
        rc = write_teardowns(l, err);
    if (rc == 0)
        rc = lens_write_replayed(l, err);
    if (rc == 0 && l->replay.sizes)
        rc = write_sizes(l, err);
    if (rc == 0 && l->replay.processes)
        rc = write_peaks(l, err);
    if (rc == 0)
        rc = db_exec(l->db, "RELEASE lens", err);
    return rc;
}
