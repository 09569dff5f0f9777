/*
 * input.h: what is read once, from its beginning to its end: a file, or a pipe, as a shell's <(command) is. A pipe to
 * which nobody writes would keep us waiting for ever, and is refused.
 */
#ifndef MEMPROF_INPUT_H
#define MEMPROF_INPUT_H

#include "error.h"

#include <stddef.h>
#include <sys/stat.h>

/* Opens it for reads that block. A descriptor and st, or -errno with err; directories and sockets are refused. */
int input_open(const char *path, struct stat *st, struct error *err);
/* All of a small one, with a NUL behind it that does not count; the caller frees it. 0, or -errno with err: -E2BIG
 * where it has more than limit bytes. Of what is no text, as it has a NUL, there may be more. */
int input_read(const char *path, size_t limit, char **text, size_t *length, struct error *err);

#endif
