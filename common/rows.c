#include "rows.h"

#include "error.h"

#include <stdlib.h>

#define POINTER "memprof rows" /* what sqlite3_bind_pointer calls them */

struct cursor {
    sqlite3_vtab_cursor base;
    const struct rows *rows;
    uint64_t row;
};

static int connect_table(sqlite3 *db, void *arg, int argc, const char *const *argv, sqlite3_vtab **out, char **err)
{
    (void)argc, (void)argv, (void)err;
    int rc = sqlite3_declare_vtab(db, arg);
    *out = rc == SQLITE_OK ? xcalloc(1, sizeof **out) : NULL;
    return rc;
}

static int disconnect_table(sqlite3_vtab *base)
{
    free(base);
    return SQLITE_OK;
}

/* Column 0 is hidden: the table's argument. */
static int plan(sqlite3_vtab *base, sqlite3_index_info *info)
{
    (void)base;
    info->estimatedCost = 1000;
    for (int i = 0; i < info->nConstraint; i++)
        if (info->aConstraint[i].iColumn == 0 && info->aConstraint[i].usable) {
            info->aConstraintUsage[i].argvIndex = 1;
            info->aConstraintUsage[i].omit = 1;
            return SQLITE_OK;
        }
    return SQLITE_CONSTRAINT;
}

static int open_cursor(sqlite3_vtab *base, sqlite3_vtab_cursor **out)
{
    (void)base;
    struct cursor *c = xcalloc(1, sizeof *c);
    *out = &c->base;
    return SQLITE_OK;
}

static int close_cursor(sqlite3_vtab_cursor *base)
{
    free(base);
    return SQLITE_OK;
}

static struct cursor *cursor_of(sqlite3_vtab_cursor *base)
{
    return (struct cursor *)(void *)base;
}

static int begin(sqlite3_vtab_cursor *base, int number, const char *text, int argc, sqlite3_value **argv)
{
    (void)number, (void)text;
    struct cursor *c = cursor_of(base);
    c->rows = argc ? sqlite3_value_pointer(argv[0], POINTER) : NULL;
    c->row = c->rows ? c->rows->first : 0;
    return SQLITE_OK;
}

static int next(sqlite3_vtab_cursor *base)
{
    cursor_of(base)->row++;
    return SQLITE_OK;
}

static int is_at_end(sqlite3_vtab_cursor *base)
{
    const struct cursor *c = cursor_of(base);
    return !c->rows || c->row > c->rows->last;
}

static int column(sqlite3_vtab_cursor *base, sqlite3_context *value, int number)
{
    const struct cursor *c = cursor_of(base);
    if (number > 0)
        c->rows->column(c->rows->arg, (uint32_t)c->row, number - 1, value);
    return SQLITE_OK;
}

static int rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *id)
{
    *id = (sqlite3_int64)cursor_of(base)->row;
    return SQLITE_OK;
}

static const sqlite3_module module = {
    .xConnect = connect_table, /* no xCreate: the name is there without a CREATE VIRTUAL TABLE */
    .xBestIndex = plan,
    .xDisconnect = disconnect_table,
    .xOpen = open_cursor,
    .xClose = close_cursor,
    .xFilter = begin,
    .xNext = next,
    .xEof = is_at_end,
    .xColumn = column,
    .xRowid = rowid,
};

void rows_register(struct rows *rows, sqlite3 *db)
{
    if (!rows->is_known) /* each of them may: all that is known of the table is in the program's own text */
        sqlite3_create_module_v2(db, rows->name, &module, (void *)(uintptr_t)rows->declaration, NULL);
    rows->is_known = 1;
}

void rows_bind(struct rows *rows, sqlite3_stmt *statement)
{
    sqlite3_bind_pointer(statement, 1, rows, POINTER, NULL);
}
