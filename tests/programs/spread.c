/*
 * spread EXECUTIONS: so many executions of a range "step". Each makes 4 blocks of 1,000 bytes, at 64 stacks taken at
 * random, and frees the oldest beyond 20 and one more an execution: all together grow by exactly 1,000 bytes an
 * execution, and none of the stacks does steadily.
 */
#include <memprof.h>
#include <stdlib.h>

static void *walk(unsigned way, int depth);

#define STEP(n)                                                                                                        \
    __attribute__((noinline)) static void *step##n(unsigned way, int depth)                                            \
    {                                                                                                                  \
        void *block = depth ? walk(way, depth - 1) : malloc(1000);                                                     \
        __asm__ volatile("");                                                                                          \
        return block;                                                                                                  \
    }
STEP(0)
STEP(1)

__attribute__((noinline)) static void *walk(unsigned way, int depth)
{
    void *block = way & 1 ? step1(way >> 1, depth) : step0(way >> 1, depth);
    __asm__ volatile("");
    return block;
}

int main(int argc, char **argv)
{
    int executions = argc > 1 ? atoi(argv[1]) : 200, made = 0, freed = 0;
    void **blocks = calloc((size_t)executions * 4 + 1, sizeof *blocks);
    unsigned state = 1;
    for (int i = 0; i < executions; i++) {
        memprof_range_push("step");
        for (int k = 0; k < 4; k++)
            blocks[made++] = walk((unsigned)rand_r(&state) & 63, 5);
        while (made - freed > 20 + i)
            free(blocks[freed++]);
        memprof_range_pop();
    }
    while (freed < made)
        free(blocks[freed++]);
    free(blocks);
    return 0;
}
