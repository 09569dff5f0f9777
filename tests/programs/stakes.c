/*
 * Findings of which one is about a small part of another's bytes. Without an argument: 400 MiB of which 1 MiB is
 * written, and 4,000 blocks of 100 bytes that come evenly over a second, all of it kept. "held": 5 MiB are never
 * freed, and of 60,000 blocks of 1,000 bytes all but the last one are freed, which keeps their pages from the kernel
 * for the second that follows.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MIB (1ul << 20)

static char *volatile kept[60000];

static __attribute__((noinline)) char *reserve(void)
{
    return mmap(NULL, 400 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static __attribute__((noinline)) void step(int i)
{
    kept[i] = malloc(100);
    usleep(i % 4 ? 0 : 1000);
}

static __attribute__((noinline)) void leak(void)
{
    kept[0] = memset(malloc(5 * MIB), 1, 5 * MIB);
}

static __attribute__((noinline)) void hold(void)
{
    for (int i = 1; i < 60000; i++)
        kept[i] = memset(malloc(1000), 1, 1000);
    for (int i = 1; i < 59999; i++)
        free(kept[i]);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "held") == 0) {
        leak();
        hold();
        usleep(1500000);
        return 0;
    }
    char *map = reserve();
    if (map == MAP_FAILED)
        return 1;
    memset(map, 1, MIB);
    for (int i = 0; i < 4000; i++)
        step(i);
    return 0;
}
