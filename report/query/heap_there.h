/*
 * heap_there.h: how much of a heap's free pages took memory. Addresses do not tell: pages that malloc_trim gave back,
 * or that nobody ever wrote to, are free all the same. The looks at the process do, and the samples of its RSS.
 */
#ifndef MEMPROF_HEAP_THERE_H
#define MEMPROF_HEAP_THERE_H

#include "heap_end.h"

struct heap_look {
    int64_t time_ns, there_bytes; /* free pages that were there */
    uint64_t gone_bytes;          /* those that were not */
};

/* Free pages of glibc's heaps of a process, those at their tops too. */
uint64_t heap_there_free(const struct heap *heap, uint32_t process_id);
/* Whether the last look at a process, shortly before its end or before end_ns, saw that much of so many bytes of free
 * pages was not there, and what it saw. INT64_MAX: its end. One replay more, where it may be. */
int heap_there_look(sqlite3 *db, uint32_t process_id, int64_t end_ns, uint64_t free_bytes, struct heap_look *look);
/* What of trim_bytes was not there, of a heap that is loaded: by that look, by rss_bytes, or by a look that came after
 * the process's frees. 0: not much of it. */
uint64_t heap_there_gone(sqlite3 *db, const struct heap_end *e);

#endif
