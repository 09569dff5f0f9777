/* growth_private.h: what growth.c, which keeps what each site held, and growth_lines.c, which sums up, share. */
#ifndef MEMPROF_GROWTH_PRIVATE_H
#define MEMPROF_GROWTH_PRIVATE_H

#include "growth.h"

struct growth {
    uint32_t *ends; /* the executions that have ended, in the order of their ends */
    size_t count, warmup;
    int sample_count;
    int64_t numbers[GROWTH_SAMPLES]; /* which of these the samples are */
    uint32_t indexes[GROWTH_SAMPLES];
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

#endif
