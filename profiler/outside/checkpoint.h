/*
 * checkpoint.h: the CUDA driver's process checkpoints, and what NVML says of the GPUs. A process of its own loads both
 * libraries and makes the calls, as a driver may hang or crash: each call here ends in its time. Where this process is
 * killed, what it had locked is unlocked. "The driver" of messages is libcuda.so.1.
 */
#ifndef MEMPROF_CHECKPOINT_H
#define MEMPROF_CHECKPOINT_H

#include "../../common/error.h"

#include <stdint.h>

struct checkpoint;

enum checkpoint_state { /* as CUprocessState has them */
                        CHECKPOINT_RUNNING,
                        CHECKPOINT_LOCKED, /* its calls wait; its memory is on the GPUs */
                        CHECKPOINT_GIVEN,  /* its memory is in host memory */
                        CHECKPOINT_FAILED, /* it cannot go on */
                        CHECKPOINT_GIVING, /* the last two: of newer drivers */
                        CHECKPOINT_RESTORING,
};

enum checkpoint_step { CHECKPOINT_LOCK, CHECKPOINT_GIVE, CHECKPOINT_RESTORE, CHECKPOINT_UNLOCK };

enum { CHECKPOINT_GPUS = 64 };
#define CHECKPOINT_UNKNOWN UINT64_MAX
struct checkpoint_gpu {
    uint64_t uuid[2]; /* bytes as the driver gives them */
    uint32_t index;   /* as nvidia-smi numbers them */
    uint64_t total_bytes, free_bytes;
    uint64_t process_bytes; /* the process's; CHECKPOINT_UNKNOWN */
};
struct checkpoint_gpus {
    uint32_t count; /* 0: there is no NVML, or it says nothing */
    char driver[80];
    struct checkpoint_gpu gpu[CHECKPOINT_GPUS];
};

/* All that fails, but open's -EAGAIN (no process to be had), is of the process pid: err names it (what). -ENOSYS: there
 * is no driver, or one without checkpoints; -ETIMEDOUT: no answer in limit_ns, -ECHILD: the driver crashed: after these
 * two the checkpoint can only be closed. -EIO: the driver refused. -EBUSY: its calls did not end in
 * the time-out of a lock, -EINVAL: it is in another state. */
int checkpoint_open(int pid, const char *what, int64_t limit_ns, struct checkpoint **c, struct error *err);
void checkpoint_close(struct checkpoint *c);
int checkpoint_ask(struct checkpoint *c, int64_t limit_ns, enum checkpoint_state *state, struct error *err);
/* timeout_ns: of a lock, which the driver itself ends; then limit_ns must be more. */
int checkpoint_do(struct checkpoint *c, enum checkpoint_step step, int64_t timeout_ns, int64_t limit_ns,
                  struct error *err);
/* Never fails but by time or crash. */
int checkpoint_look(struct checkpoint *c, int64_t limit_ns, struct checkpoint_gpus *gpus, struct error *err);

#endif
