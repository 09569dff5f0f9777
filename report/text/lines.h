/*
 * lines.h: functions with the statistics of each of their source lines, and of what the line calls.
 */
#ifndef MEMPROF_LINES_H
#define MEMPROF_LINES_H

#include "report.h"

#define LINES_PATTERNS_MAX 32

struct lines_options {
    const struct report_options *report;
    const char *functions[LINES_PATTERNS_MAX]; /* names or patterns (match.h); none: all */
    int function_count;
    const char *files[LINES_PATTERNS_MAX];
    int file_count;
    int stats[STAT_LINES_COUNT]; /* columns */
    int stat_count;
    int64_t execution_count; /* of --every: numbers are shown per execution, too; 0: none */
    int has_default_stats;   /* nobody asked for certain ones */
    int is_focused;          /* the accounts are of the window's events alone (focus.h), which JSON says */
};

/* "active.peak,alloc.count" -> options->stats, each once; NULL: the default columns. -EINVAL with err for an unknown
 * one. */
int lines_columns(const char *list, struct lines_options *options, struct error *err);
int lines_is_asked(const struct lines_options *options, int stat); /* it is one of the columns */
/* -ENOENT with err when a name or file that was asked for matches nothing; what the others match is printed before
 * that. */
int lines_report(sqlite3 *db, const struct lines_options *options, const struct report_out *out, struct error *err);

#endif
