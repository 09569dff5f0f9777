/* The wrappers of cuda.def: exported, so that programs linked with libcuda call them, and given out by dlsym and
 * cuGetProcAddress in place of the driver's functions. */
#include "../real.h"
#include "cuda.h"

/* The real call, between what it takes away and what it gives. A symbol that this driver lacks fails as the driver's
 * own look-up would. The alias: the exported name may be another library's, which was loaded before this one. */
#define CUDA(symbol_, name, version, per_thread_, parameters, arguments, size, before, after)                          \
    EXPORT int symbol_ parameters;                                                                                     \
    EXPORT int symbol_ parameters                                                                                      \
    {                                                                                                                  \
        struct cuda_call c = {.hook = WIRE_HOOK_##name, .per_thread = per_thread_};                                    \
        UNWIND_HERE(c.at);                                                                                             \
        if (unlikely(!cuda_bind())) { /* no libcuda: another library's function of this name, or nobody's */           \
            int(*other) parameters = (int(*) parameters)real_find_next(#symbol_);                                      \
            return other ? other arguments : CU_NOT_INITIALIZED;                                                       \
        }                                                                                                              \
        int(*real_call) parameters = (int(*) parameters)cuda_driver.symbol[CUDA_##symbol_];                            \
        if (unlikely(!real_call))                                                                                      \
            return CU_SYMBOL_NOT_FOUND;                                                                                \
        if (!cuda_enter(&c))                                                                                           \
            return real_call arguments;                                                                                \
        before;                                                                                                        \
        errno = c.error_number;                                                                                        \
        int result = real_call arguments;                                                                              \
        c.error_number = errno;                                                                                        \
        if (likely(result == 0)) {                                                                                     \
            after;                                                                                                     \
        } else {                                                                                                       \
            /* what was asked for may be behind a pointer that the driver has just refused */                          \
            cuda_failed(&c, result, result == CU_OUT_OF_MEMORY ? (size) : 0);                                          \
        }                                                                                                              \
        cuda_leave(&c);                                                                                                \
        return result;                                                                                                 \
    }                                                                                                                  \
    extern int hook_##symbol_ parameters __attribute__((alias(#symbol_), visibility("hidden")));
#include "cuda.def"

/* Each unknown variant is told once, as far as there is room to remember it; several libraries ask for the same ones.
 */
static int first_time(const char *name, int version)
{
    static uint32_t told[64];
    uint32_t hash = (uint32_t)version * 2654435761u;
    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * 16777619u;
    hash |= 1;
    for (unsigned i = 0; i < sizeof told / sizeof *told; i++) {
        uint32_t free = 0;
        if (__atomic_compare_exchange_n(&told[i], &free, hash, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
            COUNT(cuda_untracked, 1);
            return 1;
        }
        if (free == hash)
            return 0;
    }
    return 0;
}

/* cudart asks for every function once, at its start; other programs ask one by one. */
static int get_proc_address(enum cuda_symbol symbol, const char *name, void **result, int version, uint64_t flags,
                            int *status, struct unwind_state at)
{
    struct cuda_call c = {.at = at, .hook = WIRE_HOOK_none};
    int bound = cuda_bind();
    void *genuine = bound                             ? cuda_driver.symbol[symbol]
                    : symbol == CUDA_cuGetProcAddress ? real_find_next("cuGetProcAddress")
                                                      : real_find_next("cuGetProcAddress_v2");
    if (!genuine)
        return bound ? CU_SYMBOL_NOT_FOUND : CU_NOT_INITIALIZED;
    int entered = bound && cuda_enter(&c);
    int code =
        symbol == CUDA_cuGetProcAddress
            ? ((int (*)(const char *, void **, int, uint64_t))genuine)(name, result, version, flags)
            : ((int (*)(const char *, void **, int, uint64_t, int *))genuine)(name, result, version, flags, status);
    c.error_number = errno;
    if (bound && code == 0 && name && result && *result) {
        uint64_t untracked = 0;
        void *hook = cuda_hook_of_name(name, version, flags, *result, &untracked);
        if (hook)
            *result = hook;
        else if (untracked && entered && first_time(name, version))
            cuda_write(&c, WIRE_CALL_UNTRACKED, WIRE_DEVICE_UNKNOWN, 0, cuda_stack(&c), &untracked, 1, name);
    }
    if (entered)
        cuda_leave(&c);
    return code;
}

EXPORT int cuGetProcAddress(const char *name, void **result, int version, uint64_t flags);
EXPORT int cuGetProcAddress(const char *name, void **result, int version, uint64_t flags)
{
    struct unwind_state at;
    UNWIND_HERE(at);
    return get_proc_address(CUDA_cuGetProcAddress, name, result, version, flags, NULL, at);
}

EXPORT int cuGetProcAddress_v2(const char *name, void **result, int version, uint64_t flags, int *status);
EXPORT int cuGetProcAddress_v2(const char *name, void **result, int version, uint64_t flags, int *status)
{
    struct unwind_state at;
    UNWIND_HERE(at);
    return get_proc_address(CUDA_cuGetProcAddress_v2, name, result, version, flags, status, at);
}

extern int hook_cuGetProcAddress(const char *, void **, int, uint64_t)
    __attribute__((alias("cuGetProcAddress"), visibility("hidden")));
extern int hook_cuGetProcAddress_v2(const char *, void **, int, uint64_t, int *)
    __attribute__((alias("cuGetProcAddress_v2"), visibility("hidden")));

const struct cuda_row cuda_rows[CUDA_SYMBOLS] = {
#define CUDA(symbol, name, version, per_thread, ...) {#symbol, #name, (void *)hook_##symbol, version, per_thread},
#define CUDA_SPECIAL(symbol, name, version)          {#symbol, #name, (void *)hook_##symbol, version, 0},
#include "cuda.def"
};
