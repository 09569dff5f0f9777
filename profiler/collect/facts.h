/*
 * facts.h: what is known about a recording as a whole: table meta, the collector's own counters, the closing lines.
 */
#ifndef MEMPROF_FACTS_H
#define MEMPROF_FACTS_H

#include "../account/account.h"
#include "../store/store.h"
#include "clock.h"
#include "collect.h"

#define FACTS_PROGRAM_LOSSES 2

struct facts {
    int64_t duration_ns;
    char peaks[160];         /* of active bytes: "3.59 MiB", or of each device; filled by facts_read_peaks */
    int64_t host_peak_bytes; /* the same */
    uint32_t processes, programs_missing; /* recorded, and not */
    uint32_t executed_missing;            /* of these, which the program executed itself, in its place */
    uint32_t processes_seen;              /* all of them, as the reports count */
    uint64_t processes_refused, processes_disowned, threads_refused;
    uint64_t bad_rings, bad_records, unknown_stacks, unresolved_names;
    uint64_t program_losses[FACTS_PROGRAM_LOSSES]; /* filled by facts_read_losses */
    int is_attached;                               /* to a process that ran already */
    struct account_counts counts;
};

/* Before the first event: meta, tables device and hook. */
void facts_begin(struct store *store, const struct collect_options *options, char *const argv[],
                 const struct clock *clock);
/* With each commit: what a killed collector leaves is all that happened up to duration_ns, whatever kept it from the
 * next commit. */
void facts_progress(struct store *store, uint64_t event_count, int64_t duration_ns);
/* Once all processes have ended, before facts_end. */
void facts_read_losses(struct store *store, struct facts *f);
void facts_end(struct store *store, const struct facts *f);
/* Once the totals are written. */
void facts_read_peaks(struct store *store, struct facts *f);
void facts_print(const struct facts *f, const char *path);

#endif
