/*
 * real.h: the functions that our hooks stand in front of: the next definition after this library in load order (glibc's,
 * or those of jemalloc, tcmalloc, ...). Found by walking ELF symbol tables: dlsym allocates and takes locks.
 */
#ifndef MEMPROF_REAL_H
#define MEMPROF_REAL_H

#include <spawn.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <sys/wait.h>

struct mallinfo2;
struct link_map;
struct dl_phdr_info;

/* X(name, return type, argument types) */
#define REAL_FUNCTIONS(X)                                                                                     \
    X(malloc, void *, (size_t))                                                                               \
    X(calloc, void *, (size_t, size_t))                                                                       \
    X(realloc, void *, (void *, size_t))                                                                      \
    X(reallocarray, void *, (void *, size_t, size_t))                                                         \
    X(free, void, (void *))                                                                                   \
    X(posix_memalign, int, (void **, size_t, size_t))                                                         \
    X(memalign, void *, (size_t, size_t))                                                                     \
    X(aligned_alloc, void *, (size_t, size_t))                                                                \
    X(valloc, void *, (size_t))                                                                               \
    X(pvalloc, void *, (size_t))                                                                              \
    X(free_sized, void, (void *, size_t))                                                                     \
    X(free_aligned_sized, void, (void *, size_t, size_t))                                                     \
    X(mmap, void *, (void *, size_t, int, int, int, off_t))                                                   \
    X(munmap, int, (void *, size_t))                                                                          \
    X(mremap, void *, (void *, size_t, size_t, int, void *))                                                  \
    X(mprotect, int, (void *, size_t, int))                                                                   \
    X(sbrk, void *, (intptr_t))                                                                               \
    X(brk, int, (void *))                                                                                     \
    X(mallinfo2, struct mallinfo2, (void))                                                                    \
    X(dlclose, int, (void *))                                                                                 \
    X(dlopen, void *, (const char *, int))                                                                    \
    X(dl_iterate_phdr, int, (int (*)(struct dl_phdr_info *, size_t, void *), void *))                         \
    X(dlsym, void *, (void *, const char *))                                                                  \
    X(dlvsym, void *, (void *, const char *, const char *))                                                   \
    X(fork, pid_t, (void))                                                                                    \
    X(_Fork, pid_t, (void))                                                                                   \
    X(_exit, void, (int))                                                                                     \
    X(quick_exit, void, (int))                                                                                \
    X(execve, int, (const char *, char *const *, char *const *))                                              \
    X(execvpe, int, (const char *, char *const *, char *const *))                                             \
    X(fexecve, int, (int, char *const *, char *const *))                                                      \
    X(execveat, int, (int, const char *, char *const *, char *const *, int))                                  \
    X(posix_spawn, int, (pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *, char *const *, char *const *)) \
    X(posix_spawnp, int, (pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *, char *const *, char *const *)) \
    X(waitpid, pid_t, (pid_t, int *, int))                                                                    \
    X(wait4, pid_t, (pid_t, int *, int, struct rusage *))                                                     \
    X(waitid, int, (idtype_t, id_t, siginfo_t *, int))                                                        \
    X(pthread_setname_np, int, (unsigned long, const char *))                                                 \
    X(prctl, int, (int, unsigned long, unsigned long, unsigned long, unsigned long))

struct real {
#define X(name, type, args) type(*name) args;
    REAL_FUNCTIONS(X)
#undef X
    int program_has_malloc; /* the executable exports a malloc of its own, which goes before ours */
    int malloc_is_libc; /* the real malloc is glibc's, so that mallinfo2 tells what it holds */
};

extern struct real real;

/* Finds them all, once; cheap afterwards. Callable before constructors have run. A missing one stays NULL. */
void real_init(void);

/* The first definition after this library in load order: what RTLD_NEXT means. NULL: none. */
void *real_find_next(const char *name);
/* A function that one loaded object defines; NULL: it does not. */
void *real_find_in(const struct link_map *map, const char *name);

#endif
