/* A program of a GPU's memory in all its layers, with sizes that a test can add up. It looks everything up by dlsym in
 * the driver that it opens, as cudart does. Argument: what to do. */
#include "../../include/memprof.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MIB (1ull << 20)

typedef uint64_t ptr;
static void *driver;

static void *find(const char *name)
{
    void *p = dlsym(driver, name);
    if (!p) {
        fprintf(stderr, "%s: not in the driver\n", name);
        exit(3);
    }
    return p;
}

#define CALL(name, types, ...)                                                                                         \
    do {                                                                                                               \
        int error_ = ((int(*) types)find(#name))(__VA_ARGS__);                                                         \
        if (error_) {                                                                                                  \
            fprintf(stderr, "%s: error %d\n", #name, error_);                                                          \
            exit(4);                                                                                                   \
        }                                                                                                              \
    } while (0)

static void *context;

static void begin(int device)
{
    CALL(cuInit, (unsigned), 0);
    CALL(cuDevicePrimaryCtxRetain, (void **, int), &context, device);
    CALL(cuCtxSetCurrent, (void *), context);
}

__attribute__((noinline)) static ptr plain(size_t size)
{
    ptr p;
    CALL(cuMemAlloc_v2, (ptr *, size_t), &p, size); /* line of plain */
    return p;
}

static void release(ptr p)
{
    CALL(cuMemFree_v2, (ptr), p);
}

/* 3 + 5 MiB, the 3 freed, 1 MiB pinned, 2 MiB managed: active 8 at the peak of plain memory. */
static void do_plain(void)
{
    void *pinned;
    ptr managed, a = plain(3 * MIB), b = plain(5 * MIB);
    release(a);
    CALL(cuMemHostAlloc, (void **, size_t, unsigned), &pinned, MIB, 0);
    CALL(cuMemAllocManaged, (ptr *, size_t, unsigned), &managed, 2 * MIB, 1);
    CALL(cuMemcpyHtoD_v2, (ptr, const void *, size_t), b, pinned, MIB);
    CALL(cuMemcpyDtoH_v2, (void *, ptr, size_t), pinned, b, MIB / 2);
    CALL(cuMemsetD8_v2, (ptr, unsigned char, size_t), b, 7, 4096);
    CALL(cuMemcpyHtoD_v2, (ptr, const void *, size_t), b, pinned, MIB);
    CALL(cuMemFreeHost, (void *), pinned);
    release(managed);
    release(b);
}

/* 4 + 2 MiB of a stream: the 4 are freed there, 1 more is taken, then the host waits. */
static void do_pool(void)
{
    void *stream;
    ptr a, b, c;
    CALL(cuStreamCreate, (void **, unsigned), &stream, 0);
    CALL(cuMemAllocAsync, (ptr *, size_t, void *), &a, 4 * MIB, stream);
    CALL(cuMemAllocAsync, (ptr *, size_t, void *), &b, 2 * MIB, stream);
    CALL(cuMemFreeAsync, (ptr, void *), a, stream);
    usleep(5000);
    CALL(cuStreamSynchronize, (void *), stream);
    CALL(cuMemAllocAsync, (ptr *, size_t, void *), &c, MIB, stream);
    usleep(5000);
    CALL(cuMemFreeAsync, (ptr, void *), b, stream);
    CALL(cuMemFreeAsync, (ptr, void *), c, stream);
    CALL(cuStreamSynchronize, (void *), stream);
}

/* The pool holds 6 MiB for less than a moment: 2 MiB do not fit between the two blocks that are left of its first 4,
 * and go back at the next wait. */
static void do_spike(void)
{
    void *stream, *pool;
    unsigned long long keep = 4 * MIB, high = 0;
    ptr p[5];
    CALL(cuStreamCreate, (void **, unsigned), &stream, 0);
    CALL(cuDeviceGetDefaultMemPool, (void **, int), &pool, 0);
    CALL(cuMemPoolSetAttribute, (void *, int, void *), pool, 4, &keep); /* the release threshold */
    for (unsigned i = 0; i < 4; i++)
        CALL(cuMemAllocAsync, (ptr *, size_t, void *), &p[i], MIB, stream);
    CALL(cuMemFreeAsync, (ptr, void *), p[0], stream);
    CALL(cuMemFreeAsync, (ptr, void *), p[2], stream);
    CALL(cuStreamSynchronize, (void *), stream);
    CALL(cuMemAllocAsync, (ptr *, size_t, void *), &p[4], 2 * MIB, stream);
    CALL(cuMemFreeAsync, (ptr, void *), p[4], stream);
    CALL(cuStreamSynchronize, (void *), stream);
    CALL(cuMemPoolGetAttribute, (void *, int, void *), pool, 6, &high); /* most reserved */
    printf("%llu\n", high);
    CALL(cuMemFreeAsync, (ptr, void *), p[1], stream);
    CALL(cuMemFreeAsync, (ptr, void *), p[3], stream);
    CALL(cuStreamSynchronize, (void *), stream);
}

/* A graph of one copy down, one fill, one copy up; each is done at the launches alone. */
static void *capture(void *stream, ptr p, char *pinned, size_t down, size_t up)
{
    void *graph;
    CALL(cuStreamBeginCapture_v2, (void *, int), stream, 0);
    CALL(cuMemcpyHtoDAsync_v2, (ptr, const void *, size_t, void *), p, pinned, down, stream); /* line of the node */
    CALL(cuMemsetD8Async, (ptr, unsigned char, size_t, void *), p, 1, 4096, stream);
    CALL(cuMemcpyAsync, (ptr, ptr, size_t, void *), (ptr)pinned, p, up, stream);
    CALL(cuStreamEndCapture, (void *, void **), stream, &graph);
    return graph;
}

static void launch(void *graph, void **exec, void *stream, int times)
{
    if (graph)
        CALL(cuGraphInstantiateWithFlags, (void **, void *, unsigned long long), exec, graph, 0);
    while (times-- > 0)
        CALL(cuGraphLaunch, (void *, void *), *exec, stream);
}

/* 3 launches of the graph, 2 of one that has it as a child and a fill of 100 bytes more, 1 of its clone, 1 after an
 * update; one that is never launched. */
static void do_graph(void)
{
    struct {
        ptr to;
        size_t pitch;
        unsigned value, element;
        size_t width, height;
    } fill = {0, 0, 3, 1, 100, 1};
    struct {
        int result;
        void *nodes[2];
    } updated;
    void *stream, *graph, *other, *parent, *clone, *node, *exec, *exec2, *exec3;
    char *pinned;
    ptr p = fill.to = plain(2 * MIB);
    CALL(cuMemHostAlloc, (void **, size_t, unsigned), (void **)&pinned, 2 * MIB, 0);
    CALL(cuStreamCreate, (void **, unsigned), &stream, 0);
    graph = capture(stream, p, pinned, MIB, MIB / 2);
    CALL(cuGraphCreate, (void **, unsigned), &parent, 0);
    CALL(cuGraphAddChildGraphNode, (void **, void *, void **, size_t, void *), &node, parent, NULL, 0, graph);
    CALL(cuGraphAddMemsetNode, (void **, void *, void **, size_t, void *, void *), &node, parent, NULL, 0, &fill,
         context);
    CALL(cuGraphClone, (void **, void *), &clone, graph);
    launch(graph, &exec, stream, 2);
    CALL(cuGraphDestroy, (void *), graph);
    launch(NULL, &exec, stream, 1);
    launch(parent, &exec2, stream, 2);
    launch(clone, &exec3, stream, 1);
    other = capture(stream, p, pinned, 2 * MIB, MIB / 4);
    CALL(cuGraphExecUpdate_v2, (void *, void *, void *), exec, other, &updated);
    launch(NULL, &exec, stream, 1);
    CALL(cuStreamSynchronize, (void *), stream);
    CALL(cuGraphExecDestroy, (void *), exec);
    CALL(cuGraphExecDestroy, (void *), exec2);
    CALL(cuMemFreeHost, (void *), pinned);
    release(p);
}

struct location {
    int type, id;
};
struct memory { /* CUmemAllocationProp: pinned, exported as a descriptor */
    int type, handle_types;
    struct location location;
    void *meta;
    unsigned char flags[8];
};

/* 2 MiB of physical memory under two handles, one of them imported, mapped once by each; multicast memory over it; and
 * a mapping of that. */
static void do_shared(void)
{
    const struct memory memory = {1, 1, {1, 0}, NULL, {0}};
    const struct {
        unsigned devices;
        size_t size;
        unsigned long long handle_types, flags;
    } cast = {2, 2 * MIB, 0, 0};
    ptr a;
    uint64_t own, imported, multicast;
    int fd;
    CALL(cuMemCreate, (uint64_t *, size_t, const void *, unsigned long long), &own, 2 * MIB, &memory, 0);
    CALL(cuMemExportToShareableHandle, (void *, uint64_t, int, unsigned long long), &fd, own, 1, 0);
    CALL(cuMemImportFromShareableHandle, (uint64_t *, void *, int), &imported, (void *)(intptr_t)fd, 1);
    CALL(cuMulticastCreate, (uint64_t *, const void *), &multicast, &cast);
    CALL(cuMulticastAddDevice, (uint64_t, int), multicast, 0);
    CALL(cuMulticastBindMem, (uint64_t, size_t, uint64_t, size_t, size_t, unsigned long long), multicast, 0, own, 0,
         2 * MIB, 0);
    CALL(cuMemAddressReserve, (ptr *, size_t, size_t, ptr, unsigned long long), &a, 6 * MIB, 0, 0, 0);
    CALL(cuMemMap, (ptr, size_t, size_t, uint64_t, unsigned long long), a, 2 * MIB, 0, own, 0);
    CALL(cuMemMap, (ptr, size_t, size_t, uint64_t, unsigned long long), a + 2 * MIB, 2 * MIB, 0, imported, 0);
    CALL(cuMemMap, (ptr, size_t, size_t, uint64_t, unsigned long long), a + 4 * MIB, 2 * MIB, 0, multicast, 0);
    CALL(cuMemUnmap, (ptr, size_t), a, 6 * MIB);
    CALL(cuMemRelease, (uint64_t), multicast);
    CALL(cuMemRelease, (uint64_t), imported);
    CALL(cuMemRelease, (uint64_t), own);
    CALL(cuMemAddressFree, (ptr, size_t), a, 6 * MIB);
}

/* A file of 1 MiB as external memory with a buffer in it, and 3 MiB of another pool: both freed as the program's own
 * memory is. */
static void do_foreign(void)
{
    struct {
        int type;
        union {
            int fd;
            void *pointers[2];
        } handle;
        unsigned long long size;
        unsigned flags, reserved[16];
    } file = {1, {0}, MIB, 0, {0}};
    const struct {
        unsigned long long offset, size;
        unsigned flags, reserved[16];
    } whole = {0, MIB, 0, {0}};
    struct {
        int type, handle_types;
        struct location location;
        void *security;
        size_t most;
        unsigned char reserved[56];
    } properties = {1, 1, {1, 0}, NULL, 0, {0}};
    char exported[64];
    void *external, *stream, *pool, *theirs;
    ptr buffer, own, other;
    int fd;
    file.handle.fd = memfd_create("external", 0);
    if (ftruncate(file.handle.fd, MIB))
        exit(8);
    CALL(cuImportExternalMemory, (void **, const void *), &external, &file);
    CALL(cuExternalMemoryGetMappedBuffer, (ptr *, void *, const void *), &buffer, external, &whole);
    release(buffer);
    CALL(cuDestroyExternalMemory, (void *), external);
    CALL(cuStreamCreate, (void **, unsigned), &stream, 0);
    CALL(cuMemPoolCreate, (void **, const void *), &pool, &properties);
    CALL(cuMemAllocFromPoolAsync, (ptr *, size_t, void *, void *), &own, 3 * MIB, pool, stream);
    CALL(cuMemPoolExportToShareableHandle, (void *, void *, int, unsigned long long), &fd, pool, 1, 0);
    CALL(cuMemPoolImportFromShareableHandle, (void **, void *, int, unsigned long long), &theirs, (void *)(intptr_t)fd,
         1, 0);
    CALL(cuMemPoolExportPointer, (void *, ptr), exported, own);
    CALL(cuMemPoolImportPointer, (ptr *, void *, void *), &other, theirs, exported);
    CALL(cuMemFreeAsync, (ptr, void *), other, stream);
    CALL(cuMemFreeAsync, (ptr, void *), own, stream);
    CALL(cuStreamSynchronize, (void *), stream);
    CALL(cuMemPoolDestroy, (void *), theirs);
    CALL(cuMemPoolDestroy, (void *), pool);
}

/* An address within a block, a block of another kind, nobody's address, no mapping, and no context: the driver refuses
 * five calls, and takes nothing away. */
static void do_refused(void)
{
    int (*give)(ptr) = (int (*)(ptr))find("cuMemFree_v2");
    int (*give_host)(void *) = (int (*)(void *))find("cuMemFreeHost");
    int (*unmap)(ptr, size_t) = (int (*)(ptr, size_t))find("cuMemUnmap");
    ptr a = plain(MIB);
    int codes[] = {give(a + 512), give_host((void *)a), give(12345), unmap(a, MIB)};
    for (unsigned i = 0; i < sizeof codes / sizeof *codes; i++)
        if (!codes[i])
            exit(8);
    CALL(cuCtxSetCurrent, (void *), NULL); /* a call that needs a context and has none */
    if (!give(a))
        exit(9);
    CALL(cuCtxSetCurrent, (void *), context);
    release(a);
}

/* What lies in a segment of 16 MiB: 1 MiB pinned blocks in between holes. */
static void do_sub(void)
{
    memprof_pool pool = memprof_pool_create("activations");
    ptr segment = plain(16 * MIB);
    memprof_pool_segment(pool, (void *)segment, 16 * MIB);
    memprof_pool_alloc(pool, (void *)segment, MIB); /* line of the first */
    memprof_pool_alloc(pool, (void *)(segment + MIB), 4 * MIB);
    memprof_pool_alloc(pool, (void *)(segment + 5 * MIB), 2 * MIB); /* line of the pin */
    memprof_pool_free(pool, (void *)(segment + MIB));
    memprof_pool_free(pool, (void *)segment);
    usleep(30000);
    _exit(0);
}

/* Segments of 16 MiB at the same address: of device 0 with 12 MiB live, then of device 1 with twice 4, of which the
 * first lies where the block of device 0 did. */
static void do_reuse(void)
{
    memprof_pool first = memprof_pool_create("first"), second = memprof_pool_create("second");
    ptr segment = plain(16 * MIB), again;
    memprof_pool_segment(first, (void *)segment, 16 * MIB);
    memprof_pool_alloc(first, (void *)segment, 12 * MIB);
    usleep(30000);
    memprof_pool_free(first, (void *)segment);
    release(segment);
    begin(1);
    again = plain(16 * MIB);
    puts(again == segment ? "the same address" : "another address");
    memprof_pool_segment(second, (void *)again, 16 * MIB);
    memprof_pool_alloc(second, (void *)again, 4 * MIB);
    memprof_pool_alloc(second, (void *)(again + 8 * MIB), 4 * MIB);
    memprof_pool_free(second, (void *)again);
    usleep(30000);
    release(again);
}

/* The same with the host's memory. */
static void do_host_sub(void)
{
    memprof_pool pool = memprof_pool_create("arena");
    char *memory = malloc(3 * MIB);
    memprof_pool_segment(pool, memory + 64, 3 * MIB - 64);
    memprof_pool_alloc(pool, memory + 64, 1000);
    memprof_pool_alloc(pool, memory + 4096, 500);
    memprof_pool_free(pool, memory + 64);
    memprof_pool_destroy(pool);
    free(memory);
}

/* Two devices; an allocation that fails, frees, and the same again. */
static void do_oom(void)
{
    size_t free_bytes, total;
    ptr a = plain(40 * MIB), b = 0, big;
    CALL(cuMemGetInfo_v2, (size_t *, size_t *), &free_bytes, &total);
    size_t size = free_bytes + MIB;
    int (*alloc)(ptr *, size_t) = (int (*)(ptr *, size_t))find("cuMemAlloc_v2");
    if (!alloc(&big, size)) /* line of the failure */
        exit(5);
    release(a);
    if (alloc(&b, size))
        exit(6);
    printf("%zu %zu %zu\n", size, free_bytes, total);
    release(b);
    if (malloc((size_t)1 << 60))
        exit(7);
}

static void tell(const char *device, size_t size, void *arg)
{
    struct memprof_device_figures f = {0};
    int status = memprof_figures_now(device, &f);
    printf("%s %s %zu, %d, active %llu\n", (const char *)arg, device, size, status, (unsigned long long)f.active_bytes);
}

/* 8 MiB are held when 1 TiB is asked for: as a block, as one of the default pool, as pinned memory of the host. */
static void do_on_oom(void)
{
    ptr p, held = plain(8 * MIB);
    void *pinned, *stream;
    CALL(cuStreamCreate, (void **, unsigned), &stream, 0);
    memprof_on_oom(tell, (void *)"told:");
    int codes[] = {((int (*)(ptr *, size_t))find("cuMemAlloc_v2"))(&p, 1ull << 40),
                   ((int (*)(ptr *, size_t, void *))find("cuMemAllocAsync"))(&p, 1ull << 40, stream),
                   ((int (*)(void **, size_t, unsigned))find("cuMemHostAlloc"))(&pinned, 1ull << 40, 0)};
    memprof_on_oom(NULL, NULL);
    printf("codes %d %d %d\n", codes[0], codes[1], codes[2]);
    release(held);
}

static sigjmp_buf away;

static void leave(int number)
{
    siglongjmp(away, number);
}

/* Deeper in the stack than the driver's call that was left. */
__attribute__((noinline)) static ptr below(unsigned depth, volatile char *above)
{
    volatile char frame[64];
    frame[0] = above ? above[0] : 0;
    if (depth)
        return below(depth - 1, frame) + (ptr)frame[0];
    if (mmap(NULL, 3 * MIB, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED) /* line of the map */
        exit(5);
    return plain(5 * MIB);
}

/* The driver writes where nothing is, in a call that hides its maps, and the handler leaves it. */
static void do_left(void)
{
    int (*pin)(void **, size_t) = (int (*)(void **, size_t))find("cuMemAllocHost_v2");
    signal(SIGSEGV, leave);
    for (int i = 0; i < 2; i++) {
        if (sigsetjmp(away, 1) == 0)
            exit(pin((void **)8, MIB) ? 6 : 7);
        release(below(30, NULL));
    }
}

/* Waits until the driver's figures of a device were recorded while nothing happens; half a minute at most, as what was
 * recorded is for the test to compare. */
static void await_used(const char *device, uint64_t bytes)
{
    for (int i = 0; i < 3000; i++) {
        struct memprof_device_figures f = {.used_bytes = 0};
        if (memprof_figures(device, &f) == MEMPROF_NOT_RECORDED || f.used_bytes == bytes)
            return;
        usleep(10000);
    }
}

static void do_two(void)
{
    ptr a = plain(MIB);
    begin(1);
    ptr b = plain(2 * MIB);
    await_used("cuda:0", 17 * MIB); /* 16 are its context's */
    await_used("cuda:1", 18 * MIB);
    release(a); /* with the other device current */
    release(b);
}

/* What is never given back: a program may end so. */
static void do_leave(size_t size)
{
    ptr a = plain(size), b = plain(4 * MIB);
    usleep(20000);
    release(b);
    usleep(20000);
    (void)a;
}

/* Many segments of the host, then one of the device. */
static void do_many(void)
{
    memprof_pool pool = memprof_pool_create("many");
    for (int i = 0; i < 65600; i++) {
        char *memory = malloc(64);
        memprof_pool_segment(pool, memory, 64);
        memprof_pool_segment_end(pool, memory);
        free(memory);
    }
    memprof_pool_destroy(pool);
    release(plain(MIB));
}

int main(int count, char **arguments)
{
    const char *what = count > 1 ? arguments[1] : "";
    if (strcmp(what, "host") == 0) {
        do_host_sub();
        return 0;
    }
    driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!driver) {
        fprintf(stderr, "%s\n", dlerror());
        return 2;
    }
    begin(0);
    if (strcmp(what, "plain") == 0)
        do_plain();
    else if (strcmp(what, "pool") == 0)
        do_pool();
    else if (strcmp(what, "sub") == 0)
        do_sub();
    else if (strcmp(what, "reuse") == 0)
        do_reuse();
    else if (strcmp(what, "oom") == 0)
        do_oom();
    else if (strcmp(what, "on_oom") == 0)
        do_on_oom();
    else if (strcmp(what, "left") == 0)
        do_left();
    else if (strcmp(what, "two") == 0)
        do_two();
    else if (strcmp(what, "many") == 0)
        do_many();
    else if (strcmp(what, "leave") == 0)
        do_leave(8 * MIB);
    else if (strcmp(what, "leave more") == 0)
        do_leave(16 * MIB);
    else if (strcmp(what, "spike") == 0)
        do_spike();
    else if (strcmp(what, "graph") == 0)
        do_graph();
    else if (strcmp(what, "shared") == 0)
        do_shared();
    else if (strcmp(what, "foreign") == 0)
        do_foreign();
    else if (strcmp(what, "refused") == 0)
        do_refused();
    return 0;
}
