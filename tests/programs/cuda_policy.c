/* Stream-ordered pools of the driver, under a policy. Argument: what to do. Whatever it waits for comes within MOST_S,
 * or what it prints says that it did not. */
#include "../../include/memprof.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MIB = 1 << 20, MOST_S = 60, RESERVED = 5, USED = 7, THRESHOLD = 4 };

struct properties {
    int type, handle_type, location_type, location_id;
    void *attributes;
    size_t max_size;
    unsigned char reserved[56];
};

static void *driver, *context, *stream;

#define CALL(name, types, ...)                                                                                         \
    do {                                                                                                               \
        int(*f_) types = (int(*) types)dlsym(driver, #name);                                                           \
        int error_ = f_ ? f_(__VA_ARGS__) : -1;                                                                        \
        if (error_) {                                                                                                  \
            fprintf(stderr, "%s: error %d\n", #name, error_);                                                          \
            exit(4);                                                                                                   \
        }                                                                                                              \
    } while (0)

static void begin(void)
{
    driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!driver)
        exit(3);
    CALL(cuInit, (unsigned), 0);
    CALL(cuDevicePrimaryCtxRetain, (void **, int), &context, 0);
    CALL(cuCtxSetCurrent, (void *), context);
    CALL(cuStreamCreate, (void **, unsigned), &stream, 1);
}

static void *new_pool(uint64_t threshold)
{
    struct properties p = {.type = 1, .location_type = 1};
    void *pool;
    CALL(cuMemPoolCreate, (void **, const struct properties *), &pool, &p);
    CALL(cuMemPoolSetAttribute, (void *, int, void *), pool, THRESHOLD, &threshold);
    return pool;
}

static uint64_t ask(void *pool, int what)
{
    uint64_t value;
    CALL(cuMemPoolGetAttribute, (void *, int, void *), pool, what, &value);
    return value;
}

/* 12 MiB that are freed: what the pool's threshold lets it keep. */
static void fill(void *pool)
{
    uint64_t p[3];
    for (int i = 0; i < 3; i++)
        CALL(cuMemAllocFromPoolAsync, (uint64_t *, size_t, void *, void *), &p[i], 4 * MIB, pool, stream);
    for (int i = 0; i < 3; i++)
        CALL(cuMemFreeAsync, (uint64_t, void *), p[i], stream);
}

static time_t now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec;
}

static void nap(void)
{
    nanosleep(&(struct timespec){0, 2000000}, NULL);
}

static void say(void *pool)
{
    memprof_mark("the end");
    printf("used %llu reserved %llu\n", (unsigned long long)ask(pool, USED), (unsigned long long)ask(pool, RESERVED));
}

static int seen;

/* The action behind a trim: that was answered before. */
static void see_after(const char *order, const char *device, void *arg)
{
    (void)order, (void)device, (void)arg;
    __atomic_store_n(&seen, 1, __ATOMIC_SEQ_CST);
}

static void keep(int is_waiting, int is_polling)
{
    void *pool = new_pool(64 * MIB);
    memprof_on("after", see_after, NULL);
    fill(pool);
    CALL(cuStreamSynchronize, (void *), stream);
    for (time_t end = now_s() + MOST_S;
         is_waiting && (ask(pool, RESERVED) || !__atomic_load_n(&seen, __ATOMIC_SEQ_CST)) && now_s() < end;) {
        if (is_polling)
            memprof_poll();
        nap();
    }
    memprof_sync();
    say(pool);
}

/* Until the order was taken: a policy of pool-trim changes nothing here, one of pool-trim-sync does. */
static void pending(void)
{
    memprof_poll(); /* from here on nobody else takes it */
    void *pool = new_pool(64 * MIB);
    fill(pool);
    for (time_t end = now_s() + MOST_S; !memprof_poll() && now_s() < end;)
        nap();
    say(pool);
}

static void destroy(void)
{
    int count = 0;
    for (int round = 0; round < 100; round++) {
        void *pools[4];
        for (int i = 0; i < 4; i++)
            fill(pools[i] = new_pool(64 * MIB));
        if (round % 10 == 0)
            nap();
        CALL(cuStreamSynchronize, (void *), stream);
        for (int i = 0; i < 4; i++, count++)
            CALL(cuMemPoolDestroy, (void *), pools[i]);
    }
    printf("pools %d\n", count);
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    begin();
    if (!strcmp(mode, "alone"))
        keep(0, 0);
    else if (!strcmp(mode, "thread"))
        keep(1, 0);
    else if (!strcmp(mode, "poll"))
        keep(1, 1);
    else if (!strcmp(mode, "pending"))
        pending();
    else if (!strcmp(mode, "destroy"))
        destroy();
    else
        return 2;
    return 0;
}
