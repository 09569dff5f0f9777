/*
 * wrapper.h: functions that only pass memory on (xmalloc, zrealloc): --skip says more of what they hold.
 */
#ifndef MEMPROF_WRAPPER_H
#define MEMPROF_WRAPPER_H

#include "callers.h"

/* Whether its name says so. A line of code without a name may always be one's. */
int wrapper_is_named(const struct row *row);
/* Whether the line of a row (by ROW_LINE) is a wrapper's that is called like that: its name says so, or what it does:
 * one line allocates all that its function does, for many functions. */
int wrapper_is(sqlite3 *db, const struct row *row, const struct callers *callers);

/* What calls the line of a site of a device, where that is a wrapper's; else callers->count is 0. 0 or -errno with err;
 * callers_free in both cases. */
int wrapper_callers(sqlite3 *db, int64_t site_id, const char *device, enum callers_of of, struct callers *callers,
                    struct error *err);

#endif
