/* Memory of two simulated GPUs, freed by functions of their own: with its device current and with the other one, at
 * once and in the order of a stream. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define NOINLINE __attribute__((noinline))
#define MIB      (1ull << 20)
typedef uint64_t ptr;
static void *driver;
static void *contexts[2];

#define CALL(name, types, ...)                                                                                         \
    do {                                                                                                               \
        int(*call_) types = (int(*) types)dlsym(driver, #name);                                                        \
        int error_ = call_ ? call_(__VA_ARGS__) : -1;                                                                  \
        if (error_) {                                                                                                  \
            fprintf(stderr, "%s: error %d\n", #name, error_);                                                          \
            exit(4);                                                                                                   \
        }                                                                                                              \
    } while (0)

static void use(int device)
{
    CALL(cuCtxSetCurrent, (void *), contexts[device]);
}

static NOINLINE ptr make(size_t size)
{
    ptr p;
    CALL(cuMemAlloc_v2, (ptr *, size_t), &p, size);
    return p;
}

static NOINLINE ptr make_ordered(size_t size)
{
    ptr p;
    CALL(cuMemAllocAsync, (ptr *, size_t, void *), &p, size, NULL);
    return p;
}

static NOINLINE void drop(ptr p)
{
    CALL(cuMemFree_v2, (ptr), p);
}

static NOINLINE void drop_elsewhere(ptr p)
{
    CALL(cuMemFree_v2, (ptr), p);
}

static NOINLINE void drop_ordered(ptr p)
{
    CALL(cuMemFreeAsync, (ptr, void *), p, NULL);
}

static NOINLINE void settle(void)
{
    CALL(cuCtxSynchronize, (void), );
}

int main(void)
{
    ptr blocks[6];
    driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!driver)
        return 3;
    CALL(cuInit, (unsigned), 0);
    for (int i = 0; i < 2; i++)
        CALL(cuDevicePrimaryCtxRetain, (void **, int), &contexts[i], i);
    use(0);
    for (int i = 0; i < 5; i++)
        blocks[i] = make((1 + (unsigned)i) * MIB);
    for (int i = 0; i < 3; i++)
        drop(blocks[i]); /* 1 + 2 + 3 MiB */
    use(1);
    for (int i = 3; i < 5; i++)
        drop_elsewhere(blocks[i]); /* 4 + 5 MiB */
    use(0);
    for (int i = 0; i < 4; i++)
        blocks[i] = make_ordered(2 * MIB);
    for (int i = 0; i < 4; i++)
        drop_ordered(blocks[i]);
    settle(); /* which is no free */
    return 0;
}
