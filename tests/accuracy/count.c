/*
 * libcount.so: a preload library that counts what memprof must count, in the plainest way: one lock, one table from
 * address to requested size, no stacks. It uses nothing of memprof. Loaded beside libmemprof.so it sees the very same
 * calls of the same process, so that its numbers and memprof's must be equal, not alike.
 *
 * COUNT_OUT names a file that is made and mapped shared: six words, up to date until the process's last instruction,
 * however it ends: allocations, frees, bytes allocated, peak of live bytes, live bytes, frees of unknown addresses. A
 * forked child stops counting.
 */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void *__libc_valloc(size_t);
extern void *__libc_pvalloc(size_t);
extern void __libc_free(void *);
extern char **environ;

struct counts {
    uint64_t allocs, frees, bytes, peak, live, unknown;
};
struct entry {
    uintptr_t address; /* 0: never used, 1: deleted */
    uint64_t size;
};

static struct counts before; /* until the file is there */
static struct counts *counts = &before;
static struct entry *table;
static size_t capacity, filled; /* filled: used and deleted */
static atomic_flag lock = ATOMIC_FLAG_INIT;
static int off, opened;

static struct entry *find(struct entry *t, size_t n, uintptr_t address, int for_insert)
{
    size_t i = ((address >> 4) * 0x9e3779b97f4a7c15u >> 24) & (n - 1);
    for (;; i = (i + 1) & (n - 1)) {
        if (for_insert ? t[i].address <= 1 : t[i].address == address)
            return &t[i];
        if (t[i].address == 0)
            return NULL;
    }
}

static struct entry *map_table(size_t n)
{
    void *p = mmap(NULL, n * sizeof *table, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        abort();
    return p;
}

static void grow(void)
{
    size_t live = 0;
    for (size_t i = 0; i < capacity; i++)
        live += table[i].address > 1;
    size_t larger = capacity ? capacity : 1 << 16;
    while (live * 4 > larger)
        larger *= 2;
    struct entry *t = map_table(larger);
    filled = 0;
    for (size_t i = 0; i < capacity; i++)
        if (table[i].address > 1) {
            *find(t, larger, table[i].address, 1) = table[i];
            filled++;
        }
    if (table)
        munmap(table, capacity * sizeof *table);
    table = t;
    capacity = larger;
}

static void child(void)
{
    off = 1;
}

static void open_file(void)
{
    opened = 1;
    const char *path = NULL;
    for (char **e = environ; e && *e; e++)
        if (__builtin_strncmp(*e, "COUNT_OUT=", 10) == 0)
            path = *e + 10;
    char exe[4096];
    ssize_t length = readlink("/proc/self/exe", exe, sizeof exe - 1);
    exe[length > 0 ? length : 0] = 0;
    const char *slash = __builtin_strrchr(exe, '/');
    if (slash && __builtin_strcmp(slash, "/memprof") == 0) /* the collector passes its environment on */
        path = NULL;
    /* never cut to nothing: another process of the same environment may have it mapped */
    int fd = path ? open(path, O_RDWR | O_CREAT, 0600) : -1;
    if (fd < 0 || ftruncate(fd, sizeof *counts)) {
        off = 1;
        return;
    }
    void *p = mmap(NULL, sizeof *counts, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (p == MAP_FAILED)
        abort();
    counts = p;
    *counts = before;
}

static void enter(void)
{
    while (atomic_flag_test_and_set(&lock))
        sched_yield();
    if (!opened && environ)
        open_file();
}
static void leave(void)
{
    atomic_flag_clear(&lock);
}

static void *born(void *p, size_t size)
{
    if (!p || off)
        return p;
    int saved = errno;
    enter();
    if ((filled + 1) * 2 > capacity)
        grow();
    struct entry *e = find(table, capacity, (uintptr_t)p, 1);
    filled += e->address == 0;
    *e = (struct entry){(uintptr_t)p, size};
    counts->allocs++;
    counts->bytes += size;
    counts->live += size;
    if (counts->live > counts->peak)
        counts->peak = counts->live;
    leave();
    errno = saved;
    return p;
}
static uint64_t dies(void *p)
{
    uint64_t size = 0;
    if (!p || off)
        return 0;
    enter();
    struct entry *e = capacity ? find(table, capacity, (uintptr_t)p, 0) : NULL;
    if (e) {
        size = e->size;
        e->address = 1;
        counts->frees++;
        counts->live -= size;
    } else {
        counts->unknown++;
    }
    leave();
    return size;
}

void *malloc(size_t size)
{
    return born(__libc_malloc(size), size);
}
void *calloc(size_t count, size_t size)
{
    return born(__libc_calloc(count, size), count * size);
}
void free(void *p)
{
    int saved = errno;
    dies(p);
    errno = saved;
    __libc_free(p);
}
void *realloc(void *p, size_t size)
{
    if (!p)
        return born(__libc_malloc(size), size);
    int saved = errno;
    uint64_t old = dies(p);
    errno = saved;
    void *q = __libc_realloc(p, size);
    if (q)
        return born(q, size);
    if (size && !off) { /* failed: the block is still there; as if nothing had happened */
        enter();
        *find(table, capacity, (uintptr_t)p, 1) =
            (struct entry){(uintptr_t)p, old}; /* where it was deleted, or before */
        counts->frees--;
        counts->live += old;
        leave();
    }
    return NULL;
}
void *reallocarray(void *p, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc(p, bytes);
}
void *memalign(size_t alignment, size_t size)
{
    return born(__libc_memalign(alignment, size), size);
}
void *aligned_alloc(size_t alignment, size_t size)
{
    return born(__libc_memalign(alignment, size), size);
}
int posix_memalign(void **out, size_t alignment, size_t size)
{
    if (alignment % sizeof(void *) || (alignment & (alignment - 1)) || !alignment)
        return EINVAL;
    int saved = errno;
    void *p = born(__libc_memalign(alignment, size), size);
    errno = saved;
    if (!p)
        return ENOMEM;
    *out = p;
    return 0;
}
void *valloc(size_t size)
{
    return born(__libc_valloc(size), size);
}
void *pvalloc(size_t size)
{
    return born(__libc_pvalloc(size), (size + 4095) / 4096 * 4096); /* asks for whole pages */
}

__attribute__((constructor)) static void start(void)
{
    pthread_atfork(NULL, NULL, child); /* allocates nothing for its first 48 handlers */
}
