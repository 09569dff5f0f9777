/* Each hooked function, called from a function of its own: 10 times 100 bytes (pvalloc: what it rounds to). */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

enum { TIMES = 10, BYTES = 100 };
#define CASE(name, expression)                                                                                         \
    static __attribute__((noinline)) void name(void)                                                                   \
    {                                                                                                                  \
        void *p = 0;                                                                                                   \
        p = (expression);                                                                                              \
        if (!p)                                                                                                        \
            abort();                                                                                                   \
        memset(p, 1, BYTES);                                                                                           \
        free(p);                                                                                                       \
    }
static void *by_posix(void)
{
    void *p = NULL;
    return posix_memalign(&p, 64, BYTES) ? NULL : p;
}
CASE(do_malloc, malloc(BYTES))
CASE(do_calloc, calloc(BYTES / 4, 4))
CASE(do_realloc_null, realloc(NULL, BYTES))
CASE(do_reallocarray, reallocarray(NULL, BYTES / 5, 5))
CASE(do_memalign, memalign(64, BYTES))
CASE(do_aligned_alloc, aligned_alloc(64, BYTES))
CASE(do_valloc, valloc(BYTES))
CASE(do_pvalloc, pvalloc(BYTES))
CASE(do_strdup,
     strdup("12345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678"
            "9"))
static __attribute__((noinline)) void do_posix_memalign(void)
{
    void *p = by_posix();
    free(p);
}
/* 100 bytes become 200, then 50: three allocations, three frees, 350 bytes */
static __attribute__((noinline)) void do_realloc_sizes(void)
{
    char *p = malloc(BYTES);
    p = realloc(p, 2 * BYTES);
    p = realloc(p, BYTES / 2);
    free(p);
}
/* realloc to size 0 frees: one allocation, one free */
static __attribute__((noinline)) void do_realloc_zero(void)
{
    char *p = malloc(BYTES);
    if (realloc(p, 0))
        abort();
}
static __attribute__((noinline)) void do_nothing(void)
{
    free(NULL);
}
/* malloc(0) is a block of 0 bytes */
static __attribute__((noinline)) void do_zero(void)
{
    free(malloc(0));
}

/* What glibc does not have (any more, or yet), and programs that have it call: here by memprof's library alone. Weak:
 * without it, free, for the same counts. */
void cfree(void *) __attribute__((weak));
void free_sized(void *, size_t) __attribute__((weak));
void free_aligned_sized(void *, size_t, size_t) __attribute__((weak));
static __attribute__((noinline)) void do_other_frees(void)
{
    void *p = malloc(BYTES);
    (cfree ? cfree : free)(p);
    p = malloc(BYTES);
    free_sized ? free_sized(p, BYTES) : free(p);
    p = malloc(BYTES); /* aligned for 16 bytes */
    free_aligned_sized ? free_aligned_sized(p, 16, BYTES) : free(p);
}

int main(void)
{
    for (int i = 0; i < TIMES; i++) {
        do_malloc();
        do_calloc();
        do_realloc_null();
        do_reallocarray();
        do_memalign();
        do_aligned_alloc();
        do_valloc();
        do_pvalloc();
        do_strdup();
        do_posix_memalign();
        do_realloc_sizes();
        do_realloc_zero();
        do_nothing();
        do_zero();
        do_other_frees();
    }
    return 0;
}
