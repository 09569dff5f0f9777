/*
 * segment.h: the live segments of a process on a device, and their rows (the first SEGMENT_ROWS_MAX of each kind and
 * device have one).
 */
#ifndef MEMPROF_SEGMENT_H
#define MEMPROF_SEGMENT_H

#include "../../common/kind.h"

#include <stdint.h>

enum { SEGMENT_DEVICES = 256 };

struct range;
struct segments;
struct store;

/* Of the run. */
struct segment_rows {
    uint64_t count, missing; /* missing: segments that got none */
    uint32_t of[SEGMENT_DEVICES][KIND_COUNT];
};

struct segment_change {
    struct store *store;
    struct segment_rows *rows;
    uint64_t time_ns;
    uint16_t process_id;
    uint8_t device;
    uint8_t kind;
    uint8_t is_counted;        /* 0: its bytes are in a sample already, so it changes nothing */
    int64_t bytes[KIND_COUNT]; /* out: what the reserved bytes of each kind change by is added */
};

struct segments *segments_open(void);
void segments_close(struct segments *s);

/* What the range covered before is freed first. */
void segments_alloc(struct segments *s, struct segment_change *c, uint64_t address, uint64_t size_bytes,
                    uint32_t stack_id);
/* Whether a segment holds the address; type: its kind. */
int segments_find(struct segments *s, uint64_t address, struct range *found);
/* Any part of earlier segments. */
void segments_free(struct segments *s, struct segment_change *c, uint64_t address, uint64_t size_bytes);
/* All of them, and s itself, with their process: their rows have no end. */
void segments_end(struct segments *s, struct segment_change *c);

#endif
