/*
 * outside.h: a recording that goes on, from outside. It is found by the PID of a process that is recorded or of its
 * collector, or by its file. The kernel is the access check: /proc/PID opens for the same user only. Nothing of the
 * shared memory is mapped for use, but read with pread and checked: whoever can write it may cut it, or write anything.
 */
#ifndef MEMPROF_OUTSIDE_H
#define MEMPROF_OUTSIDE_H

#include "../../common/error.h"
#include "../wire.h"

struct outside;

/* what: a PID in decimal digits, else the path of a recording. A file of digits is "./12". Returns 0, or with err (one
 * line, names what): -ENOENT there is no such process or file; -ESRCH it is not recorded now, -EACCES it is another
 * user's, -EPROTO what is there is no session of this version. Close with outside_close. */
int outside_open(const char *what, struct outside **o, struct error *err);
void outside_close(struct outside *o);

/* Of the collector, as this process sees it. */
/* Its process ran already as it began, and can be let go. */
int outside_is_attached(const struct outside *o);
int outside_collector(const struct outside *o);
/* A descriptor that can be polled for the end of the collector that writes the recording, also while it only finishes
 * what its programs did: outside_open says then that it has ended. -1: nobody here writes it. */
int outside_writer(const char *file);
/* Whether it records on: not over, and the collector lives. A collector that is stopped does. */
int outside_is_recording(const struct outside *o);
/* For pread and pwrite; borrowed. */
int outside_fd(const struct outside *o);

/* The rows of the desk, from 0: all, then devices and their types, which keep their places. 1, or 0: there is no such
 * row, or none that could be read whole. name: NUL-terminated, "" of all. */
int outside_row(const struct outside *o, unsigned index, char name[WIRE_NAME_BYTES + 1], struct wire_figures *figures);

#endif
