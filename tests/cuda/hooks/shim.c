/* Another library that stands in front of the driver, as tools that are preloaded do: counts, and calls on by
 * RTLD_NEXT. */
#include "../include/cuda_abi.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static unsigned allocs;

CUresult cuMemAlloc_v2(CUdeviceptr *p, size_t size);
CUresult cuMemAlloc_v2(CUdeviceptr *p, size_t size)
{
    static CUresult (*next)(CUdeviceptr *, size_t);
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "cuMemAlloc_v2");
    allocs++;
    return next(p, size);
}

__attribute__((destructor)) static void end(void)
{
    if (getenv("SHIM"))
        fprintf(stderr, "shim: %u\n", allocs);
}
