#include "sql.h"

#include "../../common/buf.h"
#include "../print/record.h"
#include "../print/table.h"
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

static void record_value(struct record *r, sqlite3_stmt *s, int column)
{
    const char *key = sqlite3_column_name(s, column);
    key = key ? key : "";
    switch (sqlite3_column_type(s, column)) {
    case SQLITE_INTEGER:
        record_int(r, key, sqlite3_column_int64(s, column));
        break;
    case SQLITE_FLOAT:
        record_real(r, key, sqlite3_column_double(s, column));
        break;
    case SQLITE_TEXT:
        record_text(r, key, (const char *)sqlite3_column_text(s, column));
        break;
    case SQLITE_BLOB: {
        struct buf hex = BUF(256 << 20);
        const unsigned char *data = sqlite3_column_blob(s, column);
        for (int i = 0, n = sqlite3_column_bytes(s, column); i < n; i++)
            buf_printf(&hex, "%02x", data[i]);
        record_text(r, key, buf_text(&hex));
        buf_free(&hex);
        break;
    }
    default:
        record_null(r, key);
    }
}

static void cell_value(struct table *t, sqlite3_stmt *s, int column)
{
    char text[64];
    if (sqlite3_column_type(s, column) == SQLITE_BLOB) {
        snprintf(text, sizeof text, "(%d bytes)", sqlite3_column_bytes(s, column));
        table_text(t, text);
    } else {
        const char *value = (const char *)sqlite3_column_text(s, column);
        table_text(t, value ? value : "");
    }
}

/* Columns for people: numbers to the right, which the first row decides. */
static int print_rows(sqlite3_stmt *s, const struct report_out *out)
{
    struct table_column columns[TABLE_COLUMNS_MAX];
    struct buf titles[TABLE_COLUMNS_MAX];
    int count = sqlite3_column_count(s), step = sqlite3_step(s), first = 1;
    if (count > TABLE_COLUMNS_MAX) /* more than a terminal shows; --csv and --json have all */
        count = TABLE_COLUMNS_MAX;
    for (int c = 0; c < count; c++) {
        int type =
            step == SQLITE_ROW ? sqlite3_column_type(s, c) : SQLITE_NULL; /* asked for, it would hide the error */
        const char *name = sqlite3_column_name(s, c);
        titles[c] = (struct buf)BUF(1 << 16);
        text_clean(&titles[c], name ? name : "");
        columns[c] = (struct table_column){titles[c].data,
                                           type == SQLITE_INTEGER || type == SQLITE_FLOAT ? TABLE_RIGHT : TABLE_LEFT,
                                           type == SQLITE_TEXT ? TEXT_CUT_MIDDLE : TEXT_CUT_NONE, 0};
    }
    do {
        struct table *t = table_open(columns, count);
        for (; step == SQLITE_ROW && table_rows(t) < PRINT_ROWS; step = sqlite3_step(s))
            for (int c = 0; c < count; c++)
                cell_value(t, s, c);
        if (first)
            table_print(t, out);
        else
            table_print_rows(t, out);
        table_close(t);
        first = 0;
    } while (step == SQLITE_ROW);
    for (int c = 0; c < count; c++)
        buf_free(&titles[c]);
    return step;
}

static int record_rows(sqlite3_stmt *s, struct record *r)
{
    int step;
    record_array_begin(r, NULL);
    while ((step = sqlite3_step(s)) == SQLITE_ROW) {
        record_begin(r);
        for (int c = 0; c < sqlite3_column_count(s); c++)
            record_value(r, s, c);
        record_end(r);
    }
    if (r->rows == 0 && r->out->format == REPORT_CSV) {
        /* a heading alone says that there was nothing, and under which names */
        for (int c = 0; c < sqlite3_column_count(s); c++)
            fprintf(r->out->file, "%s%s", c ? "," : "", sqlite3_column_name(s, c));
        fputc('\n', r->out->file);
    }
    record_array_end(r);
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
    struct record r;
    int rc = 0, statements = 0;
    /* the table comes into being when it is first named, which the authorizer would refuse later */
    if (vtab_event_register(db) != SQLITE_OK ||
        sqlite3_exec(db, "SELECT time_ns FROM v_event LIMIT 0", NULL, NULL, NULL) != SQLITE_OK)
        return sql_error(db, err);
    name_pragma_tables(db);
    sqlite3_limit(db, SQLITE_LIMIT_ATTACHED, 0);
    sqlite3_set_authorizer(db, authorize, NULL);
    record_open(&r, out);
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
            int step = out->format == REPORT_TEXT ? print_rows(s, out) : record_rows(s, &r);
            if (step != SQLITE_DONE)
                rc = sql_error(db, err);
        } else if (sqlite3_step(s) != SQLITE_DONE) {
            rc = sql_error(db, err);
        }
        sqlite3_finalize(s);
    }
    record_close(&r);
    sqlite3_set_authorizer(db, NULL, NULL);
    if (rc == 0 && statements == 0)
        rc = error_set(err, EINVAL, "sql: no query; for example: memprof sql FILE 'SELECT * FROM v_total'");
    return rc;
}
