/*
 * import_private.h: a snapshot as arrays, and the stages of an import: read (pickle to arrays), replay (arrays to
 * events), write (what is not an event). Frames, stacks and texts have numbers from 0, in which 0 of a stack is the
 * empty one.
 */
#ifndef MEMPROF_IMPORT_PRIVATE_H
#define MEMPROF_IMPORT_PRIVATE_H

#include "../../formats/pickle.h"
#include "import.h"

#include <stddef.h>
#include <stdint.h>

#define IMPORT_DEVICES 254u /* device_id is one byte, and the host is one of them */

enum import_action {
    IMPORT_NO_ACTION, /* one that is not known */
    IMPORT_ALLOC,
    IMPORT_FREE_REQUESTED,
    IMPORT_FREE_COMPLETED,
    IMPORT_SEGMENT_ALLOC,
    IMPORT_SEGMENT_FREE,
    IMPORT_SEGMENT_MAP,
    IMPORT_SEGMENT_UNMAP,
    IMPORT_SNAPSHOT,
    IMPORT_OOM,
    IMPORT_USER, /* 'user_defined', 'annotate': a mark of the program's */
    IMPORT_ACTIONS
};

enum import_state { IMPORT_INACTIVE, IMPORT_ACTIVE, IMPORT_PENDING };

/* One entry of a history. 32 bytes: there are millions. */
struct import_event {
    uint64_t address; /* of an oom: free bytes of the device; of a mark: number of its text plus 1 */
    uint64_t size_bytes;
    int64_t time_us; /* Unix; 0: not told */
    uint32_t stack;
    uint16_t place; /* number in places */
    uint8_t action; /* enum import_action */
    uint8_t pad;
};

struct import_place { /* stream and pool */
    int64_t stream;
    int64_t pool[2];
};

struct import_block {
    uint64_t address;
    uint64_t size_bytes;      /* as the allocator rounded it */
    uint64_t requested_bytes; /* the same where it was not told */
    uint32_t stack;
    uint8_t state; /* enum import_state */
    uint8_t has_address, has_requested;
};

struct import_segment {
    uint64_t address, total_bytes, allocated_bytes, active_bytes, requested_bytes;
    uint32_t device;
    uint32_t first_block, block_count;
    uint32_t stack;
    uint32_t type; /* number of the text plus 1 */
    uint16_t place;
    uint8_t is_expandable;
};

struct import_annotation {
    int64_t time_us;
    uint32_t name; /* number of the text plus 1 */
    uint32_t device;
    uint8_t is_end;
};

struct import_frame {
    uint32_t function, file; /* numbers of texts plus 1 */
    uint32_t line;
};

struct import_stack {
    uint32_t first, count; /* in stack_frames, innermost first */
};

struct import_run { /* elements of one of the arrays that lie together: what a list became */
    uint8_t type;   /* of its elements; PICKLE_TUPLE: a pool's id, whose place is `first`; PICKLE_DICT: in `old` */
    uint32_t first, count;
};

struct import_table { /* a growing array */
    void *data;
    uint32_t count, capacity;
};

struct import_history {    /* of one device */
    uint32_t first, count; /* events */
};

struct import_source {
    long (*read)(void *context, void *data, size_t size); /* as pickle.h has it */
    void *context;
};

struct import {
    const struct import_source *source;
    struct pickle *pickle; /* owns the texts */
    struct import_table events, places, blocks, segments, annotations, frames, stacks, stack_frames, runs;
    struct import_table old;             /* blocks as the oldest snapshots know them: size and stack */
    uint32_t *frame_slots, *stack_slots; /* hash tables of numbers plus 1; capacity is a power of two */
    uint32_t frame_slot_count, stack_slot_count;
    uint8_t *keys; /* by text: enum import_key plus 1; 0: not looked up yet */
    uint32_t key_count;
    uint32_t kept; /* containers that stay */

    struct import_history devices[IMPORT_DEVICES];
    uint32_t device_count;
    struct import_run annotation_run, segment_run, host_segment_run;
    struct import_history host;
    struct pickle_value settings, top;
    int has_settings, has_top;
    int has_segments; /* the final state is told */

    /* what was not used */
    uint64_t unknown_keys, unknown_values, bad_entries;
    uint64_t bad_sizes;   /* taken as 0 */
    uint64_t total_bytes; /* of all sizes: below 2^63, and so is every sum of some of them */
    uint64_t rest_bytes;  /* after the pickle's end */
    char unknown_names[256];
};

/* import_read.c: -errno with err for what cannot be read at all; parts that are not known are skipped and counted. */
int import_read(struct import *im, const struct import_source *source, struct error *err);
void import_free(struct import *im);

/* Elements. */
#define IMPORT_AT(table, type, index) (&((struct type *)(table).data)[index])

static inline const char *import_text(const struct import *im, uint32_t number_plus_1)
{
    return number_plus_1 ? pickle_text(im->pickle, pickle_make(PICKLE_TEXT, number_plus_1 - 1), NULL) : NULL;
}

struct store;
struct account;

struct import_names {     /* what stacks and streams are in the database */
    uint32_t *stack_ids;  /* by stack */
    uint32_t *thread_ids; /* by place */
    uint32_t before_id;   /* the stack that stands for "before the history", where nothing else is known */
};

#define IMPORT_PROCESS 1u
#define IMPORT_HOST    IMPORT_DEVICES /* the host's number, where devices are numbered from 0 */

/* The rows of table hook: what made an event. */
enum import_hook {
    IMPORT_HOOK_BEFORE = IMPORT_ACTIONS, /* born before the history begins */
    IMPORT_HOOK_AFTER,                   /* to reach the final state, for which the history has no entry */
    IMPORT_HOOKS
};

/* device_id of device N, and of IMPORT_HOST */
static inline unsigned import_device_id(unsigned device)
{
    return device == IMPORT_HOST ? 0 : device + 1;
}

struct import_counts {
    uint64_t events;          /* given to the accounts */
    uint64_t before_blocks;   /* live when the history begins */
    uint64_t before_unknown;  /* ... of which the allocating line is not known */
    uint64_t before_segments; /* segments likewise */
    uint64_t unseen_frees;    /* live by the history, not in the final state: freed at its end */
    uint64_t unseen_allocs;   /* in the final state, freed by the history: allocated again at its end */
    uint64_t unseen_segments; /* parts of segments of which the history and the final state differ */
    uint64_t oom_count;
    int64_t start_us, end_us; /* of all histories and annotations */
    int has_times;            /* 0: entries are a microsecond apart */
};

/* import_replay.c: the histories of all devices, in order of time, as events of IMPORT_PROCESS. The process has not
 * ended yet then. flush: called now and then. */
void import_replay(const struct import *im, const struct import_names *names, struct account *account,
                   void (*flush)(void *context, uint64_t time_ns, int percent), void *context,
                   struct import_counts *counts);
static inline uint64_t import_time_ns(const struct import_counts *counts, int64_t time_us)
{
    return time_us > counts->start_us ? ((uint64_t)time_us - (uint64_t)counts->start_us) * 1000 : 0;
}

/* import_read.c: as a snapshot has them; IMPORT_NO_ACTION has none. */
extern const char *const import_action_names[IMPORT_ACTIONS];
/* import_write.c: process, threads, devices, hooks, meta, stacks before the events; segments' properties, marks and
 * counters after them. */
void import_write_before(const struct import *im, const char *path, const struct import_counts *counts,
                         struct store *store, struct import_names *names);
void import_write_after(const struct import *im, struct store *store, const struct import_counts *counts);
/* What is unknown or does not fit together, in one line, to free; NULL: nothing. */
char *import_note(const struct import *im, const struct import_counts *counts);

/* import_replay.c: start, end and whether there are times */
void import_span(const struct import *im, struct import_counts *counts);

#endif
