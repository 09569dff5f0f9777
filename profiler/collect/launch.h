/*
 * launch.h: starting the program as it would have started without us, plus the preloaded library.
 */
#ifndef MEMPROF_LAUNCH_H
#define MEMPROF_LAUNCH_H

#include "../../common/error.h"

#include <signal.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

/* What the collector changes in itself and the program must not inherit. */
struct launch_state {
    sigset_t mask;
    struct sigaction child_action;
    struct rlimit files;
    int signal_fd;         /* the signals that launch_prepare blocked; -1 */
    uint64_t before_bytes; /* peak resident bytes of the program's process before it was the program */
};

/* Blocks the signals that the collector handles or must survive, makes children waitable, raises the limit of open
 * files. launch_restore undoes it. */
int launch_prepare(struct launch_state *state, struct error *err);
void launch_restore(struct launch_state *state);
/* The program is over: ^Z is about this process again. */
void launch_over(void);

/* library and session: what LD_PRELOAD and MEMPROF_SESSION must hold; NULL: run it plain. Returns the pid, or -errno of
 * the failed start with err. */
pid_t launch_start(struct launch_state *state, const char *path, char *const argv[], const char *library,
                   const char *session, struct error *err);

/* Becomes the program. Returns only -errno with err. */
int launch_replace(const char *path, char *const argv[], struct error *err);

/* As a shell shows a wait status: the exit status, or 128 + the signal. */
int launch_exit_status(int wait_status);

#endif
