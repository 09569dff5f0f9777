/*
 * views.h: makes a database that came from anywhere safe to ask: our own definitions of the views stand before those in
 * the file, and names of tables must be tables.
 */
#ifndef MEMPROF_VIEWS_H
#define MEMPROF_VIEWS_H

#include "../../common/error.h"

#include <sqlite3.h>

int views_own(sqlite3 *db, struct error *err);

#endif
