/*
 * Stream-ordered memory: cudaMallocAsync from the device's default pool and from a pool of its own.
 *
 * What memprof must show:
 *
 * - Eight blocks of 1 MiB are freed on stream `a`, which waits at a gate when four of 2 MiB are taken on stream `b`: at
 *   that instant 8 MiB are allocated, 16 MiB active. That is the peak. (Without the gate a fast GPU gets to the frees
 *   first, and the driver hands out the same memory again.)
 * - 100 blocks of 1 MiB, one after the other on one stream, are one block's memory: each replaces the one before.
 * - The pool with a release threshold keeps what it holds after everything was freed, until it is trimmed.
 * - The last pool is destroyed with a free pending; it ends when the stream gets there.
 */
#include <cuda_runtime.h>

#include "ledger.h"

#include <unistd.h>

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        cudaError_t error_ = (call);                                                                                   \
        if (error_ != cudaSuccess) {                                                                                   \
            fprintf(stderr, "pools: %s: %s\n", #call, cudaGetErrorString(error_));                                     \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

static const size_t MIB = 1 << 20;

static void *take(size_t bytes, cudaStream_t stream)
{
    void *memory;
    CHECK(cudaMallocAsync(&memory, bytes, stream));
    ledger_alloc(0, "pool", bytes);
    return memory;
}

static void *take_from(cudaMemPool_t pool, size_t bytes, cudaStream_t stream)
{
    void *memory;
    CHECK(cudaMallocFromPoolAsync(&memory, bytes, pool, stream));
    ledger_alloc(0, "pool", bytes);
    return memory;
}

static void give(void *memory, size_t bytes, cudaStream_t stream)
{
    CHECK(cudaFreeAsync(memory, stream));
    ledger_pending(0, "pool", bytes);
}

static void wait_for(cudaStream_t a, cudaStream_t b)
{
    CHECK(cudaStreamSynchronize(a));
    CHECK(cudaStreamSynchronize(b));
    ledger_synchronized(0, "pool");
}

static void say(const char *when, cudaMemPool_t pool)
{
    unsigned long long used, reserved;
    CHECK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used));
    CHECK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &reserved));
    printf("%s: used %llu reserved %llu\n", when, used, reserved);
}

static cudaMemPool_t pool_of_own(unsigned long long threshold)
{
    struct cudaMemPoolProps props;
    cudaMemPool_t pool;
    memset(&props, 0, sizeof props);
    props.allocType = cudaMemAllocationTypePinned;
    props.location.type = cudaMemLocationTypeDevice;
    props.location.id = 0;
    CHECK(cudaMemPoolCreate(&pool, &props));
    CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
    return pool;
}

static int gate_is_open;

static void wait_at_gate(void *)
{
    while (!__atomic_load_n(&gate_is_open, __ATOMIC_ACQUIRE))
        usleep(100);
}

static void overlapping(cudaStream_t a, cudaStream_t b, cudaMemPool_t standard)
{
    void *first[8], *second[4];
    for (int i = 0; i < 8; i++) {
        first[i] = take(MIB, a);
        CHECK(cudaMemsetAsync(first[i], i, MIB, a));
    }
    CHECK(cudaLaunchHostFunc(a, wait_at_gate, NULL));
    for (int i = 0; i < 8; i++)
        give(first[i], MIB, a);
    for (int i = 0; i < 4; i++)
        second[i] = take(2 * MIB, b);
    __atomic_store_n(&gate_is_open, 1, __ATOMIC_RELEASE);
    wait_for(a, b);
    say("half freed", standard);
    for (int i = 0; i < 4; i++)
        give(second[i], 2 * MIB, b);
    wait_for(a, b);
    say("all freed", standard);
}

static void in_turn(cudaStream_t a, cudaStream_t b)
{
    for (int i = 0; i < 100; i++) {
        void *memory = take(MIB, a);
        CHECK(cudaMemsetAsync(memory, i, MIB, a));
        CHECK(cudaFreeAsync(memory, a));
        ledger_free(0, "pool", MIB); /* the next one has its place: never two at once */
    }
    wait_for(a, b);
}

static void kept(cudaStream_t a, cudaStream_t b)
{
    cudaMemPool_t pool = pool_of_own(64 * MIB);
    void *memory[3];
    for (int i = 0; i < 3; i++)
        memory[i] = take_from(pool, 4 * MIB, a);
    for (int i = 0; i < 3; i++)
        give(memory[i], 4 * MIB, a);
    wait_for(a, b);
    say("kept", pool);
    CHECK(cudaMemPoolTrimTo(pool, 0));
    say("trimmed", pool);
    CHECK(cudaMemPoolDestroy(pool));
}

static void destroyed(cudaStream_t a, cudaStream_t b)
{
    cudaMemPool_t pool = pool_of_own(0);
    void *memory = take_from(pool, 3 * MIB, a);
    give(memory, 3 * MIB, a);
    CHECK(cudaMemPoolDestroy(pool));
    wait_for(a, b);
}

int main(void)
{
    cudaStream_t a, b;
    cudaMemPool_t standard;
    CHECK(cudaSetDevice(0));
    CHECK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    CHECK(cudaDeviceGetDefaultMemPool(&standard, 0));
    overlapping(a, b, standard);
    in_turn(a, b);
    kept(a, b);
    destroyed(a, b);
    CHECK(cudaStreamDestroy(a));
    CHECK(cudaStreamDestroy(b));
    ledger_print();
    return 0;
}
