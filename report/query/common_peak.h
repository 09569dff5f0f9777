/*
 * common_peak.h: the most that several recordings held at one instant. The timelines' buckets say between what and what
 * it lies; where that is not enough, the events of the instants that may be it are read, of few at a time.
 */
#ifndef MEMPROF_COMMON_PEAK_H
#define MEMPROF_COMMON_PEAK_H

#include "many.h"

struct common_peak {
    enum many_clock clock;
    int64_t least_bytes, most_bytes; /* what it is at least and at most; one number: that is it, as the clocks say */
    int64_t time_ns;                 /* of least_bytes, since the first recording began; -1: unknown */
    int without_events;              /* recordings whose events would have been needed, and are not there */
};

/* Of a device of many. Without a common clock, the highest peak and the sum of all. */
void common_peak_find(struct many *many, int device, struct common_peak *peak);
/* The same with an axis that is known otherwise: when each recording began, since the first one did. */
void common_peak_find_at(struct many *many, int device, const int64_t *starts_ns, struct common_peak *peak);

#endif
