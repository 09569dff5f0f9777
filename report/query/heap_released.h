/*
 * heap_released.h: when a process began to free what it had as it ended: containers that are destroyed at exit, or a
 * program that frees all, or most, at the end of main. The last events alone are read.
 */
#ifndef MEMPROF_HEAP_RELEASED_H
#define MEMPROF_HEAP_RELEASED_H

#include "heap_gap.h"

/* The instant before that, of the process with the largest of glibc's heaps, which is no fork and no interpreter that
 * took itself down: which one of gaps; below 0: it did not, or the samples do not have so much idle for so long. */
int64_t heap_released(sqlite3 *db, int64_t idle_bytes, int64_t idle_ns, const struct heap_gap *gaps, size_t count,
                      struct heap_gap *of);

#endif
