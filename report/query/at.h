/*
 * at.h: what was live at an instant: from the nearest stored key frame, whole chunks' deltas, and the events of the
 * chunks that the instant or the key frame cuts. Never replays the run from its beginning.
 */
#ifndef MEMPROF_AT_H
#define MEMPROF_AT_H

#include "../../common/buf.h"
#include "../../common/error.h"
#include "../../common/search.h"

#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>

struct at_result {
    int64_t time_ns;     /* the instant that the values hold for */
    int is_exact;        /* 0: events are not kept around it, so it is the key frame's instant instead */
    int64_t keyframe_ns; /* where the search began; -1: the beginning of the run */
    int64_t chunks_summed, events_read, chunks_damaged;
};

/* Fills the temporary table temp.live(site_id, live_bytes, live_count), sites with nothing left out. pid: of one
 * process (from its first event on, as key frames do not tell processes apart); 0: of all. */
int at_load(sqlite3 *db, int64_t time_ns, int64_t pid, struct at_result *result, struct error *err);

struct at_live {
    int64_t site_id;
    int64_t bytes, count;
};

/* The place of a site among all of them by id; AT_NONE: it is none. */
#define AT_NONE UINT32_MAX
static inline uint32_t at_find(const struct at_live *live, size_t count, uint32_t site_id)
{
    if (site_id && site_id <= count && live[site_id - 1].site_id == (int64_t)site_id)
        return site_id - 1; /* as the collector numbers them */
    const size_t low = SEARCH_FIRST(count, i, live[i].site_id < (int64_t)site_id);
    return low < count && live[low].site_id == (int64_t)site_id ? (uint32_t)low : AT_NONE;
}

/* The same of all processes as an array of all sites by id, the caller's to free in any case; of events before number
 * stop_event alone (INT64_MAX: of all up to time_ns). *live: NULL, or what an earlier call gave for another instant, so
 * that sites are listed once. */
int at_values(sqlite3 *db, int64_t time_ns, int64_t stop_event, struct at_live **live, size_t *count,
              struct at_result *result, struct error *err);
/* The same of the newest key frame that is not after time_ns: what was live before event *first_event. Without one that
 * is the run's first, before which nothing was. */
int at_keyframe(sqlite3 *db, int64_t time_ns, struct at_live **live, size_t *count, int64_t *first_event,
                struct at_result *result, struct error *err);

/* The same of all processes as what came to each site, which is to be summed: in any order, of a site several times,
 * and of ids that may be none. Unsigned, since what is damaged may wrap. */
typedef void at_take(void *arg, uint32_t site_id, uint64_t bytes, uint64_t count);
int at_changes(sqlite3 *db, int64_t time_ns, at_take *take, void *arg, struct at_result *result, struct error *err);
/* The same at several instants, in order, in one way through the run: reach says before calls of take at which of them
 * what comes next was there. 1; 0: events before the last one are not kept or damaged, and what was taken is worth
 * nothing; or an error. */
typedef void at_reach(void *arg, int first, int last);
int at_series(sqlite3 *db, const int64_t *times_ns, int count, at_reach *reach, at_take *take, void *arg,
              struct error *err);

/* Appends, behind a title, why the values are not those of asked_ns, where they are not. */
void at_explain(const struct at_result *result, int64_t asked_ns, struct buf *title);

/* When the run ended, since its start. */
int64_t at_end_ns(sqlite3 *db);
/* -EINVAL with err when the instant is beyond the end of the run; option: that it was given with. */
int at_check(sqlite3 *db, int64_t time_ns, const char *option, struct error *err);

#endif
