/*
 * watch.h: a thread that sleeps until a recorded process ends or a signal comes for the collector, notes it and wakes
 * the collector. It touches nothing else.
 */
#ifndef MEMPROF_WATCH_H
#define MEMPROF_WATCH_H

#include "clock.h"
#include "session.h"

#include <sys/types.h>

struct watch;

/* signal_fd: launch.h. Signals that came are passed on to first_pidfd, the program's, but for those of the terminal,
 * which reach it by themselves, and its own. Where it stops at a SIGTSTP, so does this process. Both are borrowed. */
int watch_start(struct watch **watch, const struct session *session, const struct clock *clock, int signal_fd,
                pid_t first_pid, int first_pidfd, struct error *err);
void watch_stop(struct watch *watch);
/* In between the thread does not touch the session's memory: session_is_shared takes it away for a moment. */
void watch_hold(struct watch *watch);
void watch_release(struct watch *watch);

/* Watches for the end of the process of this slot, which may have been another's before. Returns 0 or -errno. */
int watch_process(struct watch *watch, uint32_t slot, int pidfd);
/* When the slot's process was seen to end: a stamp; 0: it runs. Right after a slot changed hands this may still be
 * about the one before: ask the pidfd too. */
uint64_t watch_ended(const struct watch *watch, uint32_t slot);
/* The program itself, recorded or not: its end is news. */
void watch_first(struct watch *watch, int pidfd);
/* Moves with everything that the thread notes. */
unsigned watch_news(const struct watch *watch);
/* Signals since the start that ask the collector to end: ^C, ^\, TERM, HUP. */
unsigned watch_stops(const struct watch *watch);

#endif
