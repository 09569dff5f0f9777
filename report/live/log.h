/*
 * log.h: the events of a recording as lines, as they are written, until the recording ends.
 */
#ifndef MEMPROF_LIVE_LOG_H
#define MEMPROF_LIVE_LOG_H

#include "../print/out.h"
#include "site_names.h"

struct log_options {
    const char *file;
    site_names_open *open;
    const char *device;   /* as for --device; NULL: all */
    const char *function; /* as for lines --func; NULL: all */
    int kind;             /* enum kind; -1: all */
    int64_t pid;          /* 0: all */
    int64_t least_bytes;
    int follows;           /* to the recording's end; else what is there now */
    struct report_out out; /* text or JSON, a line an event */
};

/* *damaged: chunks of events that could not be read and were left out. 0, or -errno with err; -ENODEV: there is no such
 * device. */
int log_run(const struct log_options *options, int64_t *damaged, struct error *err);

#endif
