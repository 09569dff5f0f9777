/*
 * ownpeak_timeline.h: the most that a device held within a stretch of time, as its timeline says.
 */
#ifndef MEMPROF_OWNPEAK_TIMELINE_H
#define MEMPROF_OWNPEAK_TIMELINE_H

#include "../../common/db.h"

#define OWNPEAK_UNKNOWN INT64_MAX

struct ownpeak_timeline;
int ownpeak_timeline_open(sqlite3 *db, int64_t device, struct ownpeak_timeline **timeline, struct error *err);
void ownpeak_timeline_close(struct ownpeak_timeline *t);
/* The most active bytes from first_ns to last_ns, both included; at most those and a bucket's width around them. Asked
 * for stretches in order of time. OWNPEAK_UNKNOWN: the timeline does not cover them, or t is NULL. */
int64_t ownpeak_timeline_most(struct ownpeak_timeline *t, int64_t first_ns, int64_t last_ns);

#endif
