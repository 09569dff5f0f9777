/*
 * Blocks of known numbers and sizes, and the ledger of them: what a thinned recording (run --sample, --min-size) is
 * held to. All figures are this program's own arithmetic. sizes LIMIT SEED   blocks around LIMIT by each function of
 * the heap, reallocs across it, a forked child that frees some of its parent's. Prints of take(), for blocks of at
 * least LIMIT: allocations, bytes, frees, blocks and bytes at the end, all with |; then blocks and bytes that are
 * smaller. sample             always the same blocks. Prints for small(), middle() and large(): allocations, bytes,
 * blocks and bytes at the end.
 */
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __clang__
#define KEEP __attribute__((noinline, disable_tail_calls))
#else
#define KEEP __attribute__((noinline, optimize("no-optimize-sibling-calls")))
#endif

static uint64_t state;
static uint64_t draw(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state * 0x2545f4914f6cdd1dull >> 16;
}

/* --- sizes --- */

static size_t limit;
static struct ledger {
    unsigned long allocs, bytes, frees, freed, left, left_bytes;
} ledger;

static void born(size_t size)
{
    if (size < limit) {
        ledger.left++;
        ledger.left_bytes += size;
        return;
    }
    ledger.allocs++;
    ledger.bytes += size;
}

static void died(size_t size)
{
    if (size < limit)
        return;
    ledger.frees++;
    ledger.freed += size;
}

KEEP void *take(void *old, size_t old_size, size_t size)
{
    void *p = old;
    born(size);
    if (old) {
        died(old_size);
        p = draw() % 2 ? realloc(old, size) : reallocarray(old, 1, size);
    } else {
        switch (draw() % 6) {
        case 0:
            p = calloc(1, size);
            break;
        case 1:
            p = memalign(64, size);
            break;
        case 2:
            if (posix_memalign(&p, 128, size))
                p = NULL;
            break;
        case 3:
            p = aligned_alloc(32, size);
            break;
        default:
            p = malloc(size);
        }
    }
    if (!p)
        abort();
    memset(p, 1, size < 8 ? size : 8);
    return p;
}

#define SLOTS 512
static void *blocks[SLOTS];
static size_t sizes[SLOTS];

static void give(unsigned i)
{
    if (!blocks[i])
        return;
    died(sizes[i]);
    free(blocks[i]);
    blocks[i] = NULL;
}

static void steps(unsigned count)
{
    for (unsigned n = 0; n < count; n++) {
        unsigned i = (unsigned)(draw() % SLOTS);
        size_t size = draw() % 4 ? 1 + draw() % (2 * limit) : limit - 1 + draw() % 2;
        if (blocks[i] && draw() % 3 == 0) {
            give(i);
            continue;
        }
        blocks[i] = take(blocks[i], sizes[i], size);
        sizes[i] = size;
    }
}

/* The child's frees of its parent's blocks are none of its own; it gives back all that it takes. */
static void child(int out)
{
    struct ledger before = ledger;
    for (unsigned i = 0; i < SLOTS; i++)
        give(i);
    ledger.frees = before.frees;
    ledger.freed = before.freed;
    steps(20000);
    for (unsigned i = 0; i < SLOTS; i++)
        give(i);
    _exit(write(out, &ledger, sizeof ledger) != sizeof ledger);
}

static int run_sizes(void)
{
    int status = 0, ends[2];
    steps(20000);
    if (pipe(ends))
        return 1;
    if (fork() == 0)
        child(ends[1]);
    wait(&status);
    if (status || read(ends[0], &ledger, sizeof ledger) != sizeof ledger)
        return 1;
    steps(20000);
    char line[256]; /* what prints to a stream allocates */
    int length =
        snprintf(line, sizeof line, "%lu|%lu|%lu|%lu|%lu\n%lu|%lu\n", ledger.allocs, ledger.bytes, ledger.frees,
                 ledger.allocs - ledger.frees, ledger.bytes - ledger.freed, ledger.left, ledger.left_bytes);
    return write(1, line, (size_t)length) != length;
}

/* --- sample --- */

struct figures {
    unsigned long allocs, bytes, live, live_bytes;
};

KEEP void *small(size_t size)
{
    void *p = malloc(size);
    __asm__ volatile("" : "+r"(p));
    return p;
}
KEEP void *middle(size_t size)
{
    void *p = malloc(size);
    __asm__ volatile("" : "+r"(p));
    return p;
}
KEEP void *large(size_t size)
{
    void *p = malloc(size);
    __asm__ volatile("" : "+r"(p));
    return p;
}

/* One of each `every` stays. */
static void go(const char *name, void *(*function)(size_t), unsigned count, size_t least, size_t span, unsigned every)
{
    struct figures f = {0};
    for (unsigned i = 0; i < count; i++) {
        size_t size = least + draw() % span;
        void *p = function(size);
        f.allocs++;
        f.bytes += size;
        if (i % every) {
            free(p);
            continue;
        }
        f.live++;
        f.live_bytes += size;
    }
    dprintf(1, "%s %lu %lu %lu %lu\n", name, f.allocs, f.bytes, f.live, f.live_bytes);
}

static int run_sample(void)
{
    go("small", small, 30000, 16, 400, 10);
    go("middle", middle, 2000, 2000, 12000, 10);
    go("large", large, 100, 40000, 20000, 10);
    return 0;
}

int main(int argc, char **argv)
{
    state = 0x9e3779b97f4a7c15ull + (argc > 3 ? strtoull(argv[3], NULL, 10) * 0x100000001b3ull : 0);
    if (argc > 3 && strcmp(argv[1], "sizes") == 0) {
        limit = strtoul(argv[2], NULL, 10);
        return run_sizes();
    }
    return argc > 1 && strcmp(argv[1], "sample") == 0 ? run_sample() : 2;
}
