#include "sql.h"

#include "../../common/buf.h"
#include "../print/listing.h"
#include "../query/vtab_event.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { PRINT_ROWS = 1000 }; /* rows of one table on a terminal: columns are fitted within so many */

/* Those that only read. */
static const char *const pragmas[] = {"table_info",   "table_xinfo",     "table_list",     "index_list",
                                      "index_info",   "database_list",   "function_list",  "schema_version",
                                      "user_version", "application_id",  "page_size",      "page_count",
                                      "encoding",     "integrity_check", "quick_check",    "compile_options",
                                      "pragma_list",  "module_list",     "collation_list", "foreign_key_list"};

/* Their tables come into being when they are first named, which the authorizer would refuse later. */
static void name_pragma_tables(sqlite3 *db)
{
    char query[64];
    for (size_t i = 0; i < sizeof pragmas / sizeof *pragmas; i++) {
        sqlite3_stmt *s = NULL;
        snprintf(query, sizeof query, "SELECT 1 FROM pragma_%s", pragmas[i]);
        sqlite3_prepare_v2(db, query, -1, &s, NULL); /* some have no table */
        sqlite3_finalize(s);
    }
}

static int authorize(void *context, int action, const char *first, const char *second, const char *database,
                     const char *trigger)
{
    (void)context, (void)database, (void)trigger;
    switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_RECURSIVE:
        return SQLITE_OK;
    case SQLITE_FUNCTION:
        return sqlite3_stricmp(second, "load_extension") == 0 ? SQLITE_DENY : SQLITE_OK;
    case SQLITE_PRAGMA:
        for (size_t i = 0; i < sizeof pragmas / sizeof *pragmas; i++)
            if (sqlite3_stricmp(first, pragmas[i]) == 0)
                return SQLITE_OK;
        return SQLITE_DENY;
    default:
        return SQLITE_DENY;
    }
}

/* The statement's columns under its own names; for people, as many as a terminal shows, numbers to the right, which the
 * first row decides. */
static struct column *columns_of(sqlite3_stmt *s, int has_row, struct buf *titles)
{
    int count = sqlite3_column_count(s);
    struct column *columns = xcalloc((size_t)count, sizeof *columns);
    for (int c = 0; c < count; c++) {
        /* asked for without a row, it would hide the error */
        int type = has_row ? sqlite3_column_type(s, c) : SQLITE_NULL;
        const char *name = sqlite3_column_name(s, c);
        columns[c].key = name ? name : "";
        columns[c].unit = type == SQLITE_INTEGER || type == SQLITE_FLOAT ? COLUMN_NUMBER : COLUMN_TEXT;
        columns[c].cut = type == SQLITE_TEXT ? TEXT_CUT_MIDDLE : TEXT_CUT_NONE;
        if (c >= TABLE_COLUMNS_MAX)
            continue;
        titles[c] = (struct buf)BUF(1 << 16);
        text_clean(&titles[c], columns[c].key);
        columns[c].title = titles[c].data ? titles[c].data : "";
    }
    return columns;
}

/* The last step of the statement. */
static int list_rows(sqlite3_stmt *s, const struct report_out *out)
{
    struct buf titles[TABLE_COLUMNS_MAX] = {0};
    int step = sqlite3_step(s);
    struct column *columns = columns_of(s, step == SQLITE_ROW, titles);
    struct listing *l = listing_open(columns, (size_t)sqlite3_column_count(s), out, NULL);
    for (; step == SQLITE_ROW; step = sqlite3_step(s)) {
        if (out->format == REPORT_TEXT && listing_rows(l) == PRINT_ROWS)
            listing_print(l);
        listing_row(l, s);
    }
    listing_print(l);
    listing_close(l);
    for (int c = 0; c < TABLE_COLUMNS_MAX; c++)
        buf_free(&titles[c]);
    free(columns);
    return step;
}

static int sql_error(sqlite3 *db, struct error *err)
{
    if (sqlite3_errcode(db) == SQLITE_AUTH)
        return error_set(err, EPERM,
                         "sql: only SELECT and reading PRAGMAs are allowed; nothing is written or attached");
    return error_set(err, EINVAL, "sql: %s", sqlite3_errmsg(db));
}

int sql_run(sqlite3 *db, const char *query, const struct report_out *out, struct error *err)
{
    int rc = 0, statements = 0;
    /* the table comes into being when it is first named, which the authorizer would refuse later */
    if (vtab_event_register(db) != SQLITE_OK ||
        sqlite3_exec(db, "SELECT time_ns FROM v_event LIMIT 0", NULL, NULL, NULL) != SQLITE_OK)
        return sql_error(db, err);
    name_pragma_tables(db);
    sqlite3_limit(db, SQLITE_LIMIT_ATTACHED, 0);
    sqlite3_set_authorizer(db, authorize, NULL);
    while (rc == 0 && *query) {
        sqlite3_stmt *s = NULL;
        const char *rest = query;
        if (sqlite3_prepare_v2(db, query, -1, &s, &rest) != SQLITE_OK) {
            rc = sql_error(db, err);
            break;
        }
        query = rest;
        if (!s) /* white space or a comment */
            continue;
        if (statements++ && out->format != REPORT_JSON)
            fputc('\n', out->file);
        if (sqlite3_column_count(s) > 0) {
            if (list_rows(s, out) != SQLITE_DONE)
                rc = sql_error(db, err);
        } else if (sqlite3_step(s) != SQLITE_DONE) {
            rc = sql_error(db, err);
        }
        sqlite3_finalize(s);
    }
    sqlite3_set_authorizer(db, NULL, NULL);
    if (rc == 0 && statements == 0)
        rc = error_set(err, EINVAL, "sql: no query; for example: memprof sql FILE 'SELECT * FROM v_total'");
    return rc;
}
