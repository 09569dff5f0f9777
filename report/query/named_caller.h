/*
 * named_caller.h: who called code without a name: what stands beside its line, in tables and on the page alike.
 */
#ifndef MEMPROF_QUERY_NAMED_CALLER_H
#define MEMPROF_QUERY_NAMED_CALLER_H

#include "walk.h"

/* Of the nearest functions with a name that called a line, the one through which most of what a table shows came to it,
 * over all of the line's sites: what stat counts, of a device (NULL: all) and kind (NULL: "all"). */
struct named_callers_of {
    const char *device, *kind;
    int stat; /* enum stat_id, or NAMED_CALLERS_LIVE: at the instant that at.h was asked for */
};
#define NAMED_CALLERS_LIVE (-1)

/* Not of a line that has none, or none with a quarter of it. The frame is the walk's, for the call. */
typedef void named_caller_take(void *arg, int64_t line_id, const struct walk_frame *caller);
int named_callers(sqlite3 *db, const int64_t *line_ids, int count, const struct named_callers_of *of,
                  named_caller_take *take, void *arg, struct error *err);

#endif
