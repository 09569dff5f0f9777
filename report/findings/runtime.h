/*
 * runtime.h: what language runtimes map for their objects (runtimes.def): by their own lines, which say nothing of the
 * program.
 */
#ifndef MEMPROF_FINDING_RUNTIME_H
#define MEMPROF_FINDING_RUNTIME_H

#include <sqlite3.h>
#include <stdint.h>

struct runtime {
    const char *file, *name, *advice, *lines; /* as runtimes.def has them */
};

/* Whose library or program a file is; NULL: of none that is known. */
const struct runtime *runtime_of_module(const char *path);
/* Whose code mapped a site's blocks for itself; NULL: of none that is known. */
const struct runtime *runtime_of_site(sqlite3 *db, int64_t site_id);
/* The one that had mapped most of the peak of the host, and its bytes then; NULL: none had. */
const struct runtime *runtime_of_peak(sqlite3 *db, int64_t *bytes);

#endif
