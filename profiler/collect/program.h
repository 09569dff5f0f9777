/*
 * program.h: finding the program to run, and whether the library can be loaded into it.
 */
#ifndef MEMPROF_PROGRAM_H
#define MEMPROF_PROGRAM_H

#include "../../common/error.h"

#include <limits.h>

/* As a shell does: PATH unless the name has a slash. Returns 0 and path, -ENOENT or -EACCES with err. */
int program_find(const char *name, char path[PATH_MAX], struct error *err);

enum program_check {
    PROGRAM_OK,       /* nothing known against it */
    PROGRAM_NOTED,    /* recordable, but err says what will not be seen */
    PROGRAM_UNUSABLE, /* err says why nothing could be recorded */
};
/* Scripts are checked by their interpreter. */
enum program_check program_check(const char *path, struct error *err);
/* The same of a program that somebody else runs: whether nothing could be recorded of it, and why, without its path. */
int program_is_unusable(const char *path, struct error *why);

#endif
