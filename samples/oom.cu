/*
 * Out of memory: fills the device with blocks of a sixteenth of its memory until one fails, frees what it can do
 * without, and tries again, as caching allocators do; then asks for what can never be had.
 *
 * What memprof must show: two events of out-of-memory, with the size asked for, the device's free and total bytes, and
 * who held the rest; the first of them was retried with success.
 */
#include <cuda_runtime.h>

#include "ledger.h"

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        cudaError_t error_ = (call);                                                                                   \
        if (error_ != cudaSuccess) {                                                                                   \
            fprintf(stderr, "oom: %s: %s\n", #call, cudaGetErrorString(error_));                                       \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

enum { MOST = 32 };
static void *blocks[MOST];
static int count;

static bool hold(size_t bytes)
{
    void *memory;
    if (cudaMalloc(&memory, bytes) != cudaSuccess) {
        cudaGetLastError();
        return false;
    }
    ledger_alloc(0, "device", bytes);
    blocks[count++] = memory;
    return true;
}

static void drop(size_t bytes)
{
    CHECK(cudaFree(blocks[--count]));
    ledger_free(0, "device", bytes);
}

int main(void)
{
    size_t free_bytes, total, piece;
    CHECK(cudaMemGetInfo(&free_bytes, &total));
    piece = total / 16;
    while (count < MOST && hold(piece))
        ;
    CHECK(cudaMemGetInfo(&free_bytes, &total));
    printf("full after %d blocks of %zu: free %zu of %zu\n", count, piece, free_bytes, total);
    drop(piece);
    drop(piece);
    printf("again: %s\n", hold(piece) ? "had" : "not had");
    printf("twice the device: %s\n", hold(2 * total) ? "had" : "not had");
    while (count)
        drop(piece);
    ledger_print();
    return 0;
}
