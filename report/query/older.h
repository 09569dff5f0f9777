/*
 * older.h: columns that recordings of before lack.
 */
#ifndef MEMPROF_OLDER_H
#define MEMPROF_OLDER_H

#include "../../common/error.h"

#include <sqlite3.h>

/* Whether a table of the file lacks a column that it has in today's schema. Tables that are missing as a whole are
 * views_own's. */
int older_lacks(sqlite3 *db);
/* Adds them, NULL in each row, to a private copy. 0, or as db_error does with err. */
int older_add(sqlite3 *copy, struct error *err);

#endif
