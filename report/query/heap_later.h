/*
 * heap_later.h: what a look after a process's frees tells of the free pages before them. Those below the new end of
 * each heap are still there, or were not then; what lay above it went with the heap.
 */
#ifndef MEMPROF_HEAP_LATER_H
#define MEMPROF_HEAP_LATER_H

#include "heap_end.h"

/* Free pages of a heap as at released_ns that were not there. missing_bytes: what the RSS had not, some time before: a
 * heap that was trimmed since has hardly a page below its new end, though it had. untouched_bytes: the most of what was
 * live then, and on no page. 0: nothing is known. */
uint64_t heap_later_gone(sqlite3 *db, const struct heap_end *e, uint64_t missing_bytes, uint64_t untouched_bytes);

#endif
