/*
 * pages.h: which pages of a process are present, from its /proc files. It is not stopped, and goes on meanwhile.
 */
#ifndef MEMPROF_PAGES_H
#define MEMPROF_PAGES_H

#include "../account/resident.h"

/* Allocators that programs have in place of the C library's; their libraries are called lib and so. Ends with NULL. */
extern const char *const pages_mallocs[];

/* Fills pages, which keeps its memory from one call to the next. is_alone: no other process maps its private pages,
 * which need not be asked one by one then (13 of 16 ms a GiB). Returns 0, or -errno: gone, another user's, or (E2BIG)
 * more pages than are looked at. */
int pages_read(int pid, int is_alone, struct resident_pages *pages);
/* What a process has mapped, where mappings side by side are one. Returns 0, and *maps is the caller's to free; or
 * -errno. */
int pages_mappings(int pid, struct resident_map **maps, size_t *count);
void pages_free(struct resident_pages *pages);

#endif
