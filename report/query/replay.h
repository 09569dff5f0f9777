/*
 * replay.h: what one process did, or all did in a window of time, from the events: statistics by site and thread, and
 * totals, as if nothing else had been recorded. Only recordings that keep all events can be replayed.
 */
#ifndef MEMPROF_REPLAY_H
#define MEMPROF_REPLAY_H

#include "../../common/error.h"
#include "stat.h"

#include <sqlite3.h>

/* The images of a process: an exec ends one and starts the next under the same pid. */
struct replay_images {
    uint64_t bits[65536 / 64]; /* by process_id */
};

struct replay_site {
    int64_t id;
    struct stat_row stats;          /* reserved_peak_bytes is not known */
    int64_t torn_bytes, torn_count; /* as table site_teardown */
    int64_t moved_count;            /* blocks that turned out to be segments */
    uint8_t device, kind;           /* kind.h */
};

struct replay_thread { /* of a kind of a device, or (KIND_all) of the device */
    int64_t id;
    struct stat_row stats;
    uint8_t device, kind;
};

struct replay_process {   /* of a window only */
    int64_t process_id;   /* an image's; -1: of the only process that there is */
    uint8_t device, kind; /* KIND_all: of the device */
    int64_t peak_bytes;   /* most that it held within the window */
};

struct replay_total {
    uint8_t device, kind; /* kind: KIND_all for the device */
    struct stat_row stats;
    int64_t peak_active_ns, peak_active_count, realloc_count;
};

struct replay_size { /* as table size_class */
    int64_t alloc_count, alloc_bytes, free_count, temporary_count, lifetime_ns;
    uint8_t device, kind;
    int log2_size;
};

struct replay {
    /* Gets each site, in the order of their ids, in place of sites; threads and sizes are not told then. NULL: none,
     * and what is not taken is told. Set before the others are filled. */
    void (*take)(void *arg, const struct replay_site *site);
    void *take_arg;
    struct replay_site *sites; /* by id; only those that the process used */
    uint32_t site_count;
    struct replay_total *totals;
    uint32_t total_count;
    struct replay_thread *threads; /* of a window only */
    uint32_t thread_count;
    struct replay_process *processes; /* the same */
    uint32_t process_count;
    struct replay_size *sizes; /* the same */
    uint32_t size_count;
    int has_lifetimes; /* of sizes */
    int64_t event_count;
};

/* -EINVAL with err when there is no such process. */
int replay_images(sqlite3 *db, int64_t pid, struct replay_images *images, struct error *err);
static inline int replay_has(const struct replay_images *images, unsigned process_id)
{
    return images->bits[process_id >> 6] >> (process_id & 63) & 1;
}

/* Whether all events are there. */
int replay_is_possible(sqlite3 *db);
struct window_range;
/* Of images (NULL: of all processes) what happened in ranges (NULL: in all the run), which are united (window.h), to
 * blocks of at least min_size_bytes, as if there had been no others. replay: empty, but for take.
 * -EBADMSG with err when a part of the events is damaged. Free with replay_free in any case. */
int replay_load(sqlite3 *db, const struct replay_images *images, const struct window_range *ranges, size_t range_count,
                int64_t min_size_bytes, struct replay *replay, struct error *err);
/* For who fills one: empty, but for who takes the sites; the next of most sites. */
void replay_begin(struct replay *replay);
void replay_give(struct replay *replay, size_t most, const struct replay_site *site);
/* Whether all of a row is 0. */
static inline int replay_is_nothing(const struct stat_row *stats)
{
    for (int i = 0; i < STAT_VALUE_COUNT; i++)
        if (stats->value[i])
            return 0;
    return 1;
}
void replay_free(struct replay *replay);

/* The highest active bytes of each process by device, of kind (KIND_all: all), in a table
 * temp.process_peak(first_id, device_id, peak_bytes), of a window as temp.window_process_peak has them, and the images
 * of each in temp.process_image(process_id, first_id). */
int replay_peaks(sqlite3 *db, int kind, struct error *err);

#endif
