/*
 * look_rows.h: what sites had on present pages, at the looks at the peak of resident memory or at the last ones, one
 * site of a look after the other. Where the file has them packed they come from there, far faster than rows by SQL.
 */
#ifndef MEMPROF_QUERY_LOOK_ROWS_H
#define MEMPROF_QUERY_LOOK_ROWS_H

#include "../../common/error.h"
#include "../../common/packed.h"

#include <sqlite3.h>
#include <stdint.h>

#define LOOK_ROWS_COLUMNS 3

enum looks { LOOKS_PEAK, LOOKS_LAST };

struct look_rows {
    int64_t site_id; /* of the current one; a site comes once a look */
    sqlite3 *db;
    struct packed *packed; /* NULL: plain rows, from s */
    const struct packed_values *site, *values[LOOK_ROWS_COLUMNS];
    uint32_t row, last; /* of the current look */
    sqlite3_stmt *s;    /* the looks, or their rows */
};

/* columns: of the table resident_site. What windows put before it counts. Before the first row; returns 0 or -errno
 * with err; close in both cases. */
int look_rows_open(sqlite3 *db, enum looks which, const enum packed_column *columns, int count, struct look_rows *rows,
                   struct error *err);
void look_rows_close(struct look_rows *rows);
/* The next one: 1; 0: there is none left; -errno with err. */
int look_rows_next(struct look_rows *rows, struct error *err);

/* The value of the current row in a column, by its place in columns. */
static inline int64_t look_rows_value(const struct look_rows *rows, int place)
{
    return rows->packed ? (int64_t)packed_at(rows->values[place], rows->row) : sqlite3_column_int64(rows->s, place + 1);
}

#endif
