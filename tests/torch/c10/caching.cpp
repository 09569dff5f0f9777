/*
 * A caching allocator as PyTorch's: segments of 2 MiB from the driver (whole ones for large blocks; or, expandable,
 * chunks of 2 MiB mapped one after the other), blocks of multiples of 512 bytes from them, each reported through
 * libc10. Prints what it knows of itself: peaks per device, counts, and what libc10 was told.
 *
 *     caching plain|expandable
 */
#include <cuda.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace c10
{
enum class DeviceType : int8_t { CPU = 0, CUDA = 1 };
struct Device {
    DeviceType type;
    int8_t index;
};
extern long reported_count, reported_bytes;
#if SIGNATURE == 1
void reportMemoryUsageToProfiler(void *p, int64_t size, Device d);
static void report(void *p, int64_t size, size_t, size_t, Device d)
{
    reportMemoryUsageToProfiler(p, size, d);
}
#elif SIGNATURE == 2
void reportMemoryUsageToProfiler(void *p, int64_t size, int64_t allocated, int64_t reserved, Device d);
static void report(void *p, int64_t size, size_t a, size_t r, Device d)
{
    reportMemoryUsageToProfiler(p, size, (int64_t)a, (int64_t)r, d);
}
#else
void reportMemoryUsageToProfiler(void *p, int64_t size, size_t allocated, size_t reserved, Device d);
static void report(void *p, int64_t size, size_t a, size_t r, Device d)
{
    reportMemoryUsageToProfiler(p, size, a, r, d);
}
#endif
} // namespace c10

static const size_t chunk = 2 << 20;

static void check(CUresult r, const char *what)
{
    if (r != CUDA_SUCCESS) {
        fprintf(stderr, "%s: %d\n", what, (int)r);
        exit(1);
    }
}
#define CHECK(call) check((call), #call)

struct allocator {
    int device = 0;
    bool expandable = false;
    CUcontext context = nullptr;
    CUdeviceptr base = 0, next = 0, end = 0, limit = 0; /* of the segment that is being handed out */
    std::vector<CUdeviceptr> segments;
    size_t active = 0, reserved = 0, active_peak = 0, reserved_peak = 0, count = 0;

    void grow(size_t size)
    {
        if (!expandable) {
            size_t segment = size > chunk ? (size + chunk - 1) / chunk * chunk : chunk;
            CHECK(cuMemAlloc(&base, segment));
            segments.push_back(base);
            next = base;
            end = base + segment;
            reserved += segment;
            return;
        }
        if (!base) {
            CHECK(cuMemAddressReserve(&base, 64 * chunk, 0, 0, 0));
            next = end = base;
            limit = base + 64 * chunk;
        }
        while (next + size > end) {
            CUmemAllocationProp prop;
            CUmemGenericAllocationHandle handle;
            memset(&prop, 0, sizeof prop);
            prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
            prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
            prop.location.id = device;
            if (end + chunk > limit)
                exit(1);
            CHECK(cuMemCreate(&handle, chunk, &prop, 0));
            CHECK(cuMemMap(end, chunk, 0, handle, 0));
            CHECK(cuMemRelease(handle));
            end += chunk;
            reserved += chunk;
        }
    }

    CUdeviceptr take(size_t size)
    {
        size = (size + 511) / 512 * 512;
        CHECK(cuCtxSetCurrent(context));
        if (next + size > end)
            grow(size);
        if (reserved > reserved_peak)
            reserved_peak = reserved;
        CUdeviceptr p = next;
        next += size;
        active += size;
        count++;
        if (active > active_peak)
            active_peak = active;
        c10::report((void *)(uintptr_t)p, (int64_t)size, active, reserved, {c10::DeviceType::CUDA, (int8_t)device});
        return p;
    }

    void give(CUdeviceptr p, size_t size)
    {
        size = (size + 511) / 512 * 512;
        active -= size;
        c10::report((void *)(uintptr_t)p, -(int64_t)size, active, reserved, {c10::DeviceType::CUDA, (int8_t)device});
    }
};

int main(int argc, char **argv)
{
    allocator of[2];
    CHECK(cuInit(0));
    for (int d = 0; d < 2; d++) {
        CUdevice device;
        CHECK(cuDeviceGet(&device, d));
        CHECK(cuDevicePrimaryCtxRetain(&of[d].context, device));
        of[d].device = d;
        of[d].expandable = argc > 1 && strcmp(argv[1], "expandable") == 0;
    }
    for (int step = 0; step < 3; step++)
        for (int d = 0; d < 2; d++) {
            std::vector<CUdeviceptr> kept;
            for (int i = 1; i <= 20; i++)
                kept.push_back(of[d].take((size_t)(d + 1) * 10000 * (size_t)i));
            CUdeviceptr large = of[d].take(5 << 20);
            for (int i = 1; i <= 20; i++)
                if (step < 2 || i % 4)
                    of[d].give(kept[(size_t)i - 1], (size_t)(d + 1) * 10000 * (size_t)i);
            of[d].give(large, 5 << 20);
        }
    c10::report(malloc(1), 100, 0, 0, {c10::DeviceType::CPU, 0}); /* the host's: malloc's hook has it */
    for (int d = 0; d < 2; d++)
        printf("cuda:%d|%zu|%zu|%zu|%zu\n", d, of[d].count, of[d].active_peak, of[d].active, of[d].reserved_peak);
    printf("reported %ld calls, %ld bytes\n", c10::reported_count, c10::reported_bytes);
    return 0;
}
