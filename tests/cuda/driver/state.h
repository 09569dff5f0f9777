/*
 * state.h: the file that SIM_CUDA_STATE names: what each simulated process has of which device, and whether its calls
 * wait for a checkpoint. Shared by all processes with the simulated driver, those that control others among them, and
 * with the stand-in of NVML.
 */
#ifndef MEMPROF_TESTS_SIM_STATE_H
#define MEMPROF_TESTS_SIM_STATE_H

#include <errno.h>
#include <signal.h>
#include <stdint.h>

#define SIM_UUID "memprof-sim-gpu" /* and the device's number as the 16th byte */

enum { SIM_STATE_DEVICES = 16, SIM_PROCESSES = 64 };
enum { SIM_RUNNING, SIM_LOCKED, SIM_CHECKPOINTED, SIM_FAILED, SIM_CHECKPOINTING, SIM_RESTORING }; /* CUprocessState */

struct sim_process {
    int32_t pid;        /* 0, or of a process that is gone: anybody's */
    uint32_t state;     /* SIM_*; a futex: calls wait for SIM_RUNNING */
    uint32_t inside;    /* a call is under way; a futex */
    uint32_t uncarried; /* managed and foreign blocks, which no checkpoint carries */
    uint32_t is_broken; /* a restore found no room: the real driver does not recover from that */
    uint64_t used_bytes[SIM_STATE_DEVICES];
    uint64_t carried_bytes[SIM_STATE_DEVICES]; /* what a checkpoint took away */
};

struct sim_state {
    uint64_t device_count;
    uint64_t total_bytes[SIM_STATE_DEVICES];
    struct sim_process process[SIM_PROCESSES];
};

static inline int sim_lives(const struct sim_process *p)
{
    int pid = __atomic_load_n(&p->pid, __ATOMIC_RELAXED);
    return pid > 0 && (kill(pid, 0) == 0 || errno != ESRCH);
}

static inline uint64_t sim_used_bytes(const struct sim_state *state, int device)
{
    uint64_t sum = 0;
    for (int i = 0; i < SIM_PROCESSES; i++)
        if (sim_lives(&state->process[i]))
            sum += __atomic_load_n(&state->process[i].used_bytes[device], __ATOMIC_RELAXED);
    return sum;
}

#endif
