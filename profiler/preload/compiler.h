/*
 * compiler.h: what is said to the compiler in short.
 */
#ifndef MEMPROF_COMPILER_H
#define MEMPROF_COMPILER_H

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define HIDDEN      __attribute__((visibility("hidden")))
#define EXPORT      __attribute__((visibility("default"), noinline))
#define EXPORT_DATA __attribute__((visibility("default")))

/* Signal handlers on the same thread see what is before it done. */
#define barrier() __asm__ volatile("" ::: "memory")

#endif
