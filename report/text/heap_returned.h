/*
 * heap_returned.h: of free pages of glibc's heaps, what was on no page at the end: malloc_trim gave it back, or nobody
 * ever wrote to it. The heaps' own figures do not tell.
 */
#ifndef MEMPROF_HEAP_RETURNED_H
#define MEMPROF_HEAP_RETURNED_H

#include "../print/out.h"
#include "../query/heap.h"

#include <sqlite3.h>

/* For people, of heaps as at each process's end: a line for each process where it is much, of the last look at it. */
void heap_returned_say(sqlite3 *db, const struct heap *heap, const struct report_out *out);

#endif
