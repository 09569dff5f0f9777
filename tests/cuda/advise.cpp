/*
 * What `memprof advise` tells of a GPU, one mode each; with a second argument "mended" the same work with what it
 * advises done. Sizes are MiB; the peaks in the comments follow from them.
 */
#include <cuda_runtime.h>
#include <memprof.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        cudaError_t error_ = (call);                                                                                   \
        if (error_ != cudaSuccess) {                                                                                   \
            fprintf(stderr, "advise: %s: %s\n", #call, cudaGetErrorString(error_));                                    \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)
#define OWN __attribute__((noinline))

static const size_t MIB = 1 << 20;
static int mended;
static char *host; /* 64 MiB */

OWN static char *take(size_t bytes)
{
    void *memory;
    CHECK(cudaMalloc(&memory, bytes));
    return (char *)memory;
}

static void give(char *memory)
{
    CHECK(cudaFree(memory));
}

static void upload(char *memory, const char *from, size_t bytes)
{
    CHECK(cudaMemcpy(memory, from, bytes, cudaMemcpyHostToDevice));
}

static void fetch(char *memory, size_t bytes)
{
    CHECK(cudaMemcpy(host, memory, bytes, cudaMemcpyDeviceToHost));
}

/* The work that has most of the memory for a while: 48 MiB, written, used and read at once. */
OWN static void work()
{
    char *scratch = take(48 * MIB);
    upload(scratch, host, 48 * MIB);
    usleep(1000);
    fetch(scratch, 48 * MIB);
    give(scratch);
}

/* Peak 48 + 32, mended 48. */
OWN static char *table()
{
    char *memory = take(32 * MIB);
    return memory;
}

static void early()
{
    char *memory = mended ? NULL : table();
    work();
    if (mended)
        memory = table();
    upload(memory, host, 32 * MIB);
    usleep(1000);
    fetch(memory, 32 * MIB);
    give(memory);
}

/* The same behind the work. */
static void late()
{
    char *memory = table();
    upload(memory, host, 32 * MIB);
    usleep(1000);
    fetch(memory, 32 * MIB);
    if (mended)
        give(memory);
    work();
    if (!mended)
        give(memory);
}

/* Four workers with a table of 16 MiB each: 64, mended 16. A staging buffer that is filled anew for each of four blocks
 * of 3 MiB looks alike where it is not freed, but is no part of the peak. */
static void again()
{
    char *tables[4] = {NULL};
    char *staging = (char *)malloc(3 * MIB), *parts[4];
    for (int i = 0; i < (mended ? 1 : 4); i++) {
        tables[i] = take(16 * MIB);
        upload(tables[i], host, 16 * MIB);
    }
    for (int i = 0; i < 4; i++)
        if (tables[i])
            give(tables[i]);
    for (int i = 0; i < 4; i++) {
        memset(staging, i, 3 * MIB);
        parts[i] = take(3 * MIB);
        upload(parts[i], staging, 3 * MIB);
    }
    for (int i = 0; i < 4; i++)
        give(parts[i]);
    free(staging);
}

/* A pool that keeps 64 MiB which it does not use, while 48 are taken elsewhere: reserved 112, mended 64. */
static void pool()
{
    cudaMemPool_t standard;
    cudaStream_t stream;
    void *memory;
    unsigned long long all = ~0ull;
    CHECK(cudaDeviceGetDefaultMemPool(&standard, 0));
    CHECK(cudaMemPoolSetAttribute(standard, cudaMemPoolAttrReleaseThreshold, &all));
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaMallocAsync(&memory, 64 * MIB, stream));
    CHECK(cudaFreeAsync(memory, stream));
    CHECK(cudaStreamSynchronize(stream));
    if (mended)
        CHECK(cudaMemPoolTrimTo(standard, 0));
    work();
}

/* An allocator's segment of 16 MiB that one block of 1 MiB keeps, when 16 MiB are needed for something else: reserved
 * 32, mended, with a segment of its own for what stays, 17. */
OWN static char *stays(memprof_pool segments, char *memory)
{
    memprof_pool_alloc(segments, memory, 1 * MIB);
    return memory;
}

static char *segment(memprof_pool segments, size_t bytes)
{
    char *memory = take(bytes);
    memprof_pool_segment(segments, memory, bytes);
    return memory;
}

static void pins()
{
    memprof_pool segments = memprof_pool_create("segments");
    char *small = mended ? segment(segments, 1 * MIB) : NULL, *first = segment(segments, 16 * MIB);
    char *kept = stays(segments, mended ? small : first);
    memprof_pool_alloc(segments, first + 1 * MIB, 15 * MIB);
    memprof_pool_free(segments, first + 1 * MIB);
    if (mended)
        give(first);
    char *other = segment(segments, 16 * MIB);
    memprof_pool_alloc(segments, other, 16 * MIB);
    memprof_pool_free(segments, other);
    give(other);
    memprof_pool_free(segments, kept);
    give(mended ? small : first);
}

static const struct {
    const char *name;
    void (*run)();
} modes[] = {{"early", early}, {"late", late}, {"again", again}, {"pool", pool}, {"pins", pins}};

int main(int argc, char **argv)
{
    mended = argc > 2 && strcmp(argv[2], "mended") == 0;
    host = (char *)calloc(64, MIB);
    for (const auto &mode : modes)
        if (argc > 1 && strcmp(argv[1], mode.name) == 0) {
            mode.run();
            free(host);
            return 0;
        }
    fprintf(stderr, "usage: advise MODE [mended]\n");
    return 2;
}
