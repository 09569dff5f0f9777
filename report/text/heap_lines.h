/*
 * heap_lines.h: what keeps the host's heaps from shrinking, as tables: each heap, and each line.
 */
#ifndef MEMPROF_HEAP_LINES_H
#define MEMPROF_HEAP_LINES_H

#include "../print/record.h"
#include "../query/heap.h"
#include "report.h"

/* The heaps of glibc, of every process; people: nothing where there is none. */
void heap_list_ranges(sqlite3 *db, const struct heap *heap, const struct report_options *options,
                      const struct report_out *out, const char *cwd);
/* Lines by what they hold and pin, pages of several lines in one row ("shared"). document NULL: a listing of its own;
 * title: people. Returns whether there was any. */
int heap_list_lines(const struct heap *heap, int64_t top, const struct report_out *out, struct record *document,
                    const char *title, const char *cwd);
/* People: the same of forked children, whose rows others have behind those of heap_list_lines. */
void heap_list_forked_lines(const struct heap *heap, int64_t top, const struct report_out *out, const char *cwd);
/* That blocks are missing, to which pages may belong that are free in these tables; nothing if none are. */
void heap_say_unseen(sqlite3 *db, const struct report_out *out);

#endif
