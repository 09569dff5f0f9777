#include "checkpoint_worker.h"

#include <ctype.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* As cuda.h of CUDA 12.8 to 13 has them: 64 bytes each. All zeros mean: to host memory, back to the same GPUs. */
struct lock_arguments {
    unsigned timeout_ms, reserved;
    uint64_t reserved_too[7];
};
struct no_arguments {
    uint64_t reserved[8];
};

struct driver {
    int (*init)(unsigned flags);
    int (*error_string)(int error, const char **text);
    int (*state)(int pid, int *state);
    int (*lock)(int pid, struct lock_arguments *arguments);
    int (*step[CHECKPOINT_UNLOCK + 1])(int pid, struct no_arguments *arguments);
};

struct nvml_memory {
    unsigned long long total, free, used;
};
struct nvml_process { /* of nvmlDeviceGetComputeRunningProcesses_v3 */
    unsigned pid;
    unsigned long long used;
    unsigned gpu_instance, compute_instance;
};
struct nvml {
    int (*init)(void);
    int (*driver)(char *version, unsigned size);
    int (*count)(unsigned *count);
    int (*by_index)(unsigned index, void **device);
    int (*uuid)(void *device, char *text, unsigned size);
    int (*memory)(void *device, struct nvml_memory *memory);
    int (*processes)(void *device, unsigned *count, struct nvml_process *processes);
};

struct worker {
    int pid;
    struct driver driver;
    struct nvml nvml;
    int has_nvml;
    int holds_lock; /* by one of our steps */
};

/* --- the libraries --- */

static void find(void *library, const char *name, void *function)
{
    *(void **)function = library ? dlsym(library, name) : NULL;
}

static void fail(struct worker_answer *a, const char *text)
{
    a->error = -1;
    snprintf(a->text, sizeof a->text, "%s", text);
}

static void say(const struct driver *d, int error, struct worker_answer *a)
{
    const char *text = NULL;
    a->error = error;
    if (error && (!d->error_string || d->error_string(error, &text) || !text))
        text = "unknown error";
    if (error)
        snprintf(a->text, sizeof a->text, "%s (%d)", text, error);
}

static void open_driver(struct driver *d, struct worker_answer *a)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fail(a, "there is no CUDA driver here (libcuda.so.1)");
        return;
    }
    find(library, "cuInit", &d->init);
    find(library, "cuGetErrorString", &d->error_string);
    find(library, "cuCheckpointProcessGetState", &d->state);
    find(library, "cuCheckpointProcessLock", &d->lock);
    find(library, "cuCheckpointProcessCheckpoint", &d->step[CHECKPOINT_GIVE]);
    find(library, "cuCheckpointProcessRestore", &d->step[CHECKPOINT_RESTORE]);
    find(library, "cuCheckpointProcessUnlock", &d->step[CHECKPOINT_UNLOCK]);
    if (!d->init || !d->state || !d->lock || !d->step[CHECKPOINT_GIVE] || !d->step[CHECKPOINT_RESTORE] ||
        !d->step[CHECKPOINT_UNLOCK])
        fail(a, "the CUDA driver has no process checkpoints; they came with release 570");
    else
        say(d, d->init(0), a);
}

static void open_nvml(struct worker *w)
{
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    struct nvml *n = &w->nvml;
    find(library, "nvmlInit_v2", &n->init);
    find(library, "nvmlSystemGetDriverVersion", &n->driver);
    find(library, "nvmlDeviceGetCount_v2", &n->count);
    find(library, "nvmlDeviceGetHandleByIndex_v2", &n->by_index);
    find(library, "nvmlDeviceGetUUID", &n->uuid);
    find(library, "nvmlDeviceGetMemoryInfo", &n->memory);
    find(library, "nvmlDeviceGetComputeRunningProcesses_v3", &n->processes);
    w->has_nvml = n->init && n->count && n->by_index && n->uuid && n->memory && n->init() == 0;
}

/* --- what NVML says --- */

/* "GPU-8f3a...": 32 hexadecimal digits with hyphens between. */
static int parse_uuid(const char *text, uint64_t uuid[2])
{
    unsigned char bytes[16] = {0};
    unsigned n = 0;
    for (const char *p = strncmp(text, "GPU-", 4) ? "" : text + 4; *p && n < 32; p++) {
        if (!isxdigit((unsigned char)*p))
            continue;
        const int digit = isdigit((unsigned char)*p) ? *p - '0' : (*p | 32) - 'a' + 10;
        bytes[n / 2] = (unsigned char)(bytes[n / 2] << 4 | digit);
        n++;
    }
    memcpy(uuid, bytes, sizeof bytes);
    return n == 32;
}

/* Several rows of one process are one for each partition of the GPU. */
static uint64_t process_bytes(const struct nvml *n, void *device, int pid)
{
    struct nvml_process processes[256];
    unsigned count = sizeof processes / sizeof *processes;
    uint64_t sum = 0;
    if (!n->processes || n->processes(device, &count, processes) != 0 || count > sizeof processes / sizeof *processes)
        return CHECKPOINT_UNKNOWN;
    for (unsigned i = 0; i < count; i++)
        if (processes[i].pid == (unsigned)pid) {
            if (processes[i].used == UINT64_MAX) /* NVML_VALUE_NOT_AVAILABLE */
                return CHECKPOINT_UNKNOWN;
            sum += processes[i].used;
        }
    return sum;
}

static void look(const struct worker *w, struct checkpoint_gpus *gpus)
{
    unsigned count = 0;
    if (!w->has_nvml || w->nvml.count(&count) != 0)
        return;
    if (!w->nvml.driver || w->nvml.driver(gpus->driver, sizeof gpus->driver) != 0)
        gpus->driver[0] = 0;
    for (unsigned i = 0; i < count && gpus->count < CHECKPOINT_GPUS; i++) {
        struct checkpoint_gpu *gpu = &gpus->gpu[gpus->count];
        struct nvml_memory memory = {0};
        char text[96] = "";
        void *device;
        if (w->nvml.by_index(i, &device) || w->nvml.uuid(device, text, sizeof text) || !parse_uuid(text, gpu->uuid) ||
            w->nvml.memory(device, &memory) || memory.free > memory.total)
            continue;
        gpu->index = i;
        gpu->total_bytes = memory.total;
        gpu->free_bytes = memory.free;
        gpu->process_bytes = process_bytes(&w->nvml, device, w->pid);
        gpus->count++;
    }
}

/* --- calls --- */

static void do_step(struct worker *w, enum checkpoint_step step, unsigned timeout_ms, struct worker_answer *a)
{
    struct lock_arguments lock = {.timeout_ms = timeout_ms ? timeout_ms : 1}; /* 0 would be none */
    struct no_arguments none = {{0}};
    say(&w->driver, step == CHECKPOINT_LOCK ? w->driver.lock(w->pid, &lock) : w->driver.step[step](w->pid, &none), a);
    if (a->error == 0)
        w->holds_lock = step == CHECKPOINT_LOCK || step == CHECKPOINT_RESTORE;
}

static void serve(struct worker *w, const struct worker_request *r, struct worker_answer *a)
{
    int state = 0;
    switch (r->call) {
    case WORKER_OPEN:
        open_driver(&w->driver, a);
        open_nvml(w);
        break;
    case WORKER_STATE:
        say(&w->driver, w->driver.state(w->pid, &state), a);
        a->state = (uint32_t)state;
        break;
    case WORKER_LOOK:
        look(w, &a->gpus);
        break;
    default:
        do_step(w, (enum checkpoint_step)(r->call - WORKER_STEP), r->timeout_ms, a);
    }
}

void checkpoint_worker(int fd, int pid)
{
    struct worker w = {.pid = pid};
    struct worker_request r;
    while (recv(fd, &r, sizeof r, 0) == sizeof r) {
        struct worker_answer a = {0};
        serve(&w, &r, &a);
        if (send(fd, &a, sizeof a, MSG_NOSIGNAL) != sizeof a)
            break;
    }
    if (w.holds_lock) /* who asked was killed */
        w.driver.step[CHECKPOINT_UNLOCK](pid, &(struct no_arguments){{0}});
    _exit(0);
}
