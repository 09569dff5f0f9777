/*
 * window.h: the accounts of a window of time, by site: what was live at its start and at its end, what was allocated,
 * freed and temporary in between, the peak inside and who held it. From the nearest key frame, the sums of whole
 * chunks, and the events of the few chunks that the window or a peak cuts: as long as the run is does not matter much.
 */
#ifndef MEMPROF_WINDOW_H
#define MEMPROF_WINDOW_H

#include "replay.h"

#include <stddef.h>

#define WINDOW_END INT64_MAX /* as to_ns: up to the end of the run, and all that happens in it */

struct window_range {
    int64_t from_ns, to_ns; /* events from from_ns on, and before to_ns */
};

/* Sorts them, and makes one of those that overlap. The count that is left. */
size_t window_unite(struct window_range *ranges, size_t count);

struct window_result {
    int is_counted; /* 0: not all events of the window are kept, so only live bytes at two stored instants are known: */
    int64_t start_ns, end_ns;
    int64_t chunks_damaged, chunks_summed, chunks_read;
    int has_parts; /* threads, processes and sizes are known; 0 of a file of an older version, or a damaged one */
};

/* The accounts of the events that are in any of the ranges, which are united. Start: of the first one; end: of the
 * last one; the peak is the highest of all. Blocks that a process still had when it ended within the window are live at
 * its end. Free with replay_free in any case. 0, or -errno with
 * err. */
enum window_parts_wanted {
    WINDOW_SITES,     /* alone */
    WINDOW_PARTS,     /* and threads and sizes */
    WINDOW_PROCESSES, /* and the peaks of processes, for which some more events may have to be read */
};
int window_load(sqlite3 *db, const struct window_range *ranges, size_t count, enum window_parts_wanted wanted,
                struct replay *replay, struct window_result *result, struct error *err);
/* Whether a replay of the events tells this statistic of a window (--sort), and the sums do not. */
int window_lacks(int stat);

/* Of a recording in which one thread alone allocated: its rows, and its process's peaks, are those of the devices. */
void window_fill_thread(struct replay *replay, int64_t thread_id);

#endif
