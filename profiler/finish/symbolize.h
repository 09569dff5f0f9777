/*
 * symbolize.h: finish.h in a process of its own: debug information is untrusted input, and the user may stop it.
 */
#ifndef MEMPROF_SYMBOLIZE_H
#define MEMPROF_SYMBOLIZE_H

#include "../../common/error.h"
#include "finish.h"

/* Finishes the closed database at path. signal_fd: ^C there stops it; -1: none. Returns 0, -EINTR when it was stopped,
 * or -errno with err; the file is whole in each case. */
int symbolize_file(const char *path, const struct finish_options *options, int signal_fd, struct error *err);

#endif
