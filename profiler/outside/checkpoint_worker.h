/*
 * checkpoint_worker.h: the process that calls the driver and NVML for checkpoint.h, and what is said between the two: a
 * packet each way.
 */
#ifndef MEMPROF_CHECKPOINT_WORKER_H
#define MEMPROF_CHECKPOINT_WORKER_H

#include "checkpoint.h"

enum worker_call {
    WORKER_OPEN,
    WORKER_STATE,
    WORKER_LOOK,
    WORKER_STEP /* + enum checkpoint_step */
};

struct worker_request {
    uint32_t call, timeout_ms;
};

struct worker_answer {
    int32_t error; /* of the driver; -1: there is none, or it has no such function */
    uint32_t state;
    char text[200]; /* of the error */
    struct checkpoint_gpus gpus;
};

/* Serves until the other end is closed; then unlocks what it left locked. */
_Noreturn void checkpoint_worker(int fd, int pid);

#endif
