/* For the stand-in for torch in tests/torch/fake: reports a block through libc10, as PyTorch's own allocator does. */
#include <cstddef>
#include <cstdint>

namespace c10
{
enum class DeviceType : int8_t { CPU = 0, CUDA = 1 };
struct Device {
    DeviceType type;
    int8_t index;
};
void reportMemoryUsageToProfiler(void *p, int64_t size, size_t allocated, size_t reserved, Device d);
} // namespace c10

extern "C" void report_block(void *p, int64_t size, int device)
{
    c10::reportMemoryUsageToProfiler(p, size, 0, 0, {c10::DeviceType::CUDA, (int8_t)device});
}
