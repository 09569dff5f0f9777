/*
 * listing.h: the rows of a report, whose columns are described once: the same calls make a table for people, or JSON or
 * CSV for programs, as report_out says. Values fill rows from left to right; a row ends by itself after the last
 * column.
 */
#ifndef MEMPROF_LISTING_H
#define MEMPROF_LISTING_H

#include "../../common/error.h"
#include "record.h"
#include "table.h"

#include <sqlite3.h>

struct listing;

/* base: the directory that paths are shown from; NULL: none. columns and base are borrowed until listing_close. */
struct listing *listing_open(const struct column *columns, size_t count, const struct report_out *out,
                             const char *base);
/* The same as an array of a document that goes on after it. */
struct listing *listing_open_in(struct record *document, const char *key, const struct column *columns, size_t count,
                                const char *base);
/* Programs: ends the array. Without a row CSV has a heading alone, unless the listing is one of several (_in). */
void listing_close(struct listing *l);

/* Text in a column of numbers is shown as it is. */
void listing_text(struct listing *l, const char *text); /* NULL: no value */
void listing_int(struct listing *l, int64_t value);
void listing_int_if(struct listing *l, int is_known, int64_t value);
/* People: with an error, per cent of the value, where that is not 0: "1.25 GiB ±3.1%"; below: "±?". */
enum { LISTING_MARK = 48 };
/* " ±3.1%", per cent of the value; "" without an error; " ±?" where it is below 0: not known. */
const char *listing_mark(char text[LISTING_MARK], const struct report_out *out, int64_t value, double error);
void listing_estimate(struct listing *l, int is_known, int64_t value, double error);
void listing_null(struct listing *l);
void listing_share(struct listing *l, int64_t part, int64_t whole); /* for a COLUMN_PERCENT; none without a whole */
void listing_raw(struct listing *l, const char *json);              /* a finished value, NULL: none; CSV: as text */
void listing_style(struct listing *l, enum table_style style);      /* people: of the row being filled */

/* The row's other columns, from those of the statement's current row. */
void listing_row(struct listing *l, sqlite3_stmt *s);
/* Some of them, of this and that number from 0 on, or all others (count -1). */
void listing_columns(struct listing *l, sqlite3_stmt *s, int first, int count);
/* All rows of a statement. *all: how many there would be without its LIMIT, where it has one column more than the
 * listing that says so, else their number. */
int listing_statement(struct listing *l, sqlite3_stmt *s, int64_t *all, struct error *err);
/* The same of a query. ?1 is the device, NULL: all; ?2 how many rows there may be, 0: any number. */
int listing_query(struct listing *l, sqlite3 *db, const char *sql, const char *device, int64_t limit, int64_t *all,
                  struct error *err);

int listing_rows(const struct listing *l);
int listing_shows(const struct listing *l, int column); /* whether anybody sees the column's values */
/* CSV: a heading where there is no row. */
void listing_heading(struct listing *l);
/* People: the rows since the last call, the first time under the titles. */
void listing_print(struct listing *l);
/* The same after an empty line and "TITLE (10 of 312)"; nothing without rows. Returns whether there were any. */
int listing_print_under(struct listing *l, const char *title, int64_t all);

#endif
