/*
 * heap_ranges.h: where glibc's heaps lie: the main arena's below the break, and those of the other arenas, each at an
 * address of its own. No lock of the allocator is taken. Any thread, between thread_enter and thread_leave; where one
 * is at it already another goes on without.
 */
#ifndef MEMPROF_HEAP_RANGES_H
#define MEMPROF_HEAP_RANGES_H

#include "thread.h"

#define HEAP_MAPPED_SAME UINT64_MAX

/* As the process starts. */
void heap_ranges_start(void) HIDDEN;
/* Records those that changed. mapped_bytes: in blocks with a mapping of their own. second: in stamps. is_last: maybe no
 * later call comes, so small changes count too. */
void heap_ranges_tell(struct thread *t, uint64_t mapped_bytes, uint64_t second, int is_last) HIDDEN;

#endif
