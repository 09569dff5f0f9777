/* every.h: a table of the executions of a range, and what grows from one to the next. */
#ifndef MEMPROF_EVERY_H
#define MEMPROF_EVERY_H

#include "report.h"

struct every_options {
    const struct report_options *report; /* device, kind, top, lens and file */
    const char *name;                    /* of the range */
    int64_t warmup;                      /* executions that growth leaves out */
    void (*progress)(void *arg, int percent);
    void *progress_arg;
};

/* -EINVAL with err where there is no such range, and where the recording has no events. */
int every_report(sqlite3 *db, const struct every_options *options, const struct report_out *out, struct error *err);

#endif
