/* Nanoseconds of a pair of calls, the median of 21 rounds: "cudaMalloc+cudaFree NS", "cudaMallocAsync+cudaFreeAsync
 * NS". */
#include <cuda_runtime.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROUNDS = 21, PAIRS = 500 };

static double now()
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static cudaStream_t stream;

static cudaError_t plain_pair()
{
    void *memory;
    cudaError_t error = cudaMalloc(&memory, 1 << 16);
    return error ? error : cudaFree(memory);
}

static cudaError_t stream_pair()
{
    void *memory;
    cudaError_t error = cudaMallocAsync(&memory, 1 << 16, stream);
    return error ? error : cudaFreeAsync(memory, stream);
}

static int measure(const char *name, cudaError_t (*pair)())
{
    double rounds[ROUNDS];
    for (int r = -2; r < ROUNDS; r++) { /* two to warm up */
        double began = now();
        for (int i = 0; i < PAIRS; i++)
            if (pair() != cudaSuccess) {
                fprintf(stderr, "cost: %s: %s\n", name, cudaGetErrorString(cudaGetLastError()));
                return 1;
            }
        if (r >= 0)
            rounds[r] = (now() - began) / PAIRS;
        cudaStreamSynchronize(stream);
    }
    qsort(rounds, ROUNDS, sizeof *rounds, by_value);
    printf("%s %.0f\n", name, rounds[ROUNDS / 2]);
    return 0;
}

int main()
{
    cudaMemPool_t pool;
    unsigned long long threshold = ~0ull;
    if (cudaStreamCreate(&stream) || cudaDeviceGetDefaultMemPool(&pool, 0) ||
        cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold))
        return 1;
    return measure("cudaMalloc+cudaFree", plain_pair) || measure("cudaMallocAsync+cudaFreeAsync", stream_pair);
}
