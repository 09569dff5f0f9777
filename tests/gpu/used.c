/* Bytes in use on the first GPU, by anybody, as NVML says; status 1 where it does not. Needs no toolkit. */
#include <dlfcn.h>
#include <stdio.h>

int main(void)
{
    struct {
        unsigned long long total, free, used;
    } memory;
    int (*init)(void), (*by_index)(unsigned, void **), (*ask)(void *, void *);
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW), *device;
    if (!library)
        return 1;
    *(void **)&init = dlsym(library, "nvmlInit_v2");
    *(void **)&by_index = dlsym(library, "nvmlDeviceGetHandleByIndex_v2");
    *(void **)&ask = dlsym(library, "nvmlDeviceGetMemoryInfo");
    if (!init || !by_index || !ask || init() || by_index(0, &device) || ask(device, &memory))
        return 1;
    printf("%llu\n", memory.used);
    return 0;
}
