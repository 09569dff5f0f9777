/*
 * random SEED STEPS MODE [WAIT|ask|slow]: random calls of the driver on two devices, and a ledger of what they gave by
 * the documentation. MODE is `memory` (plain, pitched, managed and pinned memory, arrays, contexts that end with blocks
 * live, addresses and physical memory with mappings and references) or `pools` (stream-ordered memory of several pools
 * on several streams). Frees are made with any context current. After each step that changed a device's active bytes it
 * prints "state DEVICE BYTES"; at the end the ledger, whose `segment` rows are the reserved bytes at their highest.
 * `ask`: after each step the figures of memprof.h are compared with the ledger: of each device, of both, and of all.
 * `slow`: after each step it sleeps for a millisecond.
 */
#include "include/cuda_abi.h"

#include "../../include/memprof.h"
#include "../../samples/ledger.h"

#include <unistd.h>

extern CUresult cuInit(unsigned), cuDevicePrimaryCtxRetain(CUcontext *, CUdevice), cuCtxSetCurrent(CUcontext);
extern CUresult cuCtxCreate_v2(CUcontext *, unsigned, CUdevice), cuCtxDestroy_v2(CUcontext), cuCtxSynchronize(void);
extern CUresult cuMemAlloc_v2(CUdeviceptr *, size_t), cuMemFree_v2(CUdeviceptr),
    cuMemAllocManaged(CUdeviceptr *, size_t, unsigned);
extern CUresult cuMemAllocPitch_v2(CUdeviceptr *, size_t *, size_t, size_t, unsigned);
extern CUresult cuMemHostAlloc(void **, size_t, unsigned), cuMemFreeHost(void *);
extern CUresult cuArrayCreate_v2(CUarray *, const CUDA_ARRAY_DESCRIPTOR *), cuArrayDestroy(CUarray);
extern CUresult cuMemCreate(CUmemGenericAllocationHandle *, size_t, const CUmemAllocationProp *, unsigned long long);
extern CUresult cuMemRelease(CUmemGenericAllocationHandle),
    cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *, void *);
extern CUresult cuMemAddressReserve(CUdeviceptr *, size_t, size_t, CUdeviceptr, unsigned long long);
extern CUresult cuMemMap(CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle, unsigned long long),
    cuMemUnmap(CUdeviceptr, size_t);
extern CUresult cuStreamCreate(CUstream *, unsigned), cuStreamSynchronize(CUstream);
extern CUresult cuMemPoolCreate(CUmemoryPool *, const CUmemPoolProps *), cuMemPoolDestroy(CUmemoryPool),
    cuMemPoolTrimTo(CUmemoryPool, size_t);
extern CUresult cuMemAllocFromPoolAsync(CUdeviceptr *, size_t, CUmemoryPool, CUstream),
    cuMemAllocAsync(CUdeviceptr *, size_t, CUstream);
extern CUresult cuMemFreeAsync(CUdeviceptr, CUstream);

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        CUresult error_ = (call);                                                                                      \
        if (error_) {                                                                                                  \
            fprintf(stderr, "random: step %ld: %s gives %d\n", step, #call, (int)error_);                              \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

enum { DEVICES = 2, BLOCKS = 64, SLOTS = 8, PIECE = 2 << 20, HANDLES = 12, CONTEXTS = 3 };
static long step;
static unsigned long long seed;

static unsigned below(unsigned limit)
{
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    return (unsigned)(seed >> 33) % limit;
}

static CUcontext primary[DEVICES], created[CONTEXTS];
static int created_device[CONTEXTS];
static size_t last_state[DEVICES];

static size_t live(const struct ledger_row *row)
{
    return row->bytes - row->freed_bytes + row->pending_bytes;
}

static void say_states(void)
{
    for (int d = 0; d < DEVICES; d++) {
        size_t now = live(ledger_row(d, "all"));
        if (now != last_state[d])
            printf("state cuda:%d %zu\n", d, now);
        last_state[d] = now;
    }
}

/* --- memory of contexts --- */

static struct block {
    const char *kind; /* NULL: free slot */
    int device;
    CUcontext context;
    size_t bytes;
    CUdeviceptr address; /* or the array */
} blocks[BLOCKS];

static CUcontext any_context(int *device)
{
    unsigned which = below(DEVICES + CONTEXTS);
    if (which >= DEVICES && created[which - DEVICES]) {
        *device = created_device[which - DEVICES];
        return created[which - DEVICES];
    }
    *device = (int)(which % DEVICES);
    return primary[*device];
}

/* Only what is memory of its own adds to the reserved bytes: managed memory lives where it is used. */
static int is_reserved(const struct block *b)
{
    return !strcmp(b->kind, "device") || !strcmp(b->kind, "array");
}

static void block_gone(struct block *b)
{
    ledger_free(b->device, b->kind, b->bytes);
    if (is_reserved(b))
        ledger_free(b->device, "segment", b->bytes);
    b->kind = NULL;
}

static void block_new(struct block *b)
{
    size_t bytes = 1 + below(100000), pitch = 0;
    int device;
    b->context = any_context(&device);
    b->device = device;
    CHECK(cuCtxSetCurrent(b->context));
    switch (below(5)) {
    case 0:
        CHECK(cuMemAllocPitch_v2(&b->address, &pitch, bytes % 3000 + 1, 7, 4));
        bytes = pitch * 7;
        b->kind = "device";
        break;
    case 1:
        CHECK(cuMemAllocManaged(&b->address, bytes, CU_MEM_ATTACH_GLOBAL));
        b->kind = "managed";
        break;
    case 2:
        CHECK(cuMemHostAlloc((void **)&b->address, bytes, 0));
        b->kind = "pinned";
        b->device = -1;
        break;
    case 3: {
        CUDA_ARRAY_DESCRIPTOR desc = {bytes % 300 + 1, 5, CU_AD_FORMAT_FLOAT, 2};
        CHECK(cuArrayCreate_v2((CUarray *)&b->address, &desc));
        bytes = desc.Width * 5 * 8;
        b->kind = "array";
        break;
    }
    default:
        CHECK(cuMemAlloc_v2(&b->address, bytes));
        b->kind = "device";
    }
    b->bytes = bytes;
    ledger_alloc(b->device, b->kind, bytes);
    if (is_reserved(b))
        ledger_alloc(b->device, "segment", bytes);
}

static void block_free(struct block *b)
{
    int device;
    CHECK(cuCtxSetCurrent(any_context(&device)));
    if (!strcmp(b->kind, "pinned"))
        CHECK(cuMemFreeHost((void *)b->address));
    else if (!strcmp(b->kind, "array"))
        CHECK(cuArrayDestroy((CUarray)b->address));
    else
        CHECK(cuMemFree_v2(b->address));
    block_gone(b);
}

static void context_step(void)
{
    unsigned which = below(CONTEXTS);
    if (!created[which]) {
        created_device[which] = (int)below(DEVICES);
        CHECK(cuCtxCreate_v2(&created[which], 0, created_device[which]));
        return;
    }
    CHECK(cuCtxDestroy_v2(created[which]));
    for (int i = 0; i < BLOCKS; i++)
        if (blocks[i].kind && blocks[i].context == created[which])
            block_gone(&blocks[i]);
    created[which] = NULL;
}

/* --- physical memory --- */

static struct piece {
    CUmemGenericAllocationHandle handle; /* 0: free slot */
    int device, references, mappings;
    size_t bytes;
} pieces[HANDLES];
static struct slot {
    struct piece *piece;
    size_t bytes;
} slots[SLOTS];
static CUdeviceptr base;

static void piece_end_if_unused(struct piece *p)
{
    if (p->references || p->mappings)
        return;
    ledger_free(p->device, "segment", p->bytes);
    p->handle = 0;
}

static void physical_step(void)
{
    struct piece *p = &pieces[below(HANDLES)];
    struct slot *s = &slots[below(SLOTS)];
    CUdeviceptr at = base + (CUdeviceptr)(s - slots) * 4 * PIECE;
    switch (below(5)) {
    case 0: /* a new piece of memory */
        if (p->handle)
            return;
        p->device = (int)below(DEVICES);
        p->bytes = (1 + below(3)) * (size_t)PIECE;
        CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                    .location = {CU_MEM_LOCATION_TYPE_DEVICE, p->device}};
        CHECK(cuMemCreate(&p->handle, p->bytes, &prop, 0));
        p->references = 1;
        p->mappings = 0;
        ledger_alloc(p->device, "segment", p->bytes);
        return;
    case 1: /* mapped, perhaps for the second time */
        if (!p->handle || !p->references || s->piece)
            return;
        CHECK(cuMemMap(at, p->bytes, 0, p->handle, 0));
        s->piece = p;
        s->bytes = p->bytes;
        p->mappings++;
        ledger_alloc(p->device, "vmm", p->bytes);
        return;
    case 2:
        if (!s->piece)
            return;
        CHECK(cuMemUnmap(at, s->bytes));
        ledger_free(s->piece->device, "vmm", s->bytes);
        s->piece->mappings--;
        piece_end_if_unused(s->piece);
        s->piece = NULL;
        return;
    case 3:
        if (!p->handle || !p->references)
            return;
        CHECK(cuMemRelease(p->handle));
        p->references--;
        piece_end_if_unused(p);
        return;
    default:
        if (!s->piece)
            return;
        CUmemGenericAllocationHandle again;
        CHECK(cuMemRetainAllocationHandle(&again, (void *)(at + below(PIECE))));
        s->piece->handle = again;
        s->piece->references++;
    }
}

static void memory_step(void)
{
    struct block *b = &blocks[below(BLOCKS)];
    unsigned what = below(100);
    if (what < 2)
        context_step();
    else if (what < 40)
        physical_step();
    else if (b->kind)
        block_free(b);
    else
        block_new(b);
}

/* --- pools --- */

enum { STREAMS = 4, POOLS = 3 };
static CUstream streams[STREAMS]; /* even ones on device 0 */
static CUmemoryPool pools[POOLS]; /* likewise */
static struct pooled {
    CUdeviceptr address; /* 0: free slot */
    size_t bytes;
    int stream; /* of the free that is pending, else -1 */
    int device;
} pooled[4 * BLOCKS];

static void pooled_done(struct pooled *b)
{
    ledger_row(b->device, "pool")->pending_bytes -= b->bytes;
    ledger_row(b->device, "all")->pending_bytes -= b->bytes;
    b->address = 0;
}

static void pooled_new(struct pooled *b, int stream)
{
    int device = stream % 2;
    size_t bytes = (1 + below(800)) * 512;
    unsigned which = below(POOLS + 1);
    CUdeviceptr address;
    if (which < POOLS && (int)which % 2 == device && pools[which])
        CHECK(cuMemAllocFromPoolAsync(&address, bytes, pools[which], streams[stream]));
    else
        CHECK(cuMemAllocAsync(&address, bytes, streams[stream]));
    for (int i = 0; i < 4 * BLOCKS; i++) /* memory that has a new owner was free */
        if (pooled[i].address && pooled[i].stream >= 0 && pooled[i].address < address + bytes &&
            address < pooled[i].address + pooled[i].bytes)
            pooled_done(&pooled[i]);
    *b = (struct pooled){address, bytes, -1, device};
    ledger_alloc(device, "pool", bytes);
}

static void pools_step(void)
{
    struct pooled *b = &pooled[below(4 * BLOCKS)];
    unsigned what = below(100);
    int stream = (int)below(STREAMS);
    if (what < 3) {
        CHECK(cuStreamSynchronize(streams[stream]));
        for (int i = 0; i < 4 * BLOCKS; i++)
            if (pooled[i].address && pooled[i].stream == stream)
                pooled_done(&pooled[i]);
    } else if (what < 4) {
        CHECK(cuCtxSetCurrent(primary[stream % 2]));
        CHECK(cuCtxSynchronize());
        for (int i = 0; i < 4 * BLOCKS; i++)
            if (pooled[i].address && pooled[i].stream >= 0 && pooled[i].stream % 2 == stream % 2)
                pooled_done(&pooled[i]);
    } else if (!b->address) {
        pooled_new(b, stream);
    } else if (b->stream < 0) {
        b->stream = (int)below(STREAMS / 2) * 2 + b->device;
        CHECK(cuMemFreeAsync(b->address, streams[b->stream]));
        ledger_pending(b->device, "pool", b->bytes);
    }
}

/* --- what memprof.h says at any time --- */

static size_t both_peak;
static unsigned asked, differs;

static void differ(const char *device, const char *what, size_t have, size_t want)
{
    if (have != want && differs++ < 10)
        fprintf(stderr, "step %ld: %s: %s %zu, by the ledger %zu\n", step, device, what, have, want);
}

static void differ_counts(const char *device, const struct memprof_device_figures *f, const struct ledger_row *row)
{
    differ(device, "active", f->active_bytes, live(row));
    differ(device, "allocated", f->allocated_bytes, row->bytes - row->freed_bytes);
    differ(device, "allocations", f->alloc_count, row->allocations);
    differ(device, "bytes", f->alloc_bytes, row->bytes);
    differ(device, "peak", f->peak_active_bytes, row->peak_bytes);
}

/* Up to here, however long the collector gets no processor. */
static int figures_at_last(const char *device, struct memprof_device_figures *f)
{
    int status = memprof_figures_now(device, f);
    for (int tries = 0; status == MEMPROF_NO_ANSWER && tries < 60000; tries++) {
        usleep(1000);
        status = memprof_figures_now(device, f);
    }
    return status;
}

static void ask_all(int with_pools)
{
    static const char *const names[] = {"cuda:0", "cuda:1"};
    struct memprof_device_figures f, host, all;
    struct ledger_row both = {.device = ""};
    size_t reserved = 0;
    for (int d = 0; d < DEVICES; d++) {
        const struct ledger_row *row = ledger_row(d, "all"), *segments = ledger_row(d, "segment");
        both.allocations += row->allocations;
        both.bytes += row->bytes;
        both.freed_bytes += row->freed_bytes;
        both.pending_bytes += row->pending_bytes;
        reserved += live(segments);
        if (figures_at_last(names[d], &f) != MEMPROF_OK)
            continue; /* memprof knows a device from its first call on */
        asked++;
        differ_counts(names[d], &f, row);
        if (!with_pools)
            differ(names[d], "reserved", f.reserved_bytes, live(segments));
    }
    both_peak = both.peak_bytes = live(&both) > both_peak ? live(&both) : both_peak;
    if (figures_at_last("cuda", &f) != MEMPROF_OK)
        return;
    differ_counts("cuda", &f, &both);
    if (!with_pools)
        differ("cuda", "reserved", f.reserved_bytes, reserved);
    if (figures_at_last("host", &host) || figures_at_last(NULL, &all))
        differ("all", "status", 1, 0);
    differ("all", "active", all.active_bytes, host.active_bytes + f.active_bytes);
    differ("all", "peak is one",
           all.peak_active_bytes >= all.active_bytes &&
               all.peak_active_bytes <= host.peak_active_bytes + f.peak_active_bytes,
           1);
}

int main(int argc, char **argv)
{
    if (argc < 4)
        return 2;
    seed = strtoull(argv[1], NULL, 0) * 77777 + 1;
    const long steps = strtol(argv[2], NULL, 0);
    const int with_pools = !strcmp(argv[3], "pools"), asks = argc > 4 && !strcmp(argv[4], "ask"),
              is_slow = argc > 4 && !strcmp(argv[4], "slow"), is_left = argc > 4 && !asks && !is_slow;
    CHECK(cuInit(0));
    for (int d = 0; d < DEVICES; d++)
        CHECK(cuDevicePrimaryCtxRetain(&primary[d], d));
    CHECK(cuMemAddressReserve(&base, (size_t)SLOTS * 4 * PIECE, 0, 0, 0));
    for (int i = 0; i < STREAMS && with_pools; i++) {
        CHECK(cuCtxSetCurrent(primary[i % 2]));
        CHECK(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
    }
    for (int i = 0; i < POOLS && with_pools; i++) {
        CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {CU_MEM_LOCATION_TYPE_DEVICE, i % 2}};
        CHECK(cuMemPoolCreate(&pools[i], &props));
    }
    for (step = 0; step < steps; step++) {
        if (with_pools)
            pools_step();
        else
            memory_step();
        say_states();
        if (is_slow)
            usleep(1000);
        if (asks)
            ask_all(with_pools);
    }
    if (asks)
        printf("asked %u, differs %u\nboth %zu\n", asked, differs, both_peak);
    fflush(stdout);
    while (is_left) /* a test ends it as it is */
        pause();
    for (int d = 0; d < DEVICES && with_pools; d++) { /* no free is pending at the end */
        CHECK(cuCtxSetCurrent(primary[d]));
        CHECK(cuCtxSynchronize());
        ledger_synchronized(d, "pool");
        say_states();
    }
    ledger_print();
    return 0;
}
