/*
 * sys.h: system calls without libc: no errno, no cancellation points, no interposed wrappers. Results are the kernel's:
 * a negative errno on failure. Everything in preload/ that talks to the kernel goes through here.
 */
#ifndef MEMPROF_SYS_H
#define MEMPROF_SYS_H

#include <linux/futex.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>

static inline long sys_call6(long n, long a, long b, long c, long d, long e, long f)
{
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

#define sys_call(n, a, b, c) sys_call6((n), (long)(a), (long)(b), (long)(c), 0, 0, 0)

/* Zeroed private memory, or NULL. */
static inline void *sys_map(size_t size_bytes)
{
    long p = sys_call6(SYS_mmap, 0, (long)size_bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p < 0 && p > -4096 ? NULL : (void *)p;
}

#define SYS_HUGE_BYTES (2ul << 20)

/* The same in huge pages, as far as the kernel gives them. */
static inline void *sys_map_huge(size_t size_bytes)
{
    char *map = (char *)sys_map(size_bytes + SYS_HUGE_BYTES);
    if (!map)
        return sys_map(size_bytes);
    size_t before = -(uintptr_t)map & (SYS_HUGE_BYTES - 1);
    if (before)
        sys_call(SYS_munmap, map, before, 0);
    sys_call(SYS_munmap, map + before + size_bytes, SYS_HUGE_BYTES - before, 0);
    sys_call(SYS_madvise, map + before, size_bytes, MADV_HUGEPAGE);
    return map + before;
}

static inline void sys_unmap(void *p, size_t size_bytes)
{
    sys_call(SYS_munmap, p, size_bytes, 0);
}

/* The limit of this process's address space; RLIM_INFINITY: none, or not known. */
static inline uint64_t sys_address_limit(void)
{
    struct rlimit space;
    return sys_call6(SYS_prlimit64, 0, RLIMIT_AS, 0, (long)&space, 0, 0) != 0 ? RLIM_INFINITY : space.rlim_cur;
}

static inline int sys_getpid(void)
{
    return (int)sys_call(SYS_getpid, 0, 0, 0);
}

static inline int sys_gettid(void)
{
    return (int)sys_call(SYS_gettid, 0, 0, 0);
}

static inline int sys_open(const char *path, int flags)
{
    return (int)sys_call6(SYS_openat, -100 /* AT_FDCWD */, (long)path, flags, 0, 0, 0);
}

static inline long sys_read(int fd, void *data, size_t size_bytes)
{
    return sys_call(SYS_read, fd, data, size_bytes);
}

static inline void sys_close(int fd)
{
    sys_call(SYS_close, fd, 0, 0);
}

/* The link's target without a NUL; its length or a negative errno. */
static inline long sys_readlink(const char *path, char *target, size_t size_bytes)
{
    return sys_call6(SYS_readlinkat, -100, (long)path, (long)target, (long)size_bytes, 0, 0);
}

static inline void sys_sleep_ns(long ns)
{
    struct timespec t = {0, ns};
    sys_call(SYS_nanosleep, &t, 0, 0);
}

/* By the kernel itself: the C library's way, through the vdso, takes more of the stack, of which a signal handler that
 * must wait may have next to none. */
static inline uint64_t sys_monotonic_ns(void)
{
    struct timespec t = {0, 0};
    sys_call(SYS_clock_gettime, CLOCK_MONOTONIC, &t, 0);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline void sys_futex_wake(uint32_t *word)
{
    sys_call6(SYS_futex, (long)word, FUTEX_WAKE, 1, 0, 0, 0);
}

/* Until the word is another one, somebody wakes us, or the time (below a second) is over. */
static inline void sys_futex_wait(uint32_t *word, uint32_t value, long ns)
{
    struct timespec t = {0, ns};
    sys_call6(SYS_futex, (long)word, FUTEX_WAIT, (long)value, (long)&t, 0, 0);
}

/* All but those that code itself may raise: these, blocked, end the program. */
#define SYS_SIGNAL(number) (1ul << ((number)-1))
#define SYS_SIGNALS_OTHERS                                                                                             \
    (~(SYS_SIGNAL(SIGILL) | SYS_SIGNAL(SIGTRAP) | SYS_SIGNAL(SIGBUS) | SYS_SIGNAL(SIGFPE) | SYS_SIGNAL(SIGSEGV) |      \
       SYS_SIGNAL(SIGSYS)))

/* Which signals the thread blocks from now on; what it was before. */
static inline uint64_t sys_signals_set(uint64_t mask)
{
    uint64_t before = 0;
    sys_call6(SYS_rt_sigprocmask, SIG_SETMASK, (long)&mask, (long)&before, sizeof mask, 0, 0);
    return before;
}

#endif
