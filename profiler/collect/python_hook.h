/*
 * python_hook.h: has Python, in a program that is about to be run and in its children, execute a script of ours as it
 * starts: a directory with a sitecustomize, which Python finds through PYTHONPATH. It takes its directory out of
 * sys.path and runs the sitecustomize that would have been found without it. Several may be prepared.
 */
#ifndef MEMPROF_PYTHON_HOOK_H
#define MEMPROF_PYTHON_HOOK_H

#include "../../common/error.h"

#include <stddef.h>

struct python_part {
    const char *text;
    size_t length;
};

/* Changes our environment, which the program inherits: variable gets the directory, whose name has the word. The script
 * is its parts, one behind the other. *directory: the caller's, to be given to python_hook_close; NULL on failure. 0 or
 * -errno with err. */
int python_hook_prepare(const char *word, const struct python_part *parts, int count, const char *variable,
                        char **directory, struct error *err);
/* A path in it, to free. */
char *python_hook_path(const char *directory, const char *name);
/* The number in PREFIXnSUFFIX; 0: another name. */
long python_hook_number(const char *name, const char *prefix, const char *suffix);
/* Removes the directory, and frees its name; of NULL nothing. */
void python_hook_close(char *directory);

#endif
