/*
 * PyTorch's caching allocators say what they do with each block, through a function that libc10.so exports (three
 * signatures over its history): the blocks are active bytes; the segments under them come through the driver's hooks.
 */
#include "../call.h"
#include "../real.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>

#define DEVICE_CUDA 1  /* c10::DeviceType */
#define LOOKS_MOST  64 /* for a libc10 that is not there */
#define PATH_BYTES  1024
#define TORCH_POOL  0x63313000u /* handles: one for each device */

struct device { /* c10::Device, passed in a register */
    int8_t type, index;
};

static int is_libc10(const char *path)
{
    const char *name = path, *wanted = "libc10";
    for (; path && *path; path++)
        if (*path == '/')
            name = path + 1;
    while (name && *wanted && *name == *wanted)
        name++, wanted++;
    return name && !*wanted && (*name == '.' || *name == '-'); /* its version, or a wheel's hash, may stand behind */
}

static int names_libc10(struct dl_phdr_info *info, size_t size, void *arg)
{
    char *path = arg;
    (void)size;
    if (!is_libc10(info->dlpi_name))
        return 0;
    size_t n = 0;
    for (; info->dlpi_name[n] && n + 1 < PATH_BYTES; n++)
        path[n] = info->dlpi_name[n];
    path[n] = 0;
    return 1;
}

/* libc10 is loaded by Python for itself alone (RTLD_LOCAL), so it is no successor of ours: it is looked for by name.
 * The function stays where it is: libc10 is never unloaded. */
static void *real_function(void **cached, uint32_t *looks, const char *name)
{
    void *f = __atomic_load_n(cached, __ATOMIC_ACQUIRE);
    if (f || __atomic_fetch_add(looks, 1, __ATOMIC_RELAXED) >= LOOKS_MOST)
        return f;
    int saved = errno;
    real_init();
    char path[PATH_BYTES] = "";
    if (real.dl_iterate_phdr)
        real.dl_iterate_phdr(names_libc10, path); /* under the loader's lock */
    void *handle = *path && real.dlopen ? real.dlopen(path, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE) : NULL;
    if (handle)
        f = real_find_in(handle, name);
    errno = saved;
    if (f)
        __atomic_store_n(cached, f, __ATOMIC_RELEASE);
    return f;
}

static void block(struct unwind_state s, void *p, int64_t size_bytes, struct device device)
{
    uint64_t pool = TORCH_POOL + (uint8_t)device.index;
    unsigned where = (uint8_t)device.index | WIRE_CALL_IMPLICIT << 8;
    uint64_t arguments[] = {pool, (uint64_t)p, (uint64_t)size_bytes};
    if (device.type != DEVICE_CUDA || device.index < 0 || !p || !size_bytes) /* the host's blocks are malloc's */
        return;
    if (size_bytes > 0)
        call_record(s, WIRE_HOOK_torch_block, WIRE_CALL_SUB_ALLOC, where, arguments, 3, NULL);
    else
        call_record(s, WIRE_HOOK_torch_block, WIRE_CALL_SUB_FREE, where, arguments, 2, NULL);
}

/* X(mangled name, parameters, arguments): reportMemoryUsageToProfiler(pointer, size, [total allocated, [total
 * reserved,]] device) */
#define REPORTS(X)                                                                                                     \
    X(_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE,                                                           \
      (void *p, int64_t size, size_t allocated, size_t reserved, struct device device),                                \
      (p, size, allocated, reserved, device))                                                                          \
    X(_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE,                                                           \
      (void *p, int64_t size, int64_t allocated, int64_t reserved, struct device device),                              \
      (p, size, allocated, reserved, device))                                                                          \
    X(_ZN3c1027reportMemoryUsageToProfilerEPvlNS_6DeviceE, (void *p, int64_t size, struct device device),              \
      (p, size, device))

#define X(name, parameters, arguments)                                                                                 \
    EXPORT void name parameters;                                                                                       \
    EXPORT void name parameters                                                                                        \
    {                                                                                                                  \
        static void *cached;                                                                                           \
        static uint32_t looks;                                                                                         \
        struct unwind_state s;                                                                                         \
        UNWIND_HERE(s);                                                                                                \
        block(s, p, size, device);                                                                                     \
        void(*next) parameters = (void(*) parameters)real_function(&cached, &looks, #name);                            \
        if (next)                                                                                                      \
            next arguments;                                                                                            \
    }
REPORTS(X)
#undef X
