/* many N: N allocations and as many frees from about 4,000 stacks, with up to 64 thousand blocks live and a slow rise.
 */
#include <stdio.h>
#include <stdlib.h>

static void *kept[65536];
static unsigned long seed = 1;

static unsigned rnd(unsigned below)
{
    seed = seed * 6364136223846793005ul + 1442695040888963407ul;
    return (unsigned)(seed >> 33) % below;
}

static void *path(unsigned way, int depth);

#define STEP(n)                                                                                                        \
    __attribute__((noinline)) static void *step##n(unsigned way, int depth)                                            \
    {                                                                                                                  \
        void *block = depth ? path(way, depth - 1) : malloc(16 + rnd(500));                                            \
        __asm__ volatile("");                                                                                          \
        return block;                                                                                                  \
    }
STEP(0)
STEP(1)
STEP(2)
STEP(3)

__attribute__((noinline)) static void *path(unsigned way, int depth)
{
    void *(*const steps[])(unsigned, int) = {step0, step1, step2, step3};
    void *block = steps[way & 3](way >> 2, depth);
    __asm__ volatile("");
    return block;
}

int main(int argc, char **argv)
{
    long count = argc > 1 ? atol(argv[1]) : 1000;
    for (long i = 0; i < count; i++) {
        unsigned slot = rnd(1 + (unsigned)(65535.0 * (double)i / (double)count));
        free(kept[slot]);
        kept[slot] = path((unsigned)(i >> 4) & 4095, 5);
    }
    for (unsigned i = 0; i < 65536; i++)
        free(kept[i]);
    return 0;
}
