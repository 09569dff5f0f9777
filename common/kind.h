/*
 * kind.h: the kinds of memory within a device, in the order of their numbers in event chunks; and 'all', their sum.
 */
#ifndef MEMPROF_KIND_H
#define MEMPROF_KIND_H

#define KINDS(X)                                              \
    X(heap, "malloc family")                                  \
    X(map, "mmap and break, by the program itself")           \
    X(pinned, "page-locked host memory for a GPU")            \
    X(managed, "managed (unified) memory")                    \
    X(device, "plain device memory")                          \
    X(array, "CUDA arrays")                                   \
    X(pool, "stream-ordered pools")                           \
    X(vmm, "virtual memory management")                       \
    X(sub, "blocks of a sub-allocator")                       \
    X(arena, "Python's arenas of small objects: reserved only")

enum kind {
#define X(name, text) KIND_##name,
    KINDS(X)
#undef X
    KIND_COUNT,
    KIND_all = KIND_COUNT
};

/* Rows of the table segment that each kind of a device gets: with as many, some of its segments may have none. */
enum { SEGMENT_ROWS_MAX = 65536 };

const char *kind_name(unsigned kind); /* "heap", ..., "all"; "?" outside */

#endif
