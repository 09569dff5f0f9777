/* many N [THREADS [PROCESSES]]: N allocations and as many frees from about 4,000 stacks, with up to 64 thousand blocks
 * live and a slow rise; shared out among threads, which free each other's, of processes. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void *kept[65536];
static long count; /* of a thread */
static _Thread_local unsigned long seed = 1;

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

static void *run(void *number)
{
    seed = (unsigned long)number + 1;
    for (long i = 0; i < count; i++) {
        unsigned slot = rnd(1 + (unsigned)(65535.0 * (double)i / (double)count));
        free(__atomic_exchange_n(&kept[slot], NULL, __ATOMIC_ACQ_REL));
        free(__atomic_exchange_n(&kept[slot], path((unsigned)(i >> 4) & 4095, 5), __ATOMIC_ACQ_REL));
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t others[64];
    long threads = argc > 2 ? atol(argv[2]) : 1, processes = argc > 3 ? atol(argv[3]) : 1;
    count = (argc > 1 ? atol(argv[1]) : 1000) / threads / processes;
    for (long i = 1; i < processes && fork() != 0; i++)
        ;
    for (long i = 1; i < threads && i <= 64; i++)
        if (pthread_create(&others[i - 1], NULL, run, (void *)i) != 0)
            return 1;
    run(NULL);
    for (long i = 1; i < threads && i <= 64; i++)
        pthread_join(others[i - 1], NULL);
    for (unsigned i = 0; i < 65536; i++)
        free(kept[i]);
    while (wait(NULL) > 0)
        ;
    return 0;
}
