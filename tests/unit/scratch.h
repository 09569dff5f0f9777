/*
 * scratch.h: a directory of a test program's own, fresh for every run and gone afterwards with all that is in it, so
 * that two runs at once do not meet; and databases in it. XDG_CACHE_HOME is it, too: nothing of the user's is read or
 * written.
 */
#ifndef MEMPROF_TEST_SCRATCH_H
#define MEMPROF_TEST_SCRATCH_H

#include <sqlite3.h>
#include <stdint.h>

/* A group's set-up and tear-down. */
int scratch_begin(void **state);
int scratch_end(void **state);

const char *scratch_directory(void);
/* A name in it; borrowed until the fourth call from now. */
const char *scratch_path(const char *name);

/* A recording without rows; one of that name that is there already is replaced. */
sqlite3 *scratch_db(const char *name);
/* Statements, by sqlite3_mprintf's format. */
void scratch_sql(sqlite3 *db, const char *format, ...);

#endif
