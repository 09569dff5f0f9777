/*
 * running.h: a recording that is looked at again and again: its file, the desk of its collector, the names of its
 * sites, and what grew. Everything that costs has its pace: a look and the names are made anew only after so many times
 * what the last ones took, so that looking on takes a small part of a processor whatever is recorded.
 */
#ifndef MEMPROF_LIVE_RUNNING_H
#define MEMPROF_LIVE_RUNNING_H

#include "glance.h"
#include "site_names.h"

struct running;

enum running_sort {
#define LIVE_SORT(id, name) RUNNING_SORT_##id,
#include "sorts.def"
    RUNNING_SORTS
};

extern const char *const running_sort_texts[RUNNING_SORTS]; /* "active", ... */

struct running_device { /* as glance_device; from the desk where that can be read */
    const char *name;
    int64_t active_bytes, active_count, allocated_bytes, reserved_bytes, used_bytes, total_bytes;
    int64_t peak_active_bytes, peak_reserved_bytes;
    const int64_t *spark_bytes; /* NULL: none */
};

struct running_row {
    const char *device;
    const struct site_name *name;
    int64_t bytes, count, growth_bytes;
    int is_named; /* 0: of sites that are too new to have names; name is the empty one */
};

struct running_view {
    enum site_names_by by;
    enum running_sort sort;
    const char *device; /* as for --device; NULL: all */
};

/* path and open are borrowed. is_quiet as in site_names.h. The first look is taken: -errno with err where that fails.
 */
int running_open(const char *path, site_names_open *open, int is_quiet, struct running **live, struct error *err);
void running_close(struct running *live);

/* Looks anew where that is due. 1: something is new; 0; or -errno with err, after which all is as it was. */
int running_step(struct running *live, struct error *err);
/* Waits for names of all sites that were looked at. 0, or -errno with err: then they have none. */
int running_wait_names(struct running *live, struct error *err);
/* For poll: readable when running_step has names to take; -1: none are looked up. */
int running_fd(const struct running *live);

/* Of the newest look; borrowed until the next step. */
const struct glance *running_glance(const struct running *live);
/* Whether the program runs on. */
int running_goes_on(const struct running *live);
/* Whether what grew is known; *since_ns: of how long a time. */
int running_has_growth(const struct running *live, int64_t *span_ns);
int64_t running_time_ns(const struct running *live); /* since the run began; of the desk */
/* Sets a mark in the recording, now; waits for its collector for some seconds at most. 0, or -errno with err. */
int running_mark(const struct running *live, const char *name, struct error *err);

/* Both into arrays of the caller, to free. Names are borrowed until the next step. */
size_t running_devices(const struct running *live, struct running_device **devices);
/* Sorted. */
size_t running_rows(const struct running *live, const struct running_view *view, struct running_row **rows);

#endif
