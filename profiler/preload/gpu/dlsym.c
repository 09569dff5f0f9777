/*
 * dlsym and dlvsym. The real ones look at who called them (RTLD_NEXT, RTLD_DEFAULT from a plugin), so these are stubs
 * that save the arguments, ask a filter, and either return a hook of the CUDA driver or jump to the real function as if
 * it had been called directly.
 */
#include "../real.h"
#include "cuda.h"

#include <dlfcn.h>

/* What the stub does: returns hook, or with NULL jumps to real with this handle. */
struct answer {
    void *hook;
    void *handle;
};

/* An object that defines nothing of the driver: looking there fails, with the text that dlerror is to give. */
static void *nowhere(void)
{
    return real.dlopen ? real.dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD) : NULL;
}

static int is_hook(const void *p)
{
    for (int i = 0; i < CUDA_SYMBOLS; i++)
        if (p == cuda_rows[i].hook)
            return 1;
    return 0;
}

/* A name of cuda.def. The genuine look-up tells what the program would get: the driver's function becomes its hook, any
 * other is left alone. Our own export stands in for the driver's, so where the driver lacks it or is not loaded the
 * look-up must fail as it would without us. */
__attribute__((noinline, force_align_arg_pointer)) static struct answer driver_symbol(void *handle, const char *name,
                                                                                      const char *version, int symbol)
{
    struct answer answer = {NULL, handle};
    int bound = cuda_bind(), there = bound && cuda_driver.symbol[symbol];
    if (there && (handle == RTLD_NEXT || handle == RTLD_DEFAULT))
        return answer; /* the caller's scope decides; it ends at our export at the latest */
    if (handle == RTLD_NEXT && real.dlsym(RTLD_NEXT, name))
        return answer; /* somebody else's */
    if (handle == RTLD_NEXT)
        handle = RTLD_DEFAULT;
    void *genuine = version ? real.dlvsym(handle, name, version) : real.dlsym(handle, name);
    if (!genuine)
        return answer;
    if (is_hook(genuine)) {
        if (!there)
            answer.handle = nowhere();
        return answer;
    }
    if (bound)
        answer.hook = cuda_hook_of(symbol, genuine);
    return answer;
}

static inline struct answer filter(void *handle, const char *name, const char *version)
{
    struct answer answer = {NULL, handle};
    int symbol = name && name[0] == 'c' && name[1] == 'u' ? cuda_find(name) : -1;
    return likely(symbol < 0) ? answer : driver_symbol(handle, name, version, symbol);
}

static void *find_nothing(void)
{
    return NULL;
}

/* Where the stubs jump to: set by their filters. */
void *dlsym_real HIDDEN, *dlvsym_real HIDDEN;

#define FILTER(name, version, ...)                                                                                     \
    struct answer name##_filter(__VA_ARGS__) HIDDEN;                                                                   \
    struct answer name##_filter(__VA_ARGS__)                                                                           \
    {                                                                                                                  \
        if (unlikely(!name##_real)) {                                                                                  \
            real_init();                                                                                               \
            name##_real = real.name ? (void *)real.name : (void *)find_nothing;                                        \
        }                                                                                                              \
        return filter(handle, symbol, version);                                                                        \
    }
FILTER(dlsym, NULL, void *handle, const char *symbol)
FILTER(dlvsym, version, void *handle, const char *symbol, const char *version)

#define STUB(name)                                                                                                     \
    __asm__(".pushsection .text\n"                                                                                     \
            ".globl " #name "\n"                                                                                       \
            ".type " #name ", @function\n"                                                                             \
            ".p2align 4\n" #name ":\n"                                                                                 \
            ".cfi_startproc\n"                                                                                         \
            "endbr64\n"                                                                                                \
            "pushq %rdx\n"                                                                                             \
            ".cfi_adjust_cfa_offset 8\n"                                                                               \
            "pushq %rsi\n"                                                                                             \
            ".cfi_adjust_cfa_offset 8\n"                                                                               \
            "subq $8, %rsp\n"                                                                                          \
            ".cfi_adjust_cfa_offset 8\n"                                                                               \
            "call " #name "_filter\n"                                                                                  \
            "movq %rdx, %rdi\n"                                                                                        \
            "addq $8, %rsp\n"                                                                                          \
            ".cfi_adjust_cfa_offset -8\n"                                                                              \
            "popq %rsi\n"                                                                                              \
            ".cfi_adjust_cfa_offset -8\n"                                                                              \
            "popq %rdx\n"                                                                                              \
            ".cfi_adjust_cfa_offset -8\n"                                                                              \
            "testq %rax, %rax\n"                                                                                       \
            "jne 1f\n"                                                                                                 \
            "movq " #name "_real(%rip), %rax\n"                                                                        \
            "jmp *%rax\n"                                                                                              \
            "1: ret\n"                                                                                                 \
            ".cfi_endproc\n"                                                                                           \
            ".size " #name ", . - " #name "\n"                                                                         \
            ".popsection\n")
STUB(dlsym);
STUB(dlvsym);
