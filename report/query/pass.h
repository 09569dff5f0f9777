/*
 * pass.h: one pass over all events of a recording, for several readers at once; and what it keeps for saving.h: how
 * high each device's active bytes were in each part of the run. The parts are buckets of events, not of time, so that
 * "before" and "after" are never in doubt: an event is named by its number since the run began.
 */
#ifndef MEMPROF_PASS_H
#define MEMPROF_PASS_H

#include "../../common/error.h"
#include "blocks.h"

#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>

#define PASS_END INT64_MAX /* the number of an event that never came */

struct pass_event {
    const struct chunk_event *event;
    int64_t number;
    /* Of a loss the block that goes, where it is known, else NULL. Borrowed for the call. A block's time_ns is the
     * number of its birth: pass_time tells when that was. */
    const struct block *block;
    int is_temporary; /* freed before the thread that allocated it allocated again */
};

struct pass_reader {
    void (*see)(void *arg, const struct pass_event *e);
    void *arg;
};

struct pass_bucket {
    int64_t first_event, first_ns;
    uint32_t chunk;
};

struct pass_chunk {
    int64_t chunk_id, first_event, event_count;
};

struct pass_level { /* of a device: each array is as long as what it is of */
    uint8_t device_id;
    int64_t active_bytes, peak_bytes, peak_event; /* the first event behind which it was at its peak */
    int64_t *most;                                /* by bucket: the highest in it, with what it began with */
    int64_t *start;                               /* by chunk: before its first event */
    size_t most_capacity, start_capacity;
};

struct pass {
    sqlite3 *db; /* borrowed */
    struct pass_bucket *buckets;
    struct pass_chunk *chunks;
    struct pass_level *levels;
    uint32_t bucket_count, bucket_capacity, chunk_count, chunk_capacity, level_count, level_capacity;
    uint16_t level_of[256]; /* by device_id: level + 1 */
    int64_t event_count;
    struct pass_gone { /* what was live when its process ended, or when the run did */
        struct block block;
        int64_t end_event; /* PASS_END: at the end of the recording */
    } * gone;
    size_t gone_count, gone_capacity;
};

/* -ENODATA where not all events are there, -EBADMSG with err where one of their chunks is damaged. progress NULL: none;
 * percent is 100 at its end. Free with pass_close in any case. */
int pass_load(sqlite3 *db, const struct pass_reader *readers, int reader_count,
              void (*progress)(void *arg, int percent), void *progress_arg, struct pass *pass, struct error *err);
void pass_close(struct pass *pass);

/* When an event was, or shortly before; of a pass that goes on, too. */
int64_t pass_time(const struct pass *pass, int64_t number);
/* NULL: nothing was ever on it. */
const struct pass_level *pass_level_of(const struct pass *pass, int64_t device_id);

#endif
