/*
 * process_label.h: what a table calls a process whose number in the recording it has: the kernel's number, and its
 * name.
 */
#ifndef MEMPROF_QUERY_PROCESS_LABEL_H
#define MEMPROF_QUERY_PROCESS_LABEL_H

#include "../../common/buf.h"

#include <sqlite3.h>
#include <stdint.h>

/* For a table's rows: to be given to sqlite3_finalize. NULL: the file is damaged, and no process is known. */
sqlite3_stmt *process_label_query(sqlite3 *db);
/* Appends what it called itself, or the name of its program. Returns the pid; -1: there is no such process. */
int64_t process_label(sqlite3_stmt *query, int64_t process_id, struct buf *name);

#endif
