/*
 * target.h: whether a process can be attached to, found out before anything in it is touched, and where what is called
 * in it lies.
 */
#ifndef MEMPROF_TARGET_H
#define MEMPROF_TARGET_H

#include "../../common/error.h"
#include "remote.h"

struct target {
    pid_t pid;
    struct remote remote;
    const struct remote_object *loader, *libc, *allocator, *library; /* library: libmemprof.so; NULL: not there */
    uint64_t dlopen, dlsym, dlerror;
};

/* library: ours, absolute; NULL: it need not be reachable there. 0, or -errno with one line in err: -EPERM no right to
 * trace it, -ESRCH no such process, -EINVAL it is of a kind that cannot be attached to, -EBUSY somebody traces it. */
int target_open(struct target *t, pid_t pid, const char *library, struct error *err);
void target_close(struct target *t);
/* Reads the list of loaded objects once more. */
int target_refresh(struct target *t);

/* Why a process could not be traced, for -EPERM. */
int target_refused(pid_t pid, struct error *err);

/* The same of what is known of it. */
struct target_refusal {
    pid_t pid, tracer;      /* tracer: who traces it; 0: nobody */
    long long uid;          /* its own; -1: not known */
    uid_t own_uid;          /* ours */
    const char *scope_path; /* Yama's file; it may be missing */
};
int target_refusal(const struct target_refusal *r, struct error *err);

#endif
