/*
 * bench_unwind.c: nanoseconds per unwind, ours against libunwind's and glibc's. A chain of functions of several shapes
 * (frame sizes, saved registers, rbp as frame pointer) is called along random paths; the innermost takes its stack.
 * What the calls themselves cost is measured by a run that takes no stack, and subtracted.
 */
#include "../../profiler/preload/unwind/unwind.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

extern int unw_backtrace(void **, int);
static int (*libc_backtrace)(void **, int); /* libunwind has one of that name too */
extern void *__libc_stack_end;

/* The recorder's part: every module is known. */
int record_module_load(uint32_t number, uint64_t start, uint64_t end, uint64_t bias, const uint8_t *build_id,
                       size_t build_id_bytes, const char *path)
{
    (void)number, (void)start, (void)end, (void)bias, (void)build_id, (void)build_id_bytes, (void)path;
    return 1;
}

void record_module_unload(uint32_t number)
{
    (void)number;
}

enum method { NOTHING, OURS, OURS_PLAIN, OURS_MEMORY, LIBUNWIND, GLIBC, METHODS };
static const char *const method_name[METHODS] = {
    "nothing",
    "memprof",
    "memprof, never with memory",
    "memprof, always with memory",
    "libunwind unw_backtrace",
    "glibc backtrace",
};

struct path {
    enum method method;
    unsigned depth;
    uint64_t shape; /* two bits a level */
    uint64_t sum;
    unsigned frames;
    struct unwind_thread *thread;
};

static __attribute__((noinline)) void take(struct path *p)
{
    void *buffer[256];
    struct unwind_stack stack = {0};
    struct unwind_state s;
    UNWIND_HERE(s);
    switch (p->method) {
    case OURS_PLAIN:
        p->thread->frame_count = p->thread->same_count = 0;
        break;
    case OURS_MEMORY:
        p->thread->same_count = p->thread->patience;
        break;
    case LIBUNWIND:
        p->frames = (unsigned)unw_backtrace(buffer, 256);
        p->sum += p->frames;
        return;
    case GLIBC:
        p->frames = (unsigned)libc_backtrace(buffer, 256);
        p->sum += p->frames;
        return;
    case NOTHING:
        p->sum++;
        return;
    default:
        break;
    }
    unwind_stack(p->thread, s, &stack);
    p->frames = stack.depth;
    p->sum += stack.hash;
}

typedef void function(struct path *, unsigned level, uint64_t shape);
static function *const shapes[4];

static inline __attribute__((always_inline)) void next(struct path *p, unsigned level, uint64_t shape)
{
    if (level >= p->depth)
        take(p);
    else
        shapes[shape & 3](p, level + 1, shape >> 2 | shape << 62);
    __asm__ volatile("" ::: "memory"); /* no tail call */
}

/* Four frames: plain, with many saved registers, large, and with rbp as its frame pointer. */
static __attribute__((noinline)) void shape_0(struct path *p, unsigned level, uint64_t shape)
{
    next(p, level, shape);
}

static __attribute__((noinline)) void shape_1(struct path *p, unsigned level, uint64_t shape)
{
    uint64_t a = shape * 3, b = shape ^ level, c = level * 7, d = shape >> 3;
    __asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d));
    next(p, level, shape);
    __asm__ volatile("" : : "r"(a), "r"(b), "r"(c), "r"(d));
}

static __attribute__((noinline)) void shape_2(struct path *p, unsigned level, uint64_t shape)
{
    char block[200];
    __asm__ volatile("" : : "r"(block) : "memory");
    next(p, level, shape);
    __asm__ volatile("" : : "r"(block) : "memory");
}

static __attribute__((noinline)) void shape_3(struct path *p, unsigned level, uint64_t shape)
{
    char *block = __builtin_alloca(level + 1);
    __asm__ volatile("" : : "r"(block) : "memory");
    next(p, level, shape);
    __asm__ volatile("" : : "r"(block) : "memory");
}

static function *const shapes[4] = {shape_0, shape_1, shape_2, shape_3};

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static uint64_t random_next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static __attribute__((noinline)) double run(struct path *p, const uint64_t *paths, unsigned path_count, long count)
{
    uint64_t state = 88172645463325252ull;
    double begin = now_ns();
    for (long i = 0; i < count; i++)
        shapes[0](p, 1, paths[random_next(&state) % path_count]);
    return (now_ns() - begin) / (double)count;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

#define ROUNDS 5

/* Medians of interleaved runs. */
static void table(struct unwind_thread *thread, const char *title, unsigned depth, unsigned path_count, long count,
                  double reference)
{
    static uint64_t paths[256];
    uint64_t state = 0x123456789abcdefull;
    double ns[METHODS][ROUNDS];
    unsigned frames[METHODS] = {0};
    for (unsigned i = 0; i < 256; i++)
        paths[i] = random_next(&state);
    for (int round = 0; round < ROUNDS; round++)
        for (int m = 0; m < METHODS; m++) {
            struct path p = {(enum method)m, depth, 0, 0, 0, thread};
            memset(thread, 0, unwind_thread_bytes());
            unwind_thread_init(thread, (uint64_t)__libc_stack_end, 512);
            run(&p, paths, path_count, 2000);
            ns[m][round] = run(&p, paths, path_count, m == GLIBC ? count / 20 : count);
            frames[m] = p.frames;
        }
    printf("%s\n", title);
    for (int m = 0; m < METHODS; m++)
        qsort(ns[m], ROUNDS, sizeof(double), compare);
    for (int m = 0; m < METHODS; m++)
        ns[m][0] = ns[m][ROUNDS / 2];
    for (int m = OURS; m < METHODS; m++) {
        double own = ns[m][0] - ns[NOTHING][0];
        printf("  %-30s %8.1f ns  %5.2f of libunwind  %u frames\n", method_name[m], own,
               own / (ns[LIBUNWIND][0] - ns[NOTHING][0]), frames[m]);
    }
    if (reference > 0)
        printf("  %-30s %8s     %5.2f of libunwind\n", "(the prototype, elsewhere)", "", reference);
}

int main(int argc, char **argv)
{
    long count = argc > 1 ? atol(argv[1]) : 1000000;
    struct unwind_thread *thread = calloc(1, unwind_thread_bytes());
    if (!thread || count < 100)
        return 2;
    *(void **)&libc_backtrace = dlsym(dlopen("libc.so.6", RTLD_NOW), "backtrace");
    if (!libc_backtrace)
        return 2;
    /* the prototype against libunwind, in one run on another machine: 75, 12 and 26 ns against 110, 107 and 301 */
    table(thread, "depth 16, 200 random paths", 16, 200, count, 75.0 / 110);
    table(thread, "depth 16, one path", 16, 1, count, 12.0 / 107);
    table(thread, "depth 40, one path", 40, 1, count, 26.0 / 301);
    table(thread, "depth 40, 200 random paths", 40, 200, count / 2, 0);
    return 0;
}
