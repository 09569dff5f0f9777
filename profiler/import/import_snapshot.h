/*
 * import_snapshot.h: the stages of a snapshot's import: replay (arrays of a snapshot to events), write (what is not an
 * event).
 */
#ifndef MEMPROF_IMPORT_SNAPSHOT_H
#define MEMPROF_IMPORT_SNAPSHOT_H

#include "../../formats/torch_snapshot/snapshot.h"
#include "import_private.h"

struct import_names {     /* what stacks and streams are in the database */
    uint32_t *stack_ids;  /* by stack */
    uint32_t *thread_ids; /* by place */
    uint32_t before_id;   /* the stack that stands for "before the history", where nothing else is known */
};

#define IMPORT_HOST SNAPSHOT_DEVICES /* the host's number, where devices are numbered from 0 */

/* The rows of table hook: what made an event. */
enum import_hook {
    IMPORT_HOOK_BEFORE = SNAPSHOT_ACTIONS, /* born before the history begins */
    IMPORT_HOOK_AFTER,                     /* to reach the final state, for which the history has no entry */
    IMPORT_HOOKS
};

/* device_id of device N, and of IMPORT_HOST */
static inline unsigned import_device_id(unsigned device)
{
    return device == IMPORT_HOST ? 0 : device + 1;
}

struct import_counts {
    uint64_t events;          /* given to the accounts */
    uint64_t before_blocks;   /* live when the history begins */
    uint64_t before_unknown;  /* ... of which the allocating line is not known */
    uint64_t before_segments; /* segments likewise */
    uint64_t unseen_frees;    /* live by the history, not in the final state: freed at its end */
    uint64_t unseen_allocs;   /* in the final state, freed by the history: allocated again at its end */
    uint64_t unseen_segments; /* parts of segments of which the history and the final state differ */
    uint64_t oom_count;
    int64_t start_us, end_us; /* of all histories and annotations */
    int has_times;            /* 0: entries are a microsecond apart */
};

/* import_torch_replay.c: the histories of all devices, in order of time, as events of IMPORT_PROCESS. The process has
 * not ended yet then. flush: called now and then. */
void import_replay(const struct snapshot *snap, const struct import_names *names, struct account *account,
                   void (*flush)(void *context, uint64_t time_ns, int percent), void *context,
                   struct import_counts *counts);
static inline uint64_t import_time_ns(const struct import_counts *counts, int64_t time_us)
{
    return time_us > counts->start_us ? ((uint64_t)time_us - (uint64_t)counts->start_us) * 1000 : 0;
}

/* import_torch_write.c: process, threads, devices, hooks, meta, stacks before the events; segments' properties, marks
 * and counters after them. */
void import_write_before(const struct snapshot *snap, const char *path, const struct import_counts *counts,
                         struct store *store, struct import_names *names);
void import_write_after(const struct snapshot *snap, struct store *store, const struct import_counts *counts);
/* What is unknown or does not fit together, in one line, to free; NULL: nothing. */
char *import_note(const struct snapshot *snap, const struct import_counts *counts);

/* import_torch_replay.c: start, end and whether there are times */
void import_span(const struct snapshot *snap, struct import_counts *counts);

#endif
