/* rlimit: limits its own address space after the start, allocates, and starts 600 threads one after the other and 80 at
 * a time. */
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

static pthread_barrier_t all;

__attribute__((noinline)) static void counted(void)
{
    free(malloc(77));
}

static void *one(void *argument)
{
    counted();
    if (argument)
        pthread_barrier_wait(&all);
    return NULL;
}

static int start(int count, void *argument)
{
    pthread_attr_t small;
    pthread_t threads[80];
    int failed = 0;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 65536);
    for (int i = 0; i < count; i++)
        failed += pthread_create(&threads[i], &small, one, argument) != 0;
    for (int i = 0; i < count && !failed; i++)
        pthread_join(threads[i], NULL);
    return failed;
}

int main(void)
{
    int failed = setrlimit(RLIMIT_AS, &(struct rlimit){1u << 30, 1u << 30}) != 0;
    void *big = malloc(20 << 20);
    failed += !big;
    free(big);
    mallopt(-8 /* M_ARENA_MAX: 64 MiB of addresses each */, 1);
    pthread_barrier_init(&all, NULL, 80);
    failed += start(80, &all);
    for (int i = 0; i < 600; i++)
        failed += start(1, NULL);
    printf("%d failed\n", failed);
    return failed != 0;
}
