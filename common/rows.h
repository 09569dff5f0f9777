/*
 * rows.h: rows that SQLite reads from memory by itself, for INSERT ... SELECT: half the time of a statement a row. Of a
 * virtual table that is there for one connection and leaves nothing in the file.
 */
#ifndef MEMPROF_ROWS_H
#define MEMPROF_ROWS_H

#include <sqlite3.h>
#include <stdint.h>

struct rows {                /* the caller's */
    const char *name;        /* of the table: a literal */
    const char *declaration; /* "CREATE TABLE x(rows HIDDEN, column, ...)": a literal */
    void (*column)(void *arg, uint32_t row, int column,
                   sqlite3_context *value); /* column 0: the one after the hidden */
    void *arg;
    uint32_t first, last; /* the rows that there are */
    int is_known;         /* to the connection: 0 before the first call */
};

/* Before a statement that reads the table as name(?1) is prepared. */
void rows_register(struct rows *rows, sqlite3 *db);
/* Before it is run; until then and its end the rows stay. */
void rows_bind(struct rows *rows, sqlite3_stmt *statement);

#endif
