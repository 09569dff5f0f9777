/* A rank of a job: ranks RANK [TOGETHER FILES]. With r = RANK + 1 it keeps r blocks of 1000 bytes, makes and frees r
 * blocks of 64 bytes 100 times, and holds one block of r * 100,000 bytes: its peak is r * 101,000 bytes. With TOGETHER
 * it makes FILE.RANK and holds that until all of FILES ranks have made theirs, and for a while more. */
#include "../../include/memprof.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void *volatile kept;

static __attribute__((noinline)) void keep(int count)
{
    for (int i = 0; i < count; i++) {
        void **block = malloc(1000);
        *block = kept;
        kept = block;
    }
}

static __attribute__((noinline)) void pass(int count)
{
    for (int i = 0; i < 100 * count; i++) {
        char *volatile block = malloc(64);
        free(block);
    }
}

static int is_there(const char *name, int rank)
{
    char path[256];
    snprintf(path, sizeof path, "%s.%d", name, rank);
    return access(path, F_OK) == 0;
}

static void wait_for_all(const char *name, int rank, int count)
{
    char path[256];
    snprintf(path, sizeof path, "%s.%d", name, rank);
    close(open(path, O_CREAT | O_WRONLY, 0600));
    for (int i = 0; i < count; i++)
        while (!is_there(name, i))
            usleep(1000);
    usleep(200000);
}

static __attribute__((noinline)) void hold(int rank, int argc, char **argv)
{
    char *volatile block = malloc((size_t)(rank + 1) * 100000);
    if (argc > 3)
        wait_for_all(argv[2], rank, atoi(argv[3]));
    free(block);
}

int main(int argc, char **argv)
{
    int rank = argc > 1 ? atoi(argv[1]) : 0;
    memprof_mark("begin");
    keep(rank + 1);
    pass(rank + 1);
    hold(rank, argc, argv);
    return 0;
}
