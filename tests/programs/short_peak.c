/* 40,000 blocks of a stack each, which resident memory slowly grows with; then 320 MiB more within a quarter of a
 * second, written as they are taken, and given back at once. Prints nothing. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { STACKS = 40000, STEPS = 32, STEP = 10 << 20 };

static void *kept[STACKS], *steps[STEPS];

static void nap(long ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&t, NULL);
}

static void *take(unsigned path);

#define TURN(name)                                                                                                     \
    static __attribute__((noinline)) void *name(unsigned path)                                                         \
    {                                                                                                                  \
        void *block = take(path >> 1);                                                                                 \
        __asm__ volatile("" ::: "memory"); /* keeps it from being a jump */                                            \
        return block;                                                                                                  \
    }
TURN(left)
TURN(right)

/* One stack a path: its bits are the turns. */
static __attribute__((noinline)) void *take(unsigned path)
{
    if (path <= 1)
        return calloc(1, 512);
    void *block = path & 1 ? right(path) : left(path);
    __asm__ volatile("" ::: "memory");
    return block;
}

static __attribute__((noinline)) void peak(void)
{
    for (unsigned i = 0; i < STEPS; i++) {
        steps[i] = malloc(STEP);
        if (!steps[i])
            abort();
        memset(steps[i], 1, STEP);
        nap(5);
    }
    nap(60);
    for (unsigned i = 0; i < STEPS; i++)
        free(steps[i]);
}

int main(void)
{
    for (unsigned i = 0; i < STACKS; i++) {
        kept[i] = take(i + STACKS);
        if (i % 400 == 0)
            nap(5);
    }
    peak();
    nap(200);
    for (unsigned i = 0; i < STACKS; i++)
        free(kept[i]);
    return 0;
}
