/* Memory of others: IPC handles, external memory, graphics resources (none can be registered here). */
#include "sim.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define IPC_MAGIC 0x6370696d6973ull
struct ipc {
    uint64_t magic, pid, fd, bytes, address;
};

/* A plain allocation becomes a shared one the first time that somebody asks for its handle. */
API cuIpcGetMemHandle(CUipcMemHandle *out, CUdeviceptr address)
{
    BEGIN_CONTEXT;
    struct alloc *alloc = alloc_at(address);
    NEED(out && alloc && alloc->kind == A_PLAIN, INVALID_VALUE);
    if (alloc->fd < 0) {
        int fd = back_file(alloc->size);
        NEED(fd >= 0, OUT_OF_MEMORY);
        for (size_t done = 0; done < alloc->size;) {
            ssize_t n = pwrite(fd, (char *)alloc->address + done, alloc->size - done, (off_t)done);
            if (n <= 0)
                break;
            done += (size_t)n;
        }
        if (!back_map_file(fd, alloc->size, 0, (void *)alloc->address, PROT_READ | PROT_WRITE)) {
            close(fd);
            return CUDA_ERROR_MAP_FAILED;
        }
        alloc->fd = fd;
    }
    const struct ipc ipc = {IPC_MAGIC, (uint64_t)getpid(), (uint64_t)alloc->fd, alloc->size, address};
    memset(out, 0, sizeof *out);
    memcpy(out, &ipc, sizeof ipc);
    return CUDA_SUCCESS;
}

static CUresult ipc_open(CUdeviceptr *out, const CUipcMemHandle *handle, unsigned flags)
{
    struct CUctx_st *ctx;
    CUresult error = context_current(&ctx);
    if (error)
        return error;
    struct ipc ipc;
    memcpy(&ipc, handle, sizeof ipc);
    NEED(out && flags == 1 && ipc.magic == IPC_MAGIC && ipc.bytes && ipc.bytes < 1ull << 46, INVALID_VALUE);
    NEED(ipc.pid != (uint64_t)getpid(), INVALID_CONTEXT); /* not for the process that made it */
    char path[64];
    snprintf(path, sizeof path, "/proc/%llu/fd/%llu", (unsigned long long)ipc.pid, (unsigned long long)ipc.fd);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    NEED(fd >= 0, INVALID_VALUE);
    void *memory = back_map_file(fd, ipc.bytes, 0, NULL, PROT_READ | PROT_WRITE);
    close(fd);
    NEED(memory, MAP_FAILED);
    struct alloc *alloc = alloc_add((CUdeviceptr)memory, ipc.bytes, A_FOREIGN, ctx->device, ctx);
    NEED(alloc, OUT_OF_MEMORY);
    *out = alloc->address;
    return CUDA_SUCCESS;
}
API cuIpcOpenMemHandle(CUdeviceptr *out, CUipcMemHandle handle, unsigned flags)
{
    BEGIN;
    return ipc_open(out, &handle, flags);
}
API cuIpcOpenMemHandle_v2(CUdeviceptr *out, CUipcMemHandle handle, unsigned flags)
{
    BEGIN;
    return ipc_open(out, &handle, flags);
}

API cuIpcCloseMemHandle(CUdeviceptr address)
{
    BEGIN_CONTEXT;
    struct alloc *alloc = alloc_base(address);
    NEED(alloc && alloc->kind == A_FOREIGN, INVALID_VALUE);
    sim_finish_all();
    alloc_release(alloc);
    return CUDA_SUCCESS;
}

API cuIpcGetEventHandle(CUipcEventHandle *out, CUevent event)
{
    BEGIN_CONTEXT;
    NEED(out && event, INVALID_VALUE);
    return CUDA_ERROR_NOT_SUPPORTED;
}
API cuIpcOpenEventHandle(CUevent *out, CUipcEventHandle handle)
{
    BEGIN_CONTEXT;
    (void)handle;
    NEED(out, INVALID_VALUE);
    return CUDA_ERROR_NOT_SUPPORTED;
}

/* --- external memory: a file descriptor that can be mapped --- */

struct CUextMemory_st {
    int fd;
    size_t size;
    struct CUextMemory_st *next;
};
static struct CUextMemory_st *externals;

static int external_valid(const struct CUextMemory_st *external)
{
    for (const struct CUextMemory_st *e = externals; e; e = e->next)
        if (e == external)
            return 1;
    return 0;
}

/* On success the driver owns the descriptor. */
API cuImportExternalMemory(CUexternalMemory *out, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *desc)
{
    BEGIN_CONTEXT;
    NEED(out && desc && desc->type == 1 && desc->size, INVALID_VALUE);
    off_t end = lseek(desc->handle.fd, 0, SEEK_END);
    NEED(end >= 0 && (unsigned long long)end >= desc->size, INVALID_VALUE);
    struct CUextMemory_st *external = calloc(1, sizeof *external);
    NEED(external, OUT_OF_MEMORY);
    *external = (struct CUextMemory_st){desc->handle.fd, desc->size, externals};
    *out = externals = external;
    return CUDA_SUCCESS;
}

API cuExternalMemoryGetMappedBuffer(CUdeviceptr *out, CUexternalMemory external,
                                    const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *desc)
{
    BEGIN_CONTEXT;
    NEED(external_valid(external), INVALID_HANDLE);
    NEED(out && desc && desc->size && desc->offset <= external->size && desc->size <= external->size - desc->offset &&
             desc->offset % 4096 == 0,
         INVALID_VALUE);
    void *memory = back_map_file(external->fd, desc->size, desc->offset, NULL, PROT_READ | PROT_WRITE);
    NEED(memory, MAP_FAILED);
    struct alloc *alloc = alloc_add((CUdeviceptr)memory, desc->size, A_FOREIGN, ctx->device, ctx);
    NEED(alloc, OUT_OF_MEMORY);
    alloc->owner = external;
    *out = alloc->address;
    return CUDA_SUCCESS;
}
API cuExternalMemoryGetMappedMipmappedArray(CUmipmappedArray *out, CUexternalMemory external,
                                            const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC *desc)
{
    BEGIN_CONTEXT;
    NEED(external_valid(external), INVALID_HANDLE);
    NEED(out && desc, INVALID_VALUE);
    return CUDA_ERROR_NOT_SUPPORTED;
}

/* Mapped buffers are the program's to free with cuMemFree; here they end with their object at the latest. */
static int end_one(struct alloc *alloc, void *external)
{
    if (alloc->kind == A_FOREIGN && alloc->owner == external)
        alloc_release(alloc);
    return 0;
}
API cuDestroyExternalMemory(CUexternalMemory external)
{
    BEGIN_CONTEXT;
    NEED(external_valid(external), INVALID_HANDLE);
    alloc_each(end_one, external);
    for (struct CUextMemory_st **at = &externals; *at; at = &(*at)->next)
        if (*at == external) {
            *at = external->next;
            break;
        }
    close(external->fd);
    free(external);
    return CUDA_SUCCESS;
}

/* --- graphics: there is no graphics interface to register a resource with, so no handle is valid --- */

#define NO_RESOURCE(name)                                                                                              \
    API name(unsigned count)                                                                                           \
    {                                                                                                                  \
        BEGIN_CONTEXT;                                                                                                 \
        return count ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;                                                       \
    }
NO_RESOURCE(cuGraphicsMapResources)
NO_RESOURCE(cuGraphicsMapResources_ptsz)
NO_RESOURCE(cuGraphicsUnmapResources)
NO_RESOURCE(cuGraphicsUnmapResources_ptsz)
API cuGraphicsResourceGetMappedPointer(CUdeviceptr_v1 *out, unsigned *size)
{
    BEGIN_CONTEXT;
    NEED(out && size, INVALID_VALUE);
    return CUDA_ERROR_INVALID_HANDLE;
}
API cuGraphicsResourceGetMappedPointer_v2(CUdeviceptr *out, size_t *size)
{
    BEGIN_CONTEXT;
    NEED(out && size, INVALID_VALUE);
    return CUDA_ERROR_INVALID_HANDLE;
}
API cuGraphicsResourceGetMappedMipmappedArray(CUmipmappedArray *out)
{
    BEGIN_CONTEXT;
    NEED(out, INVALID_VALUE);
    return CUDA_ERROR_INVALID_HANDLE;
}
API cuGraphicsUnregisterResource(CUgraphicsResource resource)
{
    BEGIN_CONTEXT;
    (void)resource;
    return CUDA_ERROR_INVALID_HANDLE;
}
