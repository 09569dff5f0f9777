/*
 * lens.h: another look at the same recording: functions that only pass memory on are skipped, one process alone is
 * shown, a window of time, or native or Python code alone. Tables of the connection's own (temp) stand before those of
 * the file from then on, so that every report shows it. Sums are exact; the own peak of a row whose stacks change is
 * not known. Of a window, temp.window says which it is (notes.h shows it).
 */
#ifndef MEMPROF_LENS_H
#define MEMPROF_LENS_H

#include "../../common/error.h"
#include "tree.h"
#include "window.h"

#include <sqlite3.h>
#include <stdint.h>

#define LENS_SKIPS_MAX 64

struct lens_window {
    const struct window_range *ranges; /* united */
    size_t count;
    const char *name;            /* of the ranges; NULL: they are times */
    const char *options;         /* as they were given: " --during load"; NULL: not known */
    int64_t nth, of;             /* of those of that name; nth 0: all */
    int is_by_event;             /* threads, processes, sizes are wanted, which only all events up to its end tell */
    int is_by_process;           /* of those, processes */
    int is_by_size;              /* ... or sizes */
    int is_summed;               /* of them what sums of chunks tell is enough, and few events need be read */
    int has_survivors;           /* temp.survivor (survivors.h) is wanted */
    int is_self_only;            /* rows with what they call are not wanted */
    int is_by_line;              /* ... or those by line alone */
    struct window_result result; /* filled by lens_apply */
};

struct lens_options {
    const char *skips[LENS_SKIPS_MAX]; /* functions, as match.h takes them: their callers allocate */
    int skip_count;
    int hides_skipped;     /* in stacks, too: they are an allocator's functions to whoever reads the file */
    uint64_t *skips_found; /* bits of those that are in the recording; NULL: one that is not is an error */
    int64_t pid;           /* 0: all processes */
    int64_t
        min_size_bytes; /* as if there had been no smaller blocks; 0: all. Threads and processes are not told apart */
    enum tree_language language;
    int is_of_sites; /* sites are wanted, and of accounts those by line without what they call: less memory */
    struct lens_window *window; /* what happened in it alone; NULL: in the whole run */
};

/* 0, or -errno with err; -EINVAL: what the user asked for is not in the recording. */
int lens_apply(sqlite3 *db, const struct lens_options *options, struct error *err);

#endif
