/* Nearly each allocation has a stack of its own: a random tree of calls, 32 functions wide. argv[1]: how many. Prints
 * how many allocations it made, their bytes, and the blocks and bytes that it keeps. argv[2]: "read" lives until its
 * input ends, anything else until it is killed. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KEPT 500

static uint64_t seed = 88172645463325252ull;
static long left, count, bytes;
static struct {
    void *block;
    size_t size;
} kept[KEPT];

static uint32_t number(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (uint32_t)(seed >> 32);
}

static void *take(size_t size)
{
    void *block = malloc(size);
    if (!block)
        abort();
    count++;
    bytes += (long)size;
    return block;
}

static void call(int depth);
/* the barrier keeps it from being a jump */
#define F(n)                                                                                                           \
    static __attribute__((noinline)) void f##n(int depth)                                                              \
    {                                                                                                                  \
        call(depth);                                                                                                   \
        __asm__ volatile("");                                                                                          \
    }
#define ROW(n)                                                                                                         \
    F(n##0)                                                                                                            \
    F(n##1)                                                                                                            \
    F(n##2)                                                                                                            \
    F(n##3)                                                                                                            \
    F(n##4)                                                                                                            \
    F(n##5)                                                                                                            \
    F(n##6)                                                                                                            \
    F(n##7)
#define ROWS ROW(1) ROW(2) ROW(3) ROW(4)
ROWS

#define NAMES(n) f##n##0, f##n##1, f##n##2, f##n##3, f##n##4, f##n##5, f##n##6, f##n##7
    static void (*const functions[])(int) = {NAMES(1), NAMES(2), NAMES(3), NAMES(4)};

static __attribute__((noinline)) void call(int depth)
{
    if (left <= 0)
        return;
    if (number() % 3 == 0 || depth > 60) {
        unsigned at = number() % KEPT;
        left--;
        free(kept[at].block);
        kept[at].size = 16 + number() % 400;
        kept[at].block = take(kept[at].size);
        if (left % 2)
            free(take(64));
    }
    for (int i = 0; depth <= 60 && i < 2 + (depth < 12); i++)
        if (number() % 16 < (depth < 25 ? 10u : 8u))
            functions[number() % 32](depth + 1);
}

int main(int argc, char **argv)
{
    left = argc > 1 ? atol(argv[1]) : 1000;
    while (left > 0)
        call(0);
    long blocks = 0, held = 0;
    for (int i = 0; i < KEPT; i++) {
        blocks += kept[i].block != NULL;
        held += (long)kept[i].size;
    }
    char line[128];
    int n = snprintf(line, sizeof line, "%ld|%ld|%ld|%ld\n", count, bytes, blocks, held);
    if (write(1, line, (size_t)n) != n) /* stdio would allocate, too */
        return 1;
    if (argc > 2 && !strcmp(argv[2], "read"))
        return read(0, line, 1) != 0;
    if (argc > 2)
        for (;;)
            pause();
    return 0;
}
