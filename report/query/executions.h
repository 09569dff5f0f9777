/*
 * executions.h: every execution of a range, and for each device what was live at its beginning and its end, the peak
 * inside, and what was allocated and freed in it, by all threads: one pass over the events for all of them. Where no
 * execution begins or ends within a chunk of events, and none can have its peak there, its sums are enough.
 */
#ifndef MEMPROF_EXECUTIONS_H
#define MEMPROF_EXECUTIONS_H

#include "../../common/error.h"
#include "at.h"

#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>

#define EXECUTIONS_MAX 10000000 /* of a range in a recording */

struct execution {
    int64_t start_ns, end_ns; /* events from start_ns on, and before end_ns; of one that never ended: of its process */
    int64_t process_id, thread_id; /* 0: unknown */
    uint32_t name, nth_of_name;    /* the latter from 1 */
    uint8_t is_ended;
    uint8_t is_known; /* by executions_measure: the events around it are there */
};

struct executions {
    struct execution *execution; /* in the order of their beginnings */
    uint32_t count, capacity;
    char **names; /* DOMAIN:NAME, or NAME; several where a pattern was asked for */
    uint32_t name_count, name_capacity;
};

/* From marks_find_executions. */
void executions_free(struct executions *e);

struct execution_row { /* of one execution on one device */
    int64_t start_bytes, peak_bytes, end_bytes;
    int64_t alloc_bytes, alloc_count, free_bytes, free_count; /* what ended with its process was not freed */
};

struct executions_device {
    int64_t device_id;
    char *name;
    struct execution_row *rows; /* by execution */
};

struct executions_result {
    struct executions_device *device; /* those that blocks of the recording are on */
    uint32_t device_count, device_capacity;
    int64_t chunks_summed, chunks_read, chunks_damaged;
    int64_t known_from_ns;  /* what began before it is not known, as its events were not kept */
    int has_unknown_sample; /* and so is a sample */
};

/* What every site held at the ends of some executions, in the order of their ends. Not 0: no more of them. */
struct executions_samples {
    const uint32_t *indexes;
    int count;
    int (*take)(void *arg, int sample, const struct at_live *sites, size_t count); /* borrowed for the call */
    void *arg;
};

struct executions_options {
    const struct executions_samples *samples; /* NULL: none */
    int with_rows;                            /* 0: samples alone, which takes less */
    const char *kind;                         /* of the rows: this kind of memory alone; NULL, "all": any */
    void (*progress)(void *arg, int percent); /* NULL: none; 100 at its end */
    void *progress_arg;
};

/* Marks executions as known. 0, what take returned, -ENODATA where the recording has no events, or -errno with err.
 * Free the result in any case. */
int executions_measure(sqlite3 *db, struct executions *e, const struct executions_options *options,
                       struct executions_result *result, struct error *err);
void executions_result_free(struct executions_result *result);

#endif
