#include "wrapper.h"

#include "../../common/db.h"
#include "walk.h"

#include <stdlib.h>
#include <string.h>

enum {
    FUNCTIONS = 4,       /* which so many functions call, */
    FUNCTIONS_NAMED = 2, /* or so many, if it is called like one */
};

int wrapper_is_named(const struct row *row)
{
    static const char *const words[] = {"alloc", "strdup", "memdup", "strndup"};
    for (size_t i = 0; row->plain_name && i < sizeof words / sizeof *words; i++)
        if (strcasestr(row->plain_name, words[i]))
            return 1;
    return !row->function;
}

/* One line makes all that the function allocates. Without lines nobody knows. */
static int has_one_line(sqlite3 *db, const struct row *row)
{
    sqlite3_stmt *s = NULL;
    int is_one = 0;
    if (row->file && sqlite3_prepare_v2(db,
                                        "SELECT count(DISTINCT key_id) FROM account WHERE scope = 'line' AND inclusive "
                                        "= 0 AND kind = 'all' AND key_id IN (SELECT line_id FROM line WHERE "
                                        "function_id = (SELECT function_id FROM line WHERE line_id = ?))",
                                        -1, &s, NULL) == SQLITE_OK) {
        sqlite3_bind_int64(s, 1, row->key_id);
        is_one = sqlite3_step(s) == SQLITE_ROW && sqlite3_column_int64(s, 0) == 1;
    }
    sqlite3_finalize(s);
    return is_one;
}

int wrapper_is(sqlite3 *db, const struct row *row, const struct callers *callers)
{
    int is_named = wrapper_is_named(row);
    return callers->function_count >= (row->function && is_named ? FUNCTIONS_NAMED : FUNCTIONS) &&
           (is_named || has_one_line(db, row));
}

int wrapper_chain_load(sqlite3 *db, struct walk *walk, const struct row *row, enum callers_of of, const char *kind,
                       struct wrapper_chain *chain, struct error *err)
{
    struct callers_line *line;
    int rc = callers_open(db, walk, row, of, kind, &line, err);
    const struct callers *last;
    *chain = (struct wrapper_chain){0};
    do {
        last = &chain->callers[chain->count];
        if (rc == 0)
            rc = callers_load(line, chain->count, &chain->callers[chain->count], err);
        chain->count++;
    } while (rc == 0 && chain->count < WRAPPER_CHAIN_MAX && last->count == 1 && last->item[0].row.module &&
             last->site_count > 1);
    callers_close(line);
    return rc;
}

const struct callers *wrapper_chain_last(const struct wrapper_chain *chain)
{
    return &chain->callers[chain->count - 1];
}

void wrapper_chain_free(struct wrapper_chain *chain)
{
    for (int i = 0; i < chain->count; i++)
        callers_free(&chain->callers[i]);
}

static int load_line(sqlite3 *db, int64_t site_id, struct row *row, struct error *err)
{
    sqlite3_stmt *s = NULL;
    int rc = db_prepare(db,
                        "SELECT l.line_id, fn.name, fn.plain_name, f.path, l.line, m.path, l.offset FROM site_line sl "
                        "JOIN line l USING(line_id) LEFT JOIN function fn USING(function_id) LEFT JOIN file f ON "
                        "f.file_id = l.file_id LEFT JOIN module_key m ON m.key_id = l.module_key_id WHERE sl.site_id = "
                        "?",
                        &s, err);
    if (rc)
        return rc;
    sqlite3_bind_int64(s, 1, site_id);
    int found = sqlite3_step(s) == SQLITE_ROW;
    if (found) {
        row->key_id = sqlite3_column_int64(s, 0);
        row->function = db_own_text(s, 1);
        row->plain_name = db_own_text(s, 2);
        row->file = db_own_text(s, 3);
        row->line = sqlite3_column_int64(s, 4);
        row->module = db_own_text(s, 5);
        row->offset = sqlite3_column_int64(s, 6);
    }
    sqlite3_finalize(s);
    return found;
}

int wrapper_callers(sqlite3 *db, int64_t site_id, const char *device, enum callers_of of, struct callers *callers,
                    struct error *err)
{
    struct row row = {0};
    struct walk *walk = NULL;
    struct wrapper_chain chain = {0};
    *callers = (struct callers){0};
    int rc = load_line(db, site_id, &row, err);
    if (rc == 1 && (wrapper_is_named(&row) || has_one_line(db, &row))) {
        row.device = xstrdup(device);
        rc = walk_open(db, TREE_BOTH, &walk, err);
        if (rc == 0)
            rc = wrapper_chain_load(db, walk, &row, of, NULL, &chain, err);
        if (rc == 0 && wrapper_is(db, &row, wrapper_chain_last(&chain)))
            *callers = chain.callers[--chain.count]; /* no longer the chain's */
        wrapper_chain_free(&chain);
        walk_close(walk);
    }
    char *texts[] = {row.device, row.function, row.plain_name, row.file, row.module};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        free(texts[i]);
    return rc < 0 ? rc : 0;
}
