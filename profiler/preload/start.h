/*
 * start.h: what this library asks of libc once in a process.
 */
#ifndef MEMPROF_START_H
#define MEMPROF_START_H

#include "compiler.h"

/* To be told of the ends of threads and of the process. Again it does nothing. */
void start_once(void) HIDDEN;

#endif
