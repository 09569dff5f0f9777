/*
 * Process checkpoints: what processes share in the file of SIM_CUDA_STATE, the gate that each call passes, and the
 * controller's side. Device memory is host memory here, so a checkpoint moves no byte of it: it takes what the process
 * has off the devices, and its calls wait. Work that is queued on streams stays queued.
 *
 * SIM_CUDA_CHECKPOINT, of the controller: what goes wrong, "STEP=HOW" with commas between; a step is state, lock,
 * checkpoint, restore or unlock. HOW: a number (that error, nothing is done), failed (the process is left in the state
 * FAILED), stuck (for ever), crash (SIGSEGV), hold:FILE (makes FILE, and goes on once it is gone).
 */
#include "sim.h"
#include "state.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static struct sim_state *state; /* NULL: nobody asked for it */
static struct sim_process *self;
static int depth; /* of this process's calls within each other; under its lock */

static void wait_on(uint32_t *word, uint32_t value, unsigned most_ms)
{
    const struct timespec timeout = {most_ms / 1000, most_ms % 1000 * 1000000};
    syscall(SYS_futex, word, FUTEX_WAIT, value, &timeout, NULL, 0);
}

static void set(uint32_t *word, uint32_t value)
{
    __atomic_store_n(word, value, __ATOMIC_SEQ_CST);
    syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

static uint32_t get(const uint32_t *word)
{
    return __atomic_load_n(word, __ATOMIC_SEQ_CST);
}

/* --- a process --- */

void shared_open(void)
{
    const char *path = getenv("SIM_CUDA_STATE");
    int fd = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (fd < 0)
        return;
    if (!ftruncate(fd, sizeof *state)) {
        void *map = mmap(NULL, sizeof *state, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        state = map == MAP_FAILED ? NULL : map;
    }
    close(fd);
    for (int i = 0; state && i < sim_config.device_count; i++)
        state->total_bytes[i] = sim_devices[i].total;
    if (state)
        state->device_count = (uint64_t)sim_config.device_count;
}

/* By cuInit: a row of its own. */
void shared_join(void)
{
    for (int i = 0; state && !self && i < SIM_PROCESSES; i++) {
        struct sim_process *p = &state->process[i];
        int32_t pid = p->pid;
        if (sim_lives(p) && pid != getpid())
            continue;
        if (!__atomic_compare_exchange_n(&p->pid, &pid, getpid(), 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
            continue;
        p->state = SIM_RUNNING;
        p->inside = p->uncarried = p->is_broken = 0;
        memset(p->used_bytes, 0, sizeof p->used_bytes);
        memset(p->carried_bytes, 0, sizeof p->carried_bytes);
        self = p;
    }
}

void shared_forked(void)
{
    self = NULL;
    depth = 0;
}

void shared_add(int device, int64_t bytes)
{
    if (self)
        __atomic_fetch_add(&self->used_bytes[device], (uint64_t)bytes, __ATOMIC_RELAXED);
}

void shared_uncarried(int difference)
{
    if (self)
        __atomic_fetch_add(&self->uncarried, (uint32_t)difference, __ATOMIC_RELAXED);
}

size_t device_used(int device)
{
    return state && self ? sim_used_bytes(state, device) : sim_devices[device].used;
}

/* Calls wait here while the process is locked. */
void shared_enter(void)
{
    if (!self || depth++)
        return;
    for (;;) {
        set(&self->inside, 1);
        uint32_t now = get(&self->state);
        if (now == SIM_RUNNING)
            return;
        set(&self->inside, 0);
        wait_on(&self->state, now, 1000);
    }
}

void shared_leave(void)
{
    if (self && depth && --depth == 0)
        set(&self->inside, 0);
}

/* --- the controller --- */

static uint64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void hold(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd >= 0)
        close(fd);
    while (access(path, F_OK) == 0)
        nanosleep(&(struct timespec){0, 5000000}, NULL);
}

/* What goes wrong with this step: 0, or an error. */
static CUresult go_wrong(const char *step, struct sim_process *p)
{
    char how[256] = "";
    const char *at = getenv("SIM_CUDA_CHECKPOINT");
    for (size_t n = strlen(step); at && *at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (!strncmp(at, step, n) && at[n] == '=') {
            strncpy(how, at + n + 1, sizeof how - 1);
            how[strcspn(how, ",")] = 0;
        }
    if (!strcmp(how, "stuck"))
        for (;;)
            pause();
    if (!strcmp(how, "crash"))
        raise(SIGSEGV);
    if (!strncmp(how, "hold:", 5))
        hold(how + 5);
    if (strcmp(how, "failed") != 0)
        return (CUresult)atoi(how);
    set(&p->state, SIM_FAILED);
    return CUDA_ERROR_UNKNOWN;
}

static CUresult find(int pid, struct sim_process **out)
{
    NEED(state, NOT_SUPPORTED);
    NEED(pid > 0 && (kill(pid, 0) == 0 || errno != ESRCH), INVALID_VALUE);
    for (int i = 0; i < SIM_PROCESSES; i++)
        if (state->process[i].pid == pid) {
            *out = &state->process[i];
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_NOT_INITIALIZED; /* it has not called cuInit */
}

/* The process, if it is in that state when it is asked for and still there behind what goes wrong. */
static CUresult begin(int pid, const char *step, uint32_t wanted, struct sim_process **p)
{
    CUresult error = find(pid, p);
    PASS_ON(error);
    NEED(get(&(*p)->state) == wanted, ILLEGAL_STATE);
    error = go_wrong(step, *p);
    PASS_ON(error);
    NEED(sim_lives(*p), INVALID_VALUE);
    NEED(get(&(*p)->state) == wanted, ILLEGAL_STATE);
    return CUDA_SUCCESS;
}

API cuCheckpointProcessGetState(int pid, CUprocessState *out)
{
    struct sim_process *p;
    NEED(out, INVALID_VALUE);
    CUresult error = find(pid, &p);
    PASS_ON(error);
    error = go_wrong("state", p);
    PASS_ON(error);
    *out = (CUprocessState)get(&p->state);
    return CUDA_SUCCESS;
}

API cuCheckpointProcessGetRestoreThreadId(int pid, int *tid)
{
    struct sim_process *p;
    NEED(tid, INVALID_VALUE);
    CUresult error = find(pid, &p);
    PASS_ON(error);
    *tid = pid;
    return CUDA_SUCCESS;
}

static int take_lock(struct sim_process *p)
{
    uint32_t running = SIM_RUNNING;
    return __atomic_compare_exchange_n(&p->state, &running, SIM_LOCKED, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

API cuCheckpointProcessLock(int pid, CUcheckpointLockArgs *args)
{
    struct sim_process *p;
    CUresult error = begin(pid, "lock", SIM_RUNNING, &p);
    PASS_ON(error);
    NEED(!args || !args->reserved0, INVALID_VALUE);
    NEED(take_lock(p), ILLEGAL_STATE);
    const uint64_t limit_ms = args && args->timeoutMs ? now_ms() + args->timeoutMs : UINT64_MAX;
    while (get(&p->inside)) {
        if (now_ms() >= limit_ms || !sim_lives(p)) {
            set(&p->state, SIM_RUNNING);
            return sim_lives(p) ? CUDA_ERROR_NOT_READY : CUDA_ERROR_INVALID_VALUE;
        }
        wait_on(&p->inside, 1, 20);
    }
    return CUDA_SUCCESS;
}

API cuCheckpointProcessCheckpoint(int pid, CUcheckpointCheckpointArgs *args)
{
    struct sim_process *p;
    CUresult error = begin(pid, "checkpoint", SIM_LOCKED, &p);
    (void)args;
    PASS_ON(error);
    NEED(!get(&p->uncarried), NOT_SUPPORTED);
    for (int i = 0; i < SIM_STATE_DEVICES; i++) {
        p->carried_bytes[i] = p->used_bytes[i];
        p->used_bytes[i] = 0;
    }
    set(&p->state, SIM_CHECKPOINTED);
    return CUDA_SUCCESS;
}

API cuCheckpointProcessRestore(int pid, CUcheckpointRestoreArgs *args)
{
    struct sim_process *p;
    CUresult error = begin(pid, "restore", SIM_CHECKPOINTED, &p);
    PASS_ON(error);
    NEED(!args || (!args->gpuPairs && !args->gpuPairsCount), NOT_SUPPORTED);
    NEED(!p->is_broken, OPERATING_SYSTEM);
    for (int i = 0; i < SIM_STATE_DEVICES; i++)
        if (p->carried_bytes[i] > state->total_bytes[i] - sim_used_bytes(state, i)) {
            p->is_broken = 1;
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
    for (int i = 0; i < SIM_STATE_DEVICES; i++) {
        p->used_bytes[i] = p->carried_bytes[i];
        p->carried_bytes[i] = 0;
    }
    set(&p->state, SIM_LOCKED);
    return CUDA_SUCCESS;
}

API cuCheckpointProcessUnlock(int pid, CUcheckpointUnlockArgs *args)
{
    struct sim_process *p;
    CUresult error = begin(pid, "unlock", SIM_LOCKED, &p);
    (void)args;
    PASS_ON(error);
    set(&p->state, SIM_RUNNING);
    return CUDA_SUCCESS;
}
