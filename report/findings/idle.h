/*
 * idle.h: blocks of GPUs that nothing was copied to or from for a part of their life. Kernels are not seen, so all of
 * it is a bound. Of a line what was idle at the device's peak is known from the tables; its blocks one by one where all
 * of them are among the largest of the run and all events are there: then the peak is replayed.
 */
#ifndef MEMPROF_FINDING_IDLE_H
#define MEMPROF_FINDING_IDLE_H

#include "rules.h"

enum idle_part { IDLE_EARLY, IDLE_LATE };

#define IDLE_PERCENT 5 /* of the peak: less of a line is not said */

struct idle {
    const struct rule_line *line;
    int64_t site_id, site_bytes;               /* of these the one that has most idle at the peak */
    int64_t peak_bytes, peak_count;            /* idle at the peak */
    int64_t block_count, idle_ns, lifetime_ns; /* of its blocks that were copied, all together */
};

/* The lines of r->device that have most of that, worth saying: at most room. How many they are. */
int idle_lines(struct rules *r, enum idle_part part, struct idle *idle, int room);
/* What the finding saves. */
void idle_saves(struct rules *r, struct finding *f, enum idle_part part, const struct idle *idle);

#endif
