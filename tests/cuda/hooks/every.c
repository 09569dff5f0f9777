/*
 * Calls the driver in every shape that has a wrapper, and says which handle is which ("= NAME VALUE"), so that the
 * records can be compared with a text. Linked with libcuda, or (LOOK_UP) all by dlsym, or (PROC) by cuGetProcAddress.
 */
#include "../include/cuda_abi.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#if defined LOOK_UP || defined PROC
#define X(name, version, parameters) static CUresult(*name) parameters;
#else
#define X(name, version, parameters) CUresult name parameters;
#endif
#include "every.def"
#undef X

#ifdef PROC
static void base_name(char *to, const char *from)
{
    size_t n = 0;
    for (; from[n] && !(from[n] == '_' && from[n + 1] == 'v'); n++)
        to[n] = from[n];
    to[n] = 0;
}
#endif

static void bind(void)
{
#if defined LOOK_UP || defined PROC
#ifdef DEFAULT
    void *driver = RTLD_DEFAULT;
    if (dlsym(driver, "cuInit") == NULL) {
#else
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!driver) {
#endif
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
#endif
#ifdef LOOK_UP
#define X(name, version, parameters) name = (CUresult(*) parameters)dlsym(driver, #name);
#include "every.def"
#undef X
#endif
#ifdef PROC
    char base[64];
    int status;
    CUresult (*proc)(const char *, void **, int, cuuint64_t, int *);
    CUresult (*proc1)(const char *, void **, int, cuuint64_t);
    proc = (CUresult(*)(const char *, void **, int, cuuint64_t, int *))dlsym(driver, "cuGetProcAddress_v2");
    proc1 = (CUresult(*)(const char *, void **, int, cuuint64_t))dlsym(driver, "cuGetProcAddress");
#define X(name, version, parameters)                                                                                   \
    base_name(base, #name);                                                                                            \
    if (proc1 && getenv("PROC_V1"))                                                                                    \
        proc1(base, (void **)&name, version, 0);                                                                       \
    else                                                                                                               \
        proc(base, (void **)&name, version, 0, &status);
#include "every.def"
#undef X
#endif
#if defined LOOK_UP || defined PROC
#define X(name, version, parameters)                                                                                   \
    if (!name) {                                                                                                       \
        fprintf(stderr, "%s is not there\n", #name);                                                                   \
        exit(1);                                                                                                       \
    }
#include "every.def"
#undef X
#endif
}

static void good(CUresult result, const char *what, int line)
{
    if (result) {
        fprintf(stderr, "every.c:%d: %s: %d\n", line, what, result);
        exit(1);
    }
}
#define GOOD(call) good(call, #call, __LINE__)
#define SAY(name)  printf("= %s %llx\n", #name, (unsigned long long)(name))

#define MB (1ul << 20)

int main(void)
{
    CUcontext primary, other;
    CUstream stream;
    CUdeviceptr plain, pitched, managed, small, pooled, own, node, captured, reserved;
    CUmemoryPool pool, standard;
    CUmemGenericAllocationHandle physical, again;
    CUarray array, cube;
    CUmipmappedArray mipmapped;
    CUgraph graph, capture;
    CUgraphNode graph_node;
    CUgraphExec exec, exec2;
    void *pinned, *host;
    size_t pitch, free_bytes, total_bytes;

    bind();
    GOOD(cuInit(0));
    GOOD(cuDevicePrimaryCtxRetain(&primary, 0));
    GOOD(cuCtxSetCurrent(primary));
    SAY(primary);
    GOOD(cuStreamCreate(&stream, 1));
    SAY(stream);
    GOOD(cuCtxCreate_v2(&other, 0, 0));
    SAY(other);
    GOOD(cuCtxSetCurrent(primary));
    GOOD(cuGraphCreate(&graph, 0));
    SAY(graph);

    GOOD(cuMemAlloc_v2(&plain, 1000));
    SAY(plain);
    GOOD(cuMemAllocPitch_v2(&pitched, &pitch, 100, 10, 4));
    SAY(pitched);
    SAY(pitch * 10);
    GOOD(cuMemAllocManaged(&managed, 2000, 1));
    SAY(managed);
    GOOD(cuMemAllocHost_v2(&pinned, 3000));
    SAY(pinned);
    GOOD(cuMemHostAlloc(&host, 4000, 0));
    SAY(host);
    GOOD(cuMemGetInfo_v2(&free_bytes, &total_bytes));
    SAY(free_bytes);
    SAY(total_bytes);
    if (cuMemAlloc_v2(&small, total_bytes + 1) != 2 || cuMemFree_v2(12345) == 0)
        return 1;

    GOOD(cuMemcpyHtoD_v2(plain, pinned, 1000));
    GOOD(cuMemcpyDtoHAsync_v2(host, plain, 999, stream));
    GOOD(cuMemcpyDtoD_v2(plain, managed, 100));
    GOOD(cuMemcpy(plain, (CUdeviceptr)host, 77));
    GOOD(cuMemsetD8_v2(plain, 1, 1000));
    GOOD(cuMemsetD2D32_v2(pitched, pitch, 1, 20, 10));
    GOOD(cuMemsetD32Async(plain, 1, 25, stream));
    CUDA_MEMCPY2D copy = {
        .srcMemoryType = 1, .srcHost = pinned, .srcPitch = 100, .dstMemoryType = 2, .dstDevice = pitched};
    copy.dstPitch = pitch;
    copy.WidthInBytes = 100;
    copy.Height = 9;
    GOOD(cuMemcpy2D_v2(&copy));

    CUDA_ARRAY_DESCRIPTOR flat = {.Width = 64, .Height = 32, .Format = 0x20, .NumChannels = 4};
    GOOD(cuArrayCreate_v2(&array, &flat));
    SAY(array);
    GOOD(cuMemcpyHtoA_v2(array, 0, pinned, 1024));
    CUDA_ARRAY3D_DESCRIPTOR solid = {.Width = 8, .Height = 8, .Depth = 8, .Format = 0x10, .NumChannels = 2};
    GOOD(cuArray3DCreate_v2(&cube, &solid));
    SAY(cube);
    GOOD(cuMipmappedArrayCreate(&mipmapped, &solid, 3));
    SAY(mipmapped);

    GOOD(cuDeviceGetDefaultMemPool(&standard, 0));
    SAY(standard);
    GOOD(cuMemAllocAsync(&pooled, 5000, stream));
    SAY(pooled);
    CUmemPoolProps properties = {.allocType = 1, .location = {1, 0}};
    GOOD(cuMemPoolCreate(&pool, &properties));
    SAY(pool);
    GOOD(cuMemAllocFromPoolAsync(&own, 6000, pool, NULL));
    SAY(own);
    GOOD(cuMemFreeAsync(own, stream));
    GOOD(cuStreamSynchronize(stream));
    GOOD(cuMemFreeAsync(pooled, NULL));
    GOOD(cuCtxSynchronize());
    GOOD(cuMemPoolTrimTo(pool, 0));

    CUmemAllocationProp physical_properties = {.type = 1, .location = {1, 0}};
    GOOD(cuMemAddressReserve(&reserved, 8 * MB, 0, 0, 0));
    SAY(reserved);
    GOOD(cuMemCreate(&physical, 2 * MB, &physical_properties, 0));
    SAY(physical);
    GOOD(cuMemMap(reserved, 2 * MB, 0, physical, 0));
    GOOD(cuMemRetainAllocationHandle(&again, (void *)reserved));
    GOOD(cuMemRelease(again));
    GOOD(cuMemRelease(physical));
    GOOD(cuMemUnmap(reserved, 2 * MB));
    GOOD(cuMemAddressFree(reserved, 8 * MB));

    CUDA_MEM_ALLOC_NODE_PARAMS params = {.poolProps = properties, .bytesize = 7000};
    GOOD(cuGraphAddMemAllocNode(&graph_node, graph, NULL, 0, &params));
    node = params.dptr;
    SAY(node);
    CUgraphNode first = graph_node;
    GOOD(cuGraphAddMemFreeNode(&graph_node, graph, &first, 1, node));
    GOOD(cuGraphInstantiateWithFlags(&exec, graph, 0));
    SAY(exec);
    GOOD(cuGraphLaunch(exec, stream));
    GOOD(cuStreamBeginCapture_v2(stream, 0));
    GOOD(cuMemAllocAsync(&captured, 8000, stream));
    SAY(captured);
    GOOD(cuMemsetD32Async(plain, 1, 30, stream));
    GOOD(cuMemFreeAsync(captured, stream));
    GOOD(cuStreamEndCapture(stream, &capture));
    SAY(capture);
    GOOD(cuGraphInstantiateWithFlags(&exec2, capture, 0));
    SAY(exec2);
    /* from here on handles may come back: none that is told of is new */
    GOOD(cuGraphExecDestroy(exec2));
    GOOD(cuGraphExecDestroy(exec));
    GOOD(cuGraphDestroy(capture));
    GOOD(cuGraphDestroy(graph));

    GOOD(cuArrayDestroy(array));
    GOOD(cuArrayDestroy(cube));
    GOOD(cuMipmappedArrayDestroy(mipmapped));
    GOOD(cuMemPoolDestroy(pool));
    GOOD(cuMemFree_v2(plain));
    GOOD(cuMemFree_v2(managed));
    GOOD(cuMemFreeHost(pinned));
    GOOD(cuCtxSetCurrent(other));
    GOOD(cuMemAlloc_v2(&small, 9000));
    SAY(small);
    GOOD(cuCtxDestroy_v2(other));
    GOOD(cuDevicePrimaryCtxRetain(&primary, 0));
    GOOD(cuDevicePrimaryCtxRelease_v2(0));
    GOOD(cuDevicePrimaryCtxRelease_v2(0));
    GOOD(cuDevicePrimaryCtxRetain(&primary, 0));
    GOOD(cuDevicePrimaryCtxReset_v2(0));
    return 0;
}
