/*
 * real.h: the functions that our hooks stand in front of: the next definition after this library in load order
 * (glibc's, or those of jemalloc, tcmalloc, ...). Found by walking ELF symbol tables: dlsym allocates and takes locks.
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

struct real {
#define X(name, type, args) type(*name) args;
#include "real.def"
#undef X
    int program_has_malloc; /* the executable exports a malloc of its own, which goes before ours */
    int program_has_new;    /* the same of operator new */
    int malloc_is_libc;     /* the real malloc is glibc's, so that mallinfo2 tells what it holds */
};

extern struct real real;

/* Finds them all, once; cheap afterwards. Callable before constructors have run. A missing one stays NULL. */
void real_init(void);

/* The first definition after this library in load order: what RTLD_NEXT means, or where it is late the first one
 * of all. NULL: none. */
void *real_find_next(const char *name);
/* Loaded while the program ran: as NVTX's tool of a program that is not recorded, or attached. */
int real_is_late(void);
/* Functions that this library exports (NULL: none): the dynamic loader binds nobody to them any more. They lie in the
 * symbol table alone with what is only read. Where the kernel refuses, they stay. */
void real_hide(const char *const *names, unsigned count);
/* A function that one loaded object defines; NULL: it does not. */
void *real_find_in(const struct link_map *map, const char *name);

#endif
