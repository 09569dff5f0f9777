/*
 * symbols_pool.h: look-ups of many modules in worker processes. A crash or an endless loop over hostile or damaged
 * debug information costs that module's symbols (its symbol table is tried next), not the run. Known answers come from
 * the cache.
 */
#ifndef MEMPROF_SYMBOLS_POOL_H
#define MEMPROF_SYMBOLS_POOL_H

#include "symbols_table.h"

#include <signal.h>

struct symbols_job {
    const char *path;     /* borrowed; NULL: a perf map */
    const char *build_id; /* borrowed; may be NULL */
    int perf_pid;
    const uint64_t *offsets; /* borrowed; ascending, each once; addresses in a perf map */
    size_t count;
    /* results: answers in fresh, then in cached. Closed by symbols_job_close */
    struct symbols_table *fresh, *cached;
    char source[200];
    int is_cached; /* the cache has all of it */
};

/* Where answers are kept that the cache does not have (symbols_beside.h). */
struct symbols_place {
    const char *recording; /* NULL: nowhere */
    int is_written;        /* new ones are added; else what is there is only read */
};

/* progress (may be NULL) is told how many jobs are done. Returns 0, or -EINTR when *interrupted became set. */
int symbols_pool_run(struct symbols_job *jobs, size_t count, const struct symbols_place *place,
                     volatile sig_atomic_t *interrupted, void (*progress)(size_t done, size_t count));
/* Frames of one offset of the job. */
int symbols_job_frames(const struct symbols_job *job, uint64_t offset, struct symbols_frame frames[SYMBOLS_INLINE_MAX]);
void symbols_job_close(struct symbols_job *job);

#endif
