/*
 * cuda_runtime.h: the part of the CUDA runtime's documented interface that the stand-in runtime implements, for
 * building the samples with a plain C++ compiler where no toolkit is installed. A __global__ function is then a host
 * function, and cudaLaunchKernel runs it on the stream, one call for each thread of the grid, over the simulated
 * devices' memory.
 */
#ifndef MEMPROF_TESTS_CUDA_RUNTIME_H
#define MEMPROF_TESTS_CUDA_RUNTIME_H

#include "cuda_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum cudaError {
    cudaSuccess = 0,
    cudaErrorInvalidValue = 1,
    cudaErrorMemoryAllocation = 2,
    cudaErrorInitializationError = 3,
    cudaErrorInvalidConfiguration = 9,
    cudaErrorInsufficientDriver = 35,
    cudaErrorInvalidDeviceFunction = 98,
    cudaErrorNoDevice = 100,
    cudaErrorInvalidDevice = 101,
    cudaErrorInvalidResourceHandle = 400,
    cudaErrorNotReady = 600,
    cudaErrorNotSupported = 801,
    cudaErrorUnknown = 999
} cudaError_t;
enum cudaMemcpyKind {
    cudaMemcpyHostToHost = 0,
    cudaMemcpyHostToDevice = 1,
    cudaMemcpyDeviceToHost = 2,
    cudaMemcpyDeviceToDevice = 3,
    cudaMemcpyDefault = 4
};
enum cudaMemPoolAttr {
    cudaMemPoolReuseFollowEventDependencies = 1,
    cudaMemPoolReuseAllowOpportunistic = 2,
    cudaMemPoolReuseAllowInternalDependencies = 3,
    cudaMemPoolAttrReleaseThreshold = 4,
    cudaMemPoolAttrReservedMemCurrent = 5,
    cudaMemPoolAttrReservedMemHigh = 6,
    cudaMemPoolAttrUsedMemCurrent = 7,
    cudaMemPoolAttrUsedMemHigh = 8
};
enum cudaMemAllocationType { cudaMemAllocationTypePinned = 1 };
enum cudaMemAllocationHandleType { cudaMemHandleTypeNone = 0, cudaMemHandleTypePosixFileDescriptor = 1 };
enum cudaMemLocationType { cudaMemLocationTypeDevice = 1 };
enum cudaStreamCaptureMode {
    cudaStreamCaptureModeGlobal = 0,
    cudaStreamCaptureModeThreadLocal = 1,
    cudaStreamCaptureModeRelaxed = 2
};
enum cudaGraphMemAttributeType {
    cudaGraphMemAttrUsedMemCurrent = 0,
    cudaGraphMemAttrUsedMemHigh = 1,
    cudaGraphMemAttrReservedMemCurrent = 2,
    cudaGraphMemAttrReservedMemHigh = 3
};
enum cudaChannelFormatKind {
    cudaChannelFormatKindSigned = 0,
    cudaChannelFormatKindUnsigned = 1,
    cudaChannelFormatKindFloat = 2
};

struct cudaMemLocation {
    enum cudaMemLocationType type;
    int id;
};
struct cudaMemPoolProps {
    enum cudaMemAllocationType allocType;
    enum cudaMemAllocationHandleType handleTypes;
    struct cudaMemLocation location;
    void *win32SecurityAttributes;
    size_t maxSize;
    unsigned short usage;
    unsigned char reserved[54];
};
struct cudaChannelFormatDesc {
    int x, y, z, w;
    enum cudaChannelFormatKind f;
};
struct cudaExtent {
    size_t width, height, depth;
};
struct cudaPitchedPtr {
    void *ptr;
    size_t pitch, xsize, ysize;
};
#ifdef __cplusplus
struct dim3 {
    unsigned x, y, z;
    dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c)
    {
    }
};
#else
typedef struct dim3 {
    unsigned x, y, z;
} dim3;
#endif

typedef CUstream cudaStream_t;
typedef CUevent cudaEvent_t;
typedef CUarray cudaArray_t;
typedef CUmipmappedArray cudaMipmappedArray_t;
typedef CUmemoryPool cudaMemPool_t;
typedef CUgraph cudaGraph_t;
typedef CUgraphExec cudaGraphExec_t;
typedef CUkernel cudaKernel_t;
typedef CUipcMemHandle cudaIpcMemHandle_t;
typedef void (*cudaHostFn_t)(void *data);
#define cudaStreamLegacy               ((cudaStream_t)0x1)
#define cudaStreamPerThread            ((cudaStream_t)0x2)
#define cudaStreamNonBlocking          1
#define cudaMemAttachGlobal            1
#define cudaHostAllocDefault           0
#define cudaIpcMemLazyEnablePeerAccess 1

/* name, parameters: what the stand-in exports */
cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaGetDevice(int *device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaDeviceGetAttribute(int *value, int attribute, int device);
cudaError_t cudaDeviceSynchronize(void);
cudaError_t cudaDeviceReset(void);
cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer);
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags);
cudaError_t cudaDriverGetVersion(int *version);
cudaError_t cudaRuntimeGetVersion(int *version);
cudaError_t cudaGetLastError(void);
cudaError_t cudaPeekAtLastError(void);
const char *cudaGetErrorString(cudaError_t error);
const char *cudaGetErrorName(cudaError_t error);
cudaError_t cudaMalloc(void **out, size_t size);
cudaError_t cudaMallocPitch(void **out, size_t *pitch, size_t width, size_t height);
cudaError_t cudaMalloc3D(struct cudaPitchedPtr *out, struct cudaExtent extent);
cudaError_t cudaMallocManaged(void **out, size_t size, unsigned flags);
cudaError_t cudaFree(void *address);
cudaError_t cudaMallocHost(void **out, size_t size);
cudaError_t cudaHostAlloc(void **out, size_t size, unsigned flags);
cudaError_t cudaFreeHost(void *address);
cudaError_t cudaHostRegister(void *address, size_t size, unsigned flags);
cudaError_t cudaHostUnregister(void *address);
cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total);
cudaError_t cudaMallocArray(cudaArray_t *out, const struct cudaChannelFormatDesc *desc, size_t width, size_t height,
                            unsigned flags);
cudaError_t cudaMalloc3DArray(cudaArray_t *out, const struct cudaChannelFormatDesc *desc, struct cudaExtent extent,
                              unsigned flags);
cudaError_t cudaFreeArray(cudaArray_t array);
cudaError_t cudaMallocMipmappedArray(cudaMipmappedArray_t *out, const struct cudaChannelFormatDesc *desc,
                                     struct cudaExtent extent, unsigned levels, unsigned flags);
cudaError_t cudaFreeMipmappedArray(cudaMipmappedArray_t array);
cudaError_t cudaMemcpy(void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind);
cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaMemcpy2D(void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width, size_t height,
                         enum cudaMemcpyKind kind);
cudaError_t cudaMemcpyPeer(void *dst, int dst_device, const void *src, int src_device, size_t bytes);
cudaError_t cudaMemset(void *address, int value, size_t bytes);
cudaError_t cudaMemsetAsync(void *address, int value, size_t bytes, cudaStream_t stream);
cudaError_t cudaStreamCreate(cudaStream_t *out);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags);
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *out);
cudaError_t cudaEventCreate(cudaEvent_t *out);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float *out, cudaEvent_t start, cudaEvent_t end);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaMallocAsync(void **out, size_t size, cudaStream_t stream);
cudaError_t cudaMallocFromPoolAsync(void **out, size_t size, cudaMemPool_t pool, cudaStream_t stream);
cudaError_t cudaFreeAsync(void *address, cudaStream_t stream);
cudaError_t cudaMemPoolCreate(cudaMemPool_t *out, const struct cudaMemPoolProps *props);
cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool);
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep);
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr what, void *value);
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr what, void *value);
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *out, int device);
cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *out, int device);
cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t graph, unsigned long long flags);
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaDeviceGetGraphMemAttribute(int device, enum cudaGraphMemAttributeType what, void *value);
cudaError_t cudaDeviceGraphMemTrim(int device);
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *data);
cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *out, void *address);
cudaError_t cudaIpcOpenMemHandle(void **out, cudaIpcMemHandle_t handle, unsigned flags);
cudaError_t cudaIpcCloseMemHandle(void *address);
#ifdef MEMPROF_TESTS_CUDART
cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared,
                             cudaStream_t stream);
#endif

#ifdef __cplusplus
}

#define __global__
#define __device__
#define __host__

struct memprof_host_index {
    dim3 thread, block, grid, size;
};
inline thread_local memprof_host_index memprof_host;
#define threadIdx memprof_host.thread
#define blockIdx  memprof_host.block
#define blockDim  memprof_host.size
#define gridDim   memprof_host.grid

template <class T> inline cudaError_t cudaMalloc(T **out, size_t size)
{
    return cudaMalloc((void **)out, size);
}
template <class T> inline cudaError_t cudaMallocHost(T **out, size_t size)
{
    return cudaMallocHost((void **)out, size);
}
template <class T> inline cudaError_t cudaMallocManaged(T **out, size_t size, unsigned flags = cudaMemAttachGlobal)
{
    return cudaMallocManaged((void **)out, size, flags);
}
template <class T> inline cudaError_t cudaMallocAsync(T **out, size_t size, cudaStream_t stream)
{
    return cudaMallocAsync((void **)out, size, stream);
}

#include <algorithm>
#include <tuple>
#include <utility>

/* A kernel's arguments are copied when it is launched, and the calls are made when the stream gets there: those of the
 * first block and of the last, which reach both ends of its memory. No test looks at what a kernel computes, and the
 * other blocks of a small net took seconds. */
template <class... A> struct memprof_launch {
    void (*kernel)(A...);
    std::tuple<A...> arguments;
    dim3 grid, block;
    static void run(void *data)
    {
        auto *launch = static_cast<memprof_launch *>(data);
        memprof_host.grid = launch->grid;
        memprof_host.size = launch->block;
        for (unsigned b = 0; b < launch->grid.x; b += std::max(1u, launch->grid.x - 1))
            for (unsigned t = 0; t < launch->block.x; t++) {
                memprof_host.block = dim3(b, 0, 0);
                memprof_host.thread = dim3(t, 0, 0);
                std::apply(launch->kernel, launch->arguments);
            }
        delete launch;
    }
};
template <class... A, size_t... I>
inline cudaError_t memprof_launch_on(void (*kernel)(A...), dim3 grid, dim3 block, void **arguments, cudaStream_t stream,
                                     std::index_sequence<I...>)
{
    auto *launch = new memprof_launch<A...>{kernel, std::tuple<A...>(*static_cast<A *>(arguments[I])...), grid, block};
    return cudaLaunchHostFunc(stream, memprof_launch<A...>::run, launch);
}
template <class... A>
inline cudaError_t cudaLaunchKernel(void (*kernel)(A...), dim3 grid, dim3 block, void **arguments, size_t = 0,
                                    cudaStream_t stream = nullptr)
{
    return memprof_launch_on(kernel, grid, block, arguments, stream, std::index_sequence_for<A...>());
}
#endif

#endif
