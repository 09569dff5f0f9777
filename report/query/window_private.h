/*
 * window_private.h: what the files of a window share, nobody else.
 */
#ifndef MEMPROF_WINDOW_PRIVATE_H
#define MEMPROF_WINDOW_PRIVATE_H

#include "../../common/chunk.h"
#include "../../common/map.h"
#include "at.h"
#include "window.h"

#define WINDOW_NONE AT_NONE

struct window_site {
    uint32_t levels[2]; /* of its device, and of its kind there; WINDOW_NONE: not known */
    uint32_t seen;      /* ranges that had been entered when it changed last */
    int64_t start_bytes, start_count, alloc_bytes, alloc_count, free_bytes, free_count, temporary_count;
    int64_t end_bytes, end_count;   /* live when its process ended */
    int64_t torn_bytes, torn_count; /* as table site_teardown */
    int64_t moved_count;            /* as in replay.h */
    int64_t at_peak_bytes, at_peak_count, at_kind_peak_bytes, own_peak_bytes;
};

/* The most that a level may have risen to in a chunk. */
struct window_bound {
    int64_t chunk_id, first_event, before_bytes, bytes;
};

struct window_level { /* of a device (KIND_all), or of one kind of it */
    uint8_t device, kind, has_peak, is_touched, is_holding, is_held;
    int64_t active_bytes;
    int64_t peak_bytes, peak_ns, peak_count, stop_event; /* stop_event: the peak is before it */
    int64_t before_bytes, rise_bytes;                    /* of the chunk that is being added */
    struct window_bound *bounds;
    uint32_t bound_count, bound_capacity;
};

struct window_chunk {
    int64_t chunk_id, first_ns, last_ns, first_event, event_count;
};

struct window_teardown { /* that began within a range */
    int64_t process_id, began_ns, until_ns;
};

struct window_bucket { /* of the timeline */
    int64_t first_ns, end_ns, most_bytes;
    uint8_t device;
};

struct window {
    sqlite3 *db;
    const struct window_range *ranges;
    size_t range_count, range; /* range: the one that is, or comes next */
    int is_inside;
    uint32_t entered;     /* ranges so far */
    struct at_live *live; /* all sites, by site_id; sites beside it */
    struct window_site *sites;
    size_t site_count;
    struct window_level *levels;
    uint32_t level_count, level_capacity, *touched, touched_count, touched_capacity;
    struct map level_of; /* (device, kind) -> levels */
    struct chunk_codec *codec, *delta_codec;
    sqlite3_stmt *read_data;
    int64_t event_count;              /* in the ranges */
    int64_t first_event, keyframe_ns; /* where the values of live were taken */
    struct window_teardown *teardowns;
    uint32_t teardown_count, teardown_capacity;
    struct map teardown_of;        /* process -> teardowns */
    struct map born;               /* (address, process and kind): since its process's teardown began */
    struct window_bucket *buckets; /* by device, then by time */
    uint32_t bucket_count, bucket_capacity;
    struct window_result *result;
};

static inline uint32_t window_site_at(const struct window *w, uint32_t site_id)
{
    return at_find(w->live, w->site_count, site_id);
}

/* window_fill.c: the result, from what was counted; replay: empty. */
void window_fill(const struct window *w, struct replay *replay);

int window_load_timeline(struct window *w, struct error *err);
int window_load_teardowns(struct window *w, struct error *err);
/* The most active bytes of a device in any bucket that touches the time; -1: not known. */
int64_t window_timeline_most(const struct window *w, uint8_t device, int64_t first_ns, int64_t last_ns);

#endif
