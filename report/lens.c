#include "lens.h"

#include "../common/buf.h"
#include "../common/db.h"
#include "../common/kind.h"
#include "match.h"
#include "page_map.h"
#include "replay.h"
#include "stat.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

enum scope { SCOPE_LINE, SCOPE_FUNCTION, SCOPE_FILE, SCOPE_MODULE, SCOPE_COUNT };

static const char *const scope_names[SCOPE_COUNT] = {"line", "function", "file", "module"};

struct site {
    int64_t id, stack_id, process_id, device_id;
    uint32_t kind; /* kinds */
    uint32_t line, old_line;
    struct tree_place self;
    struct stat_row stats;
};

struct row { /* of an account */
    enum scope scope;
    int inclusive;
    int64_t key; /* index of a line or function; id of a file or module */
    int64_t device_id;
    uint32_t kind;
    uint32_t site_count;
    struct stat_row stats;
};

struct lens {
    sqlite3 *db;
    const struct lens_options *options;
    struct tree tree;
    struct replay_images images;
    struct replay replay;
    int is_replayed;
    struct site *sites;
    struct row *rows;
    uint32_t site_count, site_capacity, row_count, row_capacity;
    char (*kinds)[32]; /* 0: "all" */
    uint32_t kind_count, kind_capacity;
    struct page_map row_of;  /* (key, device and kind) */
    struct page_map changed; /* (key, 0): its sites are not those of the file */
    struct page_map seen;    /* (key, 0): the site that was counted last */
    uint32_t no_frame;       /* line of the sites without a frame of the language; 0: all are shown */
};

/* --- what is skipped --------------------------------------------------------------------------------------------- */

static int skip_functions(struct lens *l, const char *pattern, struct error *err)
{
    sqlite3_stmt *s = NULL;
    int found = 0, step = SQLITE_DONE, rc;
    uint32_t index = 1;
    rc = db_prepare(l->db, "SELECT name, plain_name FROM main.function ORDER BY function_id", &s, err);
    while (rc == 0 && (step = sqlite3_step(s)) == SQLITE_ROW && index < l->tree.function_count) {
        char *name = xstrdup(db_text(s, 0));
        if (match_function(pattern, name, db_text(s, 1)))
            found = l->tree.functions[index].is_skipped = 1;
        free(name);
        index++;
    }
    if (rc == 0 && step != SQLITE_DONE && step != SQLITE_ROW)
        rc = db_error(l->db, err);
    sqlite3_finalize(s);
    return rc ? rc : found;
}

/* Code without a symbol goes by what a table shows of it: "git+0x28961c". */
static int skip_addresses(struct lens *l, const char *pattern)
{
    int found = 0;
    for (uint32_t i = 1; i < l->tree.address_count; i++) {
        struct tree_address *a = &l->tree.addresses[i];
        char text[512];
        if (!a->module || (a->frame_count && l->tree.frames[a->first_frame].function))
            continue;
        snprintf(text, sizeof text, "%s+0x%llx", l->tree.modules[a->module].name, (unsigned long long)a->offset);
        if (strcmp(pattern, text) == 0 || (strpbrk(pattern, "*?") && fnmatch(pattern, text, 0) == 0))
            found = a->is_skipped = 1;
    }
    return found;
}

static int mark_skipped(struct lens *l, struct error *err)
{
    for (int i = 0; i < l->options->skip_count; i++) {
        const char *pattern = l->options->skips[i];
        int found = skip_functions(l, pattern, err);
        if (found < 0)
            return found;
        if (!found && !(strchr(pattern, '+') && skip_addresses(l, pattern)))
            return error_set(
                err, EINVAL,
                "--skip '%s': no such function in this recording; 'memprof report --by function' lists them", pattern);
    }
    return 0;
}

/* --- sites ------------------------------------------------------------------------------------------------------- */

static uint32_t kind_of(struct lens *l, const char *name)
{
    for (uint32_t i = 0; i < l->kind_count; i++)
        if (strncmp(l->kinds[i], name, sizeof *l->kinds - 1) == 0)
            return i;
    char(*kind)[32] = PAGE_PUSH(l->kinds, l->kind_count, l->kind_capacity);
    snprintf(*kind, sizeof *kind, "%s", name);
    return l->kind_count - 1;
}

static const struct replay_site *replayed(const struct lens *l, int64_t site_id)
{
    uint32_t low = 0, high = l->replay.site_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (l->replay.sites[middle].id < site_id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < l->replay.site_count && l->replay.sites[low].id == site_id ? &l->replay.sites[low] : NULL;
}

static int load_sites(struct lens *l, struct error *err)
{
    struct buf sql = BUF(1 << 16);
    sqlite3_stmt *s = NULL;
    int step = SQLITE_DONE;
    buf_puts(&sql, "SELECT s.site_id, s.stack_id, s.process_id, s.device_id, s.kind, sl.line_id, ");
    stat_columns(&sql, "s.");
    buf_puts(&sql, " FROM main.site s LEFT JOIN main.site_line sl USING(site_id) ORDER BY s.site_id");
    int rc = db_prepare(l->db, sql.data, &s, err);
    while (rc == 0 && (step = sqlite3_step(s)) == SQLITE_ROW) {
        const struct replay_site *only = replayed(l, sqlite3_column_int64(s, 0));
        if (l->is_replayed && !only)
            continue;
        struct site *site = PAGE_PUSH(l->sites, l->site_count, l->site_capacity);
        site->id = sqlite3_column_int64(s, 0);
        site->stack_id = sqlite3_column_int64(s, 1);
        site->process_id = sqlite3_column_int64(s, 2);
        site->device_id = sqlite3_column_int64(s, 3);
        site->kind = kind_of(l, db_text(s, 4));
        site->line = site->old_line = tree_line(&l->tree, sqlite3_column_int64(s, 5));
        if (only)
            site->stats = only->stats;
        else
            stat_read(&site->stats, s, 6);
    }
    if (rc == 0 && step != SQLITE_DONE)
        rc = db_error(l->db, err);
    sqlite3_finalize(s);
    buf_free(&sql);
    return rc;
}

/* Whether the recorder's choice stands. */
static int is_kept(const struct lens *l, const struct tree_place *self)
{
    const struct tree *t = &l->tree;
    const struct tree_frame *f = self->frame ? &t->frames[self->frame] : NULL;
    if (f && t->functions[f->function].is_skipped)
        return 0;
    if (t->addresses[t->nodes[self->node].address].is_skipped)
        return 0;
    return tree_is_shown(t, self, l->options->language);
}

/* The self frame of a site: from the recorder's outwards; where that is of another language, from the innermost on. */
static void choose_self(struct lens *l, struct site *site)
{
    struct tree *t = &l->tree;
    uint32_t node = tree_node(t, site->stack_id);
    enum tree_language language = l->options->language;
    site->self = tree_find(t, node, site->line);
    if (site->self.node && is_kept(l, &site->self))
        return;
    struct tree_place from = site->self;
    if (!from.node || !tree_is_shown(t, &from, language))
        from = tree_first(t, node);
    struct tree_place self = from.node ? tree_self(t, from, language) : from;
    if (self.node) {
        site->self = self;
        site->line = tree_place_line(t, &self);
    } else if (l->no_frame) {
        site->self = self;
        site->line = l->no_frame;
    }
}

/* --- accounts ---------------------------------------------------------------------------------------------------- */

static uint64_t key_word(enum scope scope, int inclusive, int64_t key)
{
    return (uint64_t)scope << 60 | (uint64_t)inclusive << 59 | ((uint64_t)key & ((UINT64_C(1) << 59) - 1));
}

static void add_to(struct lens *l, enum scope scope, int inclusive, int64_t key, const struct site *site)
{
    for (int all = 0; key && all < 2; all++) {
        uint32_t kind = all ? 0 : site->kind;
        uint64_t a = key_word(scope, inclusive, key), b = (uint64_t)site->device_id << 8 | kind;
        uint32_t i = page_map_get(&l->row_of, a, b);
        if (i == PAGE_NONE) {
            i = l->row_count;
            page_map_set(&l->row_of, a, b, i);
            struct row *row = PAGE_PUSH(l->rows, l->row_count, l->row_capacity);
            *row = (struct row){scope, inclusive, key, site->device_id, kind, 0, {{0}, 0}};
        }
        struct row *row = &l->rows[i];
        stat_add(&row->stats, &site->stats, row->site_count++ == 0);
    }
}

/* What a place counts for, by scope. */
static void keys_of(const struct lens *l, const struct tree_place *p, uint32_t line, int64_t keys[SCOPE_COUNT])
{
    const struct tree *t = &l->tree;
    const struct tree_frame *f = p->frame ? &t->frames[p->frame] : NULL;
    uint32_t address = t->nodes[p->node].address;
    keys[SCOPE_LINE] = line;
    keys[SCOPE_FUNCTION] = f ? f->function : p->node ? 0 : t->lines[line].function;
    keys[SCOPE_FILE] = f ? f->file_id : 0;
    keys[SCOPE_MODULE] = t->modules[t->addresses[address].module].key_id;
}

static void mark_changed(struct lens *l, const struct site *site)
{
    const struct tree_place old = tree_find(&l->tree, tree_node(&l->tree, site->stack_id), site->old_line);
    int64_t keys[2][SCOPE_COUNT];
    keys_of(l, &site->self, site->line, keys[0]);
    keys_of(l, &old, site->old_line, keys[1]);
    for (int i = 0; i < 2; i++)
        for (int scope = 0; scope < SCOPE_COUNT; scope++)
            page_map_set(&l->changed, key_word((enum scope)scope, 0, keys[i][scope]), 0, 1);
}

/* Everything on the stack, each key once. */
static void add_callers(struct lens *l, uint32_t index)
{
    const struct site *site = &l->sites[index];
    struct tree *t = &l->tree;
    for (struct tree_place p = tree_first(t, tree_node(t, site->stack_id)); p.node; tree_next(t, &p)) {
        const struct tree_address *a = &t->addresses[t->nodes[p.node].address];
        int64_t keys[SCOPE_COUNT];
        if (t->modules[a->module].is_ours || !tree_is_shown(t, &p, l->options->language))
            continue;
        keys_of(l, &p, p.frame ? t->frames[p.frame].line : 0, keys);
        for (int scope = 0; scope < SCOPE_COUNT; scope++) {
            uint64_t word = key_word((enum scope)scope, 1, keys[scope]);
            if (page_map_get(&l->seen, word, 0) == index)
                continue;
            page_map_set(&l->seen, word, 0, index);
            add_to(l, (enum scope)scope, 1, keys[scope], site);
        }
    }
}

static void account(struct lens *l)
{
    for (uint32_t i = 0; i < l->site_count; i++) {
        struct site *site = &l->sites[i];
        int64_t keys[SCOPE_COUNT];
        choose_self(l, site);
        if (site->line != site->old_line)
            mark_changed(l, site);
        keys_of(l, &site->self, site->line, keys);
        for (int scope = 0; scope < SCOPE_COUNT; scope++)
            add_to(l, (enum scope)scope, 0, keys[scope], site);
        if (l->is_replayed)
            add_callers(l, i);
    }
}

static int64_t key_id(const struct lens *l, const struct row *row)
{
    return row->scope == SCOPE_LINE       ? l->tree.lines[row->key].id
           : row->scope == SCOPE_FUNCTION ? l->tree.functions[row->key].id
                                          : row->key;
}

/* Rows whose sites are as before have the own peak that the recorder computed from the events. */
static int restore_own_peaks(struct lens *l, struct error *err)
{
    sqlite3_stmt *s = NULL;
    int rc = db_prepare(l->db,
                        "SELECT own_peak_bytes FROM main.account WHERE scope = ? AND inclusive = 0 AND device_id = ? "
                        "AND kind = ? AND key_id = ?",
                        &s, err);
    for (uint32_t i = 0; rc == 0 && !l->is_replayed && i < l->row_count; i++) {
        struct row *row = &l->rows[i];
        if (page_map_get(&l->changed, key_word(row->scope, 0, row->key), 0) != PAGE_NONE)
            continue;
        sqlite3_bind_text(s, 1, scope_names[row->scope], -1, SQLITE_STATIC);
        sqlite3_bind_int64(s, 2, row->device_id);
        sqlite3_bind_text(s, 3, l->kinds[row->kind], -1, SQLITE_STATIC);
        sqlite3_bind_int64(s, 4, key_id(l, row));
        if (sqlite3_step(s) == SQLITE_ROW && sqlite3_column_type(s, 0) == SQLITE_INTEGER) {
            row->stats.value[STAT_own_peak_bytes] = sqlite3_column_int64(s, 0);
            row->stats.known |= 1u << STAT_own_peak_bytes;
        }
        sqlite3_reset(s);
    }
    sqlite3_finalize(s);
    return rc;
}

/* --- tables ------------------------------------------------------------------------------------------------------ */

static void bind_stats(sqlite3_stmt *s, int at, const struct stat_row *stats)
{
    for (int i = 0; i < STAT_COUNT; i++) {
        if (stats->known >> i & 1)
            sqlite3_bind_int64(s, at + i, stats->value[i]);
        else
            sqlite3_bind_null(s, at + i);
    }
}

static int step(struct lens *l, sqlite3_stmt *s, struct error *err)
{
    int rc = sqlite3_step(s) == SQLITE_DONE ? 0 : db_error(l->db, err);
    sqlite3_reset(s);
    return rc;
}

/* INSERT INTO table VALUES(?, ...) */
static int prepare_insert(sqlite3 *db, const char *table, int columns, sqlite3_stmt **s, struct error *err)
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

static int write_accounts(struct lens *l, struct error *err)
{
    sqlite3_stmt *s = NULL;
    int rc = db_exec(l->db, "CREATE TEMP TABLE lens_account AS SELECT * FROM main.account WHERE 0", err);
    if (rc == 0)
        rc = prepare_insert(l->db, "lens_account", 5 + STAT_COUNT, &s, err);
    for (uint32_t i = 0; rc == 0 && i < l->row_count; i++) {
        const struct row *row = &l->rows[i];
        sqlite3_bind_text(s, 1, scope_names[row->scope], -1, SQLITE_STATIC);
        sqlite3_bind_int64(s, 2, key_id(l, row));
        sqlite3_bind_int(s, 3, row->inclusive);
        sqlite3_bind_int64(s, 4, row->device_id);
        sqlite3_bind_text(s, 5, l->kinds[row->kind], -1, SQLITE_STATIC);
        bind_stats(s, 6, &row->stats);
        rc = step(l, s, err);
    }
    sqlite3_finalize(s);
    return rc;
}

static int write_lines(struct lens *l, struct error *err)
{
    const struct tree *t = &l->tree;
    sqlite3_stmt *s = NULL;
    int rc = db_exec(l->db, "CREATE TEMP TABLE lens_line AS SELECT * FROM main.line WHERE 0", err);
    if (rc == 0)
        rc = prepare_insert(l->db, "lens_line", 6, &s, err);
    for (uint32_t i = t->stored_lines; rc == 0 && i < t->line_count; i++) {
        const struct tree_line *line = &t->lines[i];
        sqlite3_bind_int64(s, 1, line->id);
        if (line->function)
            sqlite3_bind_int64(s, 2, t->functions[line->function].id);
        else
            sqlite3_bind_null(s, 2);
        sqlite3_bind_null(s, 3);
        sqlite3_bind_int64(s, 4, 0);
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
                     "CREATE TEMP TABLE site_line(site_id INTEGER PRIMARY KEY, line_id INTEGER);"
                     "CREATE TEMP TABLE lens_site AS SELECT * FROM main.site WHERE 0",
                     err);
    if (rc == 0)
        rc = prepare_insert(l->db, "lens_site", 5 + STAT_COUNT, &s, err);
    if (rc == 0)
        rc = prepare_insert(l->db, "site_line", 2, &lines, err);
    for (uint32_t i = 0; rc == 0 && i < l->site_count; i++) {
        const struct site *site = &l->sites[i];
        if (site->line) {
            sqlite3_bind_int64(lines, 1, site->id);
            sqlite3_bind_int64(lines, 2, l->tree.lines[site->line].id);
            rc = step(l, lines, err);
        }
        const int64_t values[] = {site->id, site->stack_id, site->process_id, site->device_id};
        for (int k = 0; k < 4; k++)
            sqlite3_bind_int64(s, k + 1, values[k]);
        sqlite3_bind_text(s, 5, l->kinds[site->kind], -1, SQLITE_STATIC);
        bind_stats(s, 6, &site->stats);
        if (rc == 0 && l->is_replayed)
            rc = step(l, s, err);
    }
    sqlite3_finalize(s);
    sqlite3_finalize(lines);
    return rc;
}

/* In the order of the table: the statistics that are not the process's own are not known. */
static int write_totals(struct lens *l, struct error *err)
{
    sqlite3_stmt *s = NULL;
    int rc = db_exec(l->db, "CREATE TEMP TABLE total AS SELECT * FROM main.total WHERE 0", err);
    if (rc == 0)
        rc = prepare_insert(l->db, "total", 17, &s, err);
    for (uint32_t i = 0; rc == 0 && i < l->replay.total_count; i++) {
        const struct replay_total *t = &l->replay.totals[i];
        const int64_t *v = t->stats.value;
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
                                  v[STAT_lifetime_ns]};
        sqlite3_bind_int(s, 1, t->device);
        sqlite3_bind_text(s, 2, kind_name(t->kind), -1, SQLITE_STATIC);
        for (int k = 0; k < 15; k++)
            sqlite3_bind_int64(s, 3 + k, values[k]);
        sqlite3_bind_null(s, 12);
        sqlite3_bind_null(s, 13);
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
    buf_puts(&sql, "CREATE TEMP VIEW account AS SELECT * FROM temp.lens_account UNION ALL SELECT * FROM main.account "
                   "WHERE scope = 'thread'");
    if (l->is_replayed)
        buf_printf(&sql,
                   " AND key_id IN (SELECT thread_id FROM main.thread JOIN main.process USING(process_id) WHERE pid = "
                   "%lld)",
                   pid);
    else if (l->options->language == TREE_BOTH)
        buf_puts(&sql, " OR inclusive = 1");
    else
        buf_printf(
            &sql,
            " OR (inclusive = 1 AND ((scope = 'function' AND key_id IN (SELECT function_id FROM main.frame "
            "WHERE language %s 'python')) OR (scope = 'file' AND key_id IN (SELECT file_id FROM main.frame WHERE "
            "language %s 'python')) OR (scope = 'line' AND key_id IN (SELECT line_id FROM main.line WHERE "
            "function_id IN (SELECT function_id FROM main.frame WHERE language %s 'python')))%s))",
            equal, equal, equal,
            l->options->language == TREE_PYTHON
                ? ""
                : " OR scope = 'module' OR (scope = 'line' AND key_id IN (SELECT line_id FROM main.line WHERE "
                  "function_id IS NULL))");
    int rc = db_exec(l->db, sql.data, err);
    buf_free(&sql);
    return rc;
}

/* Numbers only are put into the text of a view, which takes no parameters. */
static int show_process(struct lens *l, struct error *err)
{
    struct buf sql = BUF(1 << 12);
    long long pid = l->options->pid;
    buf_printf(&sql,
               "CREATE TEMP VIEW site AS SELECT * FROM temp.lens_site;"
               "CREATE TEMP VIEW process AS SELECT * FROM main.process WHERE pid = %lld;"
               "CREATE TEMP VIEW thread AS SELECT * FROM main.thread WHERE process_id IN (SELECT process_id FROM "
               "main.process WHERE pid = %lld)",
               pid, pid);
    int rc = db_exec(l->db, sql.data, err);
    buf_free(&sql);
    return rc;
}

static int write(struct lens *l, struct error *err)
{
    int rc = db_exec(l->db, "SAVEPOINT lens", err);
    if (rc == 0)
        rc = write_accounts(l, err);
    if (rc == 0)
        rc = write_lines(l, err);
    if (rc == 0)
        rc = write_sites(l, err);
    if (rc == 0)
        rc = db_exec(l->db,
                     "CREATE INDEX temp.lens_account_key ON lens_account(scope, inclusive, device_id, kind, key_id);"
                     "CREATE INDEX temp.lens_line_id ON lens_line(line_id);"
                     "CREATE TEMP VIEW line AS SELECT * FROM main.line UNION ALL SELECT * FROM temp.lens_line",
                     err);
    if (rc == 0)
        rc = show_accounts(l, err);
    if (rc == 0 && l->no_frame)
        rc = db_exec(l->db,
                     l->options->language == TREE_PYTHON
                         ? "CREATE TEMP VIEW function AS SELECT * FROM main.function UNION ALL SELECT "
                           "max(function_id) + 1, '(no Python frame)', '(no Python frame)', '', NULL, NULL, 0 FROM "
                           "main.function"
                         : "CREATE TEMP VIEW function AS SELECT * FROM main.function UNION ALL SELECT "
                           "max(function_id) + 1, '(no native frame)', '(no native frame)', '', NULL, NULL, 0 FROM "
                           "main.function",
                     err);
    if (rc == 0 && l->is_replayed) {
        rc = write_totals(l, err);
        if (rc == 0)
            rc = show_process(l, err);
    }
    if (rc == 0)
        rc = db_exec(l->db, "RELEASE lens", err);
    return rc;
}

/* --- all --------------------------------------------------------------------------------------------------------- */

static int load_process(struct lens *l, struct error *err)
{
    int rc = replay_images(l->db, l->options->pid, &l->images, err);
    if (rc || db_int(l->db, "SELECT count(DISTINCT pid) FROM process", 0) == 1)
        return rc;
    if (!replay_is_possible(l->db))
        return error_set(err, EINVAL,
                         "--process needs all events, which this recording does not keep (--aggregate, --max-events); "
                         "'memprof report --by process' shows the totals");
    l->is_replayed = 1;
    return replay_process(l->db, &l->images, &l->replay, err);
}

static void add_no_frame(struct lens *l)
{
    struct tree *t = &l->tree;
    int64_t last = t->function_count > 1 ? t->functions[t->function_count - 1].id : 0;
    struct tree_function *f = PAGE_PUSH(t->functions, t->function_count, t->function_capacity);
    f->id = last + 1;
    l->no_frame = tree_add_line(t, t->function_count - 1);
}

int lens_apply(sqlite3 *db, const struct lens_options *options, struct error *err)
{
    struct lens l = {.db = db, .options = options};
    int rc = 0;
    if (!options->skip_count && !options->pid && options->language == TREE_BOTH)
        return 0;
    if (options->language == TREE_PYTHON && db_int(db, "SELECT 1 FROM frame WHERE language = 'python' LIMIT 1", 0) == 0)
        return error_set(err, EINVAL, "--python-only: no Python code in this recording");
    kind_of(&l, "all");
    rc = tree_open(db, &l.tree, err);
    if (rc == 0)
        rc = mark_skipped(&l, err);
    if (rc == 0 && options->pid)
        rc = load_process(&l, err);
    if (rc == 0 && options->language != TREE_BOTH)
        add_no_frame(&l);
    if (rc == 0)
        rc = load_sites(&l, err);
    if (rc == 0) {
        account(&l);
        rc = restore_own_peaks(&l, err);
    }
    if (rc == 0)
        rc = write(&l, err);
    tree_close(&l.tree);
    replay_free(&l.replay);
    page_map_free(&l.row_of);
    page_map_free(&l.changed);
    page_map_free(&l.seen);
    free(l.sites);
    free(l.rows);
    free(l.kinds);
    return rc;
}
