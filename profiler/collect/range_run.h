/*
 * range_run.h: has Python, in a program that is about to be run, make ranges of functions: each call of them is an
 * execution of a range of their name, as if they called memprof.h. By a sitecustomize of ours (python_hook.h).
 */
#ifndef MEMPROF_RANGE_RUN_H
#define MEMPROF_RANGE_RUN_H

#include "../../common/error.h"

#define RANGE_RUN_MAX 64 /* functions */

struct range_run {
    char *directory; /* owned; NULL: not prepared */
    const char *const *functions;
    int count;
};

/* FUNC, FILE.py:FUNC or MODULE:FUNC. Changes our environment, which the program inherits; the functions are borrowed. 0
 * or -errno with err; -EINVAL: one that cannot be. */
int range_run_prepare(struct range_run *r, const char *const *functions, int count, struct error *err);
/* After the run: of each function that no process made a range of, why (borrowed for the call). */
void range_run_missing(const struct range_run *r, void (*tell)(const char *function, const char *why));
/* Removes the directory. */
void range_run_close(struct range_run *r);

#endif
