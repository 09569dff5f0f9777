/* name_cost: what a name and a view of a block take of the thread's processor time: "name NS" and "view NS" a call, the
 * least of five rounds of 40,000. */
#include "memprof.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROUNDS = 5, CALLS = 40000 };

static float *block;

static void name(void)
{
    memprof_name(block, "block");
}

static void view(void)
{
    const struct memprof_view rows = {block + 64, sizeof *block, 2, {8, 64}, {64, 1}};
    memprof_view(block, &rows, "rows");
}

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void measure(const char *what, void (*call)(void))
{
    uint64_t least_ns = UINT64_MAX;
    for (int round = 0; round < ROUNDS; round++) {
        const uint64_t begin_ns = now_ns();
        for (int i = 0; i < CALLS; i++)
            call();
        const uint64_t took_ns = now_ns() - begin_ns;
        least_ns = took_ns < least_ns ? took_ns : least_ns;
    }
    printf("%s %llu\n", what, (unsigned long long)(least_ns / CALLS));
}

int main(void)
{
    block = malloc(4096);
    measure("name", name);
    measure("view", view);
    free(block);
    return 0;
}
