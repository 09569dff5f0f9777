/*
 * many_notes.h: of one of several recordings, what a report of it alone would say first: whether it is whole, how its
 * program ended, what is missing.
 */
#ifndef MEMPROF_MANY_NOTES_H
#define MEMPROF_MANY_NOTES_H

#include "../query/many.h"

/* For many_options.look. */
void many_notes(struct many_file *file, sqlite3 *db);

#endif
