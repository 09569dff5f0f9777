/*
 * top.h: a recording while it is made, on a terminal until q, or once.
 */
#ifndef MEMPROF_LIVE_TOP_H
#define MEMPROF_LIVE_TOP_H

#include "frame.h"

struct top_options {
    const char *file; /* as it is opened */
    site_names_open *open;
    struct running_view view;
    struct report_out out;
    int64_t interval_ns;
    int64_t rows; /* of a table that is printed once; 0: all */
    int is_once;
};

/* 0, or -errno with err. */
int top_run(const struct top_options *options, struct error *err);

#endif
