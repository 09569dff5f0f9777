/*
 * glance.h: a recording as its file has it at one instant, also while it is written: what each site holds, the devices,
 * the active bytes of late. A look opens the file, reads in one transaction and closes it, so that between two of them
 * nothing is held that the collector or its log (WAL) would have to wait for.
 */
#ifndef MEMPROF_LIVE_GLANCE_H
#define MEMPROF_LIVE_GLANCE_H

#include "../../common/error.h"

#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>

enum { GLANCE_SPARKS = 240 }; /* parts of the time of GLANCE_SPARK_NS, or of the run where that is over */
#define GLANCE_SPARK_NS  120000000000
#define GLANCE_GROWTH_NS 10000000000
#define GLANCE_UNKNOWN   INT64_MIN

struct glance_device {
    int64_t id;
    char *name;
    int64_t active_bytes, active_count;
    int64_t reserved_bytes, used_bytes, total_bytes; /* GLANCE_UNKNOWN: not known */
    int64_t peak_active_bytes, peak_reserved_bytes;
    int64_t spark_bytes[GLANCE_SPARKS]; /* the most of each part */
};

struct glance {                    /* all zero: none was taken */
    char *command, *cwd, *partial; /* NULL: unknown; partial: why the file is not whole */
    int64_t pid, duration_ns, event_count;
    int is_recording;     /* by what the file says, whose collector may be gone */
    int has_events;       /* it keeps all of them */
    int64_t sample_bytes; /* mean between two blocks of the heap that are recorded; 0: all are */
    int64_t spark_ns;     /* how long the sparks last together */
    struct glance_device *devices;
    size_t device_count, device_capacity;
    /* By site id below site_end: what is live there (of a run that is over: was, when its process ended). */
    uint32_t site_end;
    int64_t *bytes, *count;
    uint8_t *device; /* by its id */
    /* What grew in the last GLANCE_GROWTH_NS, a second at a time; has_changes 0: not asked for, or not in the file. */
    struct glance_change {
        int64_t time_ns;
        int64_t bytes; /* negative: freed */
        uint32_t site;
    } * changes;
    size_t change_count, change_capacity;
    int has_changes;
    int is_same; /* no event came since the glance before */
};

/* Opens the file for reading. Where a recording has just begun and nothing is in it, its first commit is waited for,
 * but no longer than three seconds. 0, or -errno with err. */
int glance_open(const char *path, sqlite3 **db, struct error *err);
/* Free with glance_close in any case. before: the glance before it, whose sites this one takes over where no event came
 * since; NULL: the first one, which reads the events of the last GLANCE_GROWTH_NS, too. 0, or -errno with err. */
int glance_take(const char *path, struct glance *before, struct glance *glance, struct error *err);
void glance_close(struct glance *look);
/* NULL: the file has no such device. */
struct glance_device *glance_device_of(const struct glance *look, int64_t id);

#endif
