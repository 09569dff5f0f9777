/* Contexts: primary ones with their counts, created ones, and each thread's stack of them. */
#include "sim.h"

#include <stdlib.h>

enum { STACK = 32 };
static __thread struct CUctx_st *stack[STACK];
static __thread int depth;
static struct CUctx_st *contexts;

static int listed(const struct CUctx_st *ctx)
{
    for (const struct CUctx_st *c = contexts; c; c = c->next)
        if (c == ctx)
            return 1;
    return 0;
}

int context_valid(const struct CUctx_st *ctx)
{
    return listed(ctx) && ctx->active;
}

CUresult context_current(struct CUctx_st **ctx)
{
    if (!depth || !stack[depth - 1])
        return CUDA_ERROR_INVALID_CONTEXT;
    *ctx = stack[depth - 1];
    return context_valid(*ctx) ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

struct CUctx_st *context_any(int device)
{
    for (struct CUctx_st *c = contexts; c; c = c->next)
        if (c->device == device && c->active)
            return c;
    return NULL;
}

static CUresult context_begin(struct CUctx_st *ctx)
{
    if (ctx->active)
        return CUDA_SUCCESS;
    if (fail_now() || device_take(ctx->device, sim_config.context_bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    ctx->active = 1;
    return CUDA_SUCCESS;
}

void context_end(struct CUctx_st *ctx)
{
    if (!ctx->active)
        return;
    context_finish(ctx);
    stream_end_context(ctx);
    alloc_end_context(ctx);
    array_end_context(ctx);
    pool_trim_device(ctx->device);
    device_give(ctx->device, sim_config.context_bytes);
    ctx->active = 0;
    ctx->peers = 0;
}

static struct CUctx_st *context_new(int device, unsigned flags, unsigned version)
{
    struct CUctx_st *ctx = calloc(1, sizeof *ctx);
    if (!ctx)
        return NULL;
    ctx->id = sim_ids++;
    ctx->device = device;
    ctx->flags = flags;
    ctx->version = version;
    ctx->next = contexts;
    contexts = ctx;
    return ctx;
}

static void context_forget(struct CUctx_st *ctx)
{
    for (struct CUctx_st **at = &contexts; *at; at = &(*at)->next)
        if (*at == ctx) {
            *at = ctx->next;
            break;
        }
    for (int i = 0; i < depth; i++)
        if (stack[i] == ctx && i < depth - 1)
            stack[i] = NULL;
    if (depth && stack[depth - 1] == ctx)
        depth--;
    free(ctx);
}

/* --- primary contexts --- */

static struct CUctx_st *primary(int device)
{
    struct device *d = &sim_devices[device];
    if (!d->primary && (d->primary = context_new(device, 0, 3020)))
        d->primary->is_primary = 1;
    return d->primary;
}

API cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice device)
{
    BEGIN;
    NEED(out, INVALID_VALUE);
    NEED(device_valid(device), INVALID_DEVICE);
    struct CUctx_st *ctx = primary(device);
    CUresult error = ctx ? context_begin(ctx) : CUDA_ERROR_OUT_OF_MEMORY;
    if (error)
        return error;
    ctx->retained++;
    *out = ctx;
    return CUDA_SUCCESS;
}

static CUresult release(CUdevice device)
{
    NEED(device_valid(device), INVALID_DEVICE);
    struct CUctx_st *ctx = sim_devices[device].primary;
    NEED(ctx && ctx->retained, INVALID_CONTEXT);
    if (--ctx->retained == 0)
        context_end(ctx);
    return CUDA_SUCCESS;
}
API cuDevicePrimaryCtxRelease(CUdevice device)
{
    BEGIN;
    return release(device);
}
API cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    BEGIN;
    return release(device);
}

/* Frees all; those who retained it still have to release it. It works again when it is next retained. */
static CUresult reset(CUdevice device)
{
    NEED(device_valid(device), INVALID_DEVICE);
    if (sim_devices[device].primary)
        context_end(sim_devices[device].primary);
    return CUDA_SUCCESS;
}
API cuDevicePrimaryCtxReset(CUdevice device)
{
    BEGIN;
    return reset(device);
}
API cuDevicePrimaryCtxReset_v2(CUdevice device)
{
    BEGIN;
    return reset(device);
}

API cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active)
{
    BEGIN;
    NEED(flags && active, INVALID_VALUE);
    NEED(device_valid(device), INVALID_DEVICE);
    struct CUctx_st *ctx = primary(device);
    NEED(ctx, OUT_OF_MEMORY);
    *flags = ctx->flags;
    *active = ctx->active;
    return CUDA_SUCCESS;
}

static CUresult set_flags(CUdevice device, unsigned flags, int while_active)
{
    NEED(device_valid(device), INVALID_DEVICE);
    struct CUctx_st *ctx = primary(device);
    NEED(ctx, OUT_OF_MEMORY);
    NEED(!ctx->active || while_active, PRIMARY_CONTEXT_ACTIVE);
    ctx->flags = flags;
    return CUDA_SUCCESS;
}
API cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned flags)
{
    BEGIN;
    return set_flags(device, flags, 0);
}
API cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned flags)
{
    BEGIN;
    return set_flags(device, flags, 1);
}

/* --- created ones --- */

static CUresult create(CUcontext *out, unsigned flags, CUdevice device, unsigned version)
{
    NEED(out, INVALID_VALUE);
    NEED(device_valid(device), INVALID_DEVICE);
    NEED(depth < STACK, INVALID_VALUE);
    struct CUctx_st *ctx = context_new(device, flags, version);
    NEED(ctx, OUT_OF_MEMORY);
    CUresult error = context_begin(ctx);
    if (error) {
        context_forget(ctx);
        return error;
    }
    stack[depth++] = ctx;
    *out = ctx;
    return CUDA_SUCCESS;
}
API cuCtxCreate(CUcontext *out, unsigned flags, CUdevice device)
{
    BEGIN;
    return create(out, flags, device, 3010);
}
API cuCtxCreate_v2(CUcontext *out, unsigned flags, CUdevice device)
{
    BEGIN;
    return create(out, flags, device, 3020);
}
API cuCtxCreate_v3(CUcontext *out, void *affinity, int count, unsigned flags, CUdevice device)
{
    BEGIN;
    NEED(!count || affinity, INVALID_VALUE);
    return create(out, flags, device, 3020);
}
API cuCtxCreate_v4(CUcontext *out, void *parameters, unsigned flags, CUdevice device)
{
    BEGIN;
    (void)parameters;
    return create(out, flags, device, 3020);
}

static CUresult destroy(CUcontext ctx)
{
    NEED(ctx, INVALID_VALUE);
    NEED(listed(ctx) && !ctx->is_primary, INVALID_CONTEXT);
    context_end(ctx);
    context_forget(ctx);
    return CUDA_SUCCESS;
}
API cuCtxDestroy(CUcontext ctx)
{
    BEGIN;
    return destroy(ctx);
}
API cuCtxDestroy_v2(CUcontext ctx)
{
    BEGIN;
    return destroy(ctx);
}

API cuCtxAttach(CUcontext *out, unsigned flags)
{
    BEGIN_CONTEXT;
    NEED(out && !flags, INVALID_VALUE);
    ctx->retained++;
    *out = ctx;
    return CUDA_SUCCESS;
}

API cuCtxDetach(CUcontext ctx)
{
    BEGIN;
    NEED(listed(ctx), INVALID_CONTEXT);
    if (ctx->retained) {
        ctx->retained--;
        return CUDA_SUCCESS;
    }
    return destroy(ctx);
}

/* --- the thread's stack --- */

static CUresult push(CUcontext ctx)
{
    NEED(listed(ctx), INVALID_CONTEXT);
    NEED(depth < STACK, INVALID_VALUE);
    stack[depth++] = ctx;
    return CUDA_SUCCESS;
}
API cuCtxPushCurrent(CUcontext ctx)
{
    BEGIN;
    return push(ctx);
}
API cuCtxPushCurrent_v2(CUcontext ctx)
{
    BEGIN;
    return push(ctx);
}

static CUresult pop(CUcontext *out)
{
    NEED(depth, INVALID_CONTEXT);
    depth--;
    if (out)
        *out = stack[depth];
    return CUDA_SUCCESS;
}
API cuCtxPopCurrent(CUcontext *out)
{
    BEGIN;
    return pop(out);
}
API cuCtxPopCurrent_v2(CUcontext *out)
{
    BEGIN;
    return pop(out);
}

API cuCtxSetCurrent(CUcontext ctx)
{
    BEGIN;
    if (!ctx) {
        if (depth)
            depth--;
        return CUDA_SUCCESS;
    }
    NEED(listed(ctx), INVALID_CONTEXT);
    if (depth)
        depth--;
    stack[depth++] = ctx;
    return CUDA_SUCCESS;
}

API cuCtxGetCurrent(CUcontext *out)
{
    BEGIN;
    NEED(out, INVALID_VALUE);
    *out = depth ? stack[depth - 1] : NULL;
    return CUDA_SUCCESS;
}

static CUresult device_of(CUdevice *device, struct CUctx_st *ctx)
{
    NEED(device, INVALID_VALUE);
    *device = ctx->device;
    return CUDA_SUCCESS;
}
API cuCtxGetDevice(CUdevice *device)
{
    BEGIN_CONTEXT;
    return device_of(device, ctx);
}
API cuCtxGetDevice_v2(CUdevice *device, CUcontext which)
{
    BEGIN_CONTEXT;
    NEED(!which || listed(which), INVALID_CONTEXT);
    return device_of(device, which ? which : ctx);
}

static CUresult synchronize(struct CUctx_st *ctx)
{
    CUresult error = capture_forbids(ctx);
    if (error)
        return error;
    context_finish(ctx);
    pool_trim_device(ctx->device);
    return CUDA_SUCCESS;
}
API cuCtxSynchronize(void)
{
    BEGIN_CONTEXT;
    return synchronize(ctx);
}
API cuCtxSynchronize_v2(CUcontext which)
{
    BEGIN_CONTEXT;
    NEED(!which || context_valid(which), INVALID_CONTEXT);
    return synchronize(which ? which : ctx);
}

API cuCtxGetFlags(unsigned *flags)
{
    BEGIN_CONTEXT;
    NEED(flags, INVALID_VALUE);
    *flags = ctx->flags;
    return CUDA_SUCCESS;
}
API cuCtxGetId(CUcontext which, unsigned long long *id)
{
    BEGIN_CONTEXT;
    NEED(id && (!which || listed(which)), INVALID_VALUE);
    *id = which ? which->id : ctx->id;
    return CUDA_SUCCESS;
}
API cuCtxGetApiVersion(CUcontext which, unsigned *version)
{
    BEGIN_CONTEXT;
    NEED(version && (!which || listed(which)), INVALID_VALUE);
    *version = which ? which->version : ctx->version;
    return CUDA_SUCCESS;
}
API cuCtxGetLimit(size_t *value, int limit)
{
    BEGIN_CONTEXT;
    NEED(value && limit >= 0, INVALID_VALUE);
    *value = limit ? 8 * MIB : 1024;
    return CUDA_SUCCESS;
}
API cuCtxSetLimit(int limit, size_t value)
{
    BEGIN_CONTEXT;
    NEED(limit >= 0 && value, INVALID_VALUE);
    return CUDA_SUCCESS;
}
API cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    BEGIN_CONTEXT;
    if (least)
        *least = 0;
    if (greatest)
        *greatest = -5;
    return CUDA_SUCCESS;
}

API cuCtxEnablePeerAccess(CUcontext peer, unsigned flags)
{
    BEGIN_CONTEXT;
    NEED(!flags, INVALID_VALUE);
    NEED(context_valid(peer) && peer != ctx, INVALID_CONTEXT);
    NEED(!(ctx->peers >> peer->device & 1), PEER_ACCESS_ALREADY_ENABLED);
    ctx->peers |= 1ull << peer->device;
    return CUDA_SUCCESS;
}
API cuCtxDisablePeerAccess(CUcontext peer)
{
    BEGIN_CONTEXT;
    NEED(context_valid(peer), INVALID_CONTEXT);
    NEED(ctx->peers >> peer->device & 1, PEER_ACCESS_NOT_ENABLED);
    ctx->peers &= ~(1ull << peer->device);
    return CUDA_SUCCESS;
}
