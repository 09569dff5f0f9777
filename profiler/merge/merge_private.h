/*
 * merge_private.h: the parts of a merge. An input is untrusted: ids may be sparse or lead nowhere, tables may be
 * damaged.
 */
#ifndef MEMPROF_MERGE_PRIVATE_H
#define MEMPROF_MERGE_PRIVATE_H

#include "../../common/buf.h"
#include "../../common/db.h"
#include "../../common/ids.h"
#include "../../common/kind.h"
#include "../../common/map.h"
#include "../../common/packed.h"
#include "../../common/text.h"
#include "../../common/wrap.h"
#include "../store/device_row.h"
#include "../store/nodes.h"
#include "../store/store.h"
#include "merge.h"

enum merge_stat {
#define STAT(column, name, unit, combine, text) MERGE_##column,
#include "../../common/stat.def"
#undef STAT
    MERGE_STATS
};

struct merge_site {
    uint32_t stack, process;
    uint8_t device, kind;
    int64_t stat[MERGE_STATS];
    int64_t torn_bytes, torn_count, kept_count;
};

struct merge_module { /* by path and build-id: the first one that was met, with the best symbols */
    char *path, *build_id, *symbols;
    int64_t process_id, start, end, bias, load_ns;
};

struct merge_sum { /* a row of a table of sums */
    uint32_t device;
    int64_t kind, class; /* as the table has it */
    int64_t value[16];
    int has_no_reserved; /* of totals: one of the recordings does not know its reserved bytes */
};

struct merge_sums {
    struct map of; /* device and kind, class -> place + 1 */
    struct merge_sum *rows;
    uint32_t count, capacity;
};

enum { MERGE_TOTAL, MERGE_SIZE_CLASS, MERGE_LIFETIME_CLASS, MERGE_TRANSFER, MERGE_SUMS };

enum { DEVICE_SEVERAL = DEVICE_ROWS + 1 }; /* in place of a device + 1 */

struct timeline;
struct merge_instant;
struct merge_common { /* of a device: what the sum of active bytes was at one instant */
    uint64_t *least;  /* by bucket: at every instant of it at least so much; NULL: no recording has the device */
    uint64_t least_peak, least_peak_ns;
    uint64_t known_least, known_most, known_ns; /* by more than the timelines; known_most 0: nothing is */
};

struct merge {
    struct merge_options options;
    char *output, *temporary;
    struct store *store;
    struct nodes *nodes;
    struct device_rows devices;
    struct text_map device_names; /* the inputs' UUIDs and names -> device + 1; DEVICE_SEVERAL: of several */
    uint32_t name_counts[DEVICE_ROWS];
    int64_t last_id[8]; /* given so far, by enum merge_id */
    int64_t recording_count, event_count;
    /* names */
    struct text_map module_map, files, functions, addresses, texts;
    struct merge_module *modules;
    uint32_t module_count, module_capacity, named_count;
    /* sums */
    struct map site_map; /* stack, device and kind -> place + 1 */
    struct merge_site *sites;
    uint32_t site_count, site_capacity;
    struct merge_sums sums[MERGE_SUMS];
    /* time */
    struct timeline *timelines[DEVICE_ROWS];
    struct merge_common common[DEVICE_ROWS];
    struct merge_instant *instants;
    uint32_t instant_count, instant_capacity;
    uint64_t width_ns;
    /* facts */
    struct text_map hosts, commands;
    int64_t host_bytes; /* memory of all hosts; -1: not known of all */
    struct buf partial;
};

/* --- one input --------------------------------------------------------------------------------------------------- */

enum merge_id {
    MERGE_PROCESS,
    MERGE_THREAD,
    MERGE_RECORDING,
    MERGE_OOM,
    MERGE_SCAN,
    MERGE_BLOCK,
    MERGE_DEVICE,
    MERGE_STACK,
    MERGE_SITE,
    MERGE_MODULE,
    MERGE_FILE,
    MERGE_FUNCTION,
    MERGE_ADDRESS,
    MERGE_IDS
};

struct merge_of { /* what an input's ids are in the merged file */
    struct ids ids;
    int64_t *to; /* by place; 0: nothing */
    uint32_t capacity;
};

struct input {
    struct merge *m;
    sqlite3 *db;
    const struct merge_source *source;
    struct merge_of of[MERGE_IDS];
    struct packed *packed;
    int is_merged;                        /* of several recordings */
    uint8_t is_counted_once[DEVICE_ROWS]; /* what the driver says of a device is of all recordings alike */
    int rc;                               /* of the first table that could not be read */
    struct error err;
};

void merge_map(struct input *in, enum merge_id what, int64_t id, int64_t to);
/* 0: nothing, or NULL. A device's is its id + 1. */
int64_t merge_find(const struct input *in, enum merge_id what, int64_t id);
int64_t merge_column(const struct input *in, enum merge_id what, sqlite3_stmt *s, int column);
/* Calls row for each row; what cannot be read is kept as the input's error. */
void merge_each(struct input *in, const char *sql, void (*row)(struct input *in, sqlite3_stmt *s));
void merge_failed(struct input *in, int rc, const char *text);
/* Whether a table has the column: files of older versions lack some. */
int merge_has_column(sqlite3 *db, const char *table, const char *column);

/* In this order, as each needs the ids of those before it. */
void merge_devices(struct input *in);   /* merge_names.c */
void merge_processes(struct input *in); /* merge_rows.c: recordings, processes, threads */
void merge_names(struct input *in);     /* modules, files, functions, addresses */
void merge_stacks(struct input *in);    /* merge_stacks.c: stacks and sites */
void merge_rows(struct input *in);      /* all that is no sum */
void merge_totals(struct input *in);    /* merge_sums.c */
void merge_timeline(struct input *in);  /* merge_time.c */

/* What is written when all inputs were read. */
void merge_names_end(struct merge *m);
void merge_stacks_end(struct merge *m);
void merge_timeline_end(struct merge *m);
void merge_totals_end(struct merge *m); /* after the timeline, which knows when most was live */
void merge_looks_end(struct merge *m);

void merge_names_free(struct merge *m);
void merge_time_free(struct merge *m);

#endif
