/*
 * arenas.h: Python's arenas of small objects: segments whose blocks nobody sees, by the line that made Python take
 * them.
 */
#ifndef MEMPROF_ARENAS_H
#define MEMPROF_ARENAS_H

#include "../query/live_blocks.h"
#include "report.h"

/* A table of those that are there at an instant; nothing where there are none. */
int arenas_print(sqlite3 *db, const struct report_options *options, const struct report_out *out,
                 const struct instant *at, struct error *err);

#endif
