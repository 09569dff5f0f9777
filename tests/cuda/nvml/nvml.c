/*
 * A stand-in for libnvidia-ml.so.1: what it says of the devices is what the simulated driver keeps in the file that
 * SIM_CUDA_STATE names. Without that file there is no device.
 */
#include "../driver/state.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
enum { OK = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7, DRIVER_NOT_LOADED = 9 };

struct memory {
    unsigned long long total, free, used;
};
struct memory_v2 {
    unsigned version;
    unsigned long long total, reserved, free, used;
};

static const struct sim_state *state;
static unsigned users;

int nvmlInit_v2(void), nvmlInit(void), nvmlInitWithFlags(unsigned flags), nvmlShutdown(void);
EXPORT int nvmlInit_v2(void)
{
    if (users++)
        return OK;
    const char *path = getenv("SIM_CUDA_STATE");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    struct stat facts;
    void *map = MAP_FAILED;
    if (fd >= 0 && !fstat(fd, &facts) && (size_t)facts.st_size >= sizeof *state)
        map = mmap(NULL, sizeof *state, PROT_READ, MAP_SHARED, fd, 0);
    if (fd >= 0)
        close(fd);
    if (map == MAP_FAILED) {
        users--;
        return DRIVER_NOT_LOADED;
    }
    state = map;
    return OK;
}
EXPORT int nvmlInit(void)
{
    return nvmlInit_v2();
}
EXPORT int nvmlInitWithFlags(unsigned flags)
{
    (void)flags;
    return nvmlInit_v2();
}
EXPORT int nvmlShutdown(void)
{
    if (!users)
        return UNINITIALIZED;
    if (--users == 0) {
        munmap((void *)state, sizeof *state);
        state = NULL;
    }
    return OK;
}

static int number_of(const void *device)
{
    return (int)(intptr_t)device - 1;
}
static int known(const void *device)
{
    return state && number_of(device) >= 0 && (uint64_t)number_of(device) < state->device_count;
}

int nvmlDeviceGetCount_v2(unsigned *count), nvmlDeviceGetCount(unsigned *count);
EXPORT int nvmlDeviceGetCount_v2(unsigned *count)
{
    if (!state)
        return UNINITIALIZED;
    *count = (unsigned)state->device_count;
    return OK;
}
EXPORT int nvmlDeviceGetCount(unsigned *count)
{
    return nvmlDeviceGetCount_v2(count);
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **out), nvmlDeviceGetHandleByIndex(unsigned index, void **out);
EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **out)
{
    *out = (void *)(uintptr_t)(index + 1);
    return known(*out) ? OK : INVALID_ARGUMENT;
}
EXPORT int nvmlDeviceGetHandleByIndex(unsigned index, void **out)
{
    return nvmlDeviceGetHandleByIndex_v2(index, out);
}

int nvmlDeviceGetUUID(void *device, char *out, unsigned length),
    nvmlDeviceGetHandleByUUID(const char *uuid, void **out);
EXPORT int nvmlDeviceGetUUID(void *device, char *out, unsigned length)
{
    unsigned char u[16] = SIM_UUID;
    if (!known(device))
        return INVALID_ARGUMENT;
    if (length < 41)
        return INSUFFICIENT_SIZE;
    u[15] = (unsigned char)number_of(device);
    char *at = out + sprintf(out, "GPU-");
    for (int i = 0; i < 16; i++)
        at += sprintf(at, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", u[i]);
    return OK;
}
EXPORT int nvmlDeviceGetHandleByUUID(const char *uuid, void **out)
{
    char text[64];
    for (uintptr_t i = 1; state && i <= state->device_count; i++)
        if (!nvmlDeviceGetUUID((void *)i, text, sizeof text) && !strcmp(text, uuid)) {
            *out = (void *)i;
            return OK;
        }
    return state ? NOT_FOUND : UNINITIALIZED;
}

int nvmlDeviceGetName(void *device, char *out, unsigned length);
EXPORT int nvmlDeviceGetName(void *device, char *out, unsigned length)
{
    if (!known(device))
        return INVALID_ARGUMENT;
    snprintf(out, length, "Simulated GPU %d", number_of(device));
    return OK;
}

int nvmlDeviceGetMemoryInfo(void *device, struct memory *out),
    nvmlDeviceGetMemoryInfo_v2(void *device, struct memory_v2 *out);
EXPORT int nvmlDeviceGetMemoryInfo(void *device, struct memory *out)
{
    if (!known(device))
        return INVALID_ARGUMENT;
    out->total = state->total_bytes[number_of(device)];
    out->used = sim_used_bytes(state, number_of(device));
    out->free = out->used < out->total ? out->total - out->used : 0;
    return OK;
}
EXPORT int nvmlDeviceGetMemoryInfo_v2(void *device, struct memory_v2 *out)
{
    struct memory memory;
    int error = nvmlDeviceGetMemoryInfo(device, &memory);
    if (!error)
        out->total = memory.total, out->reserved = 0, out->free = memory.free, out->used = memory.used;
    return error;
}

struct process {
    unsigned pid;
    unsigned long long used;
    unsigned gpu_instance, compute_instance;
};
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, struct process *out);
EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, struct process *out)
{
    unsigned found = 0;
    if (!known(device) || !count)
        return INVALID_ARGUMENT;
    for (int i = 0; i < SIM_PROCESSES; i++) {
        const struct sim_process *p = &state->process[i];
        const uint64_t used = __atomic_load_n(&p->used_bytes[number_of(device)], __ATOMIC_RELAXED);
        if (!used || !sim_lives(p))
            continue;
        if (found < *count)
            out[found] = (struct process){.pid = (unsigned)p->pid, .used = used};
        found++;
    }
    const int fits = found <= *count;
    *count = found;
    return fits ? OK : INSUFFICIENT_SIZE;
}

/* As SIM_CUDA_DRIVER says. */
int nvmlSystemGetDriverVersion(char *out, unsigned length);
EXPORT int nvmlSystemGetDriverVersion(char *out, unsigned length)
{
    const char *version = getenv("SIM_CUDA_DRIVER");
    return snprintf(out, length, "%s", version ? version : "580.00") < (int)length ? OK : INSUFFICIENT_SIZE;
}

const char *nvmlErrorString(int error);
EXPORT const char *nvmlErrorString(int error)
{
    return error == OK ? "Success" : error == DRIVER_NOT_LOADED ? "Driver Not Loaded" : "Unknown Error";
}
