/*
 * info.h: `memprof info`: what was recorded and what was not, processes and threads, memprof's own cost.
 */
#ifndef MEMPROF_INFO_H
#define MEMPROF_INFO_H

#include "../../common/error.h"
#include "../print/out.h"

#include <sqlite3.h>

/* path: of the file, for its size; the database may be a temporary copy of it. */
int info_report(sqlite3 *db, const char *path, const struct report_out *out, struct error *err);

#endif
