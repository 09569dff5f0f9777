/*
 * named_caller.h: who called code without a name: what stands beside its line, in tables and on the page alike.
 */
#ifndef MEMPROF_QUERY_NAMED_CALLER_H
#define MEMPROF_QUERY_NAMED_CALLER_H

#include "walk.h"

/* Of the nearest functions with a name that called a line, the one through which most of what it held at the peak came
 * to it, over all of the line's sites (of what it allocated, where it held nothing then): one and the same in every
 * table, whatever that is sorted by. */
/* Not of a line that has none, or none with a quarter of it. The frame is the walk's, for the call. */
typedef void named_caller_take(void *arg, int64_t line_id, const struct walk_frame *caller);
int named_callers(sqlite3 *db, const int64_t *line_ids, int count, named_caller_take *take, void *arg,
                  struct error *err);

#endif
