/*
 * failed.h: the allocations that failed: what was asked for, and what the device had then.
 */
#ifndef MEMPROF_FAILED_H
#define MEMPROF_FAILED_H

#include "../../common/error.h"
#include "../print/record.h"
#include "report.h"

#include <sqlite3.h>

/* A heading and a table, the first ones; nothing where none failed. cwd: as in row_source_text(). */
int failed_print(sqlite3 *db, const struct report_options *options, const char *cwd, const struct report_out *out,
                 struct error *err);
/* An array "failed_allocations", at most 1,000 rows; nothing in CSV. */
int failed_record(sqlite3 *db, const struct report_options *options, const struct report_out *out, struct record *r,
                  struct error *err);

#endif
