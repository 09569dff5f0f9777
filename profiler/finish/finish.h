/*
 * finish.h: after the last event: symbols, source lines and the accounts by line, function, file, module and thread.
 * Works on a committed database alone, so that a file whose collector was killed can be finished later.
 */
#ifndef MEMPROF_FINISH_H
#define MEMPROF_FINISH_H

#include "../../common/error.h"

#include <signal.h>
#include <sqlite3.h>

struct finish_options {
    int with_source;       /* put the text of the source files into file.source */
    int progress;          /* write "memprof: symbolizing 12/40 modules" to stderr, rewriting the line */
    int again;             /* symbolize anew what already has symbols */
    const char *recording; /* its path where names may be kept beside it (symbols_beside.h); NULL: nowhere */
    int is_named;          /* its names are all there, and what is made of events: none are looked for */
    int is_recording;      /* it is being written: what is looked up now is kept for the next report */
    int is_self_only;      /* of that, no account may have what its row calls: nobody will ask */
};

/* Set it (from a signal handler) to make finish_database stop with -EINTR; the caller clears it. */
extern volatile sig_atomic_t finish_interrupted;

/* Symbolizes every address without frames, then writes line, site_line, account and meta state 'complete'. Own
 * transactions: after a failure or -EINTR the file is consistent and its state still 'recorded'. Returns 0 or -errno
 * with err. */
int finish_database(sqlite3 *db, const struct finish_options *options, struct error *err);
/* It is finished: what was kept beside it goes. */
void finish_forget(const char *recording);

#endif
