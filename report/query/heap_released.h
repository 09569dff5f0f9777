/*
 * heap_released.h: when a process began to free what it had as it ended: containers that are destroyed at exit, or a
 * program that frees all, or most, at the end of main. The last events alone are read.
 */
#ifndef MEMPROF_HEAP_RELEASED_H
#define MEMPROF_HEAP_RELEASED_H

#include "heap_gap.h"

/* The instant before that; below 0: it did not. */
int64_t heap_released(sqlite3 *db, const struct heap_gap *process);
/* Of those that began as a fork, or those that did not, the process with the largest of glibc's heaps, unless it was an
 * interpreter that took itself down: one of gaps. NULL: there is none. */
const struct heap_gap *heap_released_by(sqlite3 *db, int is_forked, const struct heap_gap *gaps, size_t count);

#endif
