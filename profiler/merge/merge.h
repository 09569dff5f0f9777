/*
 * merge.h: one recording made of several: site tables added up by the names of their stacks, rows of processes and of
 * what they did side by side, timelines on one time axis. No events are merged.
 */
#ifndef MEMPROF_MERGE_H
#define MEMPROF_MERGE_H

#include "../../common/error.h"

#include <sqlite3.h>
#include <stdint.h>

struct merge_options {
    const char *output;
    int64_t start_unix_ns; /* the instant that is 0 in the merged file */
    int64_t span_ns;       /* from it to the end of the last recording */
    int is_one_clock;      /* the recordings' times can be compared: one machine's clock, or a common mark */
    const char *align;     /* the mark; NULL: none */
    int is_part;           /* of a recording not all can be read: its timeline may lack what it held */
};

struct merge_source {
    const char *path; /* as it was named */
    int64_t rank;     /* -1: unknown */
    int64_t shift_ns; /* from the merged file's 0 to the recording's */
    int64_t start_unix_ns, duration_ns;
    const char *problem; /* why it is not whole; NULL: nothing is known */
    const char *running; /* that it is still being recorded; NULL: it is not */
};

struct merge;
/* The file grows beside the output, under a name of its own. 0, or -errno with err: -EEXIST where something else than a
 * recording is at output. */
int merge_open(const struct merge_options *options, struct merge **merge, struct error *err);
char *merge_file(const char *output); /* that name, the caller's to free */
/* Adds all that can be read. -errno with err: not all could be; what was read stays. */
int merge_add(struct merge *merge, sqlite3 *db, const struct merge_source *source, struct error *err);
/* What is known otherwise of the most that all held of a device at one instant, time_ns in the merged file's time;
 * equal bounds: exactly so much. device: its UUID, or the name of one without it, as the recordings have it. Once all
 * were added. */
void merge_common_peak(struct merge *merge, const char *device, int64_t least_bytes, int64_t most_bytes,
                       int64_t time_ns);
/* Names, accounts by line; then the file is moved to its place. *output: where that is, the caller's to free. */
int merge_close(struct merge *merge, char **output, struct error *err);
void merge_drop(struct merge *merge); /* nothing is left of it; NULL does nothing */

/* The recording as it is, for a merge of one. */
int merge_copy(sqlite3 *db, const char *path, char **output, struct error *err);

#endif
