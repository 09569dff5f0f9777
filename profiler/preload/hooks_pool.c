/* What memprof.h calls in a program that is recorded: pools, that is, allocators of the program's own. */
#include "call.h"

static uint64_t pool_count; /* handles: odd, so that they are no addresses as NVTX's heaps are */

static void call(struct unwind_state s, unsigned hook, unsigned what, uint64_t pool, const void *p, size_t size_bytes,
                 unsigned count)
{
    uint64_t arguments[] = {pool, (uint64_t)p, size_bytes};
    call_record(s, hook, what, WIRE_DEVICE_UNKNOWN, arguments, count, NULL);
}

EXPORT uint64_t memprof_hook_pool_create(const char *name);
EXPORT uint64_t memprof_hook_pool_create(const char *name)
{
    struct unwind_state s;
    UNWIND_HERE(s);
    uint64_t pool = 2 * __atomic_fetch_add(&pool_count, 1, __ATOMIC_RELAXED) + 1;
    call_record(s, 0, WIRE_CALL_SUB_POOL, WIRE_DEVICE_UNKNOWN, &pool, 1, &(struct call_text){.bytes = name});
    return pool;
}

/* X(what a program calls, call, hook, arguments in order, how many of pool, address and size the record has) */
#define POOL_HOOKS(X)                                                                                                  \
    X(pool_destroy, SUB_POOL_END, none, (uint64_t pool), pool, NULL, 0, 1)                                             \
    X(pool_segment, SUB_SEGMENT, memprof_pool_segment, (uint64_t pool, const void *p, size_t n), pool, p, n, 3)        \
    X(pool_segment_end, SUB_SEGMENT_END, none, (uint64_t pool, const void *p), pool, p, 0, 2)                          \
    X(pool_alloc, SUB_ALLOC, memprof_pool_alloc, (uint64_t pool, const void *p, size_t n), pool, p, n, 3)              \
    X(pool_free, SUB_FREE, none, (uint64_t pool, const void *p), pool, p, 0, 2)                                        \
    X(pool_resize, SUB_RESIZE, memprof_pool_alloc, (uint64_t pool, const void *p, size_t n), pool, p, n, 3)            \
    X(pool_reset, SUB_RESET, none, (uint64_t pool), pool, NULL, 0, 1)

#define X(name, what, hook, parameters, pool, p, n, count)                                                             \
    EXPORT void memprof_hook_##name parameters;                                                                        \
    EXPORT void memprof_hook_##name parameters                                                                         \
    {                                                                                                                  \
        struct unwind_state s;                                                                                         \
        UNWIND_HERE(s);                                                                                                \
        call(s, WIRE_HOOK_##hook, WIRE_CALL_##what, (pool), (p), (n), (count));                                        \
    }
POOL_HOOKS(X)
#undef X
