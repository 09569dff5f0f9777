/*
 * wallclock.h: times of the clock on the wall, as people and logs write them: 14:03, 14:03:10.5, 2026-11-23T14:03:10,
 * with Z or +01:00 behind it or else of this machine's time zone.
 */
#ifndef MEMPROF_WALLCLOCK_H
#define MEMPROF_WALLCLOCK_H

#include <stdint.h>

/* Whether it is meant as one. */
int wallclock_is(const char *text);
/* In nanoseconds since 1970. A time without a date is the first one that is not before the second of since_ns. Returns
 * 0, -EINVAL for what is none, or -ERANGE for one that did not come (30 February, or skipped by the time zone). */
int wallclock_parse(const char *text, int64_t since_ns, int64_t *unix_ns);

#endif
