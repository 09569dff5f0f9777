/*
 * replay_private.h: what the files of replay.h share: reading the events (replay.c), what they change
 * (replay_apply.c), and which blocks are left out (replay_small.c).
 */
#ifndef MEMPROF_REPLAY_PRIVATE_H
#define MEMPROF_REPLAY_PRIVATE_H

#include "../../common/kind.h"
#include "../../common/map.h"
#include "blocks.h"
#include "replay.h"
#include "window.h"

struct level { /* of a device, or of one kind of it; the last peak's number is its epoch */
    struct replay_total total;
    uint64_t active_bytes, active_count;
    uint64_t epoch;
};

struct held {                  /* by a site, or by what a thread allocated: of one kind, or of a device */
    int64_t value[STAT_COUNT]; /* those of the events; the others are not known, but for the next two */
    int64_t start_bytes, start_count;
    uint64_t live_bytes, live_count;
    uint64_t epoch, kind_epoch; /* up to which peaks at_peak is known */
    uint32_t seen;              /* ranges that had begun when it changed last */
};

struct site {
    struct held held;
    int64_t torn_bytes, torn_count, moved_count;
    uint32_t id;
    uint8_t device, kind;
};

struct thread {
    struct held held;
    int64_t id;
    uint8_t device, kind;
};

struct process { /* of a device, or of one kind of it */
    struct replay_process peak;
    uint64_t active_bytes;
};

struct replay_state {
    int64_t event_count;
    struct blocks blocks;
    uint32_t *site_index; /* by site_id: site + 1; 0: none. Ids that no recorder gives are in site_of */
    size_t site_room;
    struct map site_of, thread_of;          /* thread_of: (thread, device and kind) -> threads */
    uint32_t level_of[256][KIND_COUNT + 1]; /* by device and kind: level + 1 */
    struct site *sites;
    struct thread *threads;
    struct level *levels;
    uint32_t site_count, site_capacity, level_count, level_capacity, thread_count, thread_capacity;
    int64_t *teardown_ns; /* by process_id; 0: none */
    struct map last_at;
    uint64_t *last; /* by last_at of a thread: address of its last allocation */
    uint32_t last_count, last_capacity;

    const struct window_range *ranges; /* NULL: all of the run */
    size_t range_count, range;
    int is_inside, has_threads;
    uint32_t entered;
    struct process *processes; /* by process_of */
    struct map process_of;
    uint32_t process_count, process_capacity;
    struct replay_size *sizes; /* by size_of */
    struct map size_of;
    uint32_t size_count, size_capacity;
    struct map requested; /* blocks whose free was asked for: 1, or as a temporary 2 */
    struct map swept;     /* processes whose blocks ended, as far as threads go */

    uint64_t min_size_bytes; /* smaller blocks are left out; 0: none (replay_small.c) */
    struct map left_of;      /* (site, process) -> left */
    struct replay_left {     /* of a process that ends */
        uint64_t bytes, count;
    } * left;
    struct map summed; /* processes that have it */
    uint32_t left_count, left_capacity;
};

/* Ends the ranges that end by then, and begins the next one. */
void replay_advance(struct replay_state *s, int64_t time_ns);
void replay_apply(struct replay_state *s, const struct chunk_event *e);
/* Whether an event is of small blocks alone, which min_size_bytes leaves out; changes it where it is of others, too. */
int replay_leaves_out(struct replay_state *s, struct chunk_event *e);
/* Behind the last event: what it still has is live at the end. */
struct stat_row replay_end_held(struct replay_state *s, struct held *held, unsigned device, unsigned kind);
void replay_end_level(struct level *l);
/* All but sizes, which the result takes. */
void replay_state_close(struct replay_state *s);

/* Calls see for every event of images (NULL: of all), in order, until it returns 0. */
int replay_each_event(sqlite3 *db, const struct replay_images *images,
                      int (*see)(void *context, const struct chunk_event *e), void *context, struct error *err);

#endif
