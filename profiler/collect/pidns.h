/*
 * pidns.h: processes of another pid namespace (containers, sandboxes): what they call themselves is not what we must
 * call them.
 */
#ifndef MEMPROF_PIDNS_H
#define MEMPROF_PIDNS_H

#include <stdint.h>

/* Whether the process has the session's memory mapped, as every image with the library has; -1: we may not look. */
int pidns_has_session(int pid);
/* The namespace that the process's own pid is of, as wire_proc.pid_namespace has it; 0: not to be had. */
uint64_t pidns_of(int pid);
/* What the threads of a process call themselves: so many were put at ids (of no more room than that), or are there. 0:
 * none, or we may not look. */
unsigned pidns_threads(int pid, int *ids, unsigned room);
/* The process that knows itself as `inner` in that namespace (0: in any), has the session mapped, or is the first one
 * of the namespace, and is not known already, by its pid here; 0: none. */
int pidns_find(int inner, uint64_t pid_namespace, int (*is_known)(void *arg, int pid), void *arg);

#endif
