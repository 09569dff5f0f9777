/*
 * attach.h: libmemprof.so in a process that runs without it: put in, so that it is recorded from then on, and taken out
 * of its way again. Done by a process of our own: should that be killed, or the one that calls, the program goes on.
 */
#ifndef MEMPROF_ATTACH_H
#define MEMPROF_ATTACH_H

#include "../../common/error.h"

#include <sys/types.h>

/* Whether it can be attached to, before anything is touched. 0, or -errno with one line in err. */
int attach_check(pid_t pid, const char *library, struct error *err);

/* Under way. */
struct attach_work {
    pid_t helper; /* 0: none */
    int pipe;
};

/* Puts the library in, which joins the session at this path. Waits for that. 0, or -errno with err. */
int attach_begin(pid_t pid, const char *library, const char *session, struct error *err);

/* The slots get back what they had, and nothing is recorded from then on. Its end is to be asked for, as the program
 * may wait for the caller to read its records meanwhile. */
int attach_end_start(struct attach_work *work, pid_t pid, struct error *err);
/* 1: it is over, with its result in *rc and err as for attach_begin; 0: not yet. wait: until it is. */
int attach_end_done(struct attach_work *work, int wait, int *rc, struct error *err);

#endif
