/*
 * A process with memory on a GPU (its argument: which; 0) that does what it is told, a word and a number a line, and
 * answers "done": take BYTES, claim BYTES (whose contents sum does not see), managed BYTES, foreign BYTES, drop (the
 * newest one), slow (a call that ends when the file "slow" is gone), sum (of all that take gave, as it lies on the
 * device), context (another one on GPU 0), end (of that), yield and restore (its own GPUs), quit. Needs no toolkit;
 * runs on the simulated driver, too.
 */
#include "../../include/memprof.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { BLOCKS = 64, EXTERNAL_FD = 1 };

static void *driver;
static struct {
    uint64_t at;
    size_t bytes;   /* 0: its contents are nobody's */
    void *external; /* the object that it is of, or NULL */
} blocks[BLOCKS];
static int block_count;

static void *find(const char *name)
{
    void *function = dlsym(driver, name);
    if (function)
        return function;
    printf("no %s\n", name);
    exit(3);
}

static void check(int error, const char *what)
{
    if (!error)
        return;
    printf("%s: error %d\n", what, error);
    exit(4);
}

static void take(size_t bytes)
{
    uint64_t at, state = 88172645463325252u + (uint64_t)block_count;
    check(((int (*)(uint64_t *, size_t))find("cuMemAlloc_v2"))(&at, bytes), "cuMemAlloc");
    uint64_t *pattern = malloc(bytes);
    for (size_t i = 0; i < bytes / sizeof *pattern; i++) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        pattern[i] = state;
    }
    check(((int (*)(uint64_t, const void *, size_t))find("cuMemcpyHtoD_v2"))(at, pattern, bytes), "cuMemcpyHtoD");
    free(pattern);
    blocks[block_count].at = at;
    blocks[block_count++].bytes = bytes;
}

/* Without contents: of any size. */
static void claim(size_t bytes)
{
    check(((int (*)(uint64_t *, size_t))find("cuMemAlloc_v2"))(&blocks[block_count].at, bytes), "cuMemAlloc");
    blocks[block_count++].bytes = 0;
}

static void managed(size_t bytes)
{
    check(((int (*)(uint64_t *, size_t, unsigned))find("cuMemAllocManaged"))(&blocks[block_count].at, bytes, 1),
          "cuMemAllocManaged");
    blocks[block_count++].bytes = 0;
}

static void foreign(size_t bytes)
{
    struct {
        int type, pad;
        union {
            int fd;
            void *both[2];
        } handle;
        unsigned long long size;
        unsigned flags, reserved[16];
    } desc = {.type = EXTERNAL_FD, .size = bytes};
    struct {
        unsigned long long offset, size;
        unsigned flags, reserved[16];
    } part = {.size = bytes};
    void *memory;
    desc.handle.fd = memfd_create("other", MFD_CLOEXEC);
    if (ftruncate(desc.handle.fd, (off_t)bytes))
        exit(5);
    check(((int (*)(void **, void *))find("cuImportExternalMemory"))(&memory, &desc), "cuImportExternalMemory");
    check(((int (*)(uint64_t *, void *, void *))find("cuExternalMemoryGetMappedBuffer"))(&blocks[block_count].at,
                                                                                         memory, &part),
          "cuExternalMemoryGetMappedBuffer");
    blocks[block_count].external = memory;
    blocks[block_count++].bytes = 0;
}

static void drop(void)
{
    check(((int (*)(uint64_t))find("cuMemFree_v2"))(blocks[--block_count].at), "cuMemFree");
    if (blocks[block_count].external)
        check(((int (*)(void *))find("cuDestroyExternalMemory"))(blocks[block_count].external),
              "cuDestroyExternalMemory");
    blocks[block_count].external = NULL;
}

static void wait_for_file(void *arg)
{
    while (access(arg, F_OK) == 0)
        nanosleep(&(struct timespec){0, 5000000}, NULL);
}

static void slow(void)
{
    static char file[] = "slow";
    check(((int (*)(void *, void (*)(void *), void *))find("cuLaunchHostFunc"))(NULL, wait_for_file, file),
          "cuLaunchHostFunc");
    puts("slow");
    fflush(stdout);
    check(((int (*)(void *))find("cuStreamSynchronize"))(NULL), "cuStreamSynchronize");
}

static uint64_t sum(void)
{
    uint64_t hash = 14695981039346656037u;
    for (int i = 0; i < block_count; i++) {
        unsigned char *copy = malloc(blocks[i].bytes + 1);
        check(((int (*)(void *, uint64_t, size_t))find("cuMemcpyDtoH_v2"))(copy, blocks[i].at, blocks[i].bytes),
              "cuMemcpyDtoH");
        for (size_t k = 0; k < blocks[i].bytes; k++)
            hash = (hash ^ copy[k]) * 1099511628211u;
        free(copy);
    }
    return hash;
}

static void another_context(void)
{
    void *context;
    check(((int (*)(void **, unsigned, int))find("cuCtxCreate_v2"))(&context, 0, 0), "cuCtxCreate");
}

static void end_context(void)
{
    void *context;
    check(((int (*)(void **))find("cuCtxGetCurrent"))(&context), "cuCtxGetCurrent");
    check(((int (*)(void *))find("cuCtxDestroy_v2"))(context), "cuCtxDestroy");
}

static int obey(const char *word, size_t number)
{
    if (!strcmp(word, "take"))
        take(number);
    else if (!strcmp(word, "claim"))
        claim(number);
    else if (!strcmp(word, "managed"))
        managed(number);
    else if (!strcmp(word, "foreign"))
        foreign(number);
    else if (!strcmp(word, "drop"))
        drop();
    else if (!strcmp(word, "slow"))
        slow();
    else if (!strcmp(word, "context"))
        another_context();
    else if (!strcmp(word, "end"))
        end_context();
    else if (!strcmp(word, "yield"))
        printf("yield %d\n", memprof_yield());
    else if (!strcmp(word, "restore"))
        printf("restore %d\n", memprof_restore());
    else if (!strcmp(word, "sum"))
        printf("sum %016llx\n", (unsigned long long)sum());
    return strcmp(word, "quit") != 0;
}

int main(int argc, char **argv)
{
    const int device = argc > 1 ? atoi(argv[1]) : 0;
    char word[32];
    size_t number = 0;
    void *context;
    driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!driver)
        return 2;
    check(((int (*)(unsigned))find("cuInit"))(0), "cuInit");
    check(((int (*)(void **, int))find("cuDevicePrimaryCtxRetain"))(&context, device), "cuDevicePrimaryCtxRetain");
    check(((int (*)(void *))find("cuCtxSetCurrent"))(context), "cuCtxSetCurrent");
    printf("pid %d\n", (int)getpid());
    fflush(stdout);
    while (scanf("%31s %zu", word, &number) == 2 && obey(word, number)) {
        puts("done");
        fflush(stdout);
    }
    return 0;
}
