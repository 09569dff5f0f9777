/*
 * naive_parts.h: what threads, processes and classes of sizes did in a window, told step by step by a naive replay: no
 * sums, an array each.
 */
#ifndef MEMPROF_TEST_NAIVE_PARTS_H
#define MEMPROF_TEST_NAIVE_PARTS_H

#include "../../common/chunk.h"
#include "../../report/query/replay.h"

#include <stddef.h>
#include <stdint.h>

void naive_parts_begin(void);                          /* a new replay */
void naive_parts_enter(void);                          /* the first range begins */
void naive_parts_range(void);                          /* any range begins */
void naive_parts_peak(unsigned device, unsigned kind); /* the device, or its kind, is at a new peak; KIND_all */
void naive_parts_birth(const struct chunk_event *e, int inside);

struct naive_loss { /* of a block, or of a part of one */
    const struct chunk_event *birth, *event;
    int inside, is_last, is_temporary, is_torn;
};
void naive_parts_loss(const struct naive_loss *loss);
/* The process ends; count: 1, or 0 of a part of what others are left of. */
void naive_parts_end(const struct chunk_event *birth, int64_t count, int inside);
void naive_parts_finish(void); /* behind the last event */

/* Fails the test where they differ, in what sums of chunks tell. */
void naive_parts_compare(const char *who, const struct replay *r);

#endif
