/*
 * The classifier of net.c on GPUs: 256 -> 512 -> 16, 100 steps of 64 samples, a validation pass over 512 samples after
 * every 25 steps, on each device that the first argument asks for (1). Memory comes from a caching allocator that takes
 * segments of 4 MiB from cudaMalloc, rounds to 512 bytes and keeps what it is given back, by exact size. It tells
 * profilers what it does through NVTX's memory extension (through memprof.h where NVTX's headers are not installed);
 * forward, backward and step are ranges.
 *
 * What memprof must show, for each device:
 *
 * - 717 blocks of kind `sub`, 106,004,480 bytes: weights and gradients 4, samples 1; hidden, mask and out in each of
 *   104 passes of forward; two errors and two steps in each of 100 steps. All are given back.
 * - The peak is in a validation pass: 1,638,400 bytes that last and its 2,129,920.
 * - Two segments are reserved, 8,388,608 bytes, one of them for what the validation left in the cache: training alone
 *   needs 2,596,864 bytes. In forward active and reserved bytes are far apart.
 */
#include <cuda_runtime.h>

#include "ledger.h"

#if __has_include(<nvtx3/nvToolsExtMem.h>) && !defined(WITHOUT_NVTX)
#define WITH_NVTX 1
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtMem.h>
#else
#include <memprof.h>
#endif

#include <math.h>

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        cudaError_t error_ = (call);                                                                                   \
        if (error_ != cudaSuccess) {                                                                                   \
            fprintf(stderr, "net: %s: %s\n", #call, cudaGetErrorString(error_));                                       \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

enum { IN = 256, HIDDEN = 512, OUT = 16, BATCH = 64, SAMPLES = 512, STEPS = 100, VALIDATE_EVERY = 25 };
static const size_t SEGMENT_BYTES = 4 << 20;

/* --- ranges and pools, as profilers see them --- */

static void range_push(const char *name)
{
#ifdef WITH_NVTX
    nvtxRangePushA(name);
#else
    memprof_range_push(name);
#endif
}

static void range_pop(void)
{
#ifdef WITH_NVTX
    nvtxRangePop();
#else
    memprof_range_pop();
#endif
}

/* --- the caching allocator --- */

struct block {
    char *memory;
    size_t bytes; /* rounded */
    size_t asked;
    bool used;
};
struct segment {
    char *memory;
    size_t used_bytes;
#ifdef WITH_NVTX
    nvtxMemHeapHandle_t heap;
#endif
};
struct pool {
    int device;
    struct segment segments[16];
    int segment_count;
    struct block blocks[256];
    int block_count;
#ifdef WITH_NVTX
    nvtxDomainHandle_t domain;
#else
    memprof_pool name;
#endif
};

static void report_segment(struct pool *p, struct segment *s)
{
#ifdef WITH_NVTX
    nvtxMemVirtualRangeDesc_t range = {};
    range.size = SEGMENT_BYTES;
    range.ptr = s->memory;
    nvtxMemHeapDesc_t heap = {};
    heap.extCompatID = NVTX_EXT_COMPATID_MEM;
    heap.structSize = sizeof heap;
    heap.usage = NVTX_MEM_HEAP_USAGE_TYPE_SUB_ALLOCATOR;
    heap.type = NVTX_MEM_TYPE_VIRTUAL_ADDRESS;
    heap.typeSpecificDescSize = sizeof range;
    heap.typeSpecificDesc = &range;
    heap.messageType = NVTX_MESSAGE_TYPE_ASCII;
    heap.message.ascii = "activations";
    s->heap = nvtxMemHeapRegister(p->domain, &heap);
#else
    memprof_pool_segment(p->name, s->memory, SEGMENT_BYTES);
#endif
}

static void report_alloc(struct pool *p, struct segment *s, char *memory, size_t bytes)
{
#ifdef WITH_NVTX
    nvtxMemVirtualRangeDesc_t range = {};
    range.size = bytes;
    range.ptr = memory;
    nvtxMemRegionsRegisterBatch_t batch = {};
    batch.extCompatID = NVTX_EXT_COMPATID_MEM;
    batch.structSize = sizeof batch;
    batch.regionType = NVTX_MEM_TYPE_VIRTUAL_ADDRESS;
    batch.heap = s->heap;
    batch.regionCount = 1;
    batch.regionDescElementSize = sizeof range;
    batch.regionDescElements = &range;
    nvtxMemRegionsRegister(p->domain, &batch);
#else
    (void)s;
    memprof_pool_alloc(p->name, memory, bytes);
#endif
}

static void report_free(struct pool *p, char *memory)
{
#ifdef WITH_NVTX
    nvtxMemRegionRef_t region = {};
    region.pointer = memory;
    nvtxMemRegionsUnregisterBatch_t batch = {};
    batch.extCompatID = NVTX_EXT_COMPATID_MEM;
    batch.structSize = sizeof batch;
    batch.refType = NVTX_MEM_REGION_REF_TYPE_POINTER;
    batch.refCount = 1;
    batch.refElementSize = sizeof region;
    batch.refElements = &region;
    nvtxMemRegionsUnregister(p->domain, &batch);
#else
    memprof_pool_free(p->name, memory);
#endif
}

static struct segment *segment_with(struct pool *p, size_t bytes)
{
    for (int i = 0; i < p->segment_count; i++)
        if (SEGMENT_BYTES - p->segments[i].used_bytes >= bytes)
            return &p->segments[i];
    struct segment *s = &p->segments[p->segment_count++];
    CHECK(cudaMalloc((void **)&s->memory, SEGMENT_BYTES));
    ledger_alloc(p->device, "segment", SEGMENT_BYTES);
    report_segment(p, s);
    return s;
}

static struct segment *segment_of(struct pool *p, const char *memory)
{
    for (int i = 0; i < p->segment_count; i++)
        if (memory >= p->segments[i].memory && memory < p->segments[i].memory + SEGMENT_BYTES)
            return &p->segments[i];
    return NULL;
}

static float *pool_alloc(struct pool *p, size_t count)
{
    size_t asked = count * sizeof(float), bytes = (asked + 511) / 512 * 512;
    struct block *b = NULL;
    for (int i = 0; i < p->block_count && !b; i++)
        if (!p->blocks[i].used && p->blocks[i].bytes == bytes)
            b = &p->blocks[i];
    if (!b) {
        struct segment *s = segment_with(p, bytes);
        b = &p->blocks[p->block_count++];
        b->memory = s->memory + s->used_bytes;
        b->bytes = bytes;
        s->used_bytes += bytes;
    }
    b->used = true;
    b->asked = asked;
    report_alloc(p, segment_of(p, b->memory), b->memory, asked);
    ledger_alloc(p->device, "sub", asked);
    return (float *)b->memory;
}

static void pool_free(struct pool *p, void *memory)
{
    for (int i = 0; i < p->block_count; i++)
        if (p->blocks[i].memory == memory && p->blocks[i].used) {
            report_free(p, p->blocks[i].memory);
            ledger_free(p->device, "sub", p->blocks[i].asked);
            p->blocks[i].used = false;
        }
}

static void pool_open(struct pool *p, int device)
{
    memset(p, 0, sizeof *p);
    p->device = device;
#ifdef WITH_NVTX
    p->domain = nvtxDomainCreateA("net");
#else
    p->name = memprof_pool_create("activations");
#endif
}

static void pool_close(struct pool *p)
{
    for (int i = 0; i < p->segment_count; i++) {
#ifdef WITH_NVTX
        nvtxMemHeapUnregister(p->domain, p->segments[i].heap);
#else
        memprof_pool_segment_end(p->name, p->segments[i].memory);
#endif
        CHECK(cudaFree(p->segments[i].memory));
        ledger_free(p->device, "segment", SEGMENT_BYTES);
    }
#ifndef WITH_NVTX
    memprof_pool_destroy(p->name);
#endif
}

/* --- kernels: one thread an element --- */

__global__ void multiply(float *out, const float *a, const float *w, int rows, int inner, int columns)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= rows * columns)
        return;
    float sum = 0;
    for (int k = 0; k < inner; k++)
        sum += a[i / columns * inner + k] * w[k * columns + i % columns];
    out[i] = sum;
}

__global__ void rectify(float *values, float *mask, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count)
        return;
    mask[i] = values[i] > 0 ? 1.0f : 0.0f;
    values[i] *= mask[i];
}

__global__ void error_of(float *error, const float *out, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        error[i] = out[i] - (i % OUT == (i / OUT) % OUT ? 1.0f : 0.0f);
}

__global__ void multiply_transposed(float *out, const float *error, const float *w, int rows, int inner, int columns)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= rows * columns)
        return;
    float sum = 0;
    for (int k = 0; k < inner; k++)
        sum += error[i / columns * inner + k] * w[i % columns * inner + k];
    out[i] = sum;
}

__global__ void gradient(float *out, const float *a, const float *error, int rows, int inner, int columns)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= inner * columns)
        return;
    float sum = 0;
    for (int r = 0; r < rows; r++)
        sum += a[r * inner + i / columns] * error[r * columns + i % columns];
    out[i] = sum / rows;
}

__global__ void descend(float *w, float *step, const float *g, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count)
        return;
    step[i] = 0.05f * g[i];
    w[i] -= step[i];
}

template <class... P, class... A> static void launch(void (*kernel)(P...), int count, A... arguments)
{
    void *pointers[] = {(void *)&arguments...};
    CHECK(cudaLaunchKernel(kernel, dim3((count + 127) / 128), dim3(128), pointers, 0, nullptr));
}

/* --- the net --- */

struct net {
    struct pool pool;
    float *w1, *w2, *g1, *g2, *samples;
};
struct activations {
    float *hidden, *out, *mask;
};

static struct activations forward(struct net *n, const float *x, int rows)
{
    struct activations a;
    range_push("forward");
    a.hidden = pool_alloc(&n->pool, (size_t)rows * HIDDEN);
    launch(multiply, rows * HIDDEN, a.hidden, x, n->w1, rows, (int)IN, (int)HIDDEN);
    a.mask = pool_alloc(&n->pool, (size_t)rows * HIDDEN);
    launch(rectify, rows * HIDDEN, a.hidden, a.mask, rows * HIDDEN);
    a.out = pool_alloc(&n->pool, (size_t)rows * OUT);
    launch(multiply, rows * OUT, a.out, a.hidden, n->w2, rows, (int)HIDDEN, (int)OUT);
    range_pop();
    return a;
}

static void release(struct net *n, struct activations *a)
{
    pool_free(&n->pool, a->hidden);
    pool_free(&n->pool, a->mask);
    pool_free(&n->pool, a->out);
}

static void backward(struct net *n, const float *x, const struct activations *a)
{
    range_push("backward");
    float *error = pool_alloc(&n->pool, (size_t)BATCH * OUT);
    launch(error_of, BATCH * OUT, error, a->out, (int)BATCH * OUT);
    float *hidden_error = pool_alloc(&n->pool, (size_t)BATCH * HIDDEN);
    launch(multiply_transposed, BATCH * HIDDEN, hidden_error, error, n->w2, (int)BATCH, (int)OUT, (int)HIDDEN);
    launch(gradient, HIDDEN * OUT, n->g2, a->hidden, error, (int)BATCH, (int)HIDDEN, (int)OUT);
    launch(gradient, IN * HIDDEN, n->g1, x, hidden_error, (int)BATCH, (int)IN, (int)HIDDEN);
    pool_free(&n->pool, error);
    pool_free(&n->pool, hidden_error);
    range_pop();
}

static void step(struct net *n)
{
    range_push("step");
    float *s1 = pool_alloc(&n->pool, IN * HIDDEN), *s2 = pool_alloc(&n->pool, HIDDEN * OUT);
    launch(descend, IN * HIDDEN, n->w1, s1, n->g1, (int)IN * HIDDEN);
    launch(descend, HIDDEN * OUT, n->w2, s2, n->g2, (int)HIDDEN * OUT);
    pool_free(&n->pool, s1);
    pool_free(&n->pool, s2);
    range_pop();
}

static void upload(float *device, float *host, size_t count)
{
    for (size_t i = 0; i < count; i++)
        host[i] = sinf((float)(i * 37 % 1000)) * 0.05f;
    CHECK(cudaMemcpy(device, host, count * sizeof(float), cudaMemcpyHostToDevice));
}

static void train(int device, int steps)
{
    static struct net net;
    struct net *n = &net;
    float *host;
    const size_t host_bytes = (size_t)SAMPLES * IN * sizeof(float);
    CHECK(cudaSetDevice(device));
    CHECK(cudaMallocHost((void **)&host, host_bytes));
    ledger_alloc(-1, "pinned", host_bytes);
    pool_open(&n->pool, device);
    n->w1 = pool_alloc(&n->pool, IN * HIDDEN);
    n->w2 = pool_alloc(&n->pool, HIDDEN * OUT);
    n->g1 = pool_alloc(&n->pool, IN * HIDDEN);
    n->g2 = pool_alloc(&n->pool, HIDDEN * OUT);
    n->samples = pool_alloc(&n->pool, (size_t)SAMPLES * IN);
    upload(n->w1, host, IN * HIDDEN);
    upload(n->w2, host, HIDDEN * OUT);
    upload(n->samples, host, (size_t)SAMPLES * IN);
    for (int i = 0; i < steps; i++) {
        const float *x = n->samples + (size_t)(i % (SAMPLES / BATCH)) * BATCH * IN;
        struct activations a = forward(n, x, BATCH);
        backward(n, x, &a);
        step(n);
        release(n, &a);
        if ((i + 1) % VALIDATE_EVERY == 0) {
            a = forward(n, n->samples, SAMPLES);
            CHECK(cudaMemcpy(host, a.out, (size_t)SAMPLES * OUT * sizeof(float), cudaMemcpyDeviceToHost));
            release(n, &a);
        }
    }
    CHECK(cudaDeviceSynchronize());
    float *all[] = {n->w1, n->w2, n->g1, n->g2, n->samples};
    for (float *memory : all)
        pool_free(&n->pool, memory);
    pool_close(&n->pool);
    CHECK(cudaFreeHost(host));
    ledger_free(-1, "pinned", host_bytes);
}

int main(int argc, char **argv)
{
    int devices = argc > 1 ? atoi(argv[1]) : 1, steps = argc > 2 ? atoi(argv[2]) : STEPS;
    for (int device = 0; device < devices; device++)
        train(device, steps);
    ledger_print();
    return 0;
}
