/*
 * failed.h: the allocations that failed: what was asked for, and what the device had then.
 */
#ifndef MEMPROF_FAILED_H
#define MEMPROF_FAILED_H

#include "../../common/error.h"
#include "../print/record.h"
#include "report.h"

#include <sqlite3.h>

/* For people a heading and a table of the first ones, nothing where none failed; in JSON an array "failed_allocations"
 * of at most 1,000; nothing in CSV. cwd: paths are shown from there. */
int failed_list(sqlite3 *db, const struct report_options *options, const char *cwd, struct record *document,
                struct error *err);

#endif
