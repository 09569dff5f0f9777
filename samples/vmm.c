/*
 * Virtual memory of the CUDA driver: a segment that grows and shrinks in its reserved addresses, as PyTorch's
 * expandable segments do.
 *
 * What memprof must show (G: the granularity, 2 MiB on today's devices):
 *
 * - 16 x 4 G of addresses are reserved; they are no memory.
 * - The segment grows to 8 pieces of 4 G, all mapped: 32 G active, the peak. One more piece is created and never
 *   mapped: 36 G reserved.
 * - The segment's upper half is unmapped, then released: first active falls to 16 G, then reserved too.
 * - One piece is released while it is mapped, and retained from its address again: it stays.
 */
#include <cuda.h>

#include "ledger.h"

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        CUresult error_ = (call);                                                                                      \
        if (error_ != CUDA_SUCCESS) {                                                                                  \
            const char *name_ = NULL;                                                                                  \
            cuGetErrorName(error_, &name_);                                                                            \
            fprintf(stderr, "vmm: %s: %s\n", #call, name_ ? name_ : "?");                                              \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

enum { PIECES = 8 };

struct growing {
    CUdeviceptr base;
    size_t piece_bytes, reserved_bytes;
    int count;
    CUmemGenericAllocationHandle handles[PIECES];
    CUmemAllocationProp prop;
};

static CUmemGenericAllocationHandle create(const struct growing *g)
{
    CUmemGenericAllocationHandle handle;
    CHECK(cuMemCreate(&handle, g->piece_bytes, &g->prop, 0));
    ledger_alloc(0, "segment", g->piece_bytes);
    return handle;
}

static void grow(struct growing *g)
{
    CUdeviceptr at = g->base + (CUdeviceptr)g->count * g->piece_bytes;
    CUmemAccessDesc access = {g->prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    g->handles[g->count] = create(g);
    CHECK(cuMemMap(at, g->piece_bytes, 0, g->handles[g->count], 0));
    ledger_alloc(0, "vmm", g->piece_bytes);
    CHECK(cuMemSetAccess(at, g->piece_bytes, &access, 1));
    CHECK(cuMemsetD8(at, 1, g->piece_bytes));
    g->count++;
}

static void shrink(struct growing *g)
{
    g->count--;
    CHECK(cuMemUnmap(g->base + (CUdeviceptr)g->count * g->piece_bytes, g->piece_bytes));
    ledger_free(0, "vmm", g->piece_bytes);
    CHECK(cuMemRelease(g->handles[g->count]));
    ledger_free(0, "segment", g->piece_bytes);
}

int main(void)
{
    struct growing g;
    CUcontext context;
    CUmemGenericAllocationHandle idle, again;
    memset(&g, 0, sizeof g);
    CHECK(cuInit(0));
    CHECK(cuDevicePrimaryCtxRetain(&context, 0));
    CHECK(cuCtxSetCurrent(context));

    g.prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    g.prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    g.prop.location.id = 0;
    CHECK(cuMemGetAllocationGranularity(&g.piece_bytes, &g.prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    g.piece_bytes *= 4;
    g.reserved_bytes = 16 * g.piece_bytes;
    CHECK(cuMemAddressReserve(&g.base, g.reserved_bytes, 0, 0, 0));

    while (g.count < PIECES)
        grow(&g);
    idle = create(&g);
    printf("piece %zu reserved addresses %zu\n", g.piece_bytes, g.reserved_bytes);
    CHECK(cuMemRelease(idle));
    ledger_free(0, "segment", g.piece_bytes);
    while (g.count > PIECES / 2)
        shrink(&g);

    CHECK(cuMemRelease(g.handles[0]));
    CHECK(cuMemRetainAllocationHandle(&again, (void *)g.base));
    g.handles[0] = again;

    while (g.count)
        shrink(&g);
    CHECK(cuMemAddressFree(g.base, g.reserved_bytes));
    CHECK(cuDevicePrimaryCtxRelease(0));
    ledger_print();
    return 0;
}
