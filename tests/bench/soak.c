/* soak SECONDS EVENTS [PACE]: mallocs and frees among 10,000 live blocks from 64 places, until either is over, PACE of
 * them a second (0: as fast as it can); prints how many blocks and bytes it allocated and freed. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { LIVE = 10000, DEPTH = 6, BATCH = 4096 };
static struct block {
    void *p;
    size_t size;
} live[LIVE];
static uint64_t allocs, alloc_bytes, frees, free_bytes, state = 88172645463325252ull;

static uint64_t next(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

/* Two callers a level: 64 stacks. */
static void *left(unsigned path, int level, size_t size);
static void *right(unsigned path, int level, size_t size);
static __attribute__((noinline)) void *go(unsigned path, int level, size_t size)
{
    void *p = level == DEPTH ? malloc(size) : (path >> level & 1 ? left : right)(path, level + 1, size);
    __asm__ volatile("" ::: "memory"); /* no tail call */
    return p;
}
static __attribute__((noinline)) void *left(unsigned path, int level, size_t size)
{
    void *p = go(path, level, size);
    __asm__ volatile("" ::: "memory");
    return p;
}
static __attribute__((noinline)) void *right(unsigned path, int level, size_t size)
{
    void *p = go(path, level, size);
    __asm__ volatile("" ::: "memory");
    return p;
}

static void step(void)
{
    uint64_t r = next();
    struct block *b = &live[r % LIVE];
    if (b->p) {
        frees++;
        free_bytes += b->size;
        free(b->p);
    }
    b->size = 16 + (r >> 20) % 2000;
    b->p = go((unsigned)(r >> 40) % 64, 0, b->size);
    allocs++;
    alloc_bytes += b->size;
}

/* Sleeps until so many events are due. */
static void keep_pace(const struct timespec *begun, uint64_t pace)
{
    uint64_t due_ns = (allocs + frees) * 1000000000u / pace + (uint64_t)begun->tv_nsec;
    struct timespec due = {begun->tv_sec + (time_t)(due_ns / 1000000000u), (long)(due_ns % 1000000000u)};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
}

int main(int argc, char *argv[])
{
    if (argc < 3)
        return 2;
    time_t end = time(NULL) + atol(argv[1]);
    uint64_t events = strtoull(argv[2], NULL, 10), pace = argc > 3 ? strtoull(argv[3], NULL, 10) : 0;
    struct timespec begun;
    clock_gettime(CLOCK_MONOTONIC, &begun);
    while (allocs + frees < events && time(NULL) < end) {
        for (int i = 0; i < BATCH && allocs + frees < events; i++)
            step();
        if (pace)
            keep_pace(&begun, pace);
    }
    printf("%llu|%llu|%llu|%llu\n", (unsigned long long)allocs, (unsigned long long)alloc_bytes,
           (unsigned long long)frees, (unsigned long long)free_bytes);
    return 0;
}
