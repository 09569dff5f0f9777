/*
 * rows.h: the rows of a recording that a test makes up: one statement with its values. Whatever fails ends the program.
 */
#ifndef MEMPROF_TEST_ROWS_H
#define MEMPROF_TEST_ROWS_H

#include "../common/db.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define I(x) ((int64_t)(x))

#define PROCESS_COLUMNS                                                                                                \
    "(process_id, pid, parent_id, start_kind, exe, command_line, start_ns, end_ns, end_kind, exit_status, "            \
    "exit_signal)"

static sqlite3 *db;

static void rows_must(int rc, const struct error *err)
{
    if (rc) {
        fprintf(stderr, "%s (%s)\n", err->text, db ? sqlite3_errmsg(db) : "");
        exit(1);
    }
}

/* sql: a literal, because statements are kept by its address. form: i int64_t, n int64_t that is NULL for 0, t text
 * (NULL: NULL), b bytes (pointer, int64_t length), - a value that is given and not written: NULL. */
static void row(const char *sql, const char *form, ...)
{
    static const char *known_text[128];
    static sqlite3_stmt *known[128];
    unsigned slot = 0;
    struct error err = {""};
    va_list args;
    while (known_text[slot] && known_text[slot] != sql)
        slot++;
    if (!known_text[slot]) {
        rows_must(db_prepare(db, sql, &known[slot], &err), &err);
        known_text[slot] = sql;
    }
    sqlite3_stmt *s = known[slot];
    va_start(args, form);
    for (int i = 0; form[i]; i++) {
        if (form[i] == 't') {
            sqlite3_bind_text(s, i + 1, va_arg(args, const char *), -1, SQLITE_TRANSIENT);
        } else if (form[i] == 'b') {
            const void *data = va_arg(args, const void *);
            sqlite3_bind_blob(s, i + 1, data, (int)va_arg(args, int64_t), SQLITE_TRANSIENT);
        } else {
            int64_t value = va_arg(args, int64_t);
            if (form[i] == 'i' || (form[i] == 'n' && value))
                sqlite3_bind_int64(s, i + 1, value);
            else
                sqlite3_bind_null(s, i + 1);
        }
    }
    va_end(args);
    snprintf(err.text, sizeof err.text, "%s", sql);
    rows_must(sqlite3_step(s) != SQLITE_DONE, &err);
    sqlite3_reset(s);
    sqlite3_clear_bindings(s);
}

/* Everything is written: one plain file. */
static void rows_close(void)
{
    struct error err = {""};
    for (sqlite3_stmt *s; (s = sqlite3_next_stmt(db, NULL));)
        sqlite3_finalize(s);
    rows_must(db_exec(db, "COMMIT; PRAGMA journal_mode = DELETE", &err), &err);
    sqlite3_close(db);
}

#endif
