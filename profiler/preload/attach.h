/*
 * attach.h: this library in a process that ran without it: loaded and called by `memprof attach` (profiler/attach/) in
 * a thread that it chose. Nothing of this is reached where the library was preloaded.
 */
#ifndef MEMPROF_PRELOAD_ATTACH_H
#define MEMPROF_PRELOAD_ATTACH_H

#include "compiler.h"

/* Now and then, in a hook: objects that were loaded since get our hooks, too. */
void attach_look(void) HIDDEN;
/* In a forked child that is not recorded: its copies of the slots are as they were. */
void attach_left_by_fork(void) HIDDEN;

#endif
