/* growth.h: what growth.c, which reads the executions of a range, and growth_lines.c, which sums up, share. */
#ifndef MEMPROF_CHECK_GROWTH_H
#define MEMPROF_CHECK_GROWTH_H

#include "check_private.h"

#define GROWTH_SAMPLES 200 /* of more executions as many are looked at, evenly */

struct growth {
    struct check_measure *m;
    struct check_result *result;
    int64_t *ends; /* of the executions, in order */
    int count, capacity;
    int sample_count;
    int64_t numbers[GROWTH_SAMPLES]; /* which executions the samples are */
    int64_t times_ns[GROWTH_SAMPLES];
    struct growth_site {
        int64_t last_bytes; /* at the sample before */
        uint32_t site_id;
        uint32_t newest; /* change + 1 */
    } * sites;
    size_t site_count, site_capacity;
    struct growth_change { /* of what a site holds, from one sample to the next */
        uint32_t next;     /* the change before it, + 1 */
        uint32_t sample;
        int64_t bytes;
    } * changes;
    uint32_t change_count, change_capacity;
};

/* Fills slope, verdict and culprits of the result. */
int growth_sum_up(struct growth *g, struct error *err);

#endif
