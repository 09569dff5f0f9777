/*
 * recover.h: a file whose collector was killed, or had no memory or disk left.
 */
#ifndef MEMPROF_RECOVER_H
#define MEMPROF_RECOVER_H

#include "../../common/error.h"

#include <sqlite3.h>

/* Finishes it in place (finish.h) after saying so; 0 when there was nothing to do. A file that is still being recorded
 * by a living collector is left alone. -errno with err when it cannot be written. */
int recover_file(const char *path, struct error *err);

/* Whether nobody writes it any more and its end is not in it. */
int recover_is_due(sqlite3 *db);

/* Writes that end, and why the recording is partial, within the caller's transaction or none: into a copy of a file
 * that cannot be written. */
int recover_books(sqlite3 *db, struct error *err);

/* The same end into a copy of a file that is still being recorded: what is live so far. */
int recover_so_far(sqlite3 *db, struct error *err);

#endif
