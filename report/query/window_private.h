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
    int is_read;
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

struct window_part { /* what a thread allocated, or a process: of a kind of a device, or (KIND_all) of all of it */
    uint32_t id;
    uint8_t device, kind, is_process;
    uint32_t rise_count;         /* threads of the process that rose in chunk seen, */
    int64_t rise_bytes;          /* and how high together */
    uint64_t seen;               /* serial number of a chunk: of a thread, the chunk has a rise of all kinds */
    struct window_bound *bounds; /* of a process */
    uint32_t bound_count, bound_room;
};

struct window_parts {
    struct window_part *part; /* their accounts lie behind those of the sites, in live and sites */
    uint32_t count, capacity;
    struct map of;         /* (id and is_process, device and kind) -> part */
    struct map process_of; /* thread -> process */
    struct chunk_codec *codec;
    sqlite3_stmt *read;
    int has_processes;      /* their peaks are wanted */
    int is_missing;         /* sums that were needed are not there: nothing is known */
    struct chunk_sums sums; /* of the chunk that is being read, the codec's */
    uint32_t next_owner;    /* of these */
    struct map born;        /* (address, process and kind): block of this chunk -> thread */
    uint32_t swept;         /* process that ended last, if nothing began since */
    uint64_t serial;        /* of the chunk that is being added */
    uint32_t *touched;      /* rows of processes that it changed */
    uint32_t touched_count, touched_room;
    struct replay_size *sizes; /* by size_of */
    struct map size_of;
    uint32_t size_count, size_capacity;
};

struct window {
    sqlite3 *db;
    struct window_range *ranges; /* a copy: of those that meet without an event between, the later one has all */
    size_t range_count, range;   /* range: the one that is, or comes next */
    int is_inside;
    uint32_t entered;     /* ranges so far */
    struct at_live *live; /* all sites, by site_id; sites beside it */
    struct window_site *sites;
    size_t site_count;
    size_t live_room, site_room; /* with parts: of both, which are longer by these */
    struct window_parts *parts;  /* NULL: not wanted */
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

/* Sites, and the parts behind them. */
static inline size_t window_row_count(const struct window *w)
{
    return w->site_count + (w->parts ? w->parts->count : 0);
}

/* window_apply.c */
void window_most(int64_t *value, int64_t now);
/* Before it changes: one that did not since a range began held at its beginning what it holds now. */
void window_touch(struct window *w, uint32_t index);
void window_change(struct window *w, uint32_t index, uint64_t bytes, uint64_t count);
/* Up to an event at time_ns: ranges end and begin on the way. */
void window_advance(struct window *w, int64_t time_ns, int64_t event);
int64_t window_next_edge(const struct window *w); /* where the next range begins or ends */
/* Makes one of the ranges that meet in a chunk, which need not be read for it where they do so between two events. */
void window_join(struct window *w, const struct window_chunk *c);
void window_birth(struct window *w, uint32_t index, const struct chunk_event *e, int64_t event);
void window_loss(struct window *w, uint32_t index, const struct chunk_event *e, int is_torn);
/* What an event does, with number at in its chunk; inside a range it is counted. */
void window_apply(struct window *w, const struct chunk_event *e, uint32_t at, int64_t event, int is_temporary);

/* window.c */
long window_decode(struct window *w, int64_t chunk_id, const struct chunk_event **events);
int window_by_bound(const void *a, const void *b); /* for qsort: highest first */

/* window_parts.c */
int window_parts_open(struct window *w, int has_processes, struct error *err);
void window_parts_close(struct window *w);
/* What they had where the key frame is: from the beginning of the run. */
int window_parts_start(struct window *w, struct error *err);
/* Before the events of a chunk that is read; each of them then, whether it counts or not. */
void window_parts_begin(struct window *w, int64_t chunk_id);
void window_parts_apply(struct window *w, const struct chunk_event *e, uint32_t at, int64_t event, int is_torn,
                        int is_temporary);
void window_parts_temporaries(struct window *w); /* of the chunk that was read, all of which is inside */
void window_parts_sum(struct window *w, const struct window_chunk *c);
/* What they had before stop_event is what they had at the peaks of the levels that are holding. */
int window_parts_peak(struct window *w, int64_t stop_event, struct error *err);
void window_parts_climb(struct window *w); /* the peaks of processes */
void window_parts_fill(struct window *w, uint32_t known, struct replay *replay);

/* window_fill.c: the result, from what was counted; replay: empty. */
void window_fill(struct window *w, struct replay *replay);
void window_fill_stats(const struct window *w, size_t index, struct stat_row *stats);

int window_load_timeline(struct window *w, struct error *err);
int window_load_teardowns(struct window *w, struct error *err);
/* The most active bytes of a device in any bucket that touches the time; -1: not known. */
int64_t window_timeline_most(const struct window *w, uint8_t device, int64_t first_ns, int64_t last_ns);

#endif
