/*
 * yield.h: a process gives its GPUs back, to the last byte, and gets them again: by the CUDA driver's process
 * checkpoints. What the recording knows of the process is asked before anything is done to it: the driver leaves
 * behind a process that cannot go on where it meets what it does not carry, or finds no room.
 */
#ifndef MEMPROF_YIELD_H
#define MEMPROF_YIELD_H

#include "checkpoint.h"

#include "../../common/buf.h"

enum { YIELD_GPUS = 32 };

struct yield_options {
    int pid;
    const char *what;   /* the same, for messages */
    int64_t timeout_ns; /* for the process's calls to end, and for each answer of the driver; moving its memory may take
                           2 s more for each GiB */
    int is_forced;      /* also where it is refused */
    /* Of a restore: called while there is no room, with what is lacking, until it returns 0. NULL: it is refused then.
     */
    int (*wait_for_room)(void *arg, const char *lacking);
    void *arg;
};

struct yield_gpu {
    char name[24]; /* as reports have it, or "GPU 0" as nvidia-smi has it */
    uint64_t uuid[2];
    int is_known;            /* given_bytes: what was given back, or (state, restore) has to be taken again */
    uint64_t given_bytes;    /* with what the driver itself had there for the process */
    uint64_t reserved_bytes; /* of the process's blocks and pools, as recorded */
    uint64_t managed_bytes, foreign_bytes;
};

struct yield_result {
    enum checkpoint_state state;
    int is_recorded;
    int is_already;  /* nothing was to be done */
    int64_t took_ns; /* since it was locked; of a restore since there was room */
    struct yield_gpu gpu[YIELD_GPUS];
    uint32_t gpu_count;
    struct buf notes; /* a line each, for people; buf_free */
};

/* 0, or -errno with err, which says what state the process is left in where that may have changed. */
int yield_give(const struct yield_options *options, struct yield_result *result, struct error *err);
int yield_restore(const struct yield_options *options, struct yield_result *result, struct error *err);
int yield_ask(const struct yield_options *options, struct yield_result *result, struct error *err);

/* Whether the process is there and has not ended. */
int yield_goes_on(int pid);

const char *yield_state_text(enum checkpoint_state state);

#endif
