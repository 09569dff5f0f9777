/*
 * memprof.h: what a program may tell memprof: named instants and named spans of time, shown on its timeline.
 *
 *     #include <memprof.h>
 *
 *     memprof_range_push("epoch 3");
 *     ...
 *     memprof_mark("checkpoint written");
 *     memprof_range_pop();
 *
 * Nothing to link with: the symbols are weak, so a program that runs without memprof tests a pointer and goes on. C and
 * C++, any thread. Names are copied, up to 1,000 bytes. Ranges nest by thread. (An executable compiled with -fno-pie
 * and linked with -no-pie has its weak symbols bound to null by the linker: there the calls do nothing.)
 */
#ifndef MEMPROF_H
#define MEMPROF_H

#ifdef __cplusplus
extern "C" {
#endif

/* Defined by libmemprof.so. Call the functions below instead: these are null in a program that is not profiled. */
extern void memprof_hook_mark(const char *name) __attribute__((weak));
extern void memprof_hook_range_push(const char *name) __attribute__((weak));
extern void memprof_hook_range_pop(void) __attribute__((weak));

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

#ifdef __cplusplus
}
#endif

#endif
