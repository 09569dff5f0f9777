/*
 * views.h: makes a database that came from anywhere safe to ask: our own definitions of the views stand before those in
 * the file, and names of tables must be tables.
 */
#ifndef MEMPROF_VIEWS_H
#define MEMPROF_VIEWS_H

#include "../../common/error.h"

#include <sqlite3.h>

int views_own(sqlite3 *db, struct error *err);
/* Whether a table is what packed_views made of it, and nothing stands before it: its columns can be read at once. */
int views_are_packed(sqlite3 *db, const char *table);

#endif
