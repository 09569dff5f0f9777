/*
 * named_caller.h: who called code without a name: what stands beside its line, in tables and on the page alike.
 */
#ifndef MEMPROF_QUERY_NAMED_CALLER_H
#define MEMPROF_QUERY_NAMED_CALLER_H

#include "walk.h"

/* Of the nearest functions with a name that called a line, the one through which most of what it held at the peak came
 * to it, over all of the line's sites (of what it allocated, where it held nothing then): one and the same in every
 * table, whatever that is sorted by. How many others called it is said beside it (other_count). */
struct named_caller {
    const struct walk_frame *frame; /* the walk's, for the call */
    int other_count;                /* stacks in which nothing has a name are one of them */
};

/* Not of a line of which most came by stacks in which no caller has a name. */
typedef void named_caller_take(void *arg, int64_t line_id, const struct named_caller *caller);
int named_callers(sqlite3 *db, const int64_t *line_ids, int count, named_caller_take *take, void *arg,
                  struct error *err);

/* The same of one line, by another measure of its sites; what is not above 0 does not count. function: the caller,
 * which the caller frees; NULL: none. */
typedef int64_t named_caller_bytes(void *arg, int64_t site_id, int64_t end_bytes);
int named_caller_by(sqlite3 *db, int64_t line_id, named_caller_bytes *bytes, void *arg, char **function,
                    int *other_count, struct error *err);

/* "<- forward", "<- forward and 2 others": without arguments, behind which nobody would look for the others. */
void named_caller_text(const char *function, int other_count, struct buf *out);

#endif
