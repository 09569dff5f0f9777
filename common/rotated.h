/*
 * rotated.h: the running file of a rotated recording, whose part before is copied into a file of its own: meta rotating
 * (that file's name), part_start_ns, part_chunk and part_first_event say what came before the running part.
 */
#ifndef MEMPROF_ROTATED_H
#define MEMPROF_ROTATED_H

#include "error.h"

#include <sqlite3.h>

/* Whether the file has tables for what a part inherits; those of older versions do not. */
int rotated_has_start(sqlite3 *db);

/* What came before the running part leaves the file: events, and rows of what had ended. In the open transaction.
 * Returns 0 or as db_exec does. */
int rotated_drop(sqlite3 *db, struct error *err);

/* The collector was killed: where the copy is whole, its part leaves the file, and where it is not, what there is of it
 * goes. Returns as rotated_drop. */
int rotated_recover(sqlite3 *db, struct error *err);

#endif
