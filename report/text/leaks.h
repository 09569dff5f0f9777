/*
 * leaks.h: what was still live when its process ended, by stack or by line, as LeakSanitizer and valgrind show it.
 */
#ifndef MEMPROF_LEAKS_H
#define MEMPROF_LEAKS_H

#include "../query/suppress.h"
#include "report.h"

struct leaks_options {
    const struct report_options *report;
    struct suppressions *suppressions; /* counts what each left out */
    int all;                           /* what libraries keep for themselves (noise.h) too */
};

/* *leaked: 1 when something is left that is not suppressed, and that no interpreter freed when it took itself down. */
int leaks_report(sqlite3 *db, const struct leaks_options *options, const struct report_out *out, int *leaked,
                 struct error *err);

struct leaks_row {                                 /* of a stack, or of a line; strings for the call */
    const char *device, *function, *file, *module; /* module: with the offset, where there is no function */
    int64_t line, stack_id, bytes, blocks;
    int64_t kept_bytes, kept_blocks; /* of these: what no interpreter freed while it took itself down */
};
/* The same for who counts them: largest first, without what is suppressed or a library's own. */
typedef void leaks_take(void *arg, const struct leaks_row *row);
int leaks_each(sqlite3 *db, const struct leaks_options *options, leaks_take *take, void *arg, struct error *err);

#endif
