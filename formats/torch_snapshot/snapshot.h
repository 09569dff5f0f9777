/*
 * snapshot.h: a memory snapshot of PyTorch as arrays. Frames, stacks and texts have numbers from 0, in which 0 of a
 * stack is the empty one.
 */
#ifndef MEMPROF_SNAPSHOT_H
#define MEMPROF_SNAPSHOT_H

#include "../../common/map.h"
#include "../pickle/pickle.h"
#include "snapshot_words.h"

#define SNAPSHOT_DEVICES 254u /* device_id is one byte, and the host is one of them */

enum snapshot_state { SNAPSHOT_INACTIVE, SNAPSHOT_ACTIVE, SNAPSHOT_PENDING };

/* One entry of a history. 32 bytes: there are millions. */
struct snapshot_event {
    uint64_t address; /* of an oom: free bytes of the device; of a mark: number of its text plus 1 */
    uint64_t size_bytes;
    int64_t time_us; /* Unix; 0: not told */
    uint32_t stack;
    uint16_t place; /* number in places */
    uint8_t action; /* enum snapshot_action */
    uint8_t pad;
};

/* What entries say of what they were made in, from one of them on: numbers of texts plus 1. The first is of entry 0. */
struct snapshot_texts {
    uint32_t first_event, compile_context, user_metadata;
};

struct snapshot_place { /* stream and pool */
    int64_t stream;
    int64_t pool[2];
};

struct snapshot_block {
    uint64_t address;
    uint64_t size_bytes;      /* as the allocator rounded it */
    uint64_t requested_bytes; /* the same where it was not told */
    uint32_t stack;
    uint8_t state; /* enum snapshot_state */
    uint8_t has_address, has_requested;
};

struct snapshot_segment {
    uint64_t address, total_bytes, allocated_bytes, active_bytes, requested_bytes;
    uint32_t device;
    uint32_t first_block, block_count;
    uint32_t stack;
    uint32_t type; /* number of the text plus 1 */
    uint16_t place;
    uint8_t is_expandable;
};

struct snapshot_annotation {
    int64_t time_us;
    uint32_t name; /* number of the text plus 1 */
    uint32_t device;
    uint8_t is_end;
};

struct snapshot_frame {
    uint32_t function, file; /* numbers of texts plus 1 */
    uint32_t line;
};

struct snapshot_stack {
    const uint32_t *frames; /* innermost first; stack_map owns them */
    uint32_t count;
};

struct snapshot_run { /* elements of one of the arrays that lie together: what a list became */
    uint8_t type;     /* of its elements; PICKLE_TUPLE: a pool's id, whose place is `first`; PICKLE_DICT: in `old` */
    uint32_t first, count;
};

struct snapshot_table { /* a growing array */
    void *data;
    uint32_t count, capacity;
};

struct snapshot_history {  /* of one device */
    uint32_t first, count; /* events */
};

struct snapshot_source {
    long (*read)(void *context, void *data, size_t size); /* as pickle.h has it */
    void *context;
};

struct snapshot {
    const struct snapshot_source *source;
    struct pickle *pickle; /* owns the texts */
    struct snapshot_table events, places, blocks, segments, annotations, frames, stacks, runs;
    struct snapshot_table texts;
    struct snapshot_table old; /* blocks as the oldest snapshots know them: size and stack */
    struct map frame_map;      /* (function and file, line) -> frames */
    struct text_map stack_map; /* frames -> stacks, plus 1 */
    uint8_t *words;            /* by text: enum snapshot_word plus 1; 0: not looked up yet */
    uint32_t word_count;
    uint32_t kept; /* containers that stay */

    struct snapshot_history devices[SNAPSHOT_DEVICES];
    uint32_t device_count;
    struct snapshot_run annotation_run, segment_run, host_segment_run;
    struct snapshot_history host;
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

/* snapshot_read.c: -errno with err for what cannot be read at all; parts that are not known are skipped and counted. */
int snapshot_read(struct snapshot *snap, const struct snapshot_source *source, struct error *err);
void snapshot_free(struct snapshot *snap);

/* Elements. */
#define SNAPSHOT_AT(table, type, index) (&((struct type *)(table).data)[index])

static inline const char *snapshot_text(const struct snapshot *snap, uint32_t number_plus_1)
{
    return number_plus_1 ? pickle_text(snap->pickle, pickle_make(PICKLE_TEXT, number_plus_1 - 1), NULL) : NULL;
}

#endif
