/*
 * diff.h: the report of what changed between two recordings, or two sides of several.
 */
#ifndef MEMPROF_TEXT_DIFF_H
#define MEMPROF_TEXT_DIFF_H

#include "../print/out.h"
#include "../query/diff.h"

struct diff_report {
    struct diff_options what;
    const char *const *files[DIFF_SIDES]; /* as the user named them */
    sqlite3 *const *dbs[DIFF_SIDES];
    int counts[DIFF_SIDES];
    int64_t top;    /* rows; 0: all; -1: the report's own default */
    int64_t frames; /* of a stack; 0: all */
};

int diff_report(const struct diff_report *report, const struct report_out *out, struct error *err);

#endif
