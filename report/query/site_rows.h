/*
 * site_rows.h: all sites of a recording, one after the other in the order of their ids, with some of their columns.
 * Where the file has them packed they come from there, in a tenth of the time that rows by SQL take.
 */
#ifndef MEMPROF_SITE_ROWS_H
#define MEMPROF_SITE_ROWS_H

#include "../../common/error.h"
#include "../../common/packed.h"

#include <sqlite3.h>
#include <stdint.h>

#define SITE_ROWS_COLUMNS 8

struct site_rows {
    int64_t site_id; /* of the current one */
    sqlite3 *db;
    struct packed *packed; /* NULL: plain rows, from s */
    int is_of_line;        /* those of line_id alone */
    int64_t line_id;
    const struct packed_values *line; /* the packed ones' lines, if so */
    const struct packed_values *values[SITE_ROWS_COLUMNS];
    uint32_t count; /* of packed ones */
    sqlite3_stmt *s;
};

/* columns: of the table site, and line_id (0: none); what lenses put before these tables counts. Before the first site.
 * Returns 0 or -errno with err; close in both cases. */
int site_rows_open(sqlite3 *db, const enum packed_column *columns, int count, struct site_rows *rows,
                   struct error *err);
/* The same, of a line's sites alone; is_recorded: as they were recorded, whatever lenses show. */
int site_rows_open_line(sqlite3 *db, int64_t line_id, int is_recorded, const enum packed_column *columns, int count,
                        struct site_rows *rows, struct error *err);
void site_rows_close(struct site_rows *rows);
/* The highest site_id; -1 where there is no site, or none can be read. */
int64_t site_rows_last(sqlite3 *db);
/* The next one: 1; 0: there is none left; -errno with err. step: where it is not just the next packed one. */
int site_rows_step(struct site_rows *rows, struct error *err);
static inline int site_rows_next(struct site_rows *rows, struct error *err)
{
    if (!rows->packed || rows->line || (uint32_t)rows->site_id == rows->count)
        return site_rows_step(rows, err);
    rows->site_id++;
    return 1;
}

/* The value of the current site in a column, by its place in columns. A kind is its number, of an unknown one
 * KIND_COUNT. */
static inline int64_t site_rows_value(const struct site_rows *rows, int place)
{
    return rows->packed ? (int64_t)packed_at(rows->values[place], (uint32_t)rows->site_id)
                        : sqlite3_column_int64(rows->s, place + 1);
}

struct site_lines {        /* the lines of sites, asked for in any order */
    struct packed *packed; /* NULL: from s */
    const struct packed_values *values;
    int64_t count;
    sqlite3_stmt *s;
};

/* What lenses put before the tables counts. Returns 0 or -errno with err; close in both cases. */
int site_lines_open(sqlite3 *db, struct site_lines *lines, struct error *err);
void site_lines_close(struct site_lines *lines);
/* The line_id of a site, or the other value where it has none. */
int64_t site_lines_of(const struct site_lines *lines, int64_t site_id, int64_t other);

#endif
