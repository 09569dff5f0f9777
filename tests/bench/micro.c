/*
 * micro THREADS PAIRS DEPTH PATHS: each thread does PAIRS / THREADS malloc/free pairs of 16 sizes (16 to 256 bytes),
 * each from the bottom of one of PATHS random paths of DEPTH calls through 16 functions. Prints its own wall time.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int depth, path_count;
static long pairs;
static uint8_t (*paths)[64]; /* which function is called at each level */

typedef unsigned (*function)(const uint8_t *path, int level, size_t size);
static unsigned go(const uint8_t *path, int level, size_t size);

#define F(n)                                                                                                           \
    static __attribute__((noinline)) unsigned f##n(const uint8_t *path, int level, size_t size)                        \
    {                                                                                                                  \
        unsigned r = go(path, level + 1, size);                                                                        \
        __asm__ volatile("" ::: "memory"); /* no tail call */                                                          \
        return r + n;                                                                                                  \
    }
F(0)
F(1)
F(2)
F(3)
F(4)
F(5)
F(6)
F(7)
F(8)
F(9)
F(10)
F(11)
F(12)
F(13)
F(14)
F(15)
static const function functions[16] = {f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15};

static __attribute__((noinline)) unsigned bottom(size_t size)
{
    volatile char *p = malloc(size);
    p[0] = 1;
    unsigned r = (unsigned char)p[0];
    free((void *)p);
    return r;
}
static inline __attribute__((always_inline)) unsigned go(const uint8_t *path, int level, size_t size)
{
    return level >= depth ? bottom(size) : functions[path[level]](path, level, size);
}

static uint64_t next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void *work(void *number)
{
    uint64_t state = 88172645463325252u + (uintptr_t)number;
    unsigned long sum = 0;
    for (long i = 0; i < pairs; i++) {
        uint64_t r = next(&state);
        sum += go(paths[r % path_count], 0, 16 + (r >> 32) % 16 * 16);
    }
    return (void *)sum;
}

int main(int argc, char **argv)
{
    int threads = argc > 1 ? atoi(argv[1]) : 1;
    long all = argc > 2 ? atol(argv[2]) : 5000000;
    depth = argc > 3 ? atoi(argv[3]) : 16;
    path_count = argc > 4 ? atoi(argv[4]) : 200;
    if (threads < 1 || threads > 64 || depth < 0 || depth > 64 || path_count < 1)
        return 2;
    pairs = all / threads;
    paths = malloc(path_count * sizeof *paths);
    uint64_t state = 42;
    for (int i = 0; i < path_count; i++)
        for (int k = 0; k < 64; k++)
            paths[i][k] = next(&state) >> 20 & 15;
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    pthread_t t[64];
    for (long i = 1; i < threads; i++)
        pthread_create(&t[i], NULL, work, (void *)i);
    work(NULL);
    for (int i = 1; i < threads; i++)
        pthread_join(t[i], NULL);
    clock_gettime(CLOCK_MONOTONIC, &b);
    fprintf(stderr, "%.4f s\n", (b.tv_sec - a.tv_sec) + (b.tv_nsec - a.tv_nsec) / 1e9);
    return 0;
}
