/*
 * The lines of sites for who wants sites alone (lens_sites.c), where functions are skipped or one language is shown:
 * the tree of stacks says which line counts for a site, and all that is kept of it is a row of temp.site_line. The tree
 * is the most that is in memory, and is gone before anything else is read.
 */
#include "lens_private.h"

#include "../../common/buf.h"
#include "../../common/db.h"
#include "../../common/packed.h"

#include <stdlib.h>

struct lines {
    struct lens *lens;
    sqlite3_stmt *site, *insert;
    uint8_t *is_changed; /* by line: its sites are not those of the file */
    size_t room;
};

static void mark_changed(struct lines *k, uint32_t line)
{
    ARRAY_ROOM_ZERO(k->is_changed, (size_t)line + 1, k->room);
    k->is_changed[line] = 1;
}

static int put_line(struct lines *k, int64_t site_id, uint32_t line, struct error *err)
{
    sqlite3_bind_int64(k->insert, 1, site_id);
    sqlite3_bind_int64(k->insert, 2, k->lens->tree.lines[line].id);
    int rc = sqlite3_step(k->insert) == SQLITE_DONE ? 0 : db_error(k->lens->db, err);
    sqlite3_reset(k->insert);
    return rc;
}

static int take_site(struct lines *k, struct error *err)
{
    struct lens *l = k->lens;
    struct lens_site site = {.stack_id = sqlite3_column_int64(k->site, 1),
                             .old_line = tree_line(&l->tree, sqlite3_column_int64(k->site, 2))};
    site.line = site.old_line;
    lens_choose_self(l, &site);
    if (site.line != site.old_line) {
        mark_changed(k, site.line);
        mark_changed(k, site.old_line);
    }
    return site.line ? put_line(k, sqlite3_column_int64(k->site, 0), site.line, err) : 0;
}

/* One after the other, from what no lens changes. */
static int take_sites(struct lines *k, struct error *err)
{
    sqlite3 *db = k->lens->db;
    const char *source = packed_source(db, PACKED_TABLE_site);
    struct buf sql = BUF(1 << 10);
    buf_printf(&sql,
               "SELECT s.site_id, s.stack_id, sl.line_id FROM %s s LEFT JOIN %s_line sl USING(site_id) ORDER BY 1",
               source, source);
    int rc = db_exec(db,
                     "DROP TABLE IF EXISTS temp.site_line;"
                     "CREATE TEMP TABLE site_line(site_id INTEGER PRIMARY KEY, line_id INTEGER)",
                     err);
    rc = rc ? rc : lens_prepare_insert(db, "site_line", 2, &k->insert, err);
    rc = rc ? rc : db_prepare(db, buf_text(&sql), &k->site, err);
    while (rc == 0 && db_next(k->site, &rc, err))
        rc = take_site(k, err);
    buf_free(&sql);
    return rc;
}

/* temp.lens_changed: lines whose own peak the file does not tell any more. */
static int write_changed(struct lines *k, struct error *err)
{
    sqlite3_stmt *s = NULL;
    int rc = db_exec(k->lens->db, "CREATE TEMP TABLE lens_changed(line_id INTEGER PRIMARY KEY)", err);
    rc = rc ? rc : lens_prepare_insert(k->lens->db, "lens_changed", 1, &s, err);
    for (size_t i = 1; rc == 0 && i < k->room; i++) {
        if (!k->is_changed[i])
            continue;
        sqlite3_bind_int64(s, 1, k->lens->tree.lines[i].id);
        rc = sqlite3_step(s) == SQLITE_DONE ? 0 : db_error(k->lens->db, err);
        sqlite3_reset(s);
    }
    sqlite3_finalize(s);
    return rc;
}

int lens_own_lines(struct lens *l, struct error *err)
{
    struct lines k = {.lens = l};
    int rc = tree_open(l->db, &l->tree, err);
    rc = rc ? rc : lens_mark_skipped(l, err);
    if (rc == 0 && l->options->language != TREE_BOTH)
        lens_add_no_frame(l);
    rc = rc ? rc : take_sites(&k, err);
    rc = rc ? rc : write_changed(&k, err);
    rc = rc ? rc : lens_write_lines(l, err);
    sqlite3_finalize(k.site);
    sqlite3_finalize(k.insert);
    free(k.is_changed);
    tree_close(&l->tree);
    return rc;
}
