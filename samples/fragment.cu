/*
 * Fragmentation: an allocator that takes segments of 16 MiB from cudaMalloc and hands out pieces of 1 MiB, first fit.
 * It tells memprof through memprof.h.
 *
 * What memprof must show: four segments are filled by short_lived(), but every 16th piece is long_lived()'s. When the
 * short-lived ones are gone 60 of 64 MiB are free, and yet a request of 16 MiB takes a fifth segment: each of the four
 * is pinned by one block of 1 MiB, of one line. The largest hole of each is 15 MiB.
 */
#include <cuda_runtime.h>
#include <memprof.h>

#include "ledger.h"

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        cudaError_t error_ = (call);                                                                                   \
        if (error_ != cudaSuccess) {                                                                                   \
            fprintf(stderr, "fragment: %s: %s\n", #call, cudaGetErrorString(error_));                                  \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

static const size_t PIECE = 1 << 20;
enum { PIECES = 16, SEGMENTS = 8 };

static struct segment {
    char *memory;
    int taken[PIECES]; /* the length of the block that begins here, -1 within one, 0: free */
} segments[SEGMENTS];
static int segment_count;
static memprof_pool pool;

static int hole_in(const struct segment *s, int pieces)
{
    for (int i = 0, run = 0; i < PIECES; i++) {
        run = s->taken[i] ? 0 : run + 1;
        if (run == pieces)
            return i + 1 - pieces;
    }
    return -1;
}

static char *take(int pieces)
{
    int at = -1, s = 0;
    for (; s < segment_count && (at = hole_in(&segments[s], pieces)) < 0; s++)
        ;
    if (at < 0) {
        CHECK(cudaMalloc((void **)&segments[s].memory, PIECES * PIECE));
        ledger_alloc(0, "segment", PIECES * PIECE);
        memprof_pool_segment(pool, segments[s].memory, PIECES * PIECE);
        segment_count = s + 1;
        at = 0;
    }
    for (int i = 0; i < pieces; i++)
        segments[s].taken[at + i] = i ? -1 : pieces;
    char *memory = segments[s].memory + (size_t)at * PIECE;
    memprof_pool_alloc(pool, memory, (size_t)pieces * PIECE);
    ledger_alloc(0, "sub", (size_t)pieces * PIECE);
    return memory;
}

static void give(char *memory)
{
    for (int s = 0; s < segment_count; s++) {
        if (memory < segments[s].memory || memory >= segments[s].memory + PIECES * PIECE)
            continue;
        int at = (int)((size_t)(memory - segments[s].memory) / PIECE), pieces = segments[s].taken[at];
        memprof_pool_free(pool, memory);
        ledger_free(0, "sub", (size_t)pieces * PIECE);
        for (int i = 0; i < pieces; i++)
            segments[s].taken[at + i] = 0;
    }
}

static char *long_lived(void)
{
    return take(1);
}

static char *short_lived(void)
{
    return take(1);
}

int main(void)
{
    char *kept[4], *gone[60];
    int kept_count = 0, gone_count = 0;
    CHECK(cudaSetDevice(0));
    pool = memprof_pool_create("pieces");
    for (int i = 0; i < 4 * PIECES; i++)
        if (i % PIECES == 0)
            kept[kept_count++] = long_lived();
        else
            gone[gone_count++] = short_lived();
    for (int i = 0; i < gone_count; i++)
        give(gone[i]);
    printf("%d segments, %d pieces in use\n", segment_count, kept_count);
    char *large = take(PIECES);
    printf("%d segments after one more request of %zu bytes\n", segment_count, PIECES * PIECE);
    memprof_mark("fragmented");
    give(large);
    for (int i = 0; i < kept_count; i++)
        give(kept[i]);
    for (int s = 0; s < segment_count; s++) {
        memprof_pool_segment_end(pool, segments[s].memory);
        CHECK(cudaFree(segments[s].memory));
        ledger_free(0, "segment", PIECES * PIECE);
    }
    memprof_pool_destroy(pool);
    ledger_print();
    return 0;
}
