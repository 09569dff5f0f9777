/* What driver calls give and take: plain, pitched, managed and pinned memory, arrays, physical memory and its mappings,
 * memory of other processes, contexts. */
#include "cuda.h"

void cuda_allocated(struct cuda_call *c, uint64_t p, uint64_t size)
{
    unsigned device = cuda_device_of_hook(c);
    CUDA_RECORD(c, ALLOC, device, 0, p, size, cuda_context_current());
}

/* By address or handle alone: the current context may be another. */
void cuda_freeing(struct cuda_call *c, uint64_t p)
{
    if (p)
        CUDA_TAKE(c, FREE, cuda_free_device(c), 0, p);
}

void cuda_memory_info(struct cuda_call *c, uint64_t free, uint64_t total)
{
    CUDA_NOTE(c, MEMORY_INFO, cuda_device_current(c), 0, free, total);
}

/* --- arrays --- */

/* Bits of one element of one channel; block-compressed and video formats: of one pixel, all channels. 0: not known. */
static unsigned format_bits(int format, int *whole)
{
    *whole = 0;
    switch (format) {
    case 0x01: /* 8 bits */
    case 0x08:
        return 8;
    case 0x02: /* 16 bits, half */
    case 0x09:
    case 0x10:
        return 16;
    case 0x03: /* 32 bits, float */
    case 0x0a:
    case 0x20:
        return 32;
    }
    *whole = 1;
    if (format >= 0xc0 && format <= 0xcb) { /* UNORM, SNORM: 8x1, 8x2, 8x4, 16x1, 16x2, 16x4, twice */
        static const uint8_t bits[] = {8, 16, 32, 16, 32, 64};
        return bits[(format - 0xc0) % 6];
    }
    if (format >= 0x91 && format <= 0x9e) /* BC1 and BC4 take 8 bytes for 4 x 4 pixels, the others 16 */
        return format <= 0x92 || format == 0x97 || format == 0x98 ? 4 : 8;
    switch (format) {
    case 0xb0: /* NV12 */
        return 12;
    case 0xa2: /* NV16, YUY2 */
    case 0xa5:
        return 16;
    case 0x9f: /* P010, P016 */
    case 0xa1:
    case 0xb2: /* Y444 planar and semi-planar, 8 bits */
    case 0xb4:
        return 24;
    case 0xa3: /* P210, P216, Y210, Y216, AYUV, Y410, 101010_2 */
    case 0xa4:
    case 0xa6:
    case 0xa7:
    case 0xa8:
    case 0xa9:
    case 0x50:
        return 32;
    case 0xb3: /* Y444 of more than 8 bits */
    case 0xb5:
        return 48;
    case 0xb1: /* Y416 */
        return 64;
    }
    return 0;
}

static uint64_t level_bytes(uint64_t width, uint64_t height, uint64_t depth, uint64_t bits)
{
    uint64_t pixels = cuda_product(cuda_product(width, height ? height : 1), depth ? depth : 1);
    uint64_t all = cuda_product(pixels, bits);
    return all == UINT64_MAX ? all : (all + 7) / 8;
}

/* What the elements take; the driver pads them, and does not say how much. Sparse arrays and those whose mapping comes
 * later own nothing yet. */
uint64_t cuda_array_bytes(uint64_t width, uint64_t height, uint64_t depth, int format, unsigned channels,
                          unsigned flags, unsigned levels)
{
    int whole, layered = (flags & (1 | CU_ARRAY_CUBEMAP)) != 0;
    uint64_t bits = format_bits(format, &whole), bytes = 0;
    if (flags & (CU_ARRAY_SPARSE | CU_ARRAY_DEFERRED))
        return 0;
    if (!whole)
        bits *= channels;
    for (unsigned i = 0; i < levels && i < 32; i++) {
        if (__builtin_add_overflow(bytes, level_bytes(width, height, depth, bits), &bytes))
            return UINT64_MAX;
        width = width > 1 ? width / 2 : width;
        height = height > 1 ? height / 2 : height;
        if (!layered)
            depth = depth > 1 ? depth / 2 : depth;
    }
    return bytes;
}

/* Where the driver tells what the array takes, that holds. */
void cuda_array_created(struct cuda_call *c, cu_handle array, uint64_t size)
{
    struct cu_array_requirements r = {0};
    int ordinal = -1;
    int (*ask)(struct cu_array_requirements *, cu_handle, int) =
        c->hook == WIRE_HOOK_cuMipmappedArrayCreate ? cuda_driver.ask.cuMipmappedArrayGetMemoryRequirements
                                                    : cuda_driver.ask.cuArrayGetMemoryRequirements;
    if (size && ask && cuda_driver.ask.cuCtxGetDevice && cuda_driver.ask.cuCtxGetDevice(&ordinal) == 0 &&
        ask(&r, array, ordinal) == 0 && r.size)
        size = r.size;
    cuda_allocated(c, (uint64_t)array, size);
}

/* --- virtual memory management --- */

void cuda_vmm_reserved(struct cuda_call *c, uint64_t p, uint64_t size)
{
    CUDA_RECORD(c, VMM_RESERVE, WIRE_DEVICE_UNKNOWN, 0, p, size);
}

void cuda_vmm_unreserving(struct cuda_call *c, uint64_t p, uint64_t size)
{
    CUDA_TAKE(c, VMM_UNRESERVE, WIRE_DEVICE_UNKNOWN, 0, p, size);
}

void cuda_vmm_created(struct cuda_call *c, cu_memory handle, uint64_t size, const struct cu_location *location,
                      unsigned flags)
{
    unsigned device = location ? cuda_device_of(c, location) : cuda_device_current(c);
    CUDA_RECORD(c, VMM_CREATE, device, 0, handle, size, flags);
}

/* Its size is not told; the model learns it from the mappings. */
void cuda_vmm_imported(struct cuda_call *c, cu_memory handle)
{
    struct cu_memory_properties properties = {0};
    const struct cu_location *location = NULL;
    if (cuda_driver.ask.cuMemGetAllocationPropertiesFromHandle &&
        cuda_driver.ask.cuMemGetAllocationPropertiesFromHandle(&properties, handle) == 0)
        location = &properties.location;
    cuda_vmm_created(c, handle, 0, location, WIRE_VMM_IMPORTED);
}

void cuda_vmm_retained(struct cuda_call *c, cu_memory handle, uint64_t p)
{
    CUDA_RECORD(c, VMM_RETAIN, WIRE_DEVICE_UNKNOWN, 0, handle, p);
}

void cuda_vmm_releasing(struct cuda_call *c, cu_memory handle)
{
    CUDA_TAKE(c, VMM_RELEASE, WIRE_DEVICE_UNKNOWN, 0, handle);
}

void cuda_vmm_mapped(struct cuda_call *c, uint64_t p, uint64_t size, uint64_t offset, cu_memory handle)
{
    CUDA_RECORD(c, VMM_MAP, WIRE_DEVICE_UNKNOWN, 0, p, size, offset, handle);
}

void cuda_vmm_unmapping(struct cuda_call *c, uint64_t p, uint64_t size)
{
    CUDA_TAKE(c, VMM_UNMAP, WIRE_DEVICE_UNKNOWN, 0, p, size);
}

/* --- memory of others: size 0 where it is not told, or is a part of an import told before --- */

void cuda_foreign(struct cuda_call *c, uint64_t p, uint64_t size)
{
    unsigned device = cuda_device_current(c);
    CUDA_RECORD(c, FOREIGN_OPEN, device, 0, p, size);
}

void cuda_foreign_closing(struct cuda_call *c, uint64_t p)
{
    CUDA_TAKE(c, FOREIGN_CLOSE, WIRE_DEVICE_UNKNOWN, 0, p);
}

void cuda_foreign_all(struct cuda_call *c, const cu_handle *resources, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        cuda_foreign(c, (uint64_t)resources[i], 0);
}

/* After the call: an UNDO takes back one record, not many. */
void cuda_foreign_close_all(struct cuda_call *c, const cu_handle *resources, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        CUDA_NOTE(c, FOREIGN_CLOSE, WIRE_DEVICE_UNKNOWN, 0, (uint64_t)resources[i]);
}

/* --- contexts --- */

static uint64_t primaries[WIRE_DEVICE_UNKNOWN]; /* the primary context of a device, as last retained */

static uint64_t primary_of(int device)
{
    return device >= 0 && device < (int)WIRE_DEVICE_UNKNOWN ? __atomic_load_n(&primaries[device], __ATOMIC_RELAXED) : 0;
}

void cuda_context_ended(struct cuda_call *c, cu_handle context)
{
    CUDA_NOTE(c, CONTEXT_END, WIRE_DEVICE_UNKNOWN, 0, (uint64_t)context, 0);
}

void cuda_primary_retained(struct cuda_call *c, cu_handle context, int device)
{
    (void)c;
    if (device >= 0 && device < (int)WIRE_DEVICE_UNKNOWN)
        __atomic_store_n(&primaries[device], (uint64_t)context, __ATOMIC_RELAXED);
}

/* A primary context that was never seen: all that the device holds by then is taken to be its. */
void cuda_primary_reset(struct cuda_call *c, int device)
{
    uint64_t context = primary_of(device);
    CUDA_NOTE(c, CONTEXT_END, cuda_device(c, device), 0, context, context == 0);
}

/* The last reference ends it; the driver tells whether it was the last. */
void cuda_primary_released(struct cuda_call *c, int device)
{
    unsigned flags = 0;
    int active = 1;
    if (cuda_driver.ask.cuDevicePrimaryCtxGetState &&
        cuda_driver.ask.cuDevicePrimaryCtxGetState(device, &flags, &active) == 0 && !active)
        cuda_primary_reset(c, device);
}
