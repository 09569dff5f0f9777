/*
 * needed.h: what a program file says that it needs, read without libc: a vfork's child asks.
 */
#ifndef MEMPROF_NEEDED_H
#define MEMPROF_NEEDED_H

#include "compiler.h"

/* Whether it needs a sanitizer's library, which ends a program, or crashes, where another library was loaded before it.
 * A path of no program that can be read: 0. Any thread, in a signal handler too. */
int needed_comes_first(const char *path) HIDDEN;

#endif
