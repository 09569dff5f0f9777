/*
 * summary.h: what the parts of the report without --by share.
 */
#ifndef MEMPROF_SUMMARY_H
#define MEMPROF_SUMMARY_H

#include "../findings/finding.h"
#include "../query/heap_end.h"
#include "report.h"

/* What the parts of the summary share. */
struct summary {
    sqlite3 *db;
    const struct report_options *options;
    const struct report_out *out;
    char *cwd;
    struct findings findings;
    struct heap_end heap_end;
    int has_inherited;  /* a later part of a rotated recording, whole */
    struct row hint;    /* a line worth a look at its source; strings owned */
    int64_t hint_bytes; /* peak of the device that it is of */
    struct buf skip;    /* " --skip NAME" of functions that only pass memory on and hold more than half of a peak */
};

/* What was run, when, how it ended, notes, advice and findings: for people, and the same for programs (summary_head.c).
 */
void summary_head_print(const struct summary *s);
void summary_head_record(const struct summary *s, struct record *document);
/* The peak of each device, and who held it (summary_peak.c). */
int summary_peaks(struct summary *s, struct error *err);
/* "callers": a JSON array of the callers of a line of the peak. */
int summary_callers(struct summary *s, const struct row *row, struct buf *json, struct error *err);

/* Rows of v_total, 'all' first; with the device and kind that were asked for. */
int summary_totals(const struct summary *s, sqlite3_stmt **statement, struct error *err);
int summary_lines(const struct summary *s, const char *device, int sort, int64_t limit, struct rows *rows,
                  struct error *err);
int64_t summary_top(const struct summary *s);
int64_t summary_peak_stat(const struct summary *s); /* what --kind makes of "at peak" */
/* Whether what is shown of the host is all of it: of all processes and kinds. */
int summary_is_whole(const struct summary *s);
/* Keeps the first line with source, best one inside the directory of the run: the user's own code. peak_bytes: of the
 * device that the rows are of, the largest counts; 0: rows for when there is no line yet. */
void summary_hint(struct summary *s, const struct rows *rows, int64_t peak_bytes);
void summary_plural(struct buf *out, int64_t count, const char *one, const char *many);

#endif
