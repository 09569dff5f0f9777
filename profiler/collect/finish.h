/*
 * finish.h: after the last event: symbols, source lines and the accounts by line, function, file, module and thread.
 * Works on a committed database alone, so that a file whose collector was killed can be finished later.
 */
#ifndef MEMPROF_FINISH_H
#define MEMPROF_FINISH_H

#include "../../common/error.h"

#include <sqlite3.h>

struct finish_options {
    int with_source; /* put the text of the source files into file.source */
    int progress;    /* write "memprof: symbolizing 12/40 modules" to stderr, rewriting the line */
    int again;       /* symbolize anew what already has symbols */
};

/* Symbolizes every address without frames, then writes line, site_line, account and meta state 'complete'. Own
 * transactions. Returns 0 or -errno with err. */
int finish_database(sqlite3 *db, const struct finish_options *options, struct error *err);

#endif
