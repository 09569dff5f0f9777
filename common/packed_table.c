/* The packed tables as SQLite's virtual tables. */
#include "packed.h"

#include "kind.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#ifdef MEMPROF_LOADABLE
SQLITE_EXTENSION_INIT3
#endif

enum view { VIEW_stack, VIEW_site, VIEW_site_line, VIEW_site_teardown, VIEW_site_kept, VIEW_resident_site, VIEWS };

enum { STACK_ID, STACK_PARENT, STACK_ADDRESS, STACK_DEPTH, STACK_FLAGS };
enum { SITE_ID, SITE_STACK, SITE_PROCESS, SITE_DEVICE, SITE_KIND, SITE_STATS };
enum { LINE_SITE, LINE_ID };
enum { LOOK_SCAN, LOOK_SITE };

static const struct {
    const char *name, *plain, *declaration;
    enum packed_table table;
    enum packed_column first; /* of the column after the id; the others follow */
    enum packed_column there; /* a row is there where that is not 0; PACKED_COLUMNS: each is */
} views[VIEWS] = {
    {"packed_stack", "stack",
     "CREATE TABLE x(stack_id INTEGER PRIMARY KEY, parent_id INTEGER, address_id INTEGER, depth INTEGER, "
     "flags INTEGER)",
     PACKED_TABLE_stack, PACKED_KEY_stack, PACKED_COLUMNS},
#define STAT(column, name, unit, combine, text) ", " #column " INTEGER"
    {"packed_site", "site",
     "CREATE TABLE x(site_id INTEGER PRIMARY KEY, stack_id INTEGER, process_id INTEGER, device_id INTEGER, kind TEXT"
#include "stat.def"
     ")",
#undef STAT
     PACKED_TABLE_site, PACKED_KEY_site, PACKED_COLUMNS},
    {"packed_site_line", "site_line", "CREATE TABLE x(site_id INTEGER PRIMARY KEY, line_id INTEGER)", PACKED_TABLE_site,
     PACKED_site_line_id, PACKED_site_line_id},
    {"packed_site_teardown", "site_teardown",
     "CREATE TABLE x(site_id INTEGER PRIMARY KEY, freed_bytes INTEGER, freed_count INTEGER)", PACKED_TABLE_site,
     PACKED_site_torn_bytes, PACKED_site_torn_count},
    {"packed_site_kept", "site_kept", "CREATE TABLE x(site_id INTEGER PRIMARY KEY, kept_count INTEGER)",
     PACKED_TABLE_site, PACKED_site_kept_count, PACKED_site_kept_count},
    /* no primary key: the row's id is its number in the table */
    {"packed_resident_site", "resident_site",
     "CREATE TABLE x(scan_id INTEGER, site_id INTEGER, live_count INTEGER, live_bytes INTEGER, resident_bytes INTEGER, "
     "shared_bytes INTEGER, huge_bytes INTEGER, swapped_bytes INTEGER, untouched_bytes INTEGER)",
     PACKED_TABLE_resident_site, PACKED_KEY_resident_site, PACKED_COLUMNS},
};

struct shared { /* by the tables of a connection */
    struct packed *packed;
    int users;
};

struct module {
    struct shared *shared;
    enum view view;
};

struct table {
    sqlite3_vtab base;
    struct packed *packed;
    enum view view;
};

struct cursor {
    sqlite3_vtab_cursor base;
    uint32_t row, last;
    int is_of_stack; /* the sites of one stack */
    int is_of_line;  /* those with this line */
    uint64_t line_id;
    const struct packed_values *above; /* those with more than least in it; NULL: all */
    int64_t least;
};

enum { PLAN_ALL, PLAN_ROW, PLAN_STACK, PLAN_LINE, PLAN_LOOK, PLAN_ABOVE };
#define PLAN_BITS 8 /* of PLAN_ABOVE the column comes behind */

static struct table *table_of(sqlite3_vtab_cursor *cursor)
{
    return (struct table *)(void *)cursor->pVtab;
}

static struct cursor *cursor_of(sqlite3_vtab_cursor *cursor)
{
    return (struct cursor *)(void *)cursor;
}

static int connect_table(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **out, char **error)
{
    (void)argc, (void)argv, (void)error;
    const struct module *m = aux;
    int rc = sqlite3_declare_vtab(db, views[m->view].declaration);
    if (rc != SQLITE_OK)
        return rc;
    /* Reads the file's tables alone and changes nothing, so a view in an untrusted file may name it too. */
    sqlite3_vtab_config(db, SQLITE_VTAB_INNOCUOUS);
    struct table *t = calloc(1, sizeof *t);
    if (!t)
        return SQLITE_NOMEM;
    t->packed = m->shared->packed;
    t->view = m->view;
    *out = &t->base;
    return SQLITE_OK;
}

static int disconnect_table(sqlite3_vtab *base)
{
    free(base);
    return SQLITE_OK;
}

static int fail(sqlite3_vtab *base, long rc)
{
    sqlite3_free(base->zErrMsg);
    base->zErrMsg = sqlite3_mprintf("%s", packed_error(rc));
    return rc == -ENOMEM ? SQLITE_NOMEM : SQLITE_ERROR;
}

/* Sites with more than a number of something: what is passed over here costs a hundredth of SQLite's look at it. How
 * many they are nobody knows, so it is as dear as all. */
static void plan_above(sqlite3_index_info *info)
{
    for (int i = 0; i < info->nConstraint; i++) {
        if (!info->aConstraint[i].usable || info->aConstraint[i].op != SQLITE_INDEX_CONSTRAINT_GT ||
            info->aConstraint[i].iColumn < SITE_STATS)
            continue;
        info->idxNum = PLAN_ABOVE | info->aConstraint[i].iColumn << PLAN_BITS;
        info->aConstraintUsage[i].argvIndex = 1;
        return;
    }
}

static int plan(sqlite3_vtab *base, sqlite3_index_info *info)
{
    const struct table *t = (const struct table *)(const void *)base;
    int row = -1, by = -1; /* the constraints: on the id, and on what sites can be looked for by */
    enum view view = t->view;
    int id = view == VIEW_resident_site ? -1 : 0; /* the column */
    for (int i = 0; i < info->nConstraint; i++) {
        if (!info->aConstraint[i].usable || info->aConstraint[i].op != SQLITE_INDEX_CONSTRAINT_EQ)
            continue;
        if (info->aConstraint[i].iColumn == id || info->aConstraint[i].iColumn == -1)
            row = i;
        else if ((view == VIEW_site && info->aConstraint[i].iColumn == SITE_STACK) ||
                 (view == VIEW_site_line && info->aConstraint[i].iColumn == LINE_ID) ||
                 (view == VIEW_resident_site && info->aConstraint[i].iColumn == LOOK_SCAN))
            by = i;
    }
    info->idxNum = row >= 0                 ? PLAN_ROW
                   : by < 0                 ? PLAN_ALL
                   : view == VIEW_site      ? PLAN_STACK
                   : view == VIEW_site_line ? PLAN_LINE
                                            : PLAN_LOOK;
    if (info->idxNum != PLAN_ALL) /* SQLite checks again: the value may be no integer */
        info->aConstraintUsage[row >= 0 ? row : by].argvIndex = 1;
    if (row >= 0)
        info->idxFlags = SQLITE_INDEX_SCAN_UNIQUE;
    static const struct {
        int rows, cost;
    } estimates[] = {[PLAN_ALL] = {1000000, 1000000},
                     [PLAN_ROW] = {1, 1},
                     [PLAN_STACK] = {2, 3},
                     [PLAN_LINE] = {1000, 20000},
                     [PLAN_LOOK] = {50000, 50000}};
    info->estimatedRows = estimates[info->idxNum].rows;
    info->estimatedCost = estimates[info->idxNum].cost;
    if (info->idxNum == PLAN_ALL && view == VIEW_site)
        plan_above(info);
    if (info->nOrderBy == 1 && info->aOrderBy[0].iColumn <= id && !info->aOrderBy[0].desc)
        info->orderByConsumed = 1; /* rows come by their id, of a stack too */
    return SQLITE_OK;
}

static int open_cursor(sqlite3_vtab *base, sqlite3_vtab_cursor **out)
{
    struct cursor *c = calloc(1, sizeof *c);
    if (!c)
        return SQLITE_NOMEM;
    struct table *t = (struct table *)(void *)base;
    packed_hold(t->packed);
    *out = &c->base;
    return SQLITE_OK;
}

static int close_cursor(sqlite3_vtab_cursor *base)
{
    packed_let(table_of(base)->packed);
    free(base);
    return SQLITE_OK;
}

/* Sites without a line have no row in site_line, and so on. */
static void skip_absent(const struct table *t, struct cursor *c)
{
    const struct packed_values *there;
    enum packed_column column = views[t->view].there;
    while (c->above && c->row <= c->last && (int64_t)packed_at(c->above, c->row) <= c->least)
        c->row++;
    if (column == PACKED_COLUMNS || !c->row || packed_read(t->packed, column, &there))
        return;
    uint32_t row = c->row;
    while (row <= c->last && (c->is_of_line ? packed_at(there, row) != c->line_id : !packed_at(there, row)))
        row++;
    c->row = row;
}

static int filter(sqlite3_vtab_cursor *base, int number, const char *text, int argc, sqlite3_value **argv)
{
    struct table *t = table_of(base);
    struct cursor *c = cursor_of(base);
    long count = packed_count(t->packed, views[t->view].table);
    int64_t wanted = argc ? sqlite3_value_int64(argv[0]) : 0;
    (void)text;
    if (count < 0)
        return fail(base->pVtab, count);
    *c = (struct cursor){.base = c->base, .row = 1, .last = (uint32_t)count};
    if (number == PLAN_ROW) {
        c->row = wanted >= 1 && wanted <= count ? (uint32_t)wanted : 0;
        c->last = c->row;
    } else if (number == PLAN_STACK) {
        c->is_of_stack = 1;
        int rc = packed_site_of_stack(t->packed, wanted, &c->row);
        if (rc)
            return fail(base->pVtab, rc);
    } else if (number == PLAN_LINE) {
        c->is_of_line = 1;
        c->line_id = (uint64_t)wanted;
        c->row = wanted > 0;
    } else if (number == PLAN_LOOK) {
        packed_look_rows(t->packed, wanted, &c->row, &c->last);
    } else if (number > PLAN_ABOVE && sqlite3_value_type(argv[0]) == SQLITE_INTEGER) {
        int rc = packed_read(t->packed, views[t->view].first + (unsigned)(number >> PLAN_BITS) - 1, &c->above);
        if (rc)
            return fail(base->pVtab, rc);
        c->least = wanted;
    }
    skip_absent(t, c);
    return SQLITE_OK;
}

static int next(sqlite3_vtab_cursor *base)
{
    struct cursor *c = cursor_of(base);
    c->row = c->is_of_stack ? packed_next_site(table_of(base)->packed, c->row) : c->row + 1;
    skip_absent(table_of(base), c);
    return SQLITE_OK;
}

static int is_at_end(sqlite3_vtab_cursor *base)
{
    const struct cursor *c = cursor_of(base);
    return !c->row || c->row > c->last;
}

static int value_of(struct table *t, enum packed_column column, uint32_t row, uint64_t *value)
{
    const struct packed_values *values;
    int rc = packed_read(t->packed, column, &values);
    if (rc)
        return fail(&t->base, rc);
    *value = packed_at(values, row);
    return SQLITE_OK;
}

static int depth_of(struct table *t, uint32_t row, uint64_t *depth)
{
    const uint32_t *depths;
    int rc = packed_depths(t->packed, &depths);
    if (rc)
        return fail(&t->base, rc);
    *depth = depths[row];
    return SQLITE_OK;
}

static int stack_column(struct table *t, uint32_t row, int number, uint64_t *value)
{
    if (number == STACK_DEPTH)
        return depth_of(t, row, value);
    return value_of(t,
                    number == STACK_PARENT    ? PACKED_stack_parent_id
                    : number == STACK_ADDRESS ? PACKED_stack_address_id
                                              : PACKED_stack_flags,
                    row, value);
}

static int column(sqlite3_vtab_cursor *base, sqlite3_context *context, int number)
{
    struct table *t = table_of(base);
    uint32_t row = cursor_of(base)->row;
    uint64_t value = row;
    int rc = SQLITE_OK;
    if (number > 0 && t->view == VIEW_stack)
        rc = stack_column(t, row, number, &value);
    else if (number > 0) /* the columns are in the same order here and there */
        rc = value_of(t, views[t->view].first + (unsigned)number - 1, row, &value);
    else if (t->view == VIEW_resident_site)
        value = (uint64_t)packed_look_of(t->packed, row);
    if (rc != SQLITE_OK)
        return rc;
    if (t->view == VIEW_site && number == SITE_KIND)
        sqlite3_result_text(context, kind_name((unsigned)value), -1, SQLITE_STATIC);
    else if (t->view != VIEW_stack || number != STACK_PARENT || value)
        sqlite3_result_int64(context, (sqlite3_int64)value);
    return SQLITE_OK;
}

static int rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *id)
{
    *id = cursor_of(base)->row;
    return SQLITE_OK;
}

static const sqlite3_module module = {
    .iVersion = 1,
    .xCreate = connect_table, /* as xConnect: it exists by its name alone, and may be made under another one */
    .xConnect = connect_table,
    .xBestIndex = plan,
    .xDisconnect = disconnect_table,
    .xDestroy = disconnect_table,
    .xOpen = open_cursor,
    .xClose = close_cursor,
    .xFilter = filter,
    .xNext = next,
    .xEof = is_at_end,
    .xColumn = column,
    .xRowid = rowid,
};

static void leave(void *arg)
{
    struct shared *shared = arg;
    if (--shared->users > 0)
        return;
    packed_close(shared->packed);
    free(shared);
}

static void destroy(void *arg)
{
    struct module *m = arg;
    leave(m->shared);
    free(m);
}

/* SQLite's way to hand out a pointer: only this program's own can be bound, so no SQL gets at it. */
#define POINTER "memprof packed"

static void tell(sqlite3_context *context, int argc, sqlite3_value **argv)
{
    struct packed **out = argc == 1 ? sqlite3_value_pointer(argv[0], POINTER) : NULL;
    const struct shared *shared = sqlite3_user_data(context);
    if (out)
        *out = shared->packed;
}

struct packed *packed_shared(sqlite3 *db)
{
    struct packed *p = NULL;
    sqlite3_stmt *s = NULL;
    if (sqlite3_prepare_v2(db, "SELECT packed_shared(?)", -1, &s, NULL) == SQLITE_OK) {
        sqlite3_bind_pointer(s, 1, &p, POINTER, NULL);
        sqlite3_step(s);
    }
    sqlite3_finalize(s);
    return p;
}

int packed_register(sqlite3 *db)
{
    struct packed *kept = packed_shared(db);
    if (kept && packed_is_kept(kept))
        return SQLITE_OK;
    struct shared *shared = calloc(1, sizeof *shared);
    if (shared)
        shared->packed = packed_open(db);
    if (!shared || !shared->packed) {
        free(shared);
        return SQLITE_NOMEM;
    }
    int rc = SQLITE_OK;
    shared->users = 1; /* ours, until all are there */
    for (int i = 0; i < VIEWS && rc == SQLITE_OK; i++) {
        struct module *m = malloc(sizeof *m);
        if (!m) {
            rc = SQLITE_NOMEM;
            break;
        }
        *m = (struct module){shared, (enum view)i};
        shared->users++;
        rc = sqlite3_create_module_v2(db, views[i].name, &module, m, destroy); /* which calls destroy where it fails */
    }
    shared->users++;
    int function_rc = sqlite3_create_function_v2(db, "packed_shared", 1, SQLITE_UTF8 | SQLITE_DIRECTONLY, shared, tell,
                                                 NULL, NULL, leave); /* which is called where it fails, too */
    leave(shared);
    return rc == SQLITE_OK ? function_rc : rc;
}

/* Earlier versions had plain rows of the teardown beside packed sites. */
static int has_view(sqlite3 *db, enum view view)
{
    enum packed_column there = views[view].there;
    return there == PACKED_COLUMNS || there == PACKED_site_line_id ? packed_has(db, views[view].table)
                                                                   : packed_has_column(db, there);
}

int packed_views(sqlite3 *db, struct error *err)
{
    int has[VIEWS], any = 0, rc = SQLITE_OK;
    for (int i = 0; i < VIEWS; i++)
        any |= has[i] = has_view(db, (enum view)i);
    if (!any)
        return 0;
    rc = packed_register(db);
    for (int i = 0; i < VIEWS && rc == SQLITE_OK; i++) {
        char sql[200];
        /* no view: what SQLite joins to one of a virtual table, it first copies */
        sqlite3_snprintf((int)sizeof sql, sql,
                         "CREATE VIRTUAL TABLE IF NOT EXISTS temp.%s USING %s; SELECT 1 FROM %s LIMIT 0",
                         views[i].plain, views[i].name, views[i].name);
        if (has[i]) /* and names it once, which an authorizer would refuse later */
            rc = sqlite3_exec(db, sql, NULL, NULL, NULL);
    }
    return rc == SQLITE_OK ? 0 : error_set(err, EIO, "%s: %s", sqlite3_db_filename(db, "main"), sqlite3_errmsg(db));
}
