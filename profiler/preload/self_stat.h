/*
 * self_stat.h: what the kernel says of this process in /proc/self/stat.
 */
#ifndef MEMPROF_SELF_STAT_H
#define MEMPROF_SELF_STAT_H

#include "compiler.h"

#include <stddef.h>
#include <stdint.h>

/* Counted from behind the name, the state being 1. */
#define SELF_STAT_THREADS   18u
#define SELF_STAT_START_BRK 45u

/* That number; 0: not to be had. text: room for the file up to there, as the stack may be a small one. */
uint64_t self_stat(unsigned place, char *text, size_t size_bytes) HIDDEN;

#endif
