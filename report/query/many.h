/*
 * many.h: the numbers of several recordings side by side: of each file and device the peaks, what was live at the end,
 * the lines that held most, and the timeline in few buckets. A file is open only while it is read, and nothing is kept
 * of it that grows with its stacks or events.
 */
#ifndef MEMPROF_MANY_H
#define MEMPROF_MANY_H

#include "recordings.h"
#include "rows.h"

enum {
    MANY_DEVICES_MAX = 256,
    MANY_BUCKETS_MAX = 1 << 19, /* of all timelines */
};

struct many_bucket { /* one of [start_ns, start_ns + width_ns); gaps are as the one before them ended */
    int64_t start_ns, min_bytes, max_bytes, max_ns, last_bytes;
    int64_t alloc_count;
};

struct many_row {
    int device;        /* of struct many */
    int64_t device_id; /* of the file */
    char *uuid;        /* NULL: unknown */
    int64_t peak_bytes, peak_ns, peak_count;
    int is_sum;                  /* of a merged file: its peak is a sum of peaks, at no instant; */
    int64_t held_bytes, held_ns; /* what was held together at one: the peak, of a merged file less; ns -1: unknown */
    int64_t reserved_bytes;      /* their peak; -1: not known */
    int64_t end_bytes, end_count;
    int64_t alloc_count, alloc_bytes, temporary_count;
    struct rows lines; /* by bytes at the peak */
    struct many_bucket *buckets;
    uint32_t bucket_count, bucket_capacity;
    int64_t width_ns;
};

/* What is said of a table whose rows have these. */
#define MANY_END_ABOVE                                                                                                 \
    "live at the end is above the peak: processes ended at different times, each with what it then held"
#define MANY_IS_SUM "the peak of a merged file is the sum of its recordings' peaks"

struct many_file { /* in the order of the recordings */
    char *state;   /* as notes_state has it; NULL: unknown */
    char *ended;   /* how the program ended; NULL: unknown */
    int has_failed;
    char **notes; /* what is missing in it */
    int note_count, note_capacity;
    char *cwd;
    struct many_row *rows; /* by device */
    int row_count, row_capacity;
};

struct many;

struct many_options {
    const char *device; /* NULL: all */
    int lines;          /* of each row; 0: none are asked for */
    int is_by_uuid;     /* a device is what has its UUID; what has none, what has its name */
    /* What else is to be known of a file (many_notes.h), while it is open. */
    void (*look)(struct many_file *file, sqlite3 *db);
};

struct many {
    struct recordings list; /* sorted, once they are loaded */
    struct many_file *files;
    char **devices; /* names, or UUIDs where they say which it is; host first */
    int device_count, device_capacity;
    int read_count; /* recordings that could be opened */
};

/* The list becomes that of many. 0; -EINVAL with err where no recording has the device asked for; that of the first
 * recording, where none can be read. many_free in all cases. */
int many_load(struct recordings *list, recordings_open *open, const struct many_options *options, struct many *many,
              struct error *err);
void many_free(struct many *many);

/* Of a file on a device; NULL: it has nothing of it. */
const struct many_row *many_row(const struct many *many, int file, int device);

/* By which the recordings are on one time axis. */
enum many_clock {
    MANY_CLOCK_NONE,    /* of one at least it is not known when it began */
    MANY_CLOCK_WALLS,   /* the wall clocks of several machines, which nobody compared */
    MANY_CLOCK_WALL,    /* that of one machine, which may have been set in between */
    MANY_CLOCK_MACHINE, /* that of one machine since it booted: nobody sets it */
};
/* Fills starts (many->list.count of them) with when each began, since the first one did; 0 where it is not known. */
enum many_clock many_align(const struct many *many, int64_t *starts_ns);

struct many_sum { /* over the files that have anything on a device */
    int count, most_file;
    int64_t peak_bytes, most_bytes, reserved_bytes, end_bytes; /* sums, but for most_bytes; saturate;
                                                                  reserved_bytes -1: of one it is not known */
    int64_t held_bytes;                                        /* the most that one file held at an instant */
    double imbalance;                                          /* the highest peak by their mean; 0: none is above 0 */
};
void many_add(const struct many *many, int device, struct many_sum *sum);

#endif
