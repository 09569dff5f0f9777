/*
 * A stand-in for libcudart.so: the documented runtime functions that the samples and tests use, over whatever
 * libcuda.so.1 is found. It reaches the driver as the real one does: dlopen, one dlsym of cuGetProcAddress_v2, then a
 * look-up of every name and version up front; drivers without that function are asked by dlsym. A failed start closes
 * libcuda again. Kernels are device code, which a simulated driver cannot run: a launch reaches cuLaunchKernel and does
 * nothing there.
 */
#define MEMPROF_TESTS_CUDART
#include "../include/cuda_runtime.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

/* --- the driver's functions, numbered as in symbols.def --- */
enum {
#define X(base, form, version, symbol) AT_##symbol,
#include "../driver/symbols.def"
#undef X
    FUNCTIONS
};
static const struct {
    const char *base;
    int per_thread, version;
    const char *symbol;
} names[FUNCTIONS] = {
#define plain                          0
#define per_thread                     2
#define X(base, form, version, symbol) {#base, form, version, #symbol},
#include "../driver/symbols.def"
#undef X
#undef plain
#undef per_thread
};
static void *functions[FUNCTIONS];

/* Calls a driver function with arguments of the types given: none of them is variadic. */
#define DRIVER(symbol, types) ((CUresult(*) types)functions[AT_##symbol])
#define HAS(symbol)           (functions[AT_##symbol] != NULL)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int started;
static cudaError_t start_error;
static CUcontext primaries[64];
static __thread int current_device;
static __thread cudaError_t last_error;

static cudaError_t keep(int error)
{
    if (error)
        last_error = (cudaError_t)error;
    return (cudaError_t)error;
}

static cudaError_t start(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY);
    if (!driver)
        return cudaErrorInsufficientDriver;
    CUresult (*lookup)(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *);
    *(void **)&lookup = dlsym(driver, "cuGetProcAddress_v2");
    for (int i = 0; i < FUNCTIONS; i++) {
        CUdriverProcAddressQueryResult status;
        if (!lookup)
            functions[i] = dlsym(driver, names[i].symbol);
        else if (lookup(names[i].base, &functions[i], names[i].version, (cuuint64_t)names[i].per_thread, &status))
            functions[i] = NULL;
    }
    int error = HAS(cuInit) ? DRIVER(cuInit, (unsigned))(0) : cudaErrorInsufficientDriver;
    if (error) {
        memset(functions, 0, sizeof functions);
        dlclose(driver);
    }
    return (cudaError_t)error;
}

/* The device's primary context, made current unless the program has one of its own current. */
static cudaError_t ready(void)
{
    pthread_mutex_lock(&lock);
    if (!started) {
        start_error = start();
        started = 1;
    }
    cudaError_t error = start_error;
    CUcontext now = NULL;
    if (!error && !primaries[current_device]) {
        error = (cudaError_t)DRIVER(cuDevicePrimaryCtxRetain, (CUcontext *, CUdevice))(&primaries[current_device],
                                                                                       current_device);
        if (error)
            primaries[current_device] = NULL;
        else
            error = (cudaError_t)DRIVER(cuCtxSetCurrent, (CUcontext))(primaries[current_device]);
    }
    if (!error)
        error = (cudaError_t)DRIVER(cuCtxGetCurrent, (CUcontext *))(&now);
    if (!error && !now)
        error = (cudaError_t)DRIVER(cuCtxSetCurrent, (CUcontext))(primaries[current_device]);
    pthread_mutex_unlock(&lock);
    return keep(error);
}

#define READY                                                                                                          \
    do {                                                                                                               \
        cudaError_t error_ = ready();                                                                                  \
        if (error_)                                                                                                    \
            return error_;                                                                                             \
    } while (0)
/* One driver call is the whole function: parameters, the driver's types, arguments. */
#define FORWARD(name, parameters, symbol, types, arguments)                                                            \
    EXPORT cudaError_t name parameters                                                                                 \
    {                                                                                                                  \
        READY;                                                                                                         \
        return keep(HAS(symbol) ? (int)DRIVER(symbol, types) arguments : cudaErrorNotSupported);                       \
    }
/* ... and its form for programs whose default stream is the thread's own. */
#define FORWARD_STREAM(name, parameters, symbol, types, arguments)                                                     \
    FORWARD(name, parameters, symbol, types, arguments)                                                                \
    cudaError_t name##_ptsz parameters;                                                                                \
    FORWARD(name##_ptsz, parameters, symbol##_ptsz, types, arguments)

/* --- devices --- */

EXPORT cudaError_t cudaGetDeviceCount(int *count)
{
    pthread_mutex_lock(&lock);
    if (!started) {
        start_error = start();
        started = 1;
    }
    cudaError_t error = start_error;
    pthread_mutex_unlock(&lock);
    if (count)
        *count = 0;
    return keep(error ? (int)error : (int)DRIVER(cuDeviceGetCount, (int *))(count));
}

EXPORT cudaError_t cudaGetDevice(int *device)
{
    READY;
    if (!device)
        return keep(cudaErrorInvalidValue);
    *device = current_device;
    return cudaSuccess;
}

EXPORT cudaError_t cudaSetDevice(int device)
{
    int count;
    cudaError_t error = cudaGetDeviceCount(&count);
    if (error)
        return error;
    if (device < 0 || device >= count || device >= 64)
        return keep(cudaErrorInvalidDevice);
    current_device = device;
    READY;
    return keep((int)DRIVER(cuCtxSetCurrent, (CUcontext))(primaries[device]));
}

EXPORT cudaError_t cudaDeviceReset(void)
{
    READY;
    pthread_mutex_lock(&lock);
    int error = (int)(HAS(cuDevicePrimaryCtxReset_v2) ? DRIVER(cuDevicePrimaryCtxReset_v2, (CUdevice))(current_device)
                                                      : DRIVER(cuDevicePrimaryCtxReset, (CUdevice))(current_device));
    if (HAS(cuDevicePrimaryCtxRelease_v2))
        DRIVER(cuDevicePrimaryCtxRelease_v2, (CUdevice))(current_device);
    else
        DRIVER(cuDevicePrimaryCtxRelease, (CUdevice))(current_device);
    primaries[current_device] = NULL;
    pthread_mutex_unlock(&lock);
    return keep(error);
}

EXPORT cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags)
{
    READY;
    int mine = current_device;
    cudaError_t error = cudaSetDevice(peer); /* its context must exist */
    if (!error)
        error = cudaSetDevice(mine);
    return error ? error : keep((int)DRIVER(cuCtxEnablePeerAccess, (CUcontext, unsigned))(primaries[peer], flags));
}

FORWARD(cudaDeviceGetAttribute, (int *value, int attribute, int device), cuDeviceGetAttribute, (int *, int, CUdevice),
        (value, attribute, device))
FORWARD(cudaDeviceSynchronize, (void), cuCtxSynchronize, (void), ())
FORWARD(cudaDeviceCanAccessPeer, (int *can, int device, int peer), cuDeviceCanAccessPeer, (int *, CUdevice, CUdevice),
        (can, device, peer))
FORWARD(cudaDriverGetVersion, (int *version), cuDriverGetVersion, (int *), (version))
EXPORT cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = 13000;
    return cudaSuccess;
}

/* --- errors --- */

EXPORT cudaError_t cudaPeekAtLastError(void)
{
    return last_error;
}
EXPORT cudaError_t cudaGetLastError(void)
{
    cudaError_t error = last_error;
    last_error = cudaSuccess;
    return error;
}
static const struct {
    cudaError_t error;
    const char *name, *text;
} error_names[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInitializationError, "cudaErrorInitializationError", "initialization error"},
    {cudaErrorInsufficientDriver, "cudaErrorInsufficientDriver",
     "CUDA driver version is insufficient for CUDA runtime version"},
    {cudaErrorInvalidDeviceFunction, "cudaErrorInvalidDeviceFunction", "invalid device function"},
    {cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {cudaErrorNotSupported, "cudaErrorNotSupported", "operation not supported"},
};
static const char *error_text(cudaError_t error, int name)
{
    for (size_t i = 0; i < sizeof error_names / sizeof *error_names; i++)
        if (error_names[i].error == error)
            return name ? error_names[i].name : error_names[i].text;
    return name ? "cudaErrorUnknown" : "unknown error";
}
EXPORT const char *cudaGetErrorName(cudaError_t error)
{
    return error_text(error, 1);
}
EXPORT const char *cudaGetErrorString(cudaError_t error)
{
    return error_text(error, 0);
}

/* --- memory --- */

FORWARD(cudaMalloc, (void **out, size_t size), cuMemAlloc_v2, (CUdeviceptr *, size_t), ((CUdeviceptr *)out, size))
FORWARD(cudaMallocPitch, (void **out, size_t *pitch, size_t width, size_t height), cuMemAllocPitch_v2,
        (CUdeviceptr *, size_t *, size_t, size_t, unsigned), ((CUdeviceptr *)out, pitch, width, height, 4))
FORWARD(cudaMallocManaged, (void **out, size_t size, unsigned flags), cuMemAllocManaged,
        (CUdeviceptr *, size_t, unsigned), ((CUdeviceptr *)out, size, flags))
FORWARD(cudaMallocHost, (void **out, size_t size), cuMemHostAlloc, (void **, size_t, unsigned),
        (out, size, CU_MEMHOSTALLOC_PORTABLE))
FORWARD(cudaHostAlloc, (void **out, size_t size, unsigned flags), cuMemHostAlloc, (void **, size_t, unsigned),
        (out, size, flags))
FORWARD(cudaHostRegister, (void *address, size_t size, unsigned flags), cuMemHostRegister_v2,
        (void *, size_t, unsigned), (address, size, flags))
FORWARD(cudaHostUnregister, (void *address), cuMemHostUnregister, (void *), (address))
FORWARD(cudaMemGetInfo, (size_t * free_bytes, size_t *total), cuMemGetInfo_v2, (size_t *, size_t *),
        (free_bytes, total))

EXPORT cudaError_t cudaFree(void *address)
{
    READY;
    return address ? keep((int)DRIVER(cuMemFree_v2, (CUdeviceptr))((CUdeviceptr)address)) : cudaSuccess;
}
EXPORT cudaError_t cudaFreeHost(void *address)
{
    READY;
    return address ? keep((int)DRIVER(cuMemFreeHost, (void *))(address)) : cudaSuccess;
}
EXPORT cudaError_t cudaMalloc3D(struct cudaPitchedPtr *out, struct cudaExtent extent)
{
    cudaError_t error = cudaMallocPitch(&out->ptr, &out->pitch, extent.width, extent.height * extent.depth);
    out->xsize = extent.width;
    out->ysize = extent.height;
    return error;
}

static int array_desc(CUDA_ARRAY3D_DESCRIPTOR *d, const struct cudaChannelFormatDesc *c, struct cudaExtent extent,
                      unsigned flags)
{
    static const CUarray_format formats[3][3] = {
        {CU_AD_FORMAT_SIGNED_INT8, CU_AD_FORMAT_SIGNED_INT16, CU_AD_FORMAT_SIGNED_INT32},
        {CU_AD_FORMAT_UNSIGNED_INT8, CU_AD_FORMAT_UNSIGNED_INT16, CU_AD_FORMAT_UNSIGNED_INT32},
        {0, CU_AD_FORMAT_HALF, CU_AD_FORMAT_FLOAT},
    };
    if (!c || (unsigned)c->f > 2 || (c->x != 8 && c->x != 16 && c->x != 32))
        return cudaErrorInvalidValue;
    *d = (CUDA_ARRAY3D_DESCRIPTOR){
        extent.width, extent.height, extent.depth, formats[c->f][c->x / 16], 1u + !!c->y + !!c->z + !!c->w, flags};
    return 0;
}
EXPORT cudaError_t cudaMallocArray(cudaArray_t *out, const struct cudaChannelFormatDesc *desc, size_t width,
                                   size_t height, unsigned flags)
{
    READY;
    CUDA_ARRAY3D_DESCRIPTOR wide;
    int error = array_desc(&wide, desc, (struct cudaExtent){width, height, 0}, flags);
    if (error)
        return keep(error);
    CUDA_ARRAY_DESCRIPTOR d = {wide.Width, wide.Height, wide.Format, wide.NumChannels};
    return keep((int)DRIVER(cuArrayCreate_v2, (CUarray *, const CUDA_ARRAY_DESCRIPTOR *))(out, &d));
}
EXPORT cudaError_t cudaMalloc3DArray(cudaArray_t *out, const struct cudaChannelFormatDesc *desc,
                                     struct cudaExtent extent, unsigned flags)
{
    READY;
    CUDA_ARRAY3D_DESCRIPTOR d;
    int error = array_desc(&d, desc, extent, flags);
    return keep(error ? error : (int)DRIVER(cuArray3DCreate_v2, (CUarray *, const CUDA_ARRAY3D_DESCRIPTOR *))(out, &d));
}
EXPORT cudaError_t cudaMallocMipmappedArray(cudaMipmappedArray_t *out, const struct cudaChannelFormatDesc *desc,
                                            struct cudaExtent extent, unsigned levels, unsigned flags)
{
    READY;
    CUDA_ARRAY3D_DESCRIPTOR d;
    int error = array_desc(&d, desc, extent, flags);
    return keep(error ? error
                      : (int)DRIVER(cuMipmappedArrayCreate,
                                    (CUmipmappedArray *, const CUDA_ARRAY3D_DESCRIPTOR *, unsigned))(out, &d, levels));
}
FORWARD(cudaFreeArray, (cudaArray_t array), cuArrayDestroy, (CUarray), (array))
FORWARD(cudaFreeMipmappedArray, (cudaMipmappedArray_t array), cuMipmappedArrayDestroy, (CUmipmappedArray), (array))

/* --- copies and fills: the two forms of the default stream differ in the driver's symbols alone --- */

#define COPIES(ds, sz)                                                                                                 \
    cudaError_t cudaMemcpy##ds(void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind);                    \
    EXPORT cudaError_t cudaMemcpy##ds(void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind)              \
    {                                                                                                                  \
        READY;                                                                                                         \
        const CUdeviceptr d = (CUdeviceptr)dst, s = (CUdeviceptr)src;                                                  \
        if (!bytes)                                                                                                    \
            return cudaSuccess;                                                                                        \
        switch (kind) {                                                                                                \
        case cudaMemcpyHostToDevice:                                                                                   \
            return keep((int)DRIVER(cuMemcpyHtoD_v2##ds, (CUdeviceptr, const void *, size_t))(d, src, bytes));         \
        case cudaMemcpyDeviceToHost:                                                                                   \
            return keep((int)DRIVER(cuMemcpyDtoH_v2##ds, (void *, CUdeviceptr, size_t))(dst, s, bytes));               \
        case cudaMemcpyDeviceToDevice:                                                                                 \
            return keep((int)DRIVER(cuMemcpyDtoD_v2##ds, (CUdeviceptr, CUdeviceptr, size_t))(d, s, bytes));            \
        case cudaMemcpyHostToHost:                                                                                     \
            memmove(dst, src, bytes);                                                                                  \
            return cudaSuccess;                                                                                        \
        default:                                                                                                       \
            return keep((int)DRIVER(cuMemcpy##ds, (CUdeviceptr, CUdeviceptr, size_t))(d, s, bytes));                   \
        }                                                                                                              \
    }                                                                                                                  \
    cudaError_t cudaMemcpyAsync##sz(void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind,                \
                                    cudaStream_t stream);                                                              \
    EXPORT cudaError_t cudaMemcpyAsync##sz(void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind,         \
                                           cudaStream_t stream)                                                        \
    {                                                                                                                  \
        READY;                                                                                                         \
        const CUdeviceptr d = (CUdeviceptr)dst, s = (CUdeviceptr)src;                                                  \
        if (!bytes)                                                                                                    \
            return cudaSuccess;                                                                                        \
        switch (kind) {                                                                                                \
        case cudaMemcpyHostToDevice:                                                                                   \
            return keep((int)DRIVER(cuMemcpyHtoDAsync_v2##sz,                                                          \
                                    (CUdeviceptr, const void *, size_t, CUstream))(d, src, bytes, stream));            \
        case cudaMemcpyDeviceToHost:                                                                                   \
            return keep((int)DRIVER(cuMemcpyDtoHAsync_v2##sz, (void *, CUdeviceptr, size_t, CUstream))(dst, s, bytes,  \
                                                                                                       stream));       \
        case cudaMemcpyDeviceToDevice:                                                                                 \
            return keep((int)DRIVER(cuMemcpyDtoDAsync_v2##sz,                                                          \
                                    (CUdeviceptr, CUdeviceptr, size_t, CUstream))(d, s, bytes, stream));               \
        default:                                                                                                       \
            return keep(                                                                                               \
                (int)DRIVER(cuMemcpyAsync##sz, (CUdeviceptr, CUdeviceptr, size_t, CUstream))(d, s, bytes, stream));    \
        }                                                                                                              \
    }                                                                                                                  \
    cudaError_t cudaMemset##ds(void *address, int value, size_t bytes);                                                \
    FORWARD(cudaMemset##ds, (void *address, int value, size_t bytes), cuMemsetD8_v2##ds,                               \
            (CUdeviceptr, unsigned char, size_t), ((CUdeviceptr)address, (unsigned char)value, bytes))                 \
    cudaError_t cudaMemsetAsync##sz(void *address, int value, size_t bytes, cudaStream_t stream);                      \
    FORWARD(cudaMemsetAsync##sz, (void *address, int value, size_t bytes, cudaStream_t stream), cuMemsetD8Async##sz,   \
            (CUdeviceptr, unsigned char, size_t, CUstream),                                                            \
            ((CUdeviceptr)address, (unsigned char)value, bytes, stream))                                               \
    cudaError_t cudaMemcpy2D##ds(void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width,         \
                                 size_t height, enum cudaMemcpyKind kind);                                             \
    EXPORT cudaError_t cudaMemcpy2D##ds(void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width,  \
                                        size_t height, enum cudaMemcpyKind kind)                                       \
    {                                                                                                                  \
        READY;                                                                                                         \
        CUDA_MEMCPY2D c = copy_2d(dst, dst_pitch, src, src_pitch, width, height, kind);                                \
        return keep((int)DRIVER(cuMemcpy2DUnaligned_v2##ds, (const CUDA_MEMCPY2D *))(&c));                             \
    }

static CUDA_MEMCPY2D copy_2d(void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width,
                             size_t height, enum cudaMemcpyKind kind)
{
    static const CUmemorytype from[] = {1, 1, 2, 2, 4}, to[] = {1, 2, 1, 2, 4};
    return (CUDA_MEMCPY2D){.srcMemoryType = from[kind],
                           .srcHost = src,
                           .srcDevice = (CUdeviceptr)src,
                           .srcPitch = src_pitch,
                           .dstMemoryType = to[kind],
                           .dstHost = dst,
                           .dstDevice = (CUdeviceptr)dst,
                           .dstPitch = dst_pitch,
                           .WidthInBytes = width,
                           .Height = height};
}
COPIES(, )
COPIES(_ptds, _ptsz)

EXPORT cudaError_t cudaMemcpyPeer(void *dst, int dst_device, const void *src, int src_device, size_t bytes)
{
    READY;
    int mine = current_device;
    cudaError_t error = cudaSetDevice(dst_device);
    if (!error)
        error = cudaSetDevice(src_device);
    if (!error)
        error = cudaSetDevice(mine);
    return error ? error
                 : keep((int)DRIVER(cuMemcpyPeer, (CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, size_t))(
                       (CUdeviceptr)dst, primaries[dst_device], (CUdeviceptr)src, primaries[src_device], bytes));
}

/* --- streams, events --- */

FORWARD(cudaStreamCreate, (cudaStream_t * out), cuStreamCreate, (CUstream *, unsigned), (out, 0))
FORWARD(cudaStreamCreateWithFlags, (cudaStream_t * out, unsigned flags), cuStreamCreate, (CUstream *, unsigned),
        (out, flags))
FORWARD(cudaStreamDestroy, (cudaStream_t stream), cuStreamDestroy_v2, (CUstream), (stream))
FORWARD_STREAM(cudaStreamSynchronize, (cudaStream_t stream), cuStreamSynchronize, (CUstream), (stream))
FORWARD_STREAM(cudaStreamQuery, (cudaStream_t stream), cuStreamQuery, (CUstream), (stream))
FORWARD_STREAM(cudaStreamWaitEvent, (cudaStream_t stream, cudaEvent_t event, unsigned flags), cuStreamWaitEvent,
               (CUstream, CUevent, unsigned), (stream, event, flags))
FORWARD_STREAM(cudaLaunchHostFunc, (cudaStream_t stream, cudaHostFn_t function, void *data), cuLaunchHostFunc,
               (CUstream, cudaHostFn_t, void *), (stream, function, data))
FORWARD(cudaStreamBeginCapture, (cudaStream_t stream, enum cudaStreamCaptureMode mode), cuStreamBeginCapture_v2,
        (CUstream, int), (stream, (int)mode))
FORWARD_STREAM(cudaStreamEndCapture, (cudaStream_t stream, cudaGraph_t *out), cuStreamEndCapture, (CUstream, CUgraph *),
               (stream, out))
FORWARD(cudaEventCreate, (cudaEvent_t * out), cuEventCreate, (CUevent *, unsigned), (out, 0))
FORWARD(cudaEventCreateWithFlags, (cudaEvent_t * out, unsigned flags), cuEventCreate, (CUevent *, unsigned),
        (out, flags))
FORWARD_STREAM(cudaEventRecord, (cudaEvent_t event, cudaStream_t stream), cuEventRecord, (CUevent, CUstream),
               (event, stream))
FORWARD(cudaEventQuery, (cudaEvent_t event), cuEventQuery, (CUevent), (event))
FORWARD(cudaEventSynchronize, (cudaEvent_t event), cuEventSynchronize, (CUevent), (event))
FORWARD(cudaEventElapsedTime, (float *out, cudaEvent_t start, cudaEvent_t end), cuEventElapsedTime,
        (float *, CUevent, CUevent), (out, start, end))
FORWARD(cudaEventDestroy, (cudaEvent_t event), cuEventDestroy_v2, (CUevent), (event))

/* --- pools --- */

FORWARD_STREAM(cudaMallocAsync, (void **out, size_t size, cudaStream_t stream), cuMemAllocAsync,
               (CUdeviceptr *, size_t, CUstream), ((CUdeviceptr *)out, size, stream))
FORWARD_STREAM(cudaMallocFromPoolAsync, (void **out, size_t size, cudaMemPool_t pool, cudaStream_t stream),
               cuMemAllocFromPoolAsync, (CUdeviceptr *, size_t, CUmemoryPool, CUstream),
               ((CUdeviceptr *)out, size, pool, stream))
FORWARD_STREAM(cudaFreeAsync, (void *address, cudaStream_t stream), cuMemFreeAsync, (CUdeviceptr, CUstream),
               ((CUdeviceptr)address, stream))
FORWARD(cudaMemPoolCreate, (cudaMemPool_t * out, const struct cudaMemPoolProps *props), cuMemPoolCreate,
        (CUmemoryPool *, const void *), (out, props))
FORWARD(cudaMemPoolDestroy, (cudaMemPool_t pool), cuMemPoolDestroy, (CUmemoryPool), (pool))
FORWARD(cudaMemPoolTrimTo, (cudaMemPool_t pool, size_t minimum), cuMemPoolTrimTo, (CUmemoryPool, size_t),
        (pool, minimum))
FORWARD(cudaMemPoolGetAttribute, (cudaMemPool_t pool, enum cudaMemPoolAttr what, void *value), cuMemPoolGetAttribute,
        (CUmemoryPool, int, void *), (pool, (int)what, value))
FORWARD(cudaMemPoolSetAttribute, (cudaMemPool_t pool, enum cudaMemPoolAttr what, void *value), cuMemPoolSetAttribute,
        (CUmemoryPool, int, void *), (pool, (int)what, value))
FORWARD(cudaDeviceGetDefaultMemPool, (cudaMemPool_t * out, int device), cuDeviceGetDefaultMemPool,
        (CUmemoryPool *, CUdevice), (out, device))
FORWARD(cudaDeviceGetMemPool, (cudaMemPool_t * out, int device), cuDeviceGetMemPool, (CUmemoryPool *, CUdevice),
        (out, device))
FORWARD(cudaDeviceSetMemPool, (int device, cudaMemPool_t pool), cuDeviceSetMemPool, (CUdevice, CUmemoryPool),
        (device, pool))

/* --- graphs --- */

FORWARD(cudaGraphInstantiate, (cudaGraphExec_t * out, cudaGraph_t graph, unsigned long long flags),
        cuGraphInstantiateWithFlags, (CUgraphExec *, CUgraph, unsigned long long), (out, graph, flags))
FORWARD_STREAM(cudaGraphLaunch, (cudaGraphExec_t exec, cudaStream_t stream), cuGraphLaunch, (CUgraphExec, CUstream),
               (exec, stream))
FORWARD(cudaGraphExecDestroy, (cudaGraphExec_t exec), cuGraphExecDestroy, (CUgraphExec), (exec))
FORWARD(cudaGraphDestroy, (cudaGraph_t graph), cuGraphDestroy, (CUgraph), (graph))
FORWARD(cudaDeviceGetGraphMemAttribute, (int device, enum cudaGraphMemAttributeType what, void *value),
        cuDeviceGetGraphMemAttribute, (CUdevice, int, void *), (device, (int)what, value))
FORWARD(cudaDeviceGraphMemTrim, (int device), cuDeviceGraphMemTrim, (CUdevice), (device))

/* --- sharing --- */

FORWARD(cudaIpcGetMemHandle, (cudaIpcMemHandle_t * out, void *address), cuIpcGetMemHandle,
        (CUipcMemHandle *, CUdeviceptr), (out, (CUdeviceptr)address))
FORWARD(cudaIpcOpenMemHandle, (void **out, cudaIpcMemHandle_t handle, unsigned flags), cuIpcOpenMemHandle_v2,
        (CUdeviceptr *, CUipcMemHandle, unsigned), ((CUdeviceptr *)out, handle, flags))
FORWARD(cudaIpcCloseMemHandle, (void *address), cuIpcCloseMemHandle, (CUdeviceptr), ((CUdeviceptr)address))

/* --- kernels: what the code that nvcc makes calls --- */

struct binary {
    void *image;
    CUmodule modules[64]; /* loaded at the first launch on a device */
    struct binary *next;
};
struct kernel {
    struct binary *binary;
    const void *host;
    const char *name;
    struct kernel *next;
};
static struct kernel *kernels;

void **__cudaRegisterFatBinary(void *image);
EXPORT void **__cudaRegisterFatBinary(void *image)
{
    struct binary *binary = calloc(1, sizeof *binary);
    if (binary)
        binary->image = image;
    return (void **)binary;
}
void __cudaRegisterFatBinaryEnd(void **handle);
EXPORT void __cudaRegisterFatBinaryEnd(void **handle)
{
    (void)handle;
}
void __cudaUnregisterFatBinary(void **handle);
EXPORT void __cudaUnregisterFatBinary(void **handle)
{
    for (struct kernel **at = &kernels; *at;)
        if ((*at)->binary == (struct binary *)handle) {
            struct kernel *gone = *at;
            *at = gone->next;
            free(gone);
        } else {
            at = &(*at)->next;
        }
    free(handle);
}
char __cudaInitModule(void **handle);
EXPORT char __cudaInitModule(void **handle)
{
    return handle != NULL;
}
void __cudaRegisterVar(void **handle, char *host, char *address, const char *name, int ext, size_t size, int constant,
                       int global);
EXPORT void __cudaRegisterVar(void **handle, char *host, char *address, const char *name, int ext, size_t size,
                              int constant, int global)
{
    (void)handle, (void)host, (void)address, (void)name, (void)ext, (void)size, (void)constant, (void)global;
}
void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name, int limit, void *tid,
                            void *bid, dim3 *block, dim3 *grid, int *warp);
EXPORT void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name, int limit,
                                   void *tid, void *bid, dim3 *block, dim3 *grid, int *warp)
{
    (void)device, (void)limit, (void)tid, (void)bid, (void)block, (void)grid, (void)warp;
    struct kernel *kernel = malloc(sizeof *kernel);
    if (!kernel)
        return;
    *kernel = (struct kernel){(struct binary *)handle, host, name, kernels};
    kernels = kernel;
}

static __thread struct {
    dim3 grid, block;
    size_t shared;
    cudaStream_t stream;
} configuration;
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream);
EXPORT unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream)
{
    configuration.grid = grid;
    configuration.block = block;
    configuration.shared = shared;
    configuration.stream = stream;
    return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream);
EXPORT cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream)
{
    *grid = configuration.grid;
    *block = configuration.block;
    *shared = configuration.shared;
    *(cudaStream_t *)stream = configuration.stream;
    return cudaSuccess;
}

static cudaError_t launch(const struct kernel *kernel, dim3 grid, dim3 block, void **arguments, size_t shared,
                          cudaStream_t stream, int per_thread)
{
    READY;
    if (!kernel)
        return keep(cudaErrorInvalidDeviceFunction);
    CUmodule *module = &kernel->binary->modules[current_device];
    CUfunction function;
    int error = *module ? 0 : (int)DRIVER(cuModuleLoadData, (CUmodule *, const void *))(module, kernel->binary->image);
    if (!error)
        error =
            (int)DRIVER(cuModuleGetFunction, (CUfunction *, CUmodule, const char *))(&function, *module, kernel->name);
    if (!error) {
        CUresult (*call)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream,
                         void **, void **);
        *(void **)&call = functions[per_thread ? AT_cuLaunchKernel_ptsz : AT_cuLaunchKernel];
        error = (int)call(function, grid.x, grid.y, grid.z, block.x, block.y, block.z, (unsigned)shared, stream,
                          arguments, NULL);
    }
    return keep(error);
}
static const struct kernel *kernel_of(const void *host)
{
    for (const struct kernel *k = kernels; k; k = k->next)
        if (k->host == host)
            return k;
    return NULL;
}
EXPORT cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared,
                                    cudaStream_t stream)
{
    return launch(kernel_of(function), grid, block, arguments, shared, stream, 0);
}
cudaError_t cudaLaunchKernel_ptsz(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared,
                                  cudaStream_t stream);
EXPORT cudaError_t cudaLaunchKernel_ptsz(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared,
                                         cudaStream_t stream)
{
    return launch(kernel_of(function), grid, block, arguments, shared, stream, 1);
}
cudaError_t __cudaGetKernel(cudaKernel_t *out, const void *host);
EXPORT cudaError_t __cudaGetKernel(cudaKernel_t *out, const void *host)
{
    *out = (cudaKernel_t)kernel_of(host);
    return *out ? cudaSuccess : cudaErrorInvalidDeviceFunction;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments, size_t shared,
                               cudaStream_t stream);
EXPORT cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments, size_t shared,
                                      cudaStream_t stream)
{
    return launch((const struct kernel *)kernel, grid, block, arguments, shared, stream, 0);
}
cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments, size_t shared,
                                    cudaStream_t stream);
EXPORT cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments, size_t shared,
                                           cudaStream_t stream)
{
    return launch((const struct kernel *)kernel, grid, block, arguments, shared, stream, 1);
}
