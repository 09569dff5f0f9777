/*
 * environment.h: the program's environment, read and changed in place without libc: it may not be there yet. No other
 * thread runs.
 */
#ifndef MEMPROF_ENVIRONMENT_H
#define MEMPROF_ENVIRONMENT_H

#include "compiler.h"

/* The value of one entry, NAME=VALUE, if it has that name; else NULL. Any thread. */
const char *environment_value(const char *entry, const char *name) HIDDEN;
/* Of the process, even before libc's start; NULL: not there. */
const char *environment_find(const char *name) HIDDEN;
/* Where children are not followed, their environment must not bring them here: takes our entries out. */
void environment_strip(void) HIDDEN;

#endif
