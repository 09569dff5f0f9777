/*
 * marks.h: instants and ranges by their names: memprof.h's and NVTX's, PyTorch's phases. NAME is a name or DOMAIN:NAME,
 * as a pattern of the shell or as it is; behind it "#3" for the third of those that have it, in the order of their
 * beginnings, or "#all".
 */
#ifndef MEMPROF_MARKS_H
#define MEMPROF_MARKS_H

#include "../../common/buf.h"
#include "../../common/error.h"
#include "executions.h"
#include "window.h"

#include <sqlite3.h>

struct marks_found {
    struct window_range *ranges; /* the caller's to free: one, or those of "#all", united */
    size_t count;
    int64_t nth, of; /* nth 0: all of them */
    char *name;      /* of the one, or as it was asked for; the caller's to free */
};

/* The ranges of --during. A range that was never closed ends with its process. -EINVAL with err, which names the ranges
 * that there are, where none is meant. */
int marks_find_ranges(sqlite3 *db, const char *text, struct marks_found *found, struct error *err);
/* All ranges of a name, each for itself. Free with executions_free in any case. The same; option: that the name was
 * given with. */
int marks_find_executions(sqlite3 *db, const char *option, const char *name, struct executions *e, struct error *err);
/* Where a mark is, or a range begins: of --at mark:NAME. The same. */
int marks_find_instant(sqlite3 *db, const char *option, const char *text, int64_t *time_ns, struct error *err);

#endif
