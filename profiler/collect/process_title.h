/*
 * process_title.h: what a process calls itself: by its arguments' memory, as setproctitle does, or by prctl.
 */
#ifndef MEMPROF_PROCESS_TITLE_H
#define MEMPROF_PROCESS_TITLE_H

#include "process.h"

/* With a sample of it: it may be killed, and then tell nothing. Reads at most after a quarter of its life so far. */
void process_see_title(struct process *p, uint64_t now_ns);
/* At its end: what it told then, or what was seen last. */
void process_write_title(struct processes *ps, const struct process *p);

#endif
