/*
 * Copies and fills. Every form becomes one CUDA_MEMCPY3D, checked when it is asked for and done when its stream gets
 * there; copies from or to pageable host memory are done at once, as their memory may be gone later.
 */
#include "sim.h"

#include <stdlib.h>
#include <string.h>

struct side {
    CUmemorytype type;
    CUdeviceptr address;
    CUarray array;
    size_t x, y, z, pitch, height;
};

static CUresult side_check(struct side *s, size_t width, size_t height, size_t depth, int *pageable, int later)
{
    if (s->type == CU_MEMORYTYPE_ARRAY) {
        NEED(array_valid(s->array), INVALID_VALUE);
        const CUDA_ARRAY3D_DESCRIPTOR *d = &s->array->desc;
        NEED(s->x + width <= s->array->row_bytes && s->y + height <= (d->Height ? d->Height : 1) &&
                 s->z + depth <= (d->Depth ? d->Depth : 1),
             INVALID_VALUE);
        s->address = (CUdeviceptr)s->array->memory;
        s->pitch = s->array->row_bytes;
        s->height = d->Height ? d->Height : 1;
        return CUDA_SUCCESS;
    }
    NEED(s->type >= CU_MEMORYTYPE_HOST && s->type <= CU_MEMORYTYPE_UNIFIED && s->address, INVALID_VALUE);
    if (!s->pitch)
        s->pitch = s->x + width;
    if (!s->height)
        s->height = s->y + height;
    NEED(s->pitch >= s->x + width || (height == 1 && depth == 1), INVALID_VALUE);
    size_t start = s->x + s->pitch * (s->y + s->height * s->z);
    size_t bytes = width + s->pitch * (height - 1 + s->height * (depth - 1));
    struct alloc *alloc = alloc_at(s->address + start);
    if (s->type == CU_MEMORYTYPE_DEVICE || (s->type == CU_MEMORYTYPE_UNIFIED && alloc))
        return pointer_usable(s->address + start, bytes, later);
    *pageable |= !alloc;
    return CUDA_SUCCESS;
}

static void run_copy(struct work *work)
{
    const struct side *s = (struct side *)work->blob, *d = s + 1;
    const uint64_t width = work->a[0], height = work->a[1], depth = work->a[2];
    for (uint64_t z = 0; z < depth; z++)
        for (uint64_t y = 0; y < height; y++)
            memmove((char *)d->address + d->x + d->pitch * (d->y + y + d->height * (d->z + z)),
                    (char *)s->address + s->x + s->pitch * (s->y + y + s->height * (s->z + z)), width);
}

CUresult copy_work(const CUDA_MEMCPY3D *c, struct work *work, int *pageable, int later)
{
    size_t width = c->WidthInBytes, height = c->Height ? c->Height : 1, depth = c->Depth ? c->Depth : 1;
    struct side src = {
        .type = c->srcMemoryType,
        .address = c->srcMemoryType == CU_MEMORYTYPE_HOST ? (CUdeviceptr)c->srcHost : c->srcDevice,
        .array = c->srcArray,
        .x = c->srcXInBytes,
        .y = c->srcY,
        .z = c->srcZ,
        .pitch = c->srcPitch,
        .height = c->srcHeight,
    };
    struct side dst = {
        .type = c->dstMemoryType,
        .address = c->dstMemoryType == CU_MEMORYTYPE_HOST ? (CUdeviceptr)c->dstHost : c->dstDevice,
        .array = c->dstArray,
        .x = c->dstXInBytes,
        .y = c->dstY,
        .z = c->dstZ,
        .pitch = c->dstPitch,
        .height = c->dstHeight,
    };
    *pageable = 0;
    NEED(width <= 1ull << 46 && height <= 1ull << 40 && depth <= 1ull << 40, INVALID_VALUE);
    if (!width) {
        *work = (struct work){.run = run_copy, .a = {0, 0, 0}};
        return CUDA_SUCCESS;
    }
    CUresult error = side_check(&src, width, height, depth, pageable, later);
    if (error || (error = side_check(&dst, width, height, depth, pageable, later)))
        return error;
    struct side *both = malloc(2 * sizeof *both);
    NEED(both, OUT_OF_MEMORY);
    both[0] = src;
    both[1] = dst;
    *work = (struct work){.run = run_copy, .a = {width, height, depth}, .blob = both, .blob_bytes = 2 * sizeof *both};
    return CUDA_SUCCESS;
}

CUresult copy_3d(const CUDA_MEMCPY3D *copy, struct CUstream_st *stream, int wait)
{
    struct work work;
    int pageable;
    uint64_t seq = 0;
    CUresult error = copy_work(copy, &work, &pageable, stream->capture != NULL);
    if (error || (error = stream_add(stream, &work, CU_GRAPH_NODE_TYPE_MEMCPY, &seq)))
        return error;
    if (seq && (wait || pageable))
        stream_run(stream, seq);
    return CUDA_SUCCESS;
}

static CUresult on_stream(const CUDA_MEMCPY3D *copy, CUstream handle, int per_thread, int wait)
{
    struct CUstream_st *stream;
    CUresult error = stream_of(handle, per_thread, &stream);
    if (!error && !copy)
        error = CUDA_ERROR_INVALID_VALUE;
    return error ? error : copy_3d(copy, stream, wait);
}

/* One-dimensional copies: each side a memory type and an address, or an array and an offset. */
static CUresult copy_1d(int dst_type, uint64_t dst, size_t dst_offset, int src_type, uint64_t src, size_t src_offset,
                        size_t bytes, CUstream handle, int per_thread, int wait)
{
    CUDA_MEMCPY3D c = {
        .srcMemoryType = src_type,
        .srcXInBytes = src_offset,
        .dstMemoryType = dst_type,
        .dstXInBytes = dst_offset,
        .WidthInBytes = bytes,
        .Height = 1,
        .Depth = 1,
    };
    if (src_type == CU_MEMORYTYPE_HOST)
        c.srcHost = (void *)src;
    else if (src_type == CU_MEMORYTYPE_ARRAY)
        c.srcArray = (CUarray)src;
    else
        c.srcDevice = src;
    if (dst_type == CU_MEMORYTYPE_HOST)
        c.dstHost = (void *)dst;
    else if (dst_type == CU_MEMORYTYPE_ARRAY)
        c.dstArray = (CUarray)dst;
    else
        c.dstDevice = dst;
    return on_stream(&c, handle, per_thread, wait);
}

#define H CU_MEMORYTYPE_HOST
#define D CU_MEMORYTYPE_DEVICE
#define A CU_MEMORYTYPE_ARRAY
#define U CU_MEMORYTYPE_UNIFIED

/* Between two addresses. The plain, per-thread, asynchronous forms, and the oldest with 32-bit device addresses. */
#define SYNC(name, v, dt, dst_type, st, src_type)                                                                      \
    API name##v(dst_type d, src_type s, size_t n)                                                                      \
    {                                                                                                                  \
        BEGIN;                                                                                                         \
        return copy_1d(dt, (uint64_t)(d), 0, st, (uint64_t)(s), 0, n, NULL, 0, 1);                                     \
    }                                                                                                                  \
    API name##v##_ptds(dst_type d, src_type s, size_t n)                                                               \
    {                                                                                                                  \
        BEGIN;                                                                                                         \
        return copy_1d(dt, (uint64_t)(d), 0, st, (uint64_t)(s), 0, n, NULL, 1, 1);                                     \
    }
#define ASYNC(name, v, dt, dst_type, st, src_type)                                                                     \
    API name##v(dst_type d, src_type s, size_t n, CUstream h)                                                          \
    {                                                                                                                  \
        BEGIN;                                                                                                         \
        return copy_1d(dt, (uint64_t)(d), 0, st, (uint64_t)(s), 0, n, h, 0, 0);                                        \
    }                                                                                                                  \
    API name##v##_ptsz(dst_type d, src_type s, size_t n, CUstream h)                                                   \
    {                                                                                                                  \
        BEGIN;                                                                                                         \
        return copy_1d(dt, (uint64_t)(d), 0, st, (uint64_t)(s), 0, n, h, 1, 0);                                        \
    }
#define OLD(name, dt, dst_type, st, src_type)                                                                          \
    API name(dst_type d, src_type s, unsigned n)                                                                       \
    {                                                                                                                  \
        BEGIN;                                                                                                         \
        return copy_1d(dt, (uint64_t)(d), 0, st, (uint64_t)(s), 0, n, NULL, 0, 1);                                     \
    }                                                                                                                  \
    API name##Async(dst_type d, src_type s, unsigned n, CUstream h)                                                    \
    {                                                                                                                  \
        BEGIN;                                                                                                         \
        return copy_1d(dt, (uint64_t)(d), 0, st, (uint64_t)(s), 0, n, h, 0, 0);                                        \
    }
SYNC(cuMemcpy, , U, CUdeviceptr, U, CUdeviceptr)
ASYNC(cuMemcpyAsync, , U, CUdeviceptr, U, CUdeviceptr)
SYNC(cuMemcpyHtoD, _v2, D, CUdeviceptr, H, const void *)
SYNC(cuMemcpyDtoH, _v2, H, void *, D, CUdeviceptr)
SYNC(cuMemcpyDtoD, _v2, D, CUdeviceptr, D, CUdeviceptr)
ASYNC(cuMemcpyHtoDAsync, _v2, D, CUdeviceptr, H, const void *)
ASYNC(cuMemcpyDtoHAsync, _v2, H, void *, D, CUdeviceptr)
ASYNC(cuMemcpyDtoDAsync, _v2, D, CUdeviceptr, D, CUdeviceptr)
OLD(cuMemcpyHtoD, D, CUdeviceptr_v1, H, const void *)
OLD(cuMemcpyDtoH, H, void *, D, CUdeviceptr_v1)
OLD(cuMemcpyDtoD, D, CUdeviceptr_v1, D, CUdeviceptr_v1)

/* With arrays: an array and an offset on one side or on both. */
#define TO_ARRAY(name, st, src_type, old_type)                                                                         \
    API name##_v2(CUarray d, size_t o, src_type s, size_t n)                                                           \
    {                                                                                                                  \
        BEGIN;                                                                                                         \
        return copy_1d(A, (uint64_t)d, o, st, (uint64_t)(s), 0, n, NULL, 0, 1);                                        \
    }                                                                                                                  \
    API name##_v2_ptds(CUarray d, size_t o, src_type s, size_t n)                                                      \
    {                                                                                                                  \
        BEGIN;                                                                                                         \
        return copy_1d(A, (uint64_t)d, o, st, (uint64_t)(s), 0, n, NULL, 1, 1);                                        \
    }                                                                                                                  \
    API name(CUarray d, unsigned o, old_type s, unsigned n)                                                            \
    {                                                                                                                  \
        BEGIN;                                                                                                         \
        return copy_1d(A, (uint64_t)d, o, st, (uint64_t)(s), 0, n, NULL, 0, 1);                                        \
    }
#define FROM_ARRAY(name, dt, dst_type, old_type)                                                                       \
    API name##_v2(dst_type d, CUarray s, size_t o, size_t n)                                                           \
    {                                                                                                                  \
        BEGIN;                                                                                                         \
        return copy_1d(dt, (uint64_t)(d), 0, A, (uint64_t)s, o, n, NULL, 0, 1);                                        \
    }                                                                                                                  \
    API name##_v2_ptds(dst_type d, CUarray s, size_t o, size_t n)                                                      \
    {                                                                                                                  \
        BEGIN;                                                                                                         \
        return copy_1d(dt, (uint64_t)(d), 0, A, (uint64_t)s, o, n, NULL, 1, 1);                                        \
    }                                                                                                                  \
    API name(old_type d, CUarray s, unsigned o, unsigned n)                                                            \
    {                                                                                                                  \
        BEGIN;                                                                                                         \
        return copy_1d(dt, (uint64_t)(d), 0, A, (uint64_t)s, o, n, NULL, 0, 1);                                        \
    }
TO_ARRAY(cuMemcpyHtoA, H, const void *, const void *)
TO_ARRAY(cuMemcpyDtoA, D, CUdeviceptr, CUdeviceptr_v1)
FROM_ARRAY(cuMemcpyAtoH, H, void *, void *)
FROM_ARRAY(cuMemcpyAtoD, D, CUdeviceptr, CUdeviceptr_v1)
API cuMemcpyAtoA_v2(CUarray d, size_t x, CUarray s, size_t y, size_t n)
{
    BEGIN;
    return copy_1d(A, (uint64_t)d, x, A, (uint64_t)s, y, n, NULL, 0, 1);
}
API cuMemcpyAtoA_v2_ptds(CUarray d, size_t x, CUarray s, size_t y, size_t n)
{
    BEGIN;
    return copy_1d(A, (uint64_t)d, x, A, (uint64_t)s, y, n, NULL, 1, 1);
}
API cuMemcpyAtoA(CUarray d, unsigned x, CUarray s, unsigned y, unsigned n)
{
    BEGIN;
    return copy_1d(A, (uint64_t)d, x, A, (uint64_t)s, y, n, NULL, 0, 1);
}
API cuMemcpyHtoAAsync_v2(CUarray d, size_t o, const void *s, size_t n, CUstream h)
{
    BEGIN;
    return copy_1d(A, (uint64_t)d, o, H, (uint64_t)s, 0, n, h, 0, 0);
}
API cuMemcpyHtoAAsync_v2_ptsz(CUarray d, size_t o, const void *s, size_t n, CUstream h)
{
    BEGIN;
    return copy_1d(A, (uint64_t)d, o, H, (uint64_t)s, 0, n, h, 1, 0);
}
API cuMemcpyHtoAAsync(CUarray d, unsigned o, const void *s, unsigned n, CUstream h)
{
    BEGIN;
    return copy_1d(A, (uint64_t)d, o, H, (uint64_t)s, 0, n, h, 0, 0);
}
API cuMemcpyAtoHAsync_v2(void *d, CUarray s, size_t o, size_t n, CUstream h)
{
    BEGIN;
    return copy_1d(H, (uint64_t)d, 0, A, (uint64_t)s, o, n, h, 0, 0);
}
API cuMemcpyAtoHAsync_v2_ptsz(void *d, CUarray s, size_t o, size_t n, CUstream h)
{
    BEGIN;
    return copy_1d(H, (uint64_t)d, 0, A, (uint64_t)s, o, n, h, 1, 0);
}
API cuMemcpyAtoHAsync(void *d, CUarray s, unsigned o, unsigned n, CUstream h)
{
    BEGIN;
    return copy_1d(H, (uint64_t)d, 0, A, (uint64_t)s, o, n, h, 0, 0);
}

/* Between devices. */
static CUresult peer(CUdeviceptr d, CUcontext dc, CUdeviceptr s, CUcontext sc, size_t n, CUstream h, int per_thread,
                     int wait)
{
    NEED(context_valid(dc) && context_valid(sc), INVALID_CONTEXT);
    return copy_1d(D, d, 0, D, s, 0, n, h, per_thread, wait);
}
API cuMemcpyPeer(CUdeviceptr d, CUcontext dc, CUdeviceptr s, CUcontext sc, size_t n)
{
    BEGIN;
    return peer(d, dc, s, sc, n, NULL, 0, 1);
}
API cuMemcpyPeer_ptds(CUdeviceptr d, CUcontext dc, CUdeviceptr s, CUcontext sc, size_t n)
{
    BEGIN;
    return peer(d, dc, s, sc, n, NULL, 1, 1);
}
API cuMemcpyPeerAsync(CUdeviceptr d, CUcontext dc, CUdeviceptr s, CUcontext sc, size_t n, CUstream h)
{
    BEGIN;
    return peer(d, dc, s, sc, n, h, 0, 0);
}
API cuMemcpyPeerAsync_ptsz(CUdeviceptr d, CUcontext dc, CUdeviceptr s, CUcontext sc, size_t n, CUstream h)
{
    BEGIN;
    return peer(d, dc, s, sc, n, h, 1, 0);
}

/* --- two and three dimensions --- */

#define WIDEN_2D(c)                                                                                                    \
    {                                                                                                                  \
        .srcXInBytes = (c)->srcXInBytes, .srcY = (c)->srcY, .srcMemoryType = (c)->srcMemoryType,                       \
        .srcHost = (c)->srcHost, .srcDevice = (c)->srcDevice, .srcArray = (c)->srcArray, .srcPitch = (c)->srcPitch,    \
        .dstXInBytes = (c)->dstXInBytes, .dstY = (c)->dstY, .dstMemoryType = (c)->dstMemoryType,                       \
        .dstHost = (c)->dstHost, .dstDevice = (c)->dstDevice, .dstArray = (c)->dstArray, .dstPitch = (c)->dstPitch,    \
        .WidthInBytes = (c)->WidthInBytes, .Height = (c)->Height, .Depth = 1,                                          \
    }
#define TWO(name, type, per_thread, wait)                                                                              \
    API name(const type *c)                                                                                            \
    {                                                                                                                  \
        BEGIN;                                                                                                         \
        NEED(c, INVALID_VALUE);                                                                                        \
        CUDA_MEMCPY3D wide = WIDEN_2D(c);                                                                              \
        return on_stream(&wide, NULL, per_thread, wait);                                                               \
    }
#define TWO_ASYNC(name, type, per_thread)                                                                              \
    API name(const type *c, CUstream h)                                                                                \
    {                                                                                                                  \
        BEGIN;                                                                                                         \
        NEED(c, INVALID_VALUE);                                                                                        \
        CUDA_MEMCPY3D wide = WIDEN_2D(c);                                                                              \
        return on_stream(&wide, h, per_thread, 0);                                                                     \
    }
TWO(cuMemcpy2D, CUDA_MEMCPY2D_v1, 0, 1)
TWO(cuMemcpy2D_v2, CUDA_MEMCPY2D, 0, 1)
TWO(cuMemcpy2D_v2_ptds, CUDA_MEMCPY2D, 1, 1)
TWO(cuMemcpy2DUnaligned, CUDA_MEMCPY2D_v1, 0, 1)
TWO(cuMemcpy2DUnaligned_v2, CUDA_MEMCPY2D, 0, 1)
TWO(cuMemcpy2DUnaligned_v2_ptds, CUDA_MEMCPY2D, 1, 1)
TWO_ASYNC(cuMemcpy2DAsync, CUDA_MEMCPY2D_v1, 0)
TWO_ASYNC(cuMemcpy2DAsync_v2, CUDA_MEMCPY2D, 0)
TWO_ASYNC(cuMemcpy2DAsync_v2_ptsz, CUDA_MEMCPY2D, 1)

static CUDA_MEMCPY3D widen_3d(const CUDA_MEMCPY3D_v1 *c)
{
    CUDA_MEMCPY3D wide = WIDEN_2D(c);
    wide.srcZ = c->srcZ;
    wide.dstZ = c->dstZ;
    wide.srcHeight = c->srcHeight;
    wide.dstHeight = c->dstHeight;
    wide.Depth = c->Depth;
    return wide;
}
API cuMemcpy3D(const CUDA_MEMCPY3D_v1 *c)
{
    BEGIN;
    NEED(c, INVALID_VALUE);
    CUDA_MEMCPY3D wide = widen_3d(c);
    return on_stream(&wide, NULL, 0, 1);
}
API cuMemcpy3DAsync(const CUDA_MEMCPY3D_v1 *c, CUstream h)
{
    BEGIN;
    NEED(c, INVALID_VALUE);
    CUDA_MEMCPY3D wide = widen_3d(c);
    return on_stream(&wide, h, 0, 0);
}
API cuMemcpy3D_v2(const CUDA_MEMCPY3D *c)
{
    BEGIN;
    return on_stream(c, NULL, 0, 1);
}
API cuMemcpy3D_v2_ptds(const CUDA_MEMCPY3D *c)
{
    BEGIN;
    return on_stream(c, NULL, 1, 1);
}
API cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *c, CUstream h)
{
    BEGIN;
    return on_stream(c, h, 0, 0);
}
API cuMemcpy3DAsync_v2_ptsz(const CUDA_MEMCPY3D *c, CUstream h)
{
    BEGIN;
    return on_stream(c, h, 1, 0);
}
/* the same layout, with contexts in the reserved words */
_Static_assert(sizeof(CUDA_MEMCPY3D_PEER) == sizeof(CUDA_MEMCPY3D), "one layout");
API cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER *c)
{
    BEGIN;
    return on_stream((const CUDA_MEMCPY3D *)c, NULL, 0, 1);
}
API cuMemcpy3DPeer_ptds(const CUDA_MEMCPY3D_PEER *c)
{
    BEGIN;
    return on_stream((const CUDA_MEMCPY3D *)c, NULL, 1, 1);
}
API cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER *c, CUstream h)
{
    BEGIN;
    return on_stream((const CUDA_MEMCPY3D *)c, h, 0, 0);
}
API cuMemcpy3DPeerAsync_ptsz(const CUDA_MEMCPY3D_PEER *c, CUstream h)
{
    BEGIN;
    return on_stream((const CUDA_MEMCPY3D *)c, h, 1, 0);
}

/* --- batches --- */

static CUresult batch(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count, size_t *fail, CUstream h,
                      int per_thread)
{
    NEED(dsts && srcs && sizes && count, INVALID_VALUE);
    for (size_t i = 0; i < count; i++) {
        CUresult error = copy_1d(U, dsts[i], 0, U, srcs[i], 0, sizes[i], h, per_thread, 0);
        if (error) {
            if (fail)
                *fail = i;
            return error;
        }
    }
    return CUDA_SUCCESS;
}
#define ATTRIBUTES                                                                                                     \
    CUmemcpyAttributes *attributes __attribute__((unused)), size_t *indices __attribute__((unused)),                   \
        size_t attribute_count __attribute__((unused))
API cuMemcpyBatchAsync(CUdeviceptr *d, CUdeviceptr *s, size_t *n, size_t count, ATTRIBUTES, size_t *fail, CUstream h)
{
    BEGIN;
    return batch(d, s, n, count, fail, h, 0);
}
API cuMemcpyBatchAsync_ptsz(CUdeviceptr *d, CUdeviceptr *s, size_t *n, size_t count, ATTRIBUTES, size_t *fail,
                            CUstream h)
{
    BEGIN;
    return batch(d, s, n, count, fail, h, 1);
}
API cuMemcpyBatchAsync_v2(CUdeviceptr *d, CUdeviceptr *s, size_t *n, size_t count, ATTRIBUTES, CUstream h)
{
    BEGIN;
    return batch(d, s, n, count, NULL, h, 0);
}
API cuMemcpyBatchAsync_v2_ptsz(CUdeviceptr *d, CUdeviceptr *s, size_t *n, size_t count, ATTRIBUTES, CUstream h)
{
    BEGIN;
    return batch(d, s, n, count, NULL, h, 1);
}

static size_t element_of(const CUmemcpy3DOperand *o)
{
    return o->type == 2 && array_valid(o->op.array.array) ? o->op.array.array->element_bytes : 0;
}
static CUresult batch_3d(CUDA_MEMCPY3D_BATCH_OP *list, size_t count, size_t *fail, unsigned long long flags, CUstream h,
                         int per_thread)
{
    NEED(list && count && !flags, INVALID_VALUE);
    for (size_t i = 0; i < count; i++) {
        const CUmemcpy3DOperand *s = &list[i].src, *d = &list[i].dst;
        /* extents count elements where an array takes part, bytes otherwise */
        size_t unit = element_of(s) ? element_of(s) : element_of(d) ? element_of(d) : 1;
        CUDA_MEMCPY3D c = {.WidthInBytes = list[i].extent.width * unit,
                           .Height = list[i].extent.height,
                           .Depth = list[i].extent.depth};
        if (s->type == 2) {
            c.srcMemoryType = A, c.srcArray = s->op.array.array;
            c.srcXInBytes = s->op.array.offset.x * unit, c.srcY = s->op.array.offset.y, c.srcZ = s->op.array.offset.z;
        } else {
            c.srcMemoryType = U, c.srcDevice = s->op.ptr.ptr, c.srcPitch = s->op.ptr.rowLength * unit,
            c.srcHeight = s->op.ptr.layerHeight;
        }
        if (d->type == 2) {
            c.dstMemoryType = A, c.dstArray = d->op.array.array;
            c.dstXInBytes = d->op.array.offset.x * unit, c.dstY = d->op.array.offset.y, c.dstZ = d->op.array.offset.z;
        } else {
            c.dstMemoryType = U, c.dstDevice = d->op.ptr.ptr, c.dstPitch = d->op.ptr.rowLength * unit,
            c.dstHeight = d->op.ptr.layerHeight;
        }
        CUresult error = on_stream(&c, h, per_thread, 0);
        if (error) {
            if (fail)
                *fail = i;
            return error;
        }
    }
    return CUDA_SUCCESS;
}
API cuMemcpy3DBatchAsync(size_t count, CUDA_MEMCPY3D_BATCH_OP *list, size_t *fail, unsigned long long flags, CUstream h)
{
    BEGIN;
    return batch_3d(list, count, fail, flags, h, 0);
}
API cuMemcpy3DBatchAsync_ptsz(size_t count, CUDA_MEMCPY3D_BATCH_OP *list, size_t *fail, unsigned long long flags,
                              CUstream h)
{
    BEGIN;
    return batch_3d(list, count, fail, flags, h, 1);
}
API cuMemcpy3DBatchAsync_v2(size_t count, CUDA_MEMCPY3D_BATCH_OP *list, unsigned long long flags, CUstream h)
{
    BEGIN;
    return batch_3d(list, count, NULL, flags, h, 0);
}
API cuMemcpy3DBatchAsync_v2_ptsz(size_t count, CUDA_MEMCPY3D_BATCH_OP *list, unsigned long long flags, CUstream h)
{
    BEGIN;
    return batch_3d(list, count, NULL, flags, h, 1);
}

/* --- fills --- */

static void run_fill(struct work *work)
{
    const uint64_t pitch = work->a[1], element = work->a[3], width = work->a[4], height = work->a[5];
    const uint32_t value = (uint32_t)work->a[2];
    for (uint64_t y = 0; y < height; y++) {
        char *row = (char *)work->a[0] + y * pitch;
        if (element == 1)
            memset(row, (int)value, width);
        else
            for (uint64_t x = 0; x < width; x++)
                memcpy(row + x * element, &value, element);
    }
}

void fill_work(struct work *work, CUdeviceptr address, size_t pitch, unsigned value, unsigned element, size_t width,
               size_t height)
{
    *work = (struct work){.run = run_fill, .a = {address, pitch, value, element, width, height}};
}

static CUresult fill(CUdeviceptr address, size_t pitch, unsigned value, unsigned element, size_t width, size_t height,
                     CUstream handle, int per_thread, int wait)
{
    struct CUstream_st *stream;
    CUresult error = stream_of(handle, per_thread, &stream);
    if (error)
        return error;
    NEED(address % element == 0 && width <= 1ull << 44 && height <= 1ull << 40, INVALID_VALUE);
    NEED(height <= 1 || pitch >= width * element, INVALID_VALUE);
    if (!width || !height)
        return CUDA_SUCCESS;
    if ((error = pointer_usable(address, (height - 1) * pitch + width * element, stream->capture != NULL)))
        return error;
    struct work work;
    uint64_t seq = 0;
    fill_work(&work, address, pitch, value, element, width, height);
    error = stream_add(stream, &work, CU_GRAPH_NODE_TYPE_MEMSET, &seq);
    if (!error && wait && seq)
        stream_run(stream, seq);
    return error;
}

#define FILL(bits, type)                                                                                               \
    API cuMemsetD##bits##_v2(CUdeviceptr d, type v, size_t n)                                                          \
    {                                                                                                                  \
        BEGIN;                                                                                                         \
        return fill(d, 0, v, bits / 8, n, 1, NULL, 0, 1);                                                              \
    }                                                                                                                  \
    API cuMemsetD##bits##_v2_ptds(CUdeviceptr d, type v, size_t n)                                                     \
    {                                                                                                                  \
        BEGIN;                                                                                                         \
        return fill(d, 0, v, bits / 8, n, 1, NULL, 1, 1);                                                              \
    }                                                                                                                  \
    API cuMemsetD##bits(CUdeviceptr_v1 d, type v, unsigned n)                                                          \
    {                                                                                                                  \
        BEGIN;                                                                                                         \
        return fill(d, 0, v, bits / 8, n, 1, NULL, 0, 1);                                                              \
    }                                                                                                                  \
    API cuMemsetD##bits##Async(CUdeviceptr d, type v, size_t n, CUstream h)                                            \
    {                                                                                                                  \
        BEGIN;                                                                                                         \
        return fill(d, 0, v, bits / 8, n, 1, h, 0, 0);                                                                 \
    }                                                                                                                  \
    API cuMemsetD##bits##Async_ptsz(CUdeviceptr d, type v, size_t n, CUstream h)                                       \
    {                                                                                                                  \
        BEGIN;                                                                                                         \
        return fill(d, 0, v, bits / 8, n, 1, h, 1, 0);                                                                 \
    }                                                                                                                  \
    API cuMemsetD2D##bits##_v2(CUdeviceptr d, size_t p, type v, size_t w, size_t k)                                    \
    {                                                                                                                  \
        BEGIN;                                                                                                         \
        return fill(d, p, v, bits / 8, w, k, NULL, 0, 1);                                                              \
    }                                                                                                                  \
    API cuMemsetD2D##bits##_v2_ptds(CUdeviceptr d, size_t p, type v, size_t w, size_t k)                               \
    {                                                                                                                  \
        BEGIN;                                                                                                         \
        return fill(d, p, v, bits / 8, w, k, NULL, 1, 1);                                                              \
    }                                                                                                                  \
    API cuMemsetD2D##bits(CUdeviceptr_v1 d, unsigned p, type v, unsigned w, unsigned k)                                \
    {                                                                                                                  \
        BEGIN;                                                                                                         \
        return fill(d, p, v, bits / 8, w, k, NULL, 0, 1);                                                              \
    }                                                                                                                  \
    API cuMemsetD2D##bits##Async(CUdeviceptr d, size_t p, type v, size_t w, size_t k, CUstream h)                      \
    {                                                                                                                  \
        BEGIN;                                                                                                         \
        return fill(d, p, v, bits / 8, w, k, h, 0, 0);                                                                 \
    }                                                                                                                  \
    API cuMemsetD2D##bits##Async_ptsz(CUdeviceptr d, size_t p, type v, size_t w, size_t k, CUstream h)                 \
    {                                                                                                                  \
        BEGIN;                                                                                                         \
        return fill(d, p, v, bits / 8, w, k, h, 1, 0);                                                                 \
    }
FILL(8, unsigned char)
FILL(16, unsigned short)
FILL(32, unsigned)
