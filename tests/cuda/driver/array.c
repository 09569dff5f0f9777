/* Arrays and mipmapped arrays: rows of elements, without gaps; their size is width x height x depth x element. */
#include "sim.h"

#include <stdlib.h>
#include <string.h>

struct CUmipmappedArray_st {
    unsigned count;
    struct CUarray_st **levels;
    size_t bytes;
    int device;
    struct CUctx_st *ctx;
    struct CUmipmappedArray_st *next;
};
static struct CUarray_st *arrays;
static struct CUmipmappedArray_st *mipmaps;

static size_t format_bytes(CUarray_format format)
{
    switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
        return 1;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
        return 2;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
        return 4;
    }
    return 0;
}

int array_valid(const struct CUarray_st *array)
{
    for (const struct CUarray_st *a = arrays; a; a = a->next)
        if (a == array)
            return 1;
    return 0;
}

static int mipmap_valid(const struct CUmipmappedArray_st *mipmap)
{
    for (const struct CUmipmappedArray_st *m = mipmaps; m; m = m->next)
        if (m == mipmap)
            return 1;
    return 0;
}

static CUresult array_size(struct CUarray_st *array)
{
    const CUDA_ARRAY3D_DESCRIPTOR *d = &array->desc;
    size_t height = d->Height ? d->Height : 1, depth = d->Depth ? d->Depth : 1;
    array->element_bytes = format_bytes(d->Format) * d->NumChannels;
    NEED(array->element_bytes && d->Width && (d->NumChannels == 1 || d->NumChannels == 2 || d->NumChannels == 4),
         INVALID_VALUE);
    NEED(d->Height || !d->Depth || (d->Flags & 1), INVALID_VALUE); /* layered: depth without height */
    if (__builtin_mul_overflow(d->Width, array->element_bytes, &array->row_bytes) ||
        __builtin_mul_overflow(array->row_bytes, height, &array->bytes) ||
        __builtin_mul_overflow(array->bytes, depth, &array->bytes) || array->bytes > 1ull << 46)
        return CUDA_ERROR_OUT_OF_MEMORY;
    return CUDA_SUCCESS;
}

/* one_of a mipmapped array's levels: counted with it, not by itself */
static CUresult array_create(struct CUarray_st **out, const CUDA_ARRAY3D_DESCRIPTOR *desc, int one_of)
{
    struct CUctx_st *ctx;
    CUresult error = context_current(&ctx);
    if (error)
        return error;
    NEED(out && desc, INVALID_VALUE);
    struct CUarray_st *array = calloc(1, sizeof *array);
    NEED(array, OUT_OF_MEMORY);
    array->desc = *desc;
    array->ctx = ctx;
    array->device = ctx->device;
    array->is_level = one_of;
    if ((error = array_size(array)))
        goto out;
    error = CUDA_ERROR_OUT_OF_MEMORY;
    if ((!one_of && fail_now()) || device_take(ctx->device, array->bytes)) {
        ledger_fail(ctx->device, array->bytes);
        goto out;
    }
    if (!(array->memory = back_map(array->bytes, 0))) {
        device_give(ctx->device, array->bytes);
        goto out;
    }
    if (!one_of)
        ledger_alloc(ctx->device, L_ARRAY, array->bytes);
    array->next = arrays;
    arrays = array;
    *out = array;
    return CUDA_SUCCESS;
out:
    free(array);
    return error;
}

static void array_free(struct CUarray_st *array)
{
    for (struct CUarray_st **at = &arrays; *at; at = &(*at)->next)
        if (*at == array) {
            *at = array->next;
            break;
        }
    if (!array->is_level)
        ledger_free(array->device, L_ARRAY, array->bytes);
    back_unmap(array->memory, array->bytes);
    device_give(array->device, array->bytes);
    free(array);
}

API cuArray3DCreate_v2(CUarray *out, const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
    BEGIN;
    CUresult error = array_create(out, desc, 0);
    if (!error)
        (*out)->is_3d = 1;
    return error;
}
API cuArray3DCreate(CUarray *out, const CUDA_ARRAY3D_DESCRIPTOR_v1 *d)
{
    NEED(d, INVALID_VALUE);
    CUDA_ARRAY3D_DESCRIPTOR wide = {d->Width, d->Height, d->Depth, d->Format, d->NumChannels, d->Flags};
    return cuArray3DCreate_v2(out, &wide);
}
API cuArrayCreate_v2(CUarray *out, const CUDA_ARRAY_DESCRIPTOR *d)
{
    BEGIN;
    NEED(d, INVALID_VALUE);
    CUDA_ARRAY3D_DESCRIPTOR wide = {d->Width, d->Height, 0, d->Format, d->NumChannels, 0};
    return array_create(out, &wide, 0);
}
API cuArrayCreate(CUarray *out, const CUDA_ARRAY_DESCRIPTOR_v1 *d)
{
    NEED(d, INVALID_VALUE);
    CUDA_ARRAY_DESCRIPTOR wide = {d->Width, d->Height, d->Format, d->NumChannels};
    return cuArrayCreate_v2(out, &wide);
}

API cuArrayDestroy(CUarray array)
{
    BEGIN_CONTEXT;
    NEED(array_valid(array) && !array->is_level, INVALID_HANDLE);
    sim_finish_all();
    array_free(array);
    return CUDA_SUCCESS;
}

API cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR *out, CUarray array)
{
    BEGIN;
    NEED(out, INVALID_VALUE);
    NEED(array_valid(array), INVALID_HANDLE);
    *out = array->desc;
    return CUDA_SUCCESS;
}
API cuArray3DGetDescriptor(CUDA_ARRAY3D_DESCRIPTOR_v1 *out, CUarray array)
{
    CUDA_ARRAY3D_DESCRIPTOR d;
    CUresult error = out ? cuArray3DGetDescriptor_v2(&d, array) : CUDA_ERROR_INVALID_VALUE;
    if (!error)
        *out = (CUDA_ARRAY3D_DESCRIPTOR_v1){(unsigned)d.Width, (unsigned)d.Height, (unsigned)d.Depth,
                                            d.Format,          d.NumChannels,      d.Flags};
    return error;
}
API cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR *out, CUarray array)
{
    CUDA_ARRAY3D_DESCRIPTOR d;
    CUresult error = out ? cuArray3DGetDescriptor_v2(&d, array) : CUDA_ERROR_INVALID_VALUE;
    if (!error)
        *out = (CUDA_ARRAY_DESCRIPTOR){d.Width, d.Height, d.Format, d.NumChannels};
    return error;
}
API cuArrayGetDescriptor(CUDA_ARRAY_DESCRIPTOR_v1 *out, CUarray array)
{
    CUDA_ARRAY3D_DESCRIPTOR d;
    CUresult error = out ? cuArray3DGetDescriptor_v2(&d, array) : CUDA_ERROR_INVALID_VALUE;
    if (!error)
        *out = (CUDA_ARRAY_DESCRIPTOR_v1){(unsigned)d.Width, (unsigned)d.Height, d.Format, d.NumChannels};
    return error;
}

API cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *out, CUarray array, CUdevice device)
{
    BEGIN;
    NEED(out && device_valid(device), INVALID_VALUE);
    NEED(array_valid(array), INVALID_HANDLE);
    *out = (CUDA_ARRAY_MEMORY_REQUIREMENTS){.size = array->bytes, .alignment = 512};
    return CUDA_SUCCESS;
}

API cuArrayGetPlane(CUarray *out, CUarray array, unsigned plane)
{
    BEGIN;
    (void)plane;
    NEED(out && array_valid(array), INVALID_VALUE);
    return CUDA_ERROR_INVALID_VALUE; /* no planar formats here */
}
API cuArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES *out, CUarray array)
{
    BEGIN;
    NEED(out && array_valid(array), INVALID_VALUE);
    return CUDA_ERROR_INVALID_VALUE; /* none is sparse */
}

/* --- mipmapped --- */

static void mipmap_free(struct CUmipmappedArray_st *mipmap)
{
    for (struct CUmipmappedArray_st **at = &mipmaps; *at; at = &(*at)->next)
        if (*at == mipmap) {
            *at = mipmap->next;
            break;
        }
    for (unsigned i = 0; i < mipmap->count; i++)
        array_free(mipmap->levels[i]);
    ledger_free(mipmap->device, L_ARRAY, mipmap->bytes);
    free(mipmap->levels);
    free(mipmap);
}

API cuMipmappedArrayCreate(CUmipmappedArray *out, const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned levels)
{
    BEGIN_CONTEXT;
    NEED(out && desc && levels, INVALID_VALUE);
    size_t largest = desc->Width > desc->Height ? desc->Width : desc->Height;
    unsigned most = 1;
    while (largest >>= 1)
        most++;
    if (levels > most)
        levels = most;
    struct CUmipmappedArray_st *mipmap = calloc(1, sizeof *mipmap);
    CUresult error = CUDA_ERROR_OUT_OF_MEMORY;
    if (!mipmap || !(mipmap->levels = calloc(levels, sizeof *mipmap->levels)) || fail_now())
        goto out;
    mipmap->device = ctx->device;
    mipmap->ctx = ctx;
    CUDA_ARRAY3D_DESCRIPTOR d = *desc;
    for (; mipmap->count < levels; mipmap->count++) {
        if ((error = array_create(&mipmap->levels[mipmap->count], &d, 1)))
            goto out;
        mipmap->levels[mipmap->count]->mipmap = mipmap;
        mipmap->bytes += mipmap->levels[mipmap->count]->bytes;
        d.Width = d.Width > 1 ? d.Width / 2 : 1;
        d.Height = d.Height > 1 ? d.Height / 2 : d.Height;
        d.Depth = d.Depth > 1 ? d.Depth / 2 : d.Depth;
    }
    mipmap->next = mipmaps;
    mipmaps = mipmap;
    ledger_alloc(ctx->device, L_ARRAY, mipmap->bytes);
    *out = mipmap;
    return CUDA_SUCCESS;
out:
    for (unsigned i = 0; mipmap && i < mipmap->count; i++)
        array_free(mipmap->levels[i]);
    if (mipmap)
        free(mipmap->levels);
    free(mipmap);
    return error;
}

API cuMipmappedArrayGetLevel(CUarray *out, CUmipmappedArray mipmap, unsigned level)
{
    BEGIN;
    NEED(mipmap_valid(mipmap), INVALID_HANDLE);
    NEED(out && level < mipmap->count, INVALID_VALUE);
    *out = mipmap->levels[level];
    return CUDA_SUCCESS;
}

API cuMipmappedArrayDestroy(CUmipmappedArray mipmap)
{
    BEGIN_CONTEXT;
    NEED(mipmap_valid(mipmap), INVALID_HANDLE);
    sim_finish_all();
    mipmap_free(mipmap);
    return CUDA_SUCCESS;
}

API cuMipmappedArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *out, CUmipmappedArray mipmap, CUdevice device)
{
    BEGIN;
    NEED(out && device_valid(device), INVALID_VALUE);
    NEED(mipmap_valid(mipmap), INVALID_HANDLE);
    *out = (CUDA_ARRAY_MEMORY_REQUIREMENTS){.size = mipmap->bytes, .alignment = 512};
    return CUDA_SUCCESS;
}
API cuMipmappedArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES *out, CUmipmappedArray mipmap)
{
    BEGIN;
    NEED(out && mipmap_valid(mipmap), INVALID_VALUE);
    return CUDA_ERROR_INVALID_VALUE;
}

void array_end_context(struct CUctx_st *ctx)
{
    for (struct CUmipmappedArray_st *m = mipmaps, *next; m; m = next) {
        next = m->next;
        if (m->ctx == ctx)
            mipmap_free(m);
    }
    for (struct CUarray_st *a = arrays, *next; a; a = next) {
        next = a->next;
        if (a->ctx == ctx)
            array_free(a);
    }
}
