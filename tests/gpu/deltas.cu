/*
 * What the driver itself says: the bytes by which free memory falls for large allocations ("delta ASKED FELL"), and a
 * pool's attributes at their highest ("pool RESERVED_HIGH USED_HIGH").
 */
#include <cuda_runtime.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        cudaError_t error_ = (call);                                                                                   \
        if (error_ != cudaSuccess) {                                                                                   \
            fprintf(stderr, "deltas: %s: %s\n", #call, cudaGetErrorString(error_));                                    \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

int main()
{
    static const size_t sizes[] = {64, 128, 256};
    for (size_t mib : sizes) {
        size_t before, after, total;
        void *memory;
        CHECK(cudaMemGetInfo(&before, &total));
        CHECK(cudaMalloc(&memory, mib << 20));
        CHECK(cudaMemGetInfo(&after, &total));
        CHECK(cudaFree(memory));
        printf("delta %zu %zu\n", mib << 20, before - after);
    }
    cudaMemPool_t pool;
    cudaStream_t stream;
    struct cudaMemPoolProps props;
    unsigned long long reserved, used, threshold = ~0ull;
    void *blocks[10];
    memset(&props, 0, sizeof props);
    props.allocType = cudaMemAllocationTypePinned;
    props.location.type = cudaMemLocationTypeDevice;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaMemPoolCreate(&pool, &props));
    CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
    for (int i = 0; i < 10; i++)
        CHECK(cudaMallocFromPoolAsync(&blocks[i], (size_t)(i + 1) << 20, pool, stream));
    for (int i = 0; i < 10; i++)
        CHECK(cudaFreeAsync(blocks[i], stream));
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemHigh, &reserved));
    CHECK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &used));
    printf("pool %llu %llu\n", reserved, used);
    CHECK(cudaMemPoolDestroy(pool));
    CHECK(cudaStreamDestroy(stream));
    return 0;
}
