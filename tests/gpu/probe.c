/* Is there a GPU? Prints "name, driver, bytes" of the first one, or why there is none (status 1). Needs no toolkit. */
#include <dlfcn.h>
#include <stdio.h>

int main(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!driver) {
        printf("no CUDA driver: %s\n", dlerror());
        return 1;
    }
    int (*init)(unsigned), (*version)(int *), (*name)(char *, int, int), (*total)(size_t *, int);
    *(void **)&init = dlsym(driver, "cuInit");
    *(void **)&version = dlsym(driver, "cuDriverGetVersion");
    *(void **)&name = dlsym(driver, "cuDeviceGetName");
    *(void **)&total = dlsym(driver, "cuDeviceTotalMem_v2");
    if (!init || !version || !name || !total) {
        printf("libcuda.so.1 is no CUDA driver\n");
        return 1;
    }
    int error = init(0), number = 0;
    if (error) {
        printf("the CUDA driver does not start: error %d\n", error);
        return 1;
    }
    char text[256] = "";
    size_t bytes = 0;
    if (version(&number) || name(text, sizeof text, 0) || total(&bytes, 0)) {
        printf("the CUDA driver has no device\n");
        return 1;
    }
    printf("%s, driver for CUDA %d.%d, %zu MiB\n", text, number / 1000, number % 1000 / 10, bytes >> 20);
    return 0;
}
