/*
 * yield_private.h: one yield or restore under way, shared by yield.c (the steps, and what to do when one fails) and
 * yield_check.c (what is known before, and what refuses it).
 */
#ifndef MEMPROF_YIELD_PRIVATE_H
#define MEMPROF_YIELD_PRIVATE_H

#include "outside.h"
#include "yield.h"

struct yield {
    const struct yield_options *options;
    struct outside *recording; /* NULL: not recorded, or not reached, and forced */
    struct checkpoint *c;
    struct wire_holding holdings[WIRE_HOLDINGS];
    uint32_t holding_count;
    struct checkpoint_gpus before;
    int64_t begin_ns; /* of what takes time */
};

/* Finds the recording, and asks it what the process has. 0, or -errno with err. */
int yield_find(struct yield *y, struct error *err);
int yield_find_holdings(struct yield *y, struct error *err);
/* 0, or -ENOTSUP, -ENOMEM with err: what the driver does not carry, or host memory is short of. */
int yield_check_give(const struct yield *y, struct error *err);
/* ... a driver that is known to crash programs. */
int yield_check_driver(const struct yield *y, struct error *err);
/* 0, or -ENOSPC, -ENODATA with err: a GPU lacks the room, or nobody knows. */
int yield_check_room(const struct yield *y, const struct checkpoint_gpus *now, struct error *err);
/* Bytes that have to move, as far as is known. */
uint64_t yield_bytes(const struct yield *y);
/* The GPU of that UUID; NULL: NVML has none. */
const struct checkpoint_gpu *yield_gpu_of(const struct checkpoint_gpus *gpus, const uint64_t uuid[2]);
/* The rows of what was given back between two looks. */
void yield_fill(const struct yield *y, const struct checkpoint_gpus *after, struct yield_result *result);
/* ... of what the recording knows now. */
void yield_fill_held(const struct yield *y, struct yield_result *result);

#endif
