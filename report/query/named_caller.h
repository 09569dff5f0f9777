/*
 * named_caller.h: who called code without a name: what stands beside its line, in tables and on the page alike.
 */
#ifndef MEMPROF_QUERY_NAMED_CALLER_H
#define MEMPROF_QUERY_NAMED_CALLER_H

#include "walk.h"

/* Gives the nearest function with a name that called each of these lines, in the stack that held most of it. Not of a
 * line that has none. The frame is the walk's, for the call. */
typedef void named_caller_take(void *arg, int64_t line_id, const struct walk_frame *caller);
int named_callers(sqlite3 *db, const int64_t *line_ids, int count, named_caller_take *take, void *arg,
                  struct error *err);

#endif
