/*
 * Stands in for PyTorch's libc10.so: the function through which its caching allocators report each block, in one of the
 * three signatures that it has had (SIGNATURE 1: the oldest, 3: the newest). Counts its calls, for the program to
 * compare.
 */
#include <cstddef>
#include <cstdint>

namespace c10
{
enum class DeviceType : int8_t { CPU = 0, CUDA = 1 };
struct Device {
    DeviceType type;
    int8_t index;
};

#define EXPORT __attribute__((visibility("default")))
EXPORT long reported_count, reported_bytes;

static void count(void *p, int64_t size)
{
    reported_count += p != nullptr;
    reported_bytes += size;
}

#if SIGNATURE == 1
EXPORT void reportMemoryUsageToProfiler(void *p, int64_t size, Device)
#elif SIGNATURE == 2
EXPORT void reportMemoryUsageToProfiler(void *p, int64_t size, int64_t, int64_t, Device)
#else
EXPORT void reportMemoryUsageToProfiler(void *p, int64_t size, size_t, size_t, Device)
#endif
{
    count(p, size);
}
} // namespace c10
