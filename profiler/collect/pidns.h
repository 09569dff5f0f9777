/*
 * pidns.h: processes of another pid namespace (containers, sandboxes): what they call themselves is not what we must
 * call them.
 */
#ifndef MEMPROF_PIDNS_H
#define MEMPROF_PIDNS_H

/* Whether the process has the session's memory mapped, as every image with the library in it has. */
int pidns_has_session(int pid);
/* The process that knows itself as `inner`, has the session mapped and is not known already (namespaces have the same
 * pids), by its pid here; 0: none. */
int pidns_find(int inner, int (*is_known)(void *arg, int pid), void *arg);

#endif
