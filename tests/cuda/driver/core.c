/* Configuration, entry, devices, errors, the ledger, host memory behind device memory. */
#include "sim.h"
#include "state.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

struct sim_config sim_config;
struct device sim_devices[SIM_DEVICES];
uint64_t sim_ids = 1;

static pthread_mutex_t lock;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int initialized, forked;
static unsigned long allocation_calls;

static struct {
    unsigned long allocs, frees, failures;
    size_t alloc_bytes, free_bytes, peak_bytes;
} ledger[SIM_DEVICES + 1][L_KINDS]; /* the last row: host */

static unsigned long number(const char *name, unsigned long fallback)
{
    const char *text = getenv(name);
    return text && *text ? strtoul(text, NULL, 0) : fallback;
}

static void child_of_fork(void)
{
    forked = initialized; /* a driver that was initialized does not work in a forked child */
    pthread_mutex_init(&lock, NULL);
    shared_forked();
}

static void configure(void)
{
    pthread_mutexattr_t recursive;
    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE); /* host functions on streams may call us */
    pthread_mutex_init(&lock, &recursive);
    pthread_atfork(NULL, NULL, child_of_fork);

    sim_config.version = sim_built_version;
    sim_config.device_count = (int)number("SIM_CUDA_DEVICES", 1);
    if (sim_config.device_count > SIM_DEVICES || sim_config.device_count < 0)
        sim_config.device_count = SIM_DEVICES;
    const char *bytes = getenv("SIM_CUDA_BYTES"); /* of each device; a comma between them, the last one repeats */
    size_t last = 1024 * MIB;
    for (int i = 0; i < SIM_DEVICES; i++) {
        if (bytes && *bytes) {
            char *end;
            last = strtoull(bytes, &end, 0);
            bytes = *end == ',' ? end + 1 : NULL;
        }
        sim_config.device_bytes[i] = sim_devices[i].total = last;
    }
    sim_config.context_bytes = number("SIM_CUDA_CONTEXT_BYTES", 16 * MIB);
    sim_config.pool_chunk = number("SIM_CUDA_POOL_CHUNK", 2 * MIB);
    sim_config.fail_every = (unsigned)number("SIM_CUDA_FAIL_EVERY", 0);
    sim_config.fail_at = (unsigned)number("SIM_CUDA_FAIL_AT", 0);
    sim_config.init_error = (int)number("SIM_CUDA_INIT_ERROR", 0);
    shared_open();
}

struct sim_guard sim_enter(int needs_init)
{
    pthread_once(&once, configure);
    pthread_mutex_lock(&lock);
    struct sim_guard guard = {CUDA_SUCCESS, 1, 0};
    if (needs_init && (!initialized || forked))
        guard.error = CUDA_ERROR_NOT_INITIALIZED;
    else if (needs_init)
        shared_enter();
    guard.entered = needs_init && !guard.error;
    return guard;
}

void sim_leave(struct sim_guard *guard)
{
    if (guard->entered)
        shared_leave();
    if (guard->locked)
        pthread_mutex_unlock(&lock);
}

API cuInit(unsigned flags)
{
    BEGIN_ANY;
    NEED(!forked, NOT_INITIALIZED);
    NEED(flags == 0, INVALID_VALUE);
    if (sim_config.init_error)
        return (CUresult)sim_config.init_error;
    NEED(sim_config.device_count > 0, NO_DEVICE);
    initialized = 1;
    shared_join();
    return CUDA_SUCCESS;
}

API cuDriverGetVersion(int *version)
{
    BEGIN_ANY;
    NEED(version, INVALID_VALUE);
    *version = sim_config.version;
    return CUDA_SUCCESS;
}

/* --- devices --- */

int device_valid(int device)
{
    return device >= 0 && device < sim_config.device_count;
}

CUresult device_take(int device, size_t bytes)
{
    struct device *d = &sim_devices[device];
    const size_t used = device_used(device);
    if (used > d->total || bytes > d->total - used)
        return CUDA_ERROR_OUT_OF_MEMORY;
    d->used += bytes;
    if (d->used > d->peak)
        d->peak = d->used;
    shared_add(device, (int64_t)bytes);
    return CUDA_SUCCESS;
}

void device_give(int device, size_t bytes)
{
    sim_devices[device].used -= bytes;
    shared_add(device, -(int64_t)bytes);
}

int fail_now(void)
{
    allocation_calls++;
    return (sim_config.fail_every && allocation_calls % sim_config.fail_every == 0) ||
           (sim_config.fail_at && allocation_calls == sim_config.fail_at);
}

API cuDeviceGet(CUdevice *device, int ordinal)
{
    BEGIN;
    NEED(device, INVALID_VALUE);
    NEED(device_valid(ordinal), INVALID_DEVICE);
    *device = ordinal;
    return CUDA_SUCCESS;
}

API cuDeviceGetCount(int *count)
{
    BEGIN;
    NEED(count, INVALID_VALUE);
    *count = sim_config.device_count;
    return CUDA_SUCCESS;
}

API cuDeviceGetName(char *name, int length, CUdevice device)
{
    BEGIN;
    NEED(name && length > 0, INVALID_VALUE);
    NEED(device_valid(device), INVALID_DEVICE);
    snprintf(name, (size_t)length, "Simulated GPU %d", device);
    return CUDA_SUCCESS;
}

static CUresult uuid(CUuuid *out, CUdevice device)
{
    NEED(out, INVALID_VALUE);
    NEED(device_valid(device), INVALID_DEVICE);
    memcpy(out->bytes, SIM_UUID, 16);
    out->bytes[15] = (char)device;
    return CUDA_SUCCESS;
}
API cuDeviceGetUuid(CUuuid *out, CUdevice device)
{
    BEGIN;
    return uuid(out, device);
}
API cuDeviceGetUuid_v2(CUuuid *out, CUdevice device)
{
    BEGIN;
    return uuid(out, device);
}

API cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    BEGIN;
    NEED(bytes, INVALID_VALUE);
    NEED(device_valid(device), INVALID_DEVICE);
    *bytes = sim_devices[device].total;
    return CUDA_SUCCESS;
}
API cuDeviceTotalMem(unsigned *bytes, CUdevice device)
{
    size_t wide = 0;
    CUresult error = cuDeviceTotalMem_v2(&wide, device);
    if (!error)
        *bytes = wide > ~0u ? ~0u : (unsigned)wide;
    return error;
}

API cuDeviceGetAttribute(int *value, int attribute, CUdevice device)
{
    /* pairs, many to a line */
    /* clang-format off */
    static const struct { int attribute, value; } known[] = {
        {1, 1024}, {2, 1024}, {3, 1024}, {4, 64}, {5, 2147483647}, {6, 65535}, {7, 65535}, {8, 49152},
        {10, 32}, {11, 2147483647}, {14, 512}, {16, 8}, {19, 1}, {31, 1}, {39, 2048}, {40, 2}, {41, 1},
        {51, 32}, {75, 9}, {76, 0}, {83, 1}, {88, 0}, {89, 1}, {99, 1}, {102, 1}, {103, 1},
        {115, 1} /* memory pools */, {119, 1} /* their handle types */, {132, 1} /* multicast */,
    };
    /* clang-format on */
    BEGIN;
    NEED(value && attribute > 0, INVALID_VALUE);
    NEED(device_valid(device), INVALID_DEVICE);
    *value = attribute == 33 ? device + 1 : 0;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].attribute == attribute)
            *value = known[i].value;
    if ((attribute == 115 && sim_config.version < 11020) || (attribute == 102 && sim_config.version < 10020) ||
        (attribute == 132 && sim_config.version < 12010))
        *value = 0;
    return CUDA_SUCCESS;
}

API cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer)
{
    BEGIN;
    NEED(can, INVALID_VALUE);
    NEED(device_valid(device) && device_valid(peer), INVALID_DEVICE);
    *can = device != peer;
    return CUDA_SUCCESS;
}

API cuDeviceGetPCIBusId(char *text, int length, CUdevice device)
{
    BEGIN;
    NEED(text && length > 0, INVALID_VALUE);
    NEED(device_valid(device), INVALID_DEVICE);
    snprintf(text, (size_t)length, "0000:%02X:00.0", device + 1);
    return CUDA_SUCCESS;
}

API cuDeviceComputeCapability(int *major, int *minor, CUdevice device)
{
    BEGIN;
    NEED(major && minor, INVALID_VALUE);
    NEED(device_valid(device), INVALID_DEVICE);
    *major = 9;
    *minor = 0;
    return CUDA_SUCCESS;
}

/* --- errors --- */

static const struct {
    int code;
    const char *name, *text;
} errors[] = {
#define E(name, text)                                                                                                  \
    {                                                                                                                  \
        CUDA_##name, "CUDA_" #name, text                                                                               \
    }
    E(SUCCESS, "no error"),
    E(ERROR_INVALID_VALUE, "invalid argument"),
    E(ERROR_OUT_OF_MEMORY, "out of memory"),
    E(ERROR_NOT_INITIALIZED, "initialization error"),
    E(ERROR_DEINITIALIZED, "driver shutting down"),
    E(ERROR_NO_DEVICE, "no CUDA-capable device is detected"),
    E(ERROR_INVALID_DEVICE, "invalid device ordinal"),
    E(ERROR_INVALID_IMAGE, "device kernel image is invalid"),
    E(ERROR_INVALID_CONTEXT, "invalid device context"),
    E(ERROR_MAP_FAILED, "mapping of buffer object failed"),
    E(ERROR_UNMAP_FAILED, "unmapping of buffer object failed"),
    E(ERROR_ALREADY_MAPPED, "resource already mapped"),
    E(ERROR_NOT_MAPPED, "resource not mapped"),
    E(ERROR_FILE_NOT_FOUND, "file not found"),
    E(ERROR_OPERATING_SYSTEM, "OS call failed or operation not supported on this OS"),
    E(ERROR_INVALID_HANDLE, "invalid resource handle"),
    E(ERROR_ILLEGAL_STATE, "the operation cannot be performed in the present state"),
    E(ERROR_NOT_FOUND, "named symbol not found"),
    E(ERROR_NOT_READY, "device not ready"),
    E(ERROR_PEER_ACCESS_ALREADY_ENABLED, "peer access is already enabled"),
    E(ERROR_PEER_ACCESS_NOT_ENABLED, "peer access has not been enabled"),
    E(ERROR_PRIMARY_CONTEXT_ACTIVE, "cannot set while device is active in this process"),
    E(ERROR_CONTEXT_IS_DESTROYED, "context is destroyed"),
    E(ERROR_HOST_MEMORY_ALREADY_REGISTERED, "part or all of the requested memory range is already mapped"),
    E(ERROR_HOST_MEMORY_NOT_REGISTERED, "pointer does not correspond to a registered memory region"),
    E(ERROR_NOT_PERMITTED, "operation not permitted"),
    E(ERROR_NOT_SUPPORTED, "operation not supported"),
    E(ERROR_SYSTEM_DRIVER_MISMATCH, "system has unsupported display driver / cuda driver combination"),
    E(ERROR_STREAM_CAPTURE_UNSUPPORTED, "operation not permitted when stream is capturing"),
    E(ERROR_STREAM_CAPTURE_INVALIDATED, "operation failed due to a previous error during capture"),
    E(ERROR_STREAM_CAPTURE_UNJOINED, "capturing stream has unjoined work"),
    E(ERROR_STREAM_CAPTURE_IMPLICIT, "operation would make the legacy stream depend on a capturing blocking stream"),
    E(ERROR_UNKNOWN, "unknown error"),
#undef E
};

static CUresult error_text(int code, const char **out, int name)
{
    NEED(out, INVALID_VALUE);
    *out = NULL;
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].code == code)
            *out = name ? errors[i].name : errors[i].text;
    return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
API cuGetErrorName(CUresult error, const char **out)
{
    return error_text((int)error, out, 1);
}
API cuGetErrorString(CUresult error, const char **out)
{
    return error_text((int)error, out, 0);
}

/* --- host memory --- */

size_t page_round(size_t bytes)
{
    return (bytes + 4095) & ~(size_t)4095;
}

static void *map(void *address, size_t bytes, int access, int flags, int fd, size_t offset)
{
    long where = syscall(SYS_mmap, address, bytes, access, flags, fd, offset);
    return where == -1 ? NULL : (void *)where;
}

void *back_map(size_t bytes, int low)
{
    return map(NULL, page_round(bytes), PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (low ? MAP_32BIT : 0), -1, 0);
}

void *back_reserve(size_t bytes, void *address, size_t alignment)
{
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    bytes = page_round(bytes);
    if (address) {
        void *there = map(address, bytes, PROT_NONE, flags | MAP_FIXED_NOREPLACE, -1, 0);
        if (there)
            return there; /* a hint only: anywhere else otherwise */
    }
    size_t whole;
    if (alignment < 2 * MIB)
        alignment = 2 * MIB;
    if (__builtin_add_overflow(bytes, alignment, &whole))
        return NULL;
    unsigned char *start = map(NULL, whole, PROT_NONE, flags, -1, 0);
    if (!start)
        return NULL;
    unsigned char *aligned = (unsigned char *)(((uintptr_t)start + alignment - 1) / alignment * alignment);
    if (aligned > start)
        back_unmap(start, (size_t)(aligned - start));
    if (start + whole > aligned + bytes)
        back_unmap(aligned + bytes, (size_t)(start + whole - (aligned + bytes)));
    return aligned;
}

void back_unmap(void *address, size_t bytes)
{
    syscall(SYS_munmap, address, page_round(bytes));
}

int back_protect(void *address, size_t bytes, int access)
{
    return (int)syscall(SYS_mprotect, address, page_round(bytes), access);
}

int back_file(size_t bytes)
{
    int fd = (int)syscall(SYS_memfd_create, "simulated-gpu", MFD_CLOEXEC);
    if (fd >= 0 && syscall(SYS_ftruncate, fd, page_round(bytes))) {
        close(fd);
        return -1;
    }
    return fd;
}

void *back_map_file(int fd, size_t bytes, size_t offset, void *fixed, int access)
{
    return map(fixed, page_round(bytes), access, MAP_SHARED | (fixed ? MAP_FIXED : 0), fd, offset);
}

/* --- the ledger --- */

static void ledger_add(int device, enum ledger_what what, size_t bytes, int free)
{
    int row = device < 0 ? SIM_DEVICES : device;
    if (free) {
        ledger[row][what].frees++;
        ledger[row][what].free_bytes += bytes;
        return;
    }
    ledger[row][what].allocs++;
    ledger[row][what].alloc_bytes += bytes;
    size_t live = ledger[row][what].alloc_bytes - ledger[row][what].free_bytes;
    if (live > ledger[row][what].peak_bytes)
        ledger[row][what].peak_bytes = live;
}
void ledger_alloc(int device, enum ledger_what what, size_t bytes)
{
    ledger_add(device, what, bytes, 0);
}
void ledger_free(int device, enum ledger_what what, size_t bytes)
{
    ledger_add(device, what, bytes, 1);
}
void ledger_fail(int device, size_t bytes)
{
    (void)bytes;
    ledger[device < 0 ? SIM_DEVICES : device][0].failures++;
}

/* "DEVICE KIND allocs bytes frees bytes peak", host last, one line for each kind that was used */
__attribute__((destructor)) static void ledger_write(void)
{
    static const char *const names[] = {"device", "managed", "pinned", "array", "pool", "vmm", "graph"};
    const char *path = getenv("SIM_CUDA_LEDGER");
    if (!path || forked || !initialized)
        return;
    FILE *file = fopen(path, "we");
    if (!file)
        return;
    for (int d = 0; d <= SIM_DEVICES; d++) {
        char device[16];
        snprintf(device, sizeof device, d == SIM_DEVICES ? "host" : "cuda:%d", d);
        for (int k = 0; k < L_KINDS; k++)
            if (ledger[d][k].allocs)
                fprintf(file, "%s %s %lu %zu %lu %zu %zu\n", device, names[k], ledger[d][k].allocs,
                        ledger[d][k].alloc_bytes, ledger[d][k].frees, ledger[d][k].free_bytes, ledger[d][k].peak_bytes);
        if (ledger[d][0].failures)
            fprintf(file, "%s failed %lu\n", device, ledger[d][0].failures);
    }
    fclose(file);
}
