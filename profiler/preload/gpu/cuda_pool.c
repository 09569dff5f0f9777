/* Stream-ordered memory: pools with what they hold, waits of the host. */
#include "../order.h"
#include "cuda.h"

/*
 * Pools seen by this process. What a pool holds changes when it grows, which an allocation does, and when it gives
 * back, which a wait, a trim or an attribute does: its attributes are read then, and otherwise at most once in
 * POOL_READ_NS. Entries are taken with compare and swap and never given back; their figures are estimates that threads
 * overwrite.
 */
#define POOLS        256u
#define POOL_READ_NS 2000000ll
#define TRIM_LOOK_NS 50000l
static struct pool {
    uint64_t handle; /* 0: free */
    uint64_t reserved_bytes, used_bytes;
    int64_t read_ns;
    uint32_t device;
    uint32_t announced;
    uint32_t trimmed_by; /* the process that trims it now, and which waits before it destroys it; 0: none */
} pools[POOLS];
static uint32_t pool_count_hint;
static uint32_t frees; /* requested so far */

static struct pool *pool_entry(uint64_t handle)
{
    if (!handle)
        return NULL;
    for (uint32_t n = 0, i = (uint32_t)(handle >> 4) % POOLS; n < POOLS; n++, i = (i + 1) % POOLS) {
        uint64_t seen = __atomic_load_n(&pools[i].handle, __ATOMIC_ACQUIRE);
        if (!seen &&
            __atomic_compare_exchange_n(&pools[i].handle, &seen, handle, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            __atomic_fetch_add(&pool_count_hint, 1, __ATOMIC_RELAXED);
            return &pools[i];
        }
        if (seen == handle)
            return &pools[i];
    }
    return NULL;
}

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void pool_read(struct cuda_call *c, uint64_t handle, struct pool *p, unsigned device, int settled)
{
    uint64_t reserved = 0, used = 0, high = 0;
    int (*ask)(cu_handle, int, void *) = cuda_driver.ask.cuMemPoolGetAttribute;
    if (!ask || ask((cu_handle)handle, CU_POOL_RESERVED_CURRENT, &reserved) != 0 ||
        ask((cu_handle)handle, CU_POOL_USED_CURRENT, &used) != 0)
        return;
    if (ask((cu_handle)handle, CU_POOL_RESERVED_HIGH, &high) != 0)
        high = 0;
    if (p) {
        p->reserved_bytes = reserved;
        p->used_bytes = used;
        p->read_ns = now_ns();
        device = p->device;
    }
    CUDA_NOTE(c, POOL_STATE, device, 0, handle, reserved, used, (uint64_t)settled, high);
}

/* Announces a pool that is new; may give NULL where there are too many. */
static struct pool *pool_see(struct cuda_call *c, cu_handle handle, unsigned device, unsigned flags)
{
    struct pool *p = pool_entry((uint64_t)handle);
    if (!p) {
        CUDA_RECORD(c, POOL, device, 0, (uint64_t)handle, flags);
        return NULL;
    }
    if (__atomic_load_n(&p->announced, __ATOMIC_ACQUIRE) == (uint32_t)process.pid)
        return p;
    cu_handle standard = NULL;
    if (device < WIRE_DEVICE_UNKNOWN && cuda_driver.ask.cuDeviceGetDefaultMemPool &&
        cuda_driver.ask.cuDeviceGetDefaultMemPool(&standard, (int)device) == 0 && standard == handle)
        flags |= WIRE_POOL_DEFAULT;
    p->device = device;
    p->reserved_bytes = p->used_bytes = 0;
    p->read_ns = 0;
    CUDA_RECORD(c, POOL, device, 0, (uint64_t)handle, flags);
    __atomic_store_n(&p->announced, (uint32_t)process.pid, __ATOMIC_RELEASE);
    return p;
}

/* settled: the device whose pools have no free pending any more */
static void pools_read(struct cuda_call *c, unsigned settled)
{
    if (!__atomic_load_n(&pool_count_hint, __ATOMIC_RELAXED))
        return;
    for (uint32_t i = 0; i < POOLS; i++)
        if (pools[i].handle && pools[i].announced == (uint32_t)process.pid)
            pool_read(c, pools[i].handle, &pools[i], pools[i].device, pools[i].device == settled);
}

/* --- blocks --- */

static cu_handle pool_of(uint64_t p, unsigned device)
{
    cu_handle pool = NULL;
    if (cuda_driver.ask.cuPointerGetAttribute &&
        cuda_driver.ask.cuPointerGetAttribute(&pool, CU_POINTER_POOL, p) == 0 && pool)
        return pool;
    pool = NULL;
    if (device < WIRE_DEVICE_UNKNOWN && cuda_driver.ask.cuDeviceGetMemPool &&
        cuda_driver.ask.cuDeviceGetMemPool(&pool, (int)device) == 0)
        return pool;
    return NULL;
}

void cuda_pool_allocated(struct cuda_call *c, uint64_t p, uint64_t size, cu_handle pool, cu_handle stream)
{
    cu_handle graph = NULL;
    if (unlikely(cuda_capturing(c, stream, &graph))) {
        cuda_graph_allocates();
        CUDA_RECORD(c, GRAPH_ALLOC_NODE, cuda_device_current(c), WIRE_CALL_CAPTURED, (uint64_t)graph, p, size);
        return;
    }
    struct pool *entry = NULL;
    unsigned device = WIRE_DEVICE_UNKNOWN;
    if (pool) { /* where a block lies is its pool's matter */
        entry = pool_entry((uint64_t)pool);
        if (entry && entry->announced == (uint32_t)process.pid)
            device = entry->device;
    }
    if (device == WIRE_DEVICE_UNKNOWN)
        device = cuda_device_of_address(c, p);
    if (!pool)
        pool = pool_of(p, device);
    if (pool)
        entry = pool_see(c, pool, device, 0);
    CUDA_RECORD(c, POOL_ALLOC, device, 0, p, size, (uint64_t)pool, cuda_stream_number(c, stream));
    if (!pool)
        return;
    if (entry)
        entry->used_bytes += size;
    if (!entry || entry->used_bytes > entry->reserved_bytes || now_ns() - entry->read_ns > POOL_READ_NS)
        pool_read(c, (uint64_t)pool, entry, device, 0);
}

/* What is freed while its stream captures becomes a node of the graph: nothing is taken away now. */
void cuda_pool_freeing(struct cuda_call *c, uint64_t p, cu_handle stream)
{
    c->captured = p && cuda_capturing(c, stream, NULL);
    if (!p || c->captured)
        return;
    __atomic_fetch_add(&frees, 1, __ATOMIC_RELAXED);
    CUDA_TAKE(c, POOL_FREE, cuda_free_device(c), 0, p, cuda_stream_number(c, stream));
}

void cuda_pool_freed(struct cuda_call *c, uint64_t p, cu_handle stream)
{
    cu_handle graph = NULL;
    if (likely(!c->captured))
        return;
    cuda_capturing(c, stream, &graph);
    CUDA_RECORD(c, GRAPH_FREE_NODE, cuda_device_current(c), WIRE_CALL_CAPTURED, (uint64_t)graph, p);
}

/* --- pools --- */

void cuda_pool_created(struct cuda_call *c, cu_handle pool, const struct cu_pool_properties *properties)
{
    struct pool *p = pool_entry((uint64_t)pool);
    if (p) /* an address that a pool had before, which was destroyed */
        __atomic_store_n(&p->announced, 0, __ATOMIC_RELEASE);
    pool_see(c, pool, cuda_device_of(c, &properties->location), 0);
}

void cuda_pool_imported(struct cuda_call *c, cu_handle pool)
{
    struct pool *p = pool_entry((uint64_t)pool);
    if (p)
        __atomic_store_n(&p->announced, 0, __ATOMIC_RELEASE);
    pool_see(c, pool, cuda_device_current(c), WIRE_POOL_IMPORTED);
}

/* Its last figures; the entry is not read again. */
void cuda_pool_destroying(struct cuda_call *c, cu_handle pool)
{
    struct pool *p = pool_entry((uint64_t)pool);
    if (!p)
        return;
    cuda_pool_changed(c, pool);
    /* nobody may ask for it any more; where the call fails it is announced anew */
    __atomic_store_n(&p->announced, 0, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&p->trimmed_by, __ATOMIC_SEQ_CST) == (uint32_t)process.pid)
        sys_sleep_ns(TRIM_LOOK_NS);
}

void cuda_pool_destroyed(struct cuda_call *c, cu_handle pool)
{
    struct pool *p = pool_entry((uint64_t)pool);
    unsigned device = p ? p->device : WIRE_DEVICE_UNKNOWN;
    CUDA_NOTE(c, POOL_END, device, 0, (uint64_t)pool);
}

void cuda_pool_changed(struct cuda_call *c, cu_handle pool)
{
    struct pool *p = pool_entry((uint64_t)pool);
    unsigned device = WIRE_DEVICE_UNKNOWN;
    if (!p || p->announced != (uint32_t)process.pid)
        p = pool_see(c, pool, device = cuda_device_current(c), 0);
    pool_read(c, (uint64_t)pool, p, device, 0);
}

void cuda_pool_set(struct cuda_call *c, int device, cu_handle pool)
{
    if (!pool)
        return;
    struct pool *p = pool_see(c, pool, cuda_device(c, device), 0);
    pool_read(c, (uint64_t)pool, p, cuda_device(c, device), 0);
}

/* --- waits: frees requested before are done, and pools may have given back what they held --- */

void cuda_waiting(struct cuda_call *c)
{
    c->frees = __atomic_load_n(&frees, __ATOMIC_ACQUIRE);
}

/* A wait tells nothing when no free was requested since the last wait for the same: by device, or by stream. */
void cuda_waited(struct cuda_call *c, cu_handle stream_or_context, int whole_context)
{
    static uint64_t told[256]; /* what was waited for (32 bits, not 0) | frees requested until then (32) */
    if (!c->frees)
        return;
    unsigned device = cuda_device_current(c);
    uint64_t context = cuda_context_current(), stream = 0;
    if (whole_context && stream_or_context && (uint64_t)stream_or_context != context) {
        context = (uint64_t)stream_or_context;
        device = WIRE_DEVICE_UNKNOWN; /* the context's: it is not asked for here */
    } else if (!whole_context) {
        stream = cuda_stream_number(c, stream_or_context);
    }
    uint64_t what = (stream ? stream : context) * 0x9e3779b97f4a7c15ull >> 32 | 1;
    uint64_t *entry = &told[what / 2 % 256];
    if (__atomic_load_n(entry, __ATOMIC_RELAXED) == (what << 32 | c->frees))
        return;
    CUDA_NOTE(c, SYNC, device, 0, context, stream);
    int settled = whole_context && c->frees == __atomic_load_n(&frees, __ATOMIC_ACQUIRE);
    pools_read(c, settled ? device : WIRE_DEVICE_UNKNOWN);
    __atomic_store_n(entry, what << 32 | c->frees, __ATOMIC_RELAXED);
}

/* --- orders of a policy --- */

/* The wrappers: what a trim or a wait changes is recorded as if the program had called them. */
extern int hook_cuMemPoolTrimTo(cu_handle pool, size_t keep);
extern int hook_cuCtxSynchronize(void);

static int is_known(const struct pool *p, unsigned ordinal)
{
    return p->handle && p->device == ordinal &&
           __atomic_load_n(&p->announced, __ATOMIC_SEQ_CST) == (uint32_t)process.pid;
}

static uint64_t reserved_by(uint64_t handle)
{
    uint64_t reserved = 0;
    int (*ask)(cu_handle, int, void *) = cuda_driver.ask.cuMemPoolGetAttribute;
    return ask && ask((cu_handle)handle, CU_POOL_RESERVED_CURRENT, &reserved) == 0 ? reserved : 0;
}

/* Calls see for each of the device's pools, none of which is destroyed meanwhile. Returns how many there were. */
static int each_pool(unsigned ordinal, void (*see)(uint64_t handle, uint64_t *bytes), uint64_t *bytes)
{
    int count = 0;
    for (uint32_t i = 0; i < POOLS; i++) {
        struct pool *p = &pools[i];
        uint32_t nobody = __atomic_load_n(&p->trimmed_by, __ATOMIC_RELAXED);
        if (!is_known(p, ordinal) || nobody == (uint32_t)process.pid ||
            !__atomic_compare_exchange_n(&p->trimmed_by, &nobody, (uint32_t)process.pid, 0, __ATOMIC_SEQ_CST,
                                         __ATOMIC_RELAXED))
            continue;
        if (is_known(p, ordinal)) {
            see(p->handle, bytes);
            count++;
        }
        __atomic_store_n(&p->trimmed_by, 0, __ATOMIC_SEQ_CST);
    }
    return count;
}

static void add_reserved(uint64_t handle, uint64_t *bytes)
{
    *bytes += reserved_by(handle);
}

static void trim(uint64_t handle, uint64_t *bytes)
{
    hook_cuMemPoolTrimTo((cu_handle)handle, 0);
    *bytes += reserved_by(handle);
}

int cuda_pools_reserved(unsigned ordinal, uint64_t *bytes)
{
    *bytes = 0;
    return cuda_driver.bound && each_pool(ordinal, add_reserved, bytes) > 0;
}

/* All work of the device's primary context, where it has one. */
static void wait_for_device(unsigned ordinal)
{
    int (*retain)(cu_handle *, int) = (int (*)(cu_handle *, int))cuda_driver.symbol[CUDA_cuDevicePrimaryCtxRetain];
    int (*release)(int) = (int (*)(int))cuda_driver.symbol[CUDA_cuDevicePrimaryCtxRelease_v2];
    cu_handle own = NULL, before = (cu_handle)cuda_context_current();
    unsigned flags;
    int is_active = 0;
    if (!retain || !release || !cuda_driver.ask.cuCtxSetCurrent || !cuda_driver.ask.cuDevicePrimaryCtxGetState ||
        cuda_driver.ask.cuDevicePrimaryCtxGetState((int)ordinal, &flags, &is_active) != 0 || !is_active ||
        retain(&own, (int)ordinal) != 0)
        return;
    if (cuda_driver.ask.cuCtxSetCurrent(own) == 0)
        hook_cuCtxSynchronize();
    cuda_driver.ask.cuCtxSetCurrent(before);
    release((int)ordinal);
}

int cuda_pools_trim(unsigned ordinal, int is_sync, uint64_t *before_bytes, uint64_t *after_bytes)
{
    if (!cuda_pools_reserved(ordinal, before_bytes))
        return 0;
    if (is_sync)
        wait_for_device(ordinal);
    *after_bytes = 0;
    return each_pool(ordinal, trim, after_bytes) > 0;
}
