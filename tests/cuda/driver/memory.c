/* Plain, pitched, managed and pinned memory; the device's figures; attributes of pointers. */
#include "sim.h"

#include <stdlib.h>
#include <string.h>

/* Memory of the current context's device (or of the host), charged to the device in units of 512 bytes when it is
 * plain. */
static CUresult allocate(void **out, size_t size, enum alloc_kind kind, enum ledger_what what, unsigned flags, int low)
{
    struct CUctx_st *ctx;
    CUresult error = context_current(&ctx);
    if (error)
        return error;
    NEED(out && size, INVALID_VALUE);
    if ((error = capture_forbids(ctx)))
        return error;
    size_t charged = 0;
    if (kind == A_PLAIN && __builtin_add_overflow(size, 511, &charged))
        return CUDA_ERROR_OUT_OF_MEMORY;
    charged &= ~(size_t)511;
    if (size > 1ull << 46 || fail_now() || device_take(ctx->device, charged)) {
        ledger_fail(ctx->device, size);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    void *memory = back_map(size, low);
    struct alloc *alloc =
        memory ? alloc_add((CUdeviceptr)memory, size, kind, kind == A_HOST ? -1 : ctx->device, ctx) : NULL;
    if (!alloc) {
        if (memory)
            back_unmap(memory, size);
        device_give(ctx->device, charged);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    alloc->charged = charged;
    alloc->flags = flags;
    ledger_alloc(alloc->device, what, size);
    *out = memory;
    return CUDA_SUCCESS;
}

API cuMemAlloc_v2(CUdeviceptr *out, size_t size)
{
    BEGIN;
    return allocate((void **)out, size, A_PLAIN, L_PLAIN, 0, 0);
}

API cuMemAlloc(CUdeviceptr_v1 *out, unsigned size)
{
    BEGIN;
    NEED(out, INVALID_VALUE);
    void *memory;
    CUresult error = allocate(&memory, size, A_PLAIN, L_PLAIN, 0, 1);
    if (!error)
        *out = (CUdeviceptr_v1)(uintptr_t)memory;
    return error;
}

static CUresult pitched(void **out, size_t *pitch, size_t width, size_t height, unsigned element, int low)
{
    NEED(out && pitch && width && height, INVALID_VALUE);
    NEED(element == 4 || element == 8 || element == 16, INVALID_VALUE);
    size_t row, bytes;
    if (__builtin_add_overflow(width, 511, &row) || __builtin_mul_overflow(row & ~(size_t)511, height, &bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult error = allocate(out, bytes, A_PLAIN, L_PLAIN, 0, low);
    if (!error)
        *pitch = row & ~(size_t)511;
    return error;
}

API cuMemAllocPitch_v2(CUdeviceptr *out, size_t *pitch, size_t width, size_t height, unsigned element)
{
    BEGIN;
    return pitched((void **)out, pitch, width, height, element, 0);
}

API cuMemAllocPitch(CUdeviceptr_v1 *out, unsigned *pitch, unsigned width, unsigned height, unsigned element)
{
    BEGIN;
    NEED(out && pitch, INVALID_VALUE);
    void *memory;
    size_t wide;
    CUresult error = pitched(&memory, &wide, width, height, element, 1);
    if (!error) {
        *out = (CUdeviceptr_v1)(uintptr_t)memory;
        *pitch = (unsigned)wide;
    }
    return error;
}

API cuMemAllocManaged(CUdeviceptr *out, size_t size, unsigned flags)
{
    BEGIN;
    NEED(flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST, INVALID_VALUE);
    return allocate((void **)out, size, A_MANAGED, L_MANAGED, flags, 0);
}

static CUresult release(CUdeviceptr address)
{
    struct CUctx_st *ctx;
    CUresult error = context_current(&ctx);
    if (error)
        return error;
    NEED(address, INVALID_VALUE);
    struct alloc *alloc = alloc_base(address);
    NEED(alloc, INVALID_VALUE);
    if ((error = capture_forbids(ctx)))
        return error;
    sim_finish_all(); /* it waits for the device */
    switch (alloc->kind) {
    case A_PLAIN:
    case A_MANAGED:
        alloc_release(alloc);
        return CUDA_SUCCESS;
    case A_POOL:
        return pool_free(alloc, NULL);
    case A_GRAPH:
        graph_block_freed(alloc, NULL);
        return CUDA_SUCCESS;
    case A_FOREIGN: /* a buffer of external memory, a block of an imported pool; not what an IPC handle gave */
        NEED(alloc->owner || alloc->pool, INVALID_VALUE);
        alloc_release(alloc);
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}
API cuMemFree(CUdeviceptr_v1 address)
{
    BEGIN;
    return release(address);
}
API cuMemFree_v2(CUdeviceptr address)
{
    BEGIN;
    return release(address);
}

static CUresult info(size_t *free_bytes, size_t *total)
{
    struct CUctx_st *ctx;
    CUresult error = context_current(&ctx);
    if (error)
        return error;
    NEED(free_bytes && total, INVALID_VALUE);
    *total = sim_devices[ctx->device].total;
    const size_t used = device_used(ctx->device);
    *free_bytes = used < *total ? *total - used : 0;
    return CUDA_SUCCESS;
}
API cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
    BEGIN;
    return info(free_bytes, total);
}
API cuMemGetInfo(unsigned *free_bytes, unsigned *total)
{
    BEGIN;
    size_t f, t;
    NEED(free_bytes && total, INVALID_VALUE);
    CUresult error = info(&f, &t);
    if (!error) {
        *free_bytes = f > ~0u ? ~0u : (unsigned)f;
        *total = t > ~0u ? ~0u : (unsigned)t;
    }
    return error;
}

/* --- pinned host memory --- */

API cuMemAllocHost_v2(void **out, size_t size)
{
    BEGIN;
    return allocate(out, size, A_HOST, L_HOST, 0, 0);
}
API cuMemAllocHost(void **out, unsigned size)
{
    BEGIN;
    return allocate(out, size, A_HOST, L_HOST, 0, 1);
}
API cuMemHostAlloc(void **out, size_t size, unsigned flags)
{
    BEGIN;
    NEED(!(flags & ~7u), INVALID_VALUE);
    return allocate(out, size, A_HOST, L_HOST, flags, 0);
}

API cuMemFreeHost(void *address)
{
    BEGIN_CONTEXT;
    struct alloc *alloc = alloc_base((CUdeviceptr)address);
    NEED(address && alloc && alloc->kind == A_HOST, INVALID_VALUE);
    sim_finish_all();
    alloc_release(alloc);
    return CUDA_SUCCESS;
}

static CUresult host_register(void *address, size_t size, unsigned flags)
{
    struct CUctx_st *ctx;
    CUresult error = context_current(&ctx);
    if (error)
        return error;
    NEED(address && size, INVALID_VALUE);
    NEED(!alloc_overlaps((CUdeviceptr)address, size), HOST_MEMORY_ALREADY_REGISTERED);
    if (fail_now())
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct alloc *alloc = alloc_add((CUdeviceptr)address, size, A_REGISTERED, -1, ctx);
    NEED(alloc, OUT_OF_MEMORY);
    alloc->flags = flags;
    return CUDA_SUCCESS;
}
API cuMemHostRegister(void *address, size_t size, unsigned flags)
{
    BEGIN;
    return host_register(address, size, flags);
}
API cuMemHostRegister_v2(void *address, size_t size, unsigned flags)
{
    BEGIN;
    return host_register(address, size, flags);
}

API cuMemHostUnregister(void *address)
{
    BEGIN_CONTEXT;
    struct alloc *alloc = alloc_base((CUdeviceptr)address);
    NEED(alloc && alloc->kind == A_REGISTERED, HOST_MEMORY_NOT_REGISTERED);
    sim_finish_all();
    alloc_release(alloc);
    return CUDA_SUCCESS;
}

static CUresult host_pointer(CUdeviceptr *out, void *address, unsigned flags)
{
    NEED(out && !flags, INVALID_VALUE);
    struct alloc *alloc = alloc_at((CUdeviceptr)address);
    NEED(alloc && (alloc->kind == A_HOST || alloc->kind == A_REGISTERED), INVALID_VALUE);
    *out = (CUdeviceptr)address;
    return CUDA_SUCCESS;
}
API cuMemHostGetDevicePointer_v2(CUdeviceptr *out, void *address, unsigned flags)
{
    BEGIN_CONTEXT;
    return host_pointer(out, address, flags);
}
API cuMemHostGetDevicePointer(CUdeviceptr_v1 *out, void *address, unsigned flags)
{
    BEGIN_CONTEXT;
    CUdeviceptr wide;
    CUresult error = out ? host_pointer(&wide, address, flags) : CUDA_ERROR_INVALID_VALUE;
    if (!error)
        *out = (CUdeviceptr_v1)wide;
    return error;
}

API cuMemHostGetFlags(unsigned *flags, void *address)
{
    BEGIN_CONTEXT;
    struct alloc *alloc = alloc_at((CUdeviceptr)address);
    NEED(flags && alloc && alloc->kind == A_HOST, INVALID_VALUE);
    *flags = alloc->flags;
    return CUDA_SUCCESS;
}

/* --- questions about pointers --- */

static CUresult range(CUdeviceptr *base, size_t *size, CUdeviceptr address)
{
    struct alloc *alloc = alloc_at(address);
    NEED(alloc && alloc->kind != A_REGISTERED, NOT_FOUND);
    if (base)
        *base = alloc->address;
    if (size)
        *size = alloc->size;
    return CUDA_SUCCESS;
}
API cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr address)
{
    BEGIN_CONTEXT;
    return range(base, size, address);
}
API cuMemGetAddressRange(CUdeviceptr_v1 *base, unsigned *size, CUdeviceptr_v1 address)
{
    BEGIN_CONTEXT;
    CUdeviceptr b;
    size_t s;
    CUresult error = range(&b, &s, address);
    if (!error && base)
        *base = (CUdeviceptr_v1)b;
    if (!error && size)
        *size = (unsigned)s;
    return error;
}

static CUresult attribute(void *data, int what, CUdeviceptr address)
{
    NEED(data, INVALID_VALUE);
    struct alloc *alloc = alloc_at(address);
    if (!alloc)
        return CUDA_ERROR_INVALID_VALUE;
    const int host = alloc->device < 0;
    switch (what) {
    case 1:
        *(CUcontext *)data = alloc->ctx;
        return CUDA_SUCCESS;
    case 2:
        *(unsigned *)data = host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
        return CUDA_SUCCESS;
    case 3:
        *(CUdeviceptr *)data = address;
        return CUDA_SUCCESS;
    case 4:
        NEED(host || alloc->kind == A_MANAGED, INVALID_VALUE);
        *(void **)data = (void *)address;
        return CUDA_SUCCESS;
    case 6:
        *(unsigned *)data = 0;
        return CUDA_SUCCESS;
    case 7:
        *(unsigned long long *)data = alloc->buffer_id;
        return CUDA_SUCCESS;
    case 8:
        *(unsigned *)data = alloc->kind == A_MANAGED;
        return CUDA_SUCCESS;
    case 9:
        *(int *)data = host ? (alloc->ctx ? alloc->ctx->device : 0) : alloc->device;
        return CUDA_SUCCESS;
    case 10:
        *(unsigned *)data = alloc->kind == A_PLAIN;
        return CUDA_SUCCESS;
    case 11:
        *(CUdeviceptr *)data = alloc->address;
        return CUDA_SUCCESS;
    case 12:
        *(size_t *)data = alloc->size;
        return CUDA_SUCCESS;
    case 13:
        *(unsigned *)data = 1;
        return CUDA_SUCCESS;
    case 14:
        *(unsigned long long *)data = alloc->kind == A_MAPPING;
        return CUDA_SUCCESS;
    case 17:
        *(CUmemoryPool *)data = alloc->pool;
        return CUDA_SUCCESS;
    case 18:
        *(size_t *)data = alloc->size;
        return CUDA_SUCCESS;
    case 19:
        *(CUdeviceptr *)data = alloc->address;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}
API cuPointerGetAttribute(void *data, int what, CUdeviceptr address)
{
    BEGIN;
    return attribute(data, what, address);
}
API cuPointerGetAttributes(unsigned count, int *what, void **data, CUdeviceptr address)
{
    BEGIN;
    NEED(count && what && data, INVALID_VALUE);
    for (unsigned i = 0; i < count; i++)
        if (attribute(data[i], what[i], address)) /* unknown pointers give zeroes, not an error */
            *(unsigned *)data[i] = what[i] == 9 ? (unsigned)-2 : 0;
    return CUDA_SUCCESS;
}
API cuPointerSetAttribute(const void *value, int what, CUdeviceptr address)
{
    BEGIN;
    NEED(value && what == 6 && alloc_at(address), INVALID_VALUE);
    return CUDA_SUCCESS;
}

/* --- advice about managed memory: checked, else without effect --- */

static CUresult managed(CUdeviceptr address, size_t size)
{
    struct alloc *alloc;
    CUresult error = pointer_info(address, size, &alloc);
    return error ? error : size && alloc->kind == A_MANAGED ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
API cuMemAdvise(CUdeviceptr address, size_t size, int advice, CUdevice device)
{
    BEGIN;
    (void)advice;
    (void)device;
    return managed(address, size);
}
API cuMemAdvise_v2(CUdeviceptr address, size_t size, int advice, CUmemLocation location)
{
    BEGIN;
    (void)advice;
    (void)location;
    return managed(address, size);
}
#define PREFETCH(suffix, device_type)                                                                                  \
    API cuMemPrefetchAsync##suffix(CUdeviceptr address, size_t size, device_type)                                      \
    {                                                                                                                  \
        BEGIN_CONTEXT;                                                                                                 \
        return managed(address, size);                                                                                 \
    }
PREFETCH(, CUdevice device __attribute__((unused)))
PREFETCH(_ptsz, CUdevice device __attribute__((unused)))
PREFETCH(_v2, CUmemLocation location __attribute__((unused)))
PREFETCH(_v2_ptsz, CUmemLocation location __attribute__((unused)))
#define BATCH(name)                                                                                                    \
    API name(CUdeviceptr *addresses, size_t *sizes, size_t count)                                                      \
    {                                                                                                                  \
        BEGIN_CONTEXT;                                                                                                 \
        NEED((addresses && sizes && count), INVALID_VALUE);                                                            \
        for (size_t i = 0; i < count; i++) {                                                                           \
            CUresult error = managed(addresses[i], sizes[i]);                                                          \
            if (error)                                                                                                 \
                return error;                                                                                          \
        }                                                                                                              \
        return CUDA_SUCCESS;                                                                                           \
    }
BATCH(cuMemPrefetchBatchAsync)
BATCH(cuMemPrefetchBatchAsync_ptsz)
BATCH(cuMemDiscardBatchAsync)
BATCH(cuMemDiscardBatchAsync_ptsz)
BATCH(cuMemDiscardAndPrefetchBatchAsync)
BATCH(cuMemDiscardAndPrefetchBatchAsync_ptsz)

API cuMemRangeGetAttribute(void *data, size_t bytes, int what, CUdeviceptr address, size_t size)
{
    BEGIN;
    NEED(data && bytes >= 4 && what > 0, INVALID_VALUE);
    CUresult error = managed(address, size);
    if (!error)
        *(int *)data = what == 1 ? 0 : -2; /* nothing was advised */
    return error;
}
API cuMemRangeGetAttributes(void **data, size_t *bytes, int *what, size_t count, CUdeviceptr address, size_t size)
{
    BEGIN;
    NEED(data && bytes && what && count, INVALID_VALUE);
    for (size_t i = 0; i < count; i++) {
        CUresult error = cuMemRangeGetAttribute(data[i], bytes[i], what[i], address, size);
        if (error)
            return error;
    }
    return CUDA_SUCCESS;
}
API cuStreamAttachMemAsync(CUstream stream, CUdeviceptr address, size_t size)
{
    BEGIN_CONTEXT;
    (void)stream;
    (void)size;
    return managed(address, 1);
}
API cuStreamAttachMemAsync_ptsz(CUstream stream, CUdeviceptr address, size_t size)
{
    BEGIN_CONTEXT;
    (void)stream;
    (void)size;
    return managed(address, 1);
}
