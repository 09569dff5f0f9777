/*
 * Stream-ordered pools. A pool takes chunks from the device and cuts blocks of 512-byte units from them. A free becomes
 * effective when its stream gets there; an allocation on the same stream may take the block before that. What a pool
 * holds beyond its release threshold goes back, whole chunks only, at the next synchronization.
 */
#include "sim.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct block {
    struct chunk *chunk;
    size_t offset, size;         /* size: in the chunk, rounded */
    int used;                    /* until the free's stream got there */
    struct CUstream_st *freeing; /* a free is pending on it */
    uint64_t pending;            /* its number; 0: none */
    struct block *next;          /* in the chunk, by offset */
};
struct chunk {
    unsigned char *memory;
    size_t bytes;
    struct block *blocks;
    struct CUmemPoolHandle_st *pool;
    struct chunk *next;
};
struct CUmemPoolHandle_st {
    CUmemPoolProps props;
    int device; /* -1: host memory */
    int is_default, destroyed, imported;
    int reuse[3];
    uint64_t threshold, reserved, reserved_high, used, used_high;
    unsigned long live; /* blocks whose free was not requested, and pending ones */
    int fd;
    struct chunk *chunks;
    struct CUmemPoolHandle_st *next;
};
static struct CUmemPoolHandle_st *pools;
static uint64_t frees;

int pool_valid(const struct CUmemPoolHandle_st *pool)
{
    for (const struct CUmemPoolHandle_st *p = pools; p; p = p->next)
        if (p == pool)
            return 1;
    return 0;
}

static int usable(const struct CUmemPoolHandle_st *pool)
{
    return pool_valid(pool) && !pool->destroyed;
}

int pool_device(const struct CUmemPoolHandle_st *pool)
{
    return pool->device;
}

static struct CUmemPoolHandle_st *pool_new(const CUmemPoolProps *props)
{
    struct CUmemPoolHandle_st *pool = calloc(1, sizeof *pool);
    if (!pool)
        return NULL;
    pool->props = *props;
    pool->device = props->location.type == CU_MEM_LOCATION_TYPE_DEVICE ? props->location.id : -1;
    pool->fd = -1;
    for (int i = 0; i < 3; i++)
        pool->reuse[i] = 1;
    pool->next = pools;
    pools = pool;
    return pool;
}

struct CUmemPoolHandle_st *pool_default(int device)
{
    struct device *d = &sim_devices[device];
    if (!d->default_pool) {
        const CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .location = {CU_MEM_LOCATION_TYPE_DEVICE, device}};
        d->default_pool = pool_new(&props);
        if (d->default_pool)
            d->default_pool->is_default = 1;
    }
    if (!d->pool)
        d->pool = d->default_pool;
    return d->default_pool;
}

static void block_merge(struct chunk *chunk)
{
    for (struct block *b = chunk->blocks; b && b->next;)
        if (!b->used && !b->next->used) {
            struct block *gone = b->next;
            b->size += gone->size;
            b->next = gone->next;
            free(gone);
        } else {
            b = b->next;
        }
}

static void pool_trim(struct CUmemPoolHandle_st *pool, uint64_t keep)
{
    for (struct chunk **at = &pool->chunks; *at && pool->reserved > keep;) {
        struct chunk *chunk = *at;
        if (chunk->blocks->used || chunk->blocks->next || pool->reserved - chunk->bytes < keep) {
            at = &chunk->next;
            continue;
        }
        *at = chunk->next;
        pool->reserved -= chunk->bytes;
        if (pool->device >= 0)
            device_give(pool->device, chunk->bytes);
        back_unmap(chunk->memory, chunk->bytes);
        free(chunk->blocks);
        free(chunk);
    }
}

static void pool_end_if_unused(struct CUmemPoolHandle_st *pool)
{
    if (!pool->destroyed || pool->live)
        return;
    pool_trim(pool, 0);
    for (struct CUmemPoolHandle_st **at = &pools; *at; at = &(*at)->next)
        if (*at == pool) {
            *at = pool->next;
            break;
        }
    if (pool->fd >= 0)
        close(pool->fd);
    free(pool);
}

void pool_trim_device(int device)
{
    for (struct CUmemPoolHandle_st *p = pools; p; p = p->next)
        if (p->device == device)
            pool_trim(p, p->threshold);
}

/* --- blocks --- */

static struct block *block_find(struct CUmemPoolHandle_st *pool, size_t size, const struct CUstream_st *stream)
{
    struct block *best = NULL;
    for (struct chunk *c = pool->chunks; c; c = c->next)
        for (struct block *b = c->blocks; b; b = b->next) {
            int reusable = !b->used || (b->pending && stream && b->freeing == stream);
            if (reusable && b->size >= size && (!best || b->size < best->size))
                best = b;
        }
    return best;
}

static struct block *chunk_add(struct CUmemPoolHandle_st *pool, size_t size)
{
    size_t bytes;
    if (__builtin_add_overflow(size, sim_config.pool_chunk - 1, &bytes))
        return NULL;
    bytes = bytes / sim_config.pool_chunk * sim_config.pool_chunk;
    if (pool->props.maxSize && pool->reserved + bytes > pool->props.maxSize)
        return NULL;
    if (pool->device >= 0 && device_take(pool->device, bytes)) {
        pool_trim(pool, 0); /* what this and other pools of the device hold unused may be enough */
        for (struct CUmemPoolHandle_st *p = pools; p; p = p->next)
            if (p->device == pool->device)
                pool_trim(p, 0);
        if (device_take(pool->device, bytes))
            return NULL;
    }
    struct chunk *chunk = calloc(1, sizeof *chunk);
    struct block *block = calloc(1, sizeof *block);
    unsigned char *memory = back_map(bytes, 0);
    if (!chunk || !block || !memory) {
        free(chunk);
        free(block);
        if (memory)
            back_unmap(memory, bytes);
        if (pool->device >= 0)
            device_give(pool->device, bytes);
        return NULL;
    }
    *block = (struct block){.chunk = chunk, .size = bytes};
    *chunk = (struct chunk){.memory = memory, .bytes = bytes, .blocks = block, .pool = pool, .next = pool->chunks};
    pool->chunks = chunk;
    pool->reserved += bytes;
    if (pool->reserved > pool->reserved_high)
        pool->reserved_high = pool->reserved;
    return block;
}

static void block_split(struct block *block, size_t size)
{
    if (block->size == size)
        return;
    struct block *rest = calloc(1, sizeof *rest);
    if (!rest)
        return;
    *rest = (struct block){
        .chunk = block->chunk, .offset = block->offset + size, .size = block->size - size, .next = block->next};
    block->size = size;
    block->next = rest;
}

static void block_done(struct block *block)
{
    struct CUmemPoolHandle_st *pool = block->chunk->pool;
    block->used = 0;
    block->pending = 0;
    pool->used -= block->size;
    pool->live--;
    block_merge(block->chunk);
    pool_end_if_unused(pool);
}

CUresult pool_alloc(CUdeviceptr *out, size_t size, struct CUmemPoolHandle_st *pool, struct CUstream_st *stream)
{
    NEED(out && size, INVALID_VALUE);
    NEED(usable(pool) && !pool->imported, INVALID_VALUE);
    if (stream->capture) {
        CUDA_MEM_ALLOC_NODE_PARAMS params = {.poolProps = pool->props, .bytesize = size};
        CUresult error = graph_add_alloc(stream->capture, &params, NULL);
        if (!error)
            *out = params.dptr;
        return error;
    }
    if (size > 1ull << 46 || fail_now()) {
        ledger_fail(pool->device, size);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    const size_t rounded = (size + 511) & ~(size_t)511;
    struct block *block = block_find(pool, rounded, stream);
    if (!block)
        block = chunk_add(pool, rounded);
    if (!block) { /* memory whose free is pending may be waited for */
        sim_finish_all();
        if (!(block = block_find(pool, rounded, stream)) && !(block = chunk_add(pool, rounded))) {
            ledger_fail(pool->device, size);
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
    }
    if (block->used) { /* its free is pending on this very stream: taken over */
        pool->used -= block->size;
        pool->live--;
        block->pending = 0;
    }
    block_split(block, rounded);
    block->used = 1;
    pool->live++;
    pool->used += block->size;
    if (pool->used > pool->used_high)
        pool->used_high = pool->used;
    struct alloc *alloc =
        alloc_add((CUdeviceptr)(block->chunk->memory + block->offset), size, A_POOL, pool->device, stream->ctx);
    if (!alloc) {
        block_done(block);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    alloc->owner = block;
    alloc->pool = pool;
    alloc->span = 0;
    ledger_alloc(pool->device, L_POOL, size);
    *out = alloc->address;
    return CUDA_SUCCESS;
}

static void run_free(struct work *work)
{
    struct CUmemPoolHandle_st *pool = (struct CUmemPoolHandle_st *)work->a[1];
    if (!pool_valid(pool)) /* every block of it was taken over and freed since */
        return;
    for (struct chunk *c = pool->chunks; c; c = c->next)
        for (struct block *b = c->blocks; b; b = b->next)
            if (b->pending == work->a[0]) { /* none: another allocation of the stream took it over */
                block_done(b);
                return;
            }
}

CUresult pool_free(struct alloc *alloc, struct CUstream_st *stream)
{
    struct block *block = alloc->owner;
    struct CUmemPoolHandle_st *pool = alloc->pool;
    if (alloc->kind != A_POOL)
        return CUDA_ERROR_INVALID_VALUE;
    ledger_free(alloc->device, L_POOL, alloc->size);
    alloc_forget(alloc);
    if (!stream) {
        block_done(block);
        return CUDA_SUCCESS;
    }
    block->pending = ++frees;
    block->freeing = stream;
    return stream_add(stream, &(struct work){.run = run_free, .a = {block->pending, (uintptr_t)pool}}, 0, NULL);
}

static CUresult alloc_async(CUdeviceptr *out, size_t size, CUmemoryPool pool, CUstream handle, int per_thread,
                            int from_pool)
{
    struct CUstream_st *stream;
    CUresult error = stream_of(handle, per_thread, &stream);
    if (error)
        return error;
    if (!from_pool) {
        NEED(pool_default(stream->ctx->device), OUT_OF_MEMORY);
        pool = sim_devices[stream->ctx->device].pool;
    }
    return pool_alloc(out, size, pool, stream);
}
API cuMemAllocAsync(CUdeviceptr *out, size_t size, CUstream s)
{
    BEGIN;
    return alloc_async(out, size, NULL, s, 0, 0);
}
API cuMemAllocAsync_ptsz(CUdeviceptr *out, size_t size, CUstream s)
{
    BEGIN;
    return alloc_async(out, size, NULL, s, 1, 0);
}
API cuMemAllocFromPoolAsync(CUdeviceptr *out, size_t size, CUmemoryPool pool, CUstream s)
{
    BEGIN;
    return alloc_async(out, size, pool, s, 0, 1);
}
API cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *out, size_t size, CUmemoryPool pool, CUstream s)
{
    BEGIN;
    return alloc_async(out, size, pool, s, 1, 1);
}

static void run_graph_free(struct work *work)
{
    struct alloc *alloc = alloc_base(work->a[0]);
    if (alloc && alloc->kind == A_GRAPH)
        graph_block_freed(alloc, NULL);
}

static void run_plain_free(struct work *work)
{
    struct alloc *alloc = alloc_base(work->a[0]);
    if (alloc && (alloc->kind == A_PLAIN || alloc->kind == A_MANAGED || alloc->kind == A_FOREIGN))
        alloc_release(alloc);
}

static CUresult free_async(CUdeviceptr address, CUstream handle, int per_thread)
{
    struct CUstream_st *stream;
    CUresult error = stream_of(handle, per_thread, &stream);
    if (error)
        return error;
    if (stream->capture)
        return graph_add_free(stream->capture, address, NULL);
    struct alloc *alloc = alloc_base(address);
    NEED(address && alloc, INVALID_VALUE);
    if (alloc->kind == A_POOL)
        return pool_free(alloc, stream);
    /* plain memory may be freed in stream order too, and must be what came from an imported pool */
    NEED(alloc->kind == A_GRAPH || alloc->kind == A_PLAIN || (alloc->kind == A_FOREIGN && alloc->pool), INVALID_VALUE);
    return stream_add(stream,
                      &(struct work){.run = alloc->kind == A_GRAPH ? run_graph_free : run_plain_free, .a = {address}},
                      0, NULL);
}
API cuMemFreeAsync(CUdeviceptr address, CUstream s)
{
    BEGIN;
    return free_async(address, s, 0);
}
API cuMemFreeAsync_ptsz(CUdeviceptr address, CUstream s)
{
    BEGIN;
    return free_async(address, s, 1);
}

/* --- pools themselves --- */

API cuMemPoolCreate(CUmemoryPool *out, const CUmemPoolProps *props)
{
    BEGIN;
    NEED(out && props && props->allocType == CU_MEM_ALLOCATION_TYPE_PINNED, INVALID_VALUE);
    NEED(props->location.type == CU_MEM_LOCATION_TYPE_DEVICE ? device_valid(props->location.id)
                                                             : props->location.type >= CU_MEM_LOCATION_TYPE_HOST,
         INVALID_VALUE);
    *out = pool_new(props);
    return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

API cuMemPoolDestroy(CUmemoryPool pool)
{
    BEGIN;
    NEED(usable(pool) && !pool->is_default, INVALID_VALUE);
    for (int d = 0; d < sim_config.device_count; d++)
        if (sim_devices[d].pool == pool) /* the device goes back to its default one */
            sim_devices[d].pool = sim_devices[d].default_pool;
    pool->destroyed = 1;
    pool_end_if_unused(pool);
    return CUDA_SUCCESS;
}

API cuMemPoolTrimTo(CUmemoryPool pool, size_t keep)
{
    BEGIN;
    NEED(usable(pool), INVALID_VALUE);
    pool_trim(pool, keep);
    return CUDA_SUCCESS;
}

API cuMemPoolGetAttribute(CUmemoryPool pool, int what, void *value)
{
    BEGIN;
    NEED(usable(pool) && value, INVALID_VALUE);
    switch (what) {
    case 1:
    case 2:
    case 3:
        *(int *)value = pool->reuse[what - 1];
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        *(cuuint64_t *)value = pool->threshold;
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
        *(cuuint64_t *)value = pool->reserved;
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
        *(cuuint64_t *)value = pool->reserved_high;
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
        *(cuuint64_t *)value = pool->used;
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        *(cuuint64_t *)value = pool->used_high;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

API cuMemPoolSetAttribute(CUmemoryPool pool, int what, void *value)
{
    BEGIN;
    NEED(usable(pool) && value, INVALID_VALUE);
    switch (what) {
    case 1:
    case 2:
    case 3:
        pool->reuse[what - 1] = *(int *)value;
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        pool->threshold = *(cuuint64_t *)value;
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
        NEED(*(cuuint64_t *)value == 0, INVALID_VALUE);
        pool->reserved_high = pool->reserved;
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        NEED(*(cuuint64_t *)value == 0, INVALID_VALUE);
        pool->used_high = pool->used;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

API cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *access, size_t count)
{
    BEGIN;
    NEED(usable(pool) && (access || !count), INVALID_VALUE);
    return CUDA_SUCCESS;
}
API cuMemPoolGetAccess(int *flags, CUmemoryPool pool, CUmemLocation *location)
{
    BEGIN;
    NEED(flags && usable(pool) && location, INVALID_VALUE);
    *flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return CUDA_SUCCESS;
}

API cuDeviceGetDefaultMemPool(CUmemoryPool *out, CUdevice device)
{
    BEGIN;
    NEED(out, INVALID_VALUE);
    NEED(device_valid(device), INVALID_DEVICE);
    *out = pool_default(device);
    return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
API cuDeviceGetMemPool(CUmemoryPool *out, CUdevice device)
{
    BEGIN;
    NEED(out, INVALID_VALUE);
    NEED(device_valid(device), INVALID_DEVICE);
    NEED(pool_default(device), OUT_OF_MEMORY);
    *out = sim_devices[device].pool;
    return CUDA_SUCCESS;
}
API cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool)
{
    BEGIN;
    NEED(device_valid(device), INVALID_DEVICE);
    NEED(usable(pool) && pool->device == device && pool_default(device), INVALID_VALUE);
    sim_devices[device].pool = pool;
    return CUDA_SUCCESS;
}
static CUresult by_location(CUmemoryPool *out, const CUmemLocation *location, int type, int now)
{
    NEED(out && location && type == CU_MEM_ALLOCATION_TYPE_PINNED, INVALID_VALUE);
    NEED(location->type == CU_MEM_LOCATION_TYPE_DEVICE && device_valid(location->id), INVALID_VALUE);
    NEED(pool_default(location->id), OUT_OF_MEMORY);
    *out = now ? sim_devices[location->id].pool : sim_devices[location->id].default_pool;
    return CUDA_SUCCESS;
}
API cuMemGetDefaultMemPool(CUmemoryPool *out, CUmemLocation *location, int type)
{
    BEGIN;
    return by_location(out, location, type, 0);
}
API cuMemGetMemPool(CUmemoryPool *out, CUmemLocation *location, int type)
{
    BEGIN;
    return by_location(out, location, type, 1);
}
API cuMemSetMemPool(CUmemLocation *location, int type, CUmemoryPool pool)
{
    BEGIN;
    CUmemoryPool before;
    CUresult error = by_location(&before, location, type, 1);
    if (error)
        return error;
    NEED(usable(pool) && pool->device == location->id, INVALID_VALUE);
    sim_devices[location->id].pool = pool;
    return CUDA_SUCCESS;
}

/* --- sharing: handles name pools; an imported one allocates nothing, an imported pointer maps foreign memory --- */

API cuMemPoolExportToShareableHandle(void *out, CUmemoryPool pool, int type, unsigned long long flags)
{
    BEGIN;
    NEED(out && usable(pool) && !pool->is_default && !flags && type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
         INVALID_VALUE);
    NEED(pool->props.handleTypes & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, INVALID_VALUE);
    if (pool->fd < 0 && (pool->fd = back_file(4096)) < 0)
        return CUDA_ERROR_OPERATING_SYSTEM;
    int fd = dup(pool->fd);
    NEED(fd >= 0, OPERATING_SYSTEM);
    *(int *)out = fd;
    return CUDA_SUCCESS;
}
API cuMemPoolImportFromShareableHandle(CUmemoryPool *out, void *handle, int type, unsigned long long flags)
{
    BEGIN_CONTEXT;
    NEED(out && !flags && type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, INVALID_VALUE);
    NEED(lseek((int)(intptr_t)handle, 0, SEEK_CUR) >= 0, INVALID_VALUE);
    const CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                  .location = {CU_MEM_LOCATION_TYPE_DEVICE, ctx->device}};
    *out = pool_new(&props);
    NEED(*out, OUT_OF_MEMORY);
    (*out)->imported = 1;
    return CUDA_SUCCESS;
}
API cuMemPoolExportPointer(CUmemPoolPtrExportData *out, CUdeviceptr address)
{
    BEGIN;
    struct alloc *alloc = alloc_base(address);
    NEED(out && alloc && alloc->kind == A_POOL, INVALID_VALUE);
    const uint64_t data[3] = {(uint64_t)getpid(), address, alloc->size};
    memset(out, 0, sizeof *out);
    memcpy(out->reserved, data, sizeof data);
    return CUDA_SUCCESS;
}
API cuMemPoolImportPointer(CUdeviceptr *out, CUmemoryPool pool, CUmemPoolPtrExportData *data)
{
    BEGIN_CONTEXT;
    uint64_t words[3];
    NEED(out && usable(pool) && pool->imported && data, INVALID_VALUE);
    memcpy(words, data->reserved, sizeof words);
    NEED(words[2] && words[2] < 1ull << 40, INVALID_VALUE);
    void *memory = back_map(words[2], 0);
    struct alloc *alloc = memory ? alloc_add((CUdeviceptr)memory, words[2], A_FOREIGN, ctx->device, ctx) : NULL;
    NEED(alloc, OUT_OF_MEMORY);
    alloc->pool = pool;
    *out = alloc->address;
    return CUDA_SUCCESS;
}
