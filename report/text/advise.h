/*
 * advise.h: `memprof advise`: what to change, by what it saves at the peak.
 */
#ifndef MEMPROF_ADVISE_H
#define MEMPROF_ADVISE_H

#include "../../common/error.h"
#include "../print/out.h"

#include <sqlite3.h>
#include <stdint.h>

struct advise_options {
    const char *file;
    const char *device;                       /* NULL: all */
    int64_t top;                              /* of a rule on a device; 0: all; -1: a few */
    void (*progress)(void *arg, int percent); /* NULL: none */
};

/* 0 or -errno with err. */
int advise_report(sqlite3 *db, const struct advise_options *options, const struct report_out *out, struct error *err);

#endif
