/* A wrapped call under way: its guard, its record, and what it asks the driver. */
#include "cuda.h"

#include "../oom.h"

#include <link.h>

/* Libraries of profilers: what they call is theirs, not the program's. */
static int called_by_tool(uint64_t pc)
{
    static const char *const tools[] = {"libcupti", "libnvperf", "libcuinj", "libToolsInjection"};
    static const struct link_map *program; /* the last one that was none: most calls come from one or two */
    struct dl_find_object o;
    if (_dl_find_object((void *)(pc - 1), &o) != 0 || !o.dlfo_link_map || !o.dlfo_link_map->l_name ||
        o.dlfo_link_map == __atomic_load_n(&program, __ATOMIC_RELAXED))
        return 0;
    const char *base = o.dlfo_link_map->l_name;
    for (const char *p = base; *p; p++)
        if (*p == '/')
            base = p + 1;
    for (unsigned i = 0; i < sizeof tools / sizeof *tools; i++) {
        unsigned n = 0;
        while (tools[i][n] && tools[i][n] == base[n])
            n++;
        if (!tools[i][n])
            return 1;
    }
    __atomic_store_n(&program, o.dlfo_link_map, __ATOMIC_RELAXED);
    return 0;
}

static int maps_are_told(unsigned hook)
{
    return hook == WIRE_HOOK_cuMemAllocHost || hook == WIRE_HOOK_cuMemHostAlloc || hook == WIRE_HOOK_cuMemFreeHost ||
           hook == WIRE_HOOK_cuMemAllocManaged;
}

int cuda_enter(struct cuda_call *c)
{
    struct thread *t = &self;
    c->error_number = errno;
    cuda_driver.used = 1;
    if (thread_is_within(t, c->at, t->cuda_sp))
        return 0;
    if (unlikely(!gate.on || !t->ring)) {
        if (thread_enter(t, c->at)) /* a forked child, a new thread, or before the constructor */
            thread_leave(t);
        errno = c->error_number;
        if (!gate.on || !t->ring)
            return 0;
    }
    if (called_by_tool(c->at.pc))
        return 0;
    c->thread = t;
    t->maps_hidden = maps_are_told(c->hook);
    barrier();
    t->cuda_sp = c->at.sp;
    return 1;
}

void cuda_leave(struct cuda_call *c)
{
    c->thread->cuda_sp = 0;
    barrier();
    c->thread->maps_hidden = 0;
    if (unlikely(c->is_oom))
        oom_tell(c->thread, c->at, c->oom_device, c->oom_bytes);
    errno = c->error_number;
}

uint32_t cuda_stack(struct cuda_call *c)
{
    struct thread *t = c->thread;
    if (!thread_enter(t, c->at))
        return 0;
    uint32_t stack = record_stack(t, c->at);
    thread_leave(t);
    return stack;
}

uint32_t cuda_free_stack(struct cuda_call *c)
{
    return process.free_stacks ? cuda_stack(c) : 0;
}

unsigned cuda_free_device(struct cuda_call *c)
{
    return process.free_stacks ? cuda_device_current(c) : WIRE_DEVICE_UNKNOWN;
}

#define TEXT_MAX 256

void cuda_write(struct cuda_call *c, unsigned call, unsigned device, unsigned flags, uint32_t stack,
                const uint64_t *arguments, unsigned count, const char *text)
{
    struct thread *t = c->thread;
    uint64_t words[2 + 8 + 1 + TEXT_MAX / 8];
    unsigned n = 2;
    for (unsigned i = 0; i < count && i < 8; i++)
        words[n++] = arguments[i];
    if (text) {
        unsigned bytes = 0, at = n++;
        for (; text[bytes] && bytes < TEXT_MAX; bytes++) {
            unsigned shift = bytes % 8 * 8;
            uint64_t byte = (uint64_t)(unsigned char)text[bytes] << shift;
            if (!shift)
                words[n++] = byte;
            else
                words[n - 1] |= byte;
        }
        words[at] = bytes;
    }
    words[0] = (uint64_t)WIRE_CALL << 56 | (uint64_t)c->hook << 48 | (uint64_t)(n + 1) << 32 | stack;
    words[1] = WIRE_CALL_WORD(call, device, flags);
    if (thread_enter(t, c->at)) {
        record_words(t, words, n + 1);
        thread_leave(t);
    }
}

/* --- devices, contexts, streams --- */

/* Ordinals announced by this process; two threads may announce one twice. */
static struct {
    int pid;
    uint8_t done[WIRE_DEVICE_UNKNOWN];
} devices;

unsigned cuda_device(struct cuda_call *c, int ordinal)
{
    if (ordinal < 0 || ordinal >= (int)WIRE_DEVICE_UNKNOWN)
        return WIRE_DEVICE_UNKNOWN;
    if (unlikely(devices.pid != process.pid)) {
        for (unsigned i = 0; i < WIRE_DEVICE_UNKNOWN; i++)
            devices.done[i] = 0;
        devices.pid = process.pid;
    }
    if (unlikely(!__atomic_load_n(&devices.done[ordinal], __ATOMIC_ACQUIRE))) {
        char name[TEXT_MAX] = "";
        uint64_t uuid[2] = {0, 0};
        size_t total = 0;
        if (cuda_driver.ask.cuDeviceGetName)
            cuda_driver.ask.cuDeviceGetName(name, sizeof name - 1, ordinal);
        if (cuda_driver.ask.cuDeviceTotalMem_v2)
            cuda_driver.ask.cuDeviceTotalMem_v2(&total, ordinal);
        if (cuda_driver.ask.cuDeviceGetUuid_v2)
            cuda_driver.ask.cuDeviceGetUuid_v2(uuid, ordinal);
        else if (cuda_driver.ask.cuDeviceGetUuid)
            cuda_driver.ask.cuDeviceGetUuid(uuid, ordinal);
        const uint64_t arguments[] = {total, uuid[0], uuid[1]};
        cuda_write(c, WIRE_CALL_DEVICE, (unsigned)ordinal, 0, 0, arguments, 3, name);
        __atomic_store_n(&devices.done[ordinal], 1, __ATOMIC_RELEASE);
    }
    return (unsigned)ordinal;
}

unsigned cuda_device_current(struct cuda_call *c)
{
    int ordinal = -1;
    if (!cuda_driver.ask.cuCtxGetDevice || cuda_driver.ask.cuCtxGetDevice(&ordinal) != 0)
        ordinal = -1;
    return cuda_device(c, ordinal);
}

unsigned cuda_device_of(struct cuda_call *c, const struct cu_location *location)
{
    if (!location)
        return WIRE_DEVICE_UNKNOWN;
    if (location->type == CU_LOCATION_DEVICE)
        return cuda_device(c, location->id);
    return location->type >= CU_LOCATION_HOST && location->type <= CU_LOCATION_HOST_NUMA_CURRENT ? WIRE_DEVICE_HOST
                                                                                                 : WIRE_DEVICE_UNKNOWN;
}

unsigned cuda_device_of_address(struct cuda_call *c, cu_address p)
{
    int ordinal = -1;
    if (cuda_driver.ask.cuPointerGetAttribute &&
        cuda_driver.ask.cuPointerGetAttribute(&ordinal, CU_POINTER_DEVICE_ORDINAL, p) == 0 && ordinal >= 0)
        return cuda_device(c, ordinal);
    return cuda_device_current(c);
}

unsigned cuda_device_of_hook(struct cuda_call *c)
{
    switch (c->hook) {
    case WIRE_HOOK_cuMemAllocHost:
    case WIRE_HOOK_cuMemHostAlloc:
        return WIRE_DEVICE_HOST;
    default:
        return cuda_device_current(c);
    }
}

uint64_t cuda_context_current(void)
{
    cu_handle context = NULL;
    if (!cuda_driver.ask.cuCtxGetCurrent || cuda_driver.ask.cuCtxGetCurrent(&context) != 0)
        context = NULL;
    return (uint64_t)context;
}

uint64_t cuda_stream_number(const struct cuda_call *c, cu_handle stream)
{
    uint64_t number = (uint64_t)stream;
    if (number == 0)
        number = c->per_thread ? CU_THREAD_STREAM : CU_LEGACY_STREAM;
    if (number == CU_THREAD_STREAM) /* below any handle's address, and apart from the next thread's */
        number |= (uint64_t)(uint32_t)c->thread->ring->tid << 8;
    return number;
}

int cuda_capturing(const struct cuda_call *c, cu_handle stream, cu_handle *graph)
{
    int status = 0;
    if (!stream && c->per_thread)
        stream = (cu_handle)CU_THREAD_STREAM;
    if (!stream || stream == (cu_handle)CU_LEGACY_STREAM || !cuda_driver.ask.cuStreamIsCapturing)
        return 0; /* the legacy stream cannot capture */
    if (cuda_driver.ask.cuStreamIsCapturing(stream, &status) != 0 || status != 1)
        return 0;
    if (graph) {
        uint64_t id;
        *graph = NULL;
        if (!cuda_driver.ask.cuStreamGetCaptureInfo_v2 ||
            cuda_driver.ask.cuStreamGetCaptureInfo_v2(stream, &status, &id, graph, NULL, NULL) != 0)
            *graph = NULL;
    }
    return 1;
}

uint64_t cuda_range_size(cu_address p)
{
    cu_address base;
    size_t size;
    if (!cuda_driver.ask.cuMemGetAddressRange_v2 || cuda_driver.ask.cuMemGetAddressRange_v2(&base, &size, p) != 0)
        return 0;
    return size;
}

/* --- failures --- */

void cuda_failed(struct cuda_call *c, int result, uint64_t size)
{
    if (c->taken)
        cuda_write(c, WIRE_CALL_UNDO, WIRE_DEVICE_UNKNOWN, 0, 0, NULL, 0, NULL);
    if (result != CU_OUT_OF_MEMORY)
        return;
    size_t free = 0, total = 0;
    unsigned device = cuda_device_of_hook(c);
    if (device != WIRE_DEVICE_HOST && cuda_driver.ask.cuMemGetInfo_v2 &&
        cuda_driver.ask.cuMemGetInfo_v2(&free, &total) != 0)
        free = total = 0;
    CUDA_RECORD(c, OOM, device, 0, size, free, total, (uint64_t)result);
    c->is_oom = 1;
    c->oom_device = (uint8_t)device;
    c->oom_bytes = size;
}
