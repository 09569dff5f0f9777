/*
 * bars.h: lines of a frame that are drawn: a device as a bar, active bytes over time.
 */
#ifndef MEMPROF_LIVE_BARS_H
#define MEMPROF_LIVE_BARS_H

#include "../../common/buf.h"
#include "../print/out.h"
#include "running.h"

/* "host  active 1.20 MiB  reserved 2.00 MiB ...", as much of it as the width takes (0: all). */
void bars_figures(const struct running_device *d, const struct report_out *out, struct buf *line);
/* What of the device (or of the most that was seen) is active, reserved beyond that, used beyond that. */
void bars_device(const struct running_device *d, const struct report_out *out, struct buf *line);
/* Active bytes over span_ns. */
void bars_spark(const struct running_device *d, int64_t span_ns, const struct report_out *out, struct buf *line);

#endif
