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

/* *leaked: 1 when something is left that is not suppressed. */
int leaks_report(sqlite3 *db, const struct leaks_options *options, const struct report_out *out, int *leaked,
                 struct error *err);

#endif
