/*
 * heap_idle.h: for how long a heap had idle pages, and whether the program went on with them, by the samples and looks
 * of the recording: no events are replayed. Of a struct heap_end it reads the process, and what it is asked for.
 */
#ifndef MEMPROF_HEAP_IDLE_H
#define MEMPROF_HEAP_IDLE_H

#include "heap_end.h"

/* From when on so many bytes lay idle, to the end: into since_ns, end_ns and rss_bytes, which says whether so many were
 * there at all: 0: they were not. */
int heap_idle_since(sqlite3 *db, struct heap_end *e, int64_t idle_bytes);
/* The most that it had in memory shortly before its end: no less than rss_bytes. */
int64_t heap_idle_rss_most(sqlite3 *db, const struct heap_end *e);
/* When the last of its work began: a hundredth of all its allocations. */
int64_t heap_idle_work(sqlite3 *db, const struct heap_end *e);
/* The instant before its end at which pages must have been idle that were for long; and whether they were, by since_ns.
 */
int64_t heap_idle_long_before(const struct heap_end *e);
int heap_idle_is_long(const struct heap_end *e);
/* Whether the program went on after since_ns. */
int heap_idle_goes_on(sqlite3 *db, const struct heap_end *e);
/* Free pages of segments that can have been in rss_bytes, beside so many that are in use; below 0: not known. */
int64_t heap_idle_free_there(sqlite3 *db, const struct heap_end *e, int64_t used_bytes);
/* Whether the samples have so much idle for so long in all. */
int heap_idle_for(sqlite3 *db, int64_t idle_bytes, int64_t idle_ns);
/* What glibc's heaps of a process had reserved then. */
int64_t heap_idle_glibc(sqlite3 *db, int64_t process_id, int64_t time_ns);

#endif
