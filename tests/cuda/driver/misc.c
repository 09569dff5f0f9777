/* Modules and libraries (whose code nothing here can run), and entry points that answer "not supported". */
#include "sim.h"

#include <stdlib.h>
#include <string.h>

struct CUmod_st {
    size_t charged;
    int device;
    struct CUmod_st *next;
};
struct CUfunc_st {
    char name[1];
};
static struct CUmod_st *modules;
static struct CUfunc_st any_function;

static int module_valid(const void *module)
{
    for (const struct CUmod_st *m = modules; m; m = m->next)
        if (m == module)
            return 1;
    return 0;
}

/* A module takes a unit of device memory that no allocation call shows, as with the real driver. */
static CUresult module_load(void *out, const void *image)
{
    struct CUctx_st *ctx;
    CUresult error = context_current(&ctx);
    if (error)
        return error;
    NEED(out && image, INVALID_VALUE);
    struct CUmod_st *module = calloc(1, sizeof *module);
    NEED(module, OUT_OF_MEMORY);
    if (device_take(ctx->device, 2 * MIB)) {
        free(module);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *module = (struct CUmod_st){2 * MIB, ctx->device, modules};
    modules = module;
    *(void **)out = module;
    return CUDA_SUCCESS;
}

static CUresult module_unload(void *module)
{
    NEED(module_valid(module), INVALID_HANDLE);
    for (struct CUmod_st **at = &modules; *at; at = &(*at)->next)
        if (*at == module) {
            struct CUmod_st *gone = *at;
            *at = gone->next;
            device_give(gone->device, gone->charged);
            free(gone);
            break;
        }
    return CUDA_SUCCESS;
}

API cuModuleLoad(CUmodule *out, const char *path)
{
    BEGIN;
    NEED(path, INVALID_VALUE);
    (void)out;
    return CUDA_ERROR_FILE_NOT_FOUND;
}
API cuModuleLoadData(CUmodule *out, const void *image)
{
    BEGIN;
    return module_load(out, image);
}
API cuModuleLoadDataEx(CUmodule *out, const void *image)
{
    BEGIN;
    return module_load(out, image);
}
API cuModuleLoadFatBinary(CUmodule *out, const void *image)
{
    BEGIN;
    return module_load(out, image);
}
API cuModuleUnload(CUmodule module)
{
    BEGIN_CONTEXT;
    return module_unload(module);
}
API cuLibraryLoadData(CUlibrary *out, const void *image)
{
    BEGIN;
    return module_load(out, image);
}
API cuLibraryLoadFromFile(CUlibrary *out, const char *path)
{
    BEGIN;
    NEED(path, INVALID_VALUE);
    (void)out;
    return CUDA_ERROR_FILE_NOT_FOUND;
}
API cuLibraryUnload(CUlibrary library)
{
    BEGIN;
    return module_unload(library);
}
API cuLibraryGetModule(CUmodule *out, CUlibrary library)
{
    BEGIN;
    NEED(out && module_valid(library), INVALID_HANDLE);
    *out = (CUmodule)library;
    return CUDA_SUCCESS;
}
API cuModuleGetFunction(CUfunction *out, CUmodule module, const char *name)
{
    BEGIN_CONTEXT;
    NEED(out && name, INVALID_VALUE);
    NEED(module_valid(module), INVALID_HANDLE);
    *out = &any_function;
    return CUDA_SUCCESS;
}
API cuLibraryGetKernel(CUkernel *out, CUlibrary library, const char *name)
{
    BEGIN;
    NEED(out && name, INVALID_VALUE);
    NEED(module_valid(library), INVALID_HANDLE);
    *out = (CUkernel)&any_function;
    return CUDA_SUCCESS;
}
API cuKernelGetFunction(CUfunction *out, CUkernel kernel)
{
    BEGIN;
    NEED(out && kernel, INVALID_VALUE);
    *out = &any_function;
    return CUDA_SUCCESS;
}
API cuModuleGetGlobal(CUdeviceptr_v1 *out, unsigned *bytes, CUmodule module)
{
    BEGIN_CONTEXT;
    (void)out;
    (void)bytes;
    NEED(module_valid(module), INVALID_HANDLE);
    return CUDA_ERROR_NOT_FOUND;
}
API cuModuleGetGlobal_v2(CUdeviceptr *out, size_t *bytes, CUmodule module)
{
    BEGIN_CONTEXT;
    (void)out;
    (void)bytes;
    NEED(module_valid(module), INVALID_HANDLE);
    return CUDA_ERROR_NOT_FOUND;
}
API cuProfilerStart(void)
{
    BEGIN_CONTEXT;
    return CUDA_SUCCESS;
}
API cuProfilerStop(void)
{
    BEGIN_CONTEXT;
    return CUDA_SUCCESS;
}

#define NOT_SUPPORTED(name)                                                                                            \
    API name(void)                                                                                                     \
    {                                                                                                                  \
        BEGIN;                                                                                                         \
        return CUDA_ERROR_NOT_SUPPORTED;                                                                               \
    }
NOT_SUPPORTED(cuLinkCreate)
NOT_SUPPORTED(cuLinkCreate_v2)
NOT_SUPPORTED(cuLinkComplete)
NOT_SUPPORTED(cuMemMapArrayAsync)
NOT_SUPPORTED(cuMemMapArrayAsync_ptsz)
NOT_SUPPORTED(cuMemBatchDecompressAsync)
NOT_SUPPORTED(cuMemBatchDecompressAsync_ptsz)
NOT_SUPPORTED(cuCtxFromGreenCtx)
NOT_SUPPORTED(cuGreenCtxCreate)
NOT_SUPPORTED(cuGreenCtxDestroy)
NOT_SUPPORTED(cuGreenCtxGetDevResource)
NOT_SUPPORTED(cuGreenCtxGetId)
NOT_SUPPORTED(cuGreenCtxRecordEvent)
NOT_SUPPORTED(cuGreenCtxStreamCreate)
NOT_SUPPORTED(cuGreenCtxWaitEvent)
NOT_SUPPORTED(cuLogsCurrent)
NOT_SUPPORTED(cuLogsDumpToFile)
NOT_SUPPORTED(cuLogsDumpToMemory)
NOT_SUPPORTED(cuLogsRegisterCallback)
NOT_SUPPORTED(cuLogsUnregisterCallback)
