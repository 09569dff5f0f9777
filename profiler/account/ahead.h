/*
 * ahead.h: memory that will be needed, mapped and touched on the second thread while what there is fills: the first
 * touch of a page costs more than most events.
 */
#ifndef MEMPROF_AHEAD_H
#define MEMPROF_AHEAD_H

#include "worker.h"

#include <stddef.h>

struct ahead { /* zeroed: nothing is asked for. It stays where it is until then */
    struct work work;
    char *memory; /* NULL: not asked for */
    size_t bytes;
    size_t touched; /* both threads add */
    int is_huge;
    int huge_is_slow; /* either sets it (huge.h) */
};

/* Zeroed pages, aligned to huge ones and asked for as such where huge; NULL: there is no memory. munmap frees them. */
void *ahead_map(size_t bytes, int huge);

/* Asks for memory, unless some is there. Without any, or without a worker, nothing is asked for. */
void ahead_begin(struct worker *worker, struct ahead *ahead, size_t bytes, int huge);
/* It is the caller's; NULL: it was not asked for. Sets *huge_is_slow where it turned out to be so. */
void *ahead_take(struct worker *worker, struct ahead *ahead, int *huge_is_slow);
void ahead_drop(struct worker *worker, struct ahead *ahead);

#endif
