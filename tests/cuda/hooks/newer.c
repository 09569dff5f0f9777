/*
 * A driver newer than cuda.def, as libcuda.so.1: from 14.0 on cuMemAlloc means a variant with one more argument, which
 * it does not export, and there is a function of which nobody has heard.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define API __attribute__((visibility("default")))

API int cuInit(unsigned flags);
API int cuMemAlloc_v2(uint64_t *p, size_t size);
API int cuGetProcAddress_v2(const char *name, void **p, int version, uint64_t flags, int *status);

int cuInit(unsigned flags)
{
    return flags != 0;
}

int cuMemAlloc_v2(uint64_t *p, size_t size)
{
    *p = 0x100000 + size;
    return 0;
}

static int alloc_v3(uint64_t *p, size_t size, uint64_t more)
{
    *p = 0x200000 + size + more;
    return 0;
}

/* known under this name since 11.2, but this driver exports it under none */
static int alloc_async(uint64_t *p, size_t size, void *stream)
{
    *p = 0x300000 + size + (uint64_t)stream;
    return 0;
}

int cuGetProcAddress_v2(const char *name, void **p, int version, uint64_t flags, int *status)
{
    *p = NULL;
    if (flags > 2)
        return 1;
    if (strcmp(name, "cuMemAlloc") == 0)
        *p = version >= 14000 ? (void *)alloc_v3 : (void *)cuMemAlloc_v2;
    if (strcmp(name, "cuMemAllocAsync") == 0)
        *p = (void *)alloc_async;
    if (strcmp(name, "cuFuture") == 0)
        *p = (void *)cuInit;
    if (strcmp(name, "cuGetProcAddress") == 0)
        *p = (void *)cuGetProcAddress_v2;
    if (status)
        *status = *p == NULL;
    return *p ? 0 : 500;
}
