/*
 * file_holds.h: what stacks with a frame in a file held at the peak, of recordings with packed stacks: for where no
 * account of what a file calls was made (a report on a running recording).
 */
#ifndef MEMPROF_QUERY_FILE_HOLDS_H
#define MEMPROF_QUERY_FILE_HOLDS_H

#include <sqlite3.h>
#include <stdint.h>

/* Whether they held more than one part in so many of all that was live at the device's peak. 0 also where that cannot
 * be read. */
int file_holds(sqlite3 *db, int64_t file_id, int64_t parts);

#endif
