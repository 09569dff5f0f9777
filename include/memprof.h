/*
 * memprof.h: what a program may tell memprof: named instants and named spans of time, shown on its timeline; and what
 * an allocator of its own (a pool, an arena) does with the memory that it holds.
 *
 *     #include <memprof.h>
 *
 *     memprof_range_push("epoch 3");
 *     ...
 *     memprof_mark("checkpoint written");
 *     memprof_range_pop();
 *     { MEMPROF_SCOPE("load"); ... }
 *
 *     struct memprof_figures f;
 *     MEMPROF_SCOPE_FIGURES("parse");
 *     parse(text);
 *     if (memprof_scope_figures(&f)) // 0: not recorded
 *         assert(f.live_bytes == 0 && f.alloc_count <= 3);
 *
 *     struct memprof_device_figures d;
 *     memprof_epoch("after loading");
 *     step();
 *     if (memprof_figures_now("cuda", &d) == MEMPROF_OK)
 *         printf("live %llu, at most %llu\n", (unsigned long long)d.active_bytes,
 *                (unsigned long long)d.peak_active_bytes);
 *
 *     memprof_pool pool = memprof_pool_create("activations");
 *     char *memory = malloc(1 << 20);
 *     memprof_pool_segment(pool, memory, 1 << 20);   // reserved: no block any more
 *     memprof_pool_alloc(pool, memory, 4096);        // a block, active from here
 *     memprof_pool_free(pool, memory);
 *
 * Nothing to link with: the symbols are weak, so a program that runs without memprof tests a pointer and goes on. C and
 * C++, any thread. Names are copied, up to 1,000 bytes. Ranges nest by thread. (An executable compiled with -fno-pie
 * and linked with -no-pie has its weak symbols bound to null by the linker: there the calls do nothing.)
 */
#ifndef MEMPROF_H
#define MEMPROF_H

#include "memprof_view.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Defined by libmemprof.so. Call the functions below instead: these are null in a program that is not profiled. */
extern void memprof_hook_mark(const char *name) __attribute__((weak));
extern void memprof_hook_range_push(const char *name) __attribute__((weak));
extern void memprof_hook_range_pop(void) __attribute__((weak));
extern void memprof_hook_scope_begin(const char *name) __attribute__((weak));
extern void memprof_hook_scope_end(void) __attribute__((weak));
extern int memprof_hook_scope_figures(void *figures, size_t size) __attribute__((weak));
extern int memprof_hook_device_figures(const char *device, void *figures, size_t size, int is_now)
    __attribute__((weak));
extern int memprof_hook_sync(void) __attribute__((weak));
extern void memprof_hook_epoch(const char *name) __attribute__((weak));
extern int memprof_hook_source(const char *name, const char *text, size_t bytes) __attribute__((weak));
extern int memprof_hook_on_oom(void (*function)(const char *device, size_t size, void *arg), void *arg)
    __attribute__((weak));
extern int memprof_hook_pause(void) __attribute__((weak));
extern int memprof_hook_resume(void) __attribute__((weak));
extern int memprof_hook_yield(int is_restore) __attribute__((weak));
extern int memprof_hook_policy(const char *text, size_t bytes) __attribute__((weak));
extern int memprof_hook_on(const char *order, void (*function)(const char *order, const char *device, void *arg),
                           void *arg) __attribute__((weak));
extern int memprof_hook_poll(void) __attribute__((weak));
extern uint64_t memprof_hook_pool_create(const char *name) __attribute__((weak));
extern void memprof_hook_pool_destroy(uint64_t pool) __attribute__((weak));
extern void memprof_hook_pool_segment(uint64_t pool, const void *p, size_t size) __attribute__((weak));
extern void memprof_hook_pool_segment_end(uint64_t pool, const void *p) __attribute__((weak));
extern void memprof_hook_pool_alloc(uint64_t pool, const void *p, size_t size) __attribute__((weak));
extern void memprof_hook_pool_free(uint64_t pool, const void *p) __attribute__((weak));
extern void memprof_hook_pool_resize(uint64_t pool, const void *p, size_t size) __attribute__((weak));
extern void memprof_hook_pool_reset(uint64_t pool) __attribute__((weak));
extern void memprof_hook_name(const void *p, const char *name) __attribute__((weak));
extern void memprof_hook_category(const void *p, const char *category) __attribute__((weak));
extern void memprof_hook_view(const void *block, const struct memprof_view *view, const char *name)
    __attribute__((weak));

/* An instant. */
static inline void memprof_mark(const char *name)
{
    if (memprof_hook_mark)
        memprof_hook_mark(name);
}

/* Begins a span within the calling thread's open one ... */
static inline void memprof_range_push(const char *name)
{
    if (memprof_hook_range_push)
        memprof_hook_range_push(name);
}

/* ... and ends the innermost open one; without one it does nothing. */
static inline void memprof_range_pop(void)
{
    if (memprof_hook_range_pop)
        memprof_hook_range_pop();
}

static inline int memprof_scope_begin(const char *name)
{
    memprof_range_push(name);
    return 0;
}

static inline void memprof_scope_end(const int *scope)
{
    (void)scope;
    memprof_range_pop();
}

/* A span to the end of the block that it stands in, however that is left (in C++ by an exception, too). */
#define MEMPROF_SCOPE(name)                                                                                            \
    __attribute__((cleanup(memprof_scope_end), unused)) const int MEMPROF_SCOPE_NAME(__COUNTER__) =                    \
        memprof_scope_begin(name)
#define MEMPROF_SCOPE_NAME(number)       MEMPROF_SCOPE_JOIN(memprof_scope_, number)
#define MEMPROF_SCOPE_JOIN(name, number) name##number

/*
 * What the calling thread allocated since the innermost open MEMPROF_SCOPE_FIGURES of its own: exact, of the malloc
 * family and C++'s new (no mappings, GPUs or pools). A realloc is one free and one allocation. Live is what was
 * allocated in the scope and not freed since by this thread; a block that another thread frees stays live here.
 */
struct memprof_figures {
    uint64_t alloc_count, alloc_bytes;
    uint64_t free_count; /* of older blocks, too */
    uint64_t live_bytes, live_count;
    uint64_t peak_bytes; /* most that was live at once */
};

/* 1, or 0: the figures are not known: the program is not recorded, no such scope is open, it began before a fork, more
 * than 32 are nested, the recording was paused in it, or it is a signal handler that asks. */
static inline int memprof_scope_figures(struct memprof_figures *figures)
{
    return memprof_hook_scope_figures ? memprof_hook_scope_figures(figures, sizeof *figures) : 0;
}

static inline int memprof_figures_begin(const char *name)
{
    if (memprof_hook_scope_begin)
        memprof_hook_scope_begin(name);
    return 0;
}

static inline void memprof_figures_end(const int *scope)
{
    (void)scope;
    if (memprof_hook_scope_end)
        memprof_hook_scope_end();
}

/* A MEMPROF_SCOPE whose figures can be asked while it is open. */
#define MEMPROF_SCOPE_FIGURES(name)                                                                                    \
    __attribute__((cleanup(memprof_figures_end), unused)) const int MEMPROF_SCOPE_NAME(__COUNTER__) =                  \
        memprof_figures_begin(name)

/*
 * What a device holds, of all processes of the recording together: as its reports have it, while the program runs. An
 * epoch lasts until the next memprof_epoch of any of them; before the first one the peaks and counts are the run's.
 * A realloc is one free and one allocation. Bytes are those that were asked for.
 */
struct memprof_device_figures {
    uint64_t time_ns;         /* up to when events are counted; since the run began */
    uint64_t epoch;           /* epochs begun so far */
    uint64_t active_bytes;    /* live blocks; of the host also mappings, such as the stacks of threads */
    uint64_t active_count;    /* the same, how many */
    uint64_t allocated_bytes; /* active less blocks whose free waits for a stream */
    uint64_t reserved_bytes;  /* what allocators hold from the layer below; of the host's heap sampled each 10 ms */
    uint64_t used_bytes;      /* host: resident memory; GPU: what the driver says is in use, by anybody. Sampled */
    uint64_t total_bytes;     /* of the GPU; 0: not known */
    uint64_t peak_active_bytes, peak_reserved_bytes;           /* most since the epoch began */
    uint64_t alloc_count, alloc_bytes, free_count, free_bytes; /* since the epoch began */
    uint64_t thread_active_bytes, thread_active_count;         /* of what the calling thread ever allocated; */
    uint64_t thread_alloc_count, thread_alloc_bytes;           /* these six are 0 but for _now */
    uint64_t thread_free_count, thread_free_bytes;             /* freed by whatever thread */
};

enum memprof_status {
    MEMPROF_OK = 0,
    MEMPROF_NOT_RECORDED = -1, /* the program runs without memprof, or the recording has ended, or its collector died */
    MEMPROF_NO_DEVICE = -2,    /* none of that name was met so far */
    MEMPROF_NO_ANSWER = -3,    /* the collector did not answer within a second: it is stopped, or starved. The thread's
                                  next calls do not wait until it goes on. memprof_figures: nothing was counted yet */
    MEMPROF_NOT_HERE = -4,     /* in a signal handler that interrupted an allocation, or under seccomp: nobody waits */
    MEMPROF_REFUSED = -5       /* it was not done, or a text is no policy; standard error says why (memprof run's) */
};

/*
 * device: as reports have it, "host", "cuda:0", ...; "cuda": the sum of all of that type, whose peak is the peak of the
 * sum; NULL: of all devices. Returns an enum memprof_status; unless that is MEMPROF_OK, *figures is as it was.
 *
 * As last counted: some milliseconds old (more, where the collector is behind). Never waits; may be called anywhere.
 */
static inline int memprof_figures(const char *device, struct memprof_device_figures *figures)
{
    return memprof_hook_device_figures ? memprof_hook_device_figures(device, figures, sizeof *figures, 0)
                                       : MEMPROF_NOT_RECORDED;
}

/* Exact up to this call: with all that any thread did before it, and nothing after. Waits for the collector: the cost
 * is in docs/live.md. Not for code that runs while an allocator's lock is held. */
static inline int memprof_figures_now(const char *device, struct memprof_device_figures *figures)
{
    return memprof_hook_device_figures ? memprof_hook_device_figures(device, figures, sizeof *figures, 1)
                                       : MEMPROF_NOT_RECORDED;
}

/* The same wait, until the file has it, too: what reads the file from now on finds all that was done before. */
static inline int memprof_sync(void)
{
    return memprof_hook_sync ? memprof_hook_sync() : MEMPROF_NOT_RECORDED;
}

/* Peaks and counts of figures begin anew. In reports it is a range of the domain "epoch", to the next one. */
static inline void memprof_epoch(const char *name)
{
    if (memprof_hook_epoch)
        memprof_hook_epoch(name);
}

/* The text of code that is in no file (a notebook's cell, what a program made and compiled), under the name that its
 * frames have: reports then show its lines. Copied; at most 1 MiB a process. 0, or -1: not kept. */
static inline int memprof_source(const char *name, const char *text, size_t bytes)
{
    return memprof_hook_source ? memprof_hook_source(name, text, bytes) : -1;
}

/*
 * Pauses the recording, of all its processes, and resumes it: as `memprof pause PID` does. Blocks that malloc and its
 * like give in between are left out, and cost nearly nothing; all else is recorded on, so that what was recorded before
 * stays exact (docs/control.md). The caller's own calls: exact from this call on. Each waits for the collector as
 * memprof_figures_now does, and returns an enum memprof_status; to do it twice changes nothing.
 */
static inline int memprof_pause(void)
{
    return memprof_hook_pause ? memprof_hook_pause() : MEMPROF_NOT_RECORDED;
}

static inline int memprof_resume(void)
{
    return memprof_hook_resume ? memprof_hook_resume() : MEMPROF_NOT_RECORDED;
}

/*
 * Gives all that this process has on GPUs back, its CUDA contexts included: it lies in host memory until
 * memprof_restore(), at the same addresses afterwards, and each GPU call of any thread waits until then. As `memprof
 * yield PID` does, which is started for it, with the same refusals (docs/yield.md): MEMPROF_REFUSED, and all is as it
 * was but where standard error says otherwise. memprof_restore waits until the GPUs have the room.
 */
static inline int memprof_yield(void)
{
    return memprof_hook_yield ? memprof_hook_yield(0) : MEMPROF_NOT_RECORDED;
}

static inline int memprof_restore(void)
{
    return memprof_hook_yield ? memprof_hook_yield(1) : MEMPROF_NOT_RECORDED;
}

/*
 * Calls function(device, size, arg) after each allocation that is recorded and finds no memory: of the host (malloc and
 * its like, mmap; NULL is about to be returned) or of a GPU (the driver said out of memory). device: as this process
 * numbers it, as for memprof_figures; size: bytes asked for. It runs in the failing thread, with nothing of memprof's
 * held, but within whatever the program itself holds there. It may call memprof_figures, memprof_sync and the like, and
 * allocate; what fails inside it is not told. Not told either: what fails in a pause, in a signal handler that
 * interrupted an allocation, or by a C++ exception of an allocator's own operator new. One function at a time, of all
 * threads; NULL: none. Returns an enum memprof_status: NO_ANSWER after 64 different ones.
 */
static inline int memprof_on_oom(void (*function)(const char *device, size_t size, void *arg), void *arg)
{
    return !memprof_hook_on_oom                 ? MEMPROF_NOT_RECORDED
           : memprof_hook_on_oom(function, arg) ? MEMPROF_OK
                                                : MEMPROF_NO_ANSWER;
}

/*
 * Policies (docs/policy.md): bands of a device's memory in use, in which something is done about it. memprof_policy
 * replaces the recording's policy, that of `memprof run --policy` too, by one of bytes up to 8,000; it may not have
 * "signal" and "run". Waits as memprof_figures_now does. Returns an enum memprof_status.
 */
static inline int memprof_policy(const char *text, size_t bytes)
{
    return memprof_hook_policy ? memprof_hook_policy(text, bytes) : MEMPROF_NOT_RECORDED;
}

/*
 * What the action "callback NAME" calls in this process: function(NAME, device, arg); order: the name, up to 15 bytes,
 * "callback" where the policy names none. function NULL: nothing any more. A thread of memprof's own calls it, one call
 * after the other, with nothing of memprof's or of an allocator held; or memprof_poll, in a program that calls that.
 * Returns an enum memprof_status: NO_ANSWER after 64 different ones, or where the name is too long.
 */
static inline int memprof_on(const char *order, void (*function)(const char *order, const char *device, void *arg),
                             void *arg)
{
    return !memprof_hook_on                        ? MEMPROF_NOT_RECORDED
           : memprof_hook_on(order, function, arg) ? MEMPROF_OK
                                                   : MEMPROF_NO_ANSWER;
}

/* Does what the policy wants of this process, here and now; how much that was. From the first call on nobody else does
 * it in this process. A call that finds nothing to do costs some nanoseconds. */
static inline int memprof_poll(void)
{
    return memprof_hook_poll ? memprof_hook_poll() : 0;
}

/*
 * Pools. Memory of the host or of a device: addresses say which. A pool's segments are what it holds from the layer
 * below (reserved bytes); its blocks are what it has handed out (active bytes, kind `sub`), each with the line that
 * asked. Call segment right after the segment was allocated, segment_end and destroy before it is given back, alloc
 * after the pool chose the block, free before the pool may choose it again.
 */
typedef uint64_t memprof_pool; /* 0: not profiled */

static inline memprof_pool memprof_pool_create(const char *name)
{
    return memprof_hook_pool_create ? memprof_hook_pool_create(name) : 0;
}

/* With its segments and blocks. */
static inline void memprof_pool_destroy(memprof_pool pool)
{
    if (memprof_hook_pool_destroy)
        memprof_hook_pool_destroy(pool);
}

static inline void memprof_pool_segment(memprof_pool pool, const void *p, size_t size)
{
    if (memprof_hook_pool_segment)
        memprof_hook_pool_segment(pool, p, size);
}

static inline void memprof_pool_segment_end(memprof_pool pool, const void *p)
{
    if (memprof_hook_pool_segment_end)
        memprof_hook_pool_segment_end(pool, p);
}

static inline void memprof_pool_alloc(memprof_pool pool, const void *p, size_t size)
{
    if (memprof_hook_pool_alloc)
        memprof_hook_pool_alloc(pool, p, size);
}

static inline void memprof_pool_free(memprof_pool pool, const void *p)
{
    if (memprof_hook_pool_free)
        memprof_hook_pool_free(pool, p);
}

/* A block got another size where it is. */
static inline void memprof_pool_resize(memprof_pool pool, const void *p, size_t size)
{
    if (memprof_hook_pool_resize)
        memprof_hook_pool_resize(pool, p, size);
}

/* All blocks are free, the segments stay. */
static inline void memprof_pool_reset(memprof_pool pool)
{
    if (memprof_hook_pool_reset)
        memprof_hook_pool_reset(pool);
}

/*
 * Names. A name belongs to the block that lives at an address when it is said, from the block's birth to its death, and
 * never to one that has the address later; a realloc ends it. A block may have several. `memprof report --names` lists
 * them. Names and categories are copied, up to 1,000 bytes. Each call costs as much as an allocation.
 */

/* Names the block, or else a pool's segment, that begins at p. */
static inline void memprof_name(const void *p, const char *name)
{
    if (memprof_hook_name)
        memprof_hook_name(p, name);
}

/* Names a part of a block, by its shape. block NULL: it begins at view->data. */
static inline void memprof_view(const void *block, const struct memprof_view *view, const char *name)
{
    if (memprof_hook_view)
        memprof_hook_view(block, view, name);
}

/* What a block is for: "parameter", "gradient", "optimizer", "buffer", "activation", or a word of your own. The last
 * one said holds. */
static inline void memprof_category(const void *p, const char *category)
{
    if (memprof_hook_category)
        memprof_hook_category(p, category);
}

#ifdef __cplusplus
}
#endif

#endif
