/*
 * safe.h: whether a stopped thread may be made to call the dynamic loader where it is: it must hold none of the locks
 * that the call takes, of the loader, of malloc and of threads that start.
 */
#ifndef MEMPROF_SAFE_H
#define MEMPROF_SAFE_H

#include "target.h"

struct safe;
struct safe *safe_open(const struct target *t);
void safe_close(struct safe *s);

/* tid is stopped by this thread of ours (ptrace). */
int safe_is(struct safe *s, pid_t tid);

#endif
