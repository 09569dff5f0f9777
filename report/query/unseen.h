/*
 * unseen.h: whether blocks of the heap are missing in the recording: pages that look free may be theirs, and what comes
 * in their place looks like growth.
 */
#ifndef MEMPROF_UNSEEN_H
#define MEMPROF_UNSEEN_H

#include "../../common/buf.h"

#include <sqlite3.h>
#include <stdint.h>

/* Appends which they are ("blocks from before memprof attached"), where which is not NULL. */
int unseen_blocks(sqlite3 *db, struct buf *which);
/* How many of them were seen to be freed. */
int64_t unseen_frees(sqlite3 *db);
/* Bytes that count as live though calls that were not seen freed them, by glibc's own figures as it was asked last. */
int64_t unseen_freed_bytes(sqlite3 *db);
/* What glibc said was in use beside all that is recorded, where that is more than threads keep of freed blocks for
 * themselves; 0: no more. */
int64_t unseen_heap_bytes(sqlite3 *db);
/* What tells a reader of tables of the heap's pages; nothing where none are missing. */
void unseen_say(sqlite3 *db, struct buf *text);

#endif
