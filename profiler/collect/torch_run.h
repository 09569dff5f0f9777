/*
 * torch_run.h: has PyTorch, in a program that is about to be run, record its own history of its CUDA memory, or say
 * what its tensors are called: a directory with a sitecustomize of ours, which Python finds through PYTHONPATH, and
 * where it leaves snapshots and problems.
 */
#ifndef MEMPROF_TORCH_RUN_H
#define MEMPROF_TORCH_RUN_H

#include "../../common/error.h"

struct torch_run {
    char *directory; /* owned; NULL: not prepared */
};

/* Changes our environment, which the program inherits. 0 or -errno with err. */
int torch_run_prepare(struct torch_run *t, struct error *err);
/* The same for a hook that tells memprof what modules call their tensors (docs/pytorch.md). */
int torch_run_prepare_names(struct torch_run *t, struct error *err);
/* After a run with that: why nothing was named, where that is so. */
void torch_run_unnamed(const struct torch_run *t, void (*tell)(const char *why));
/* After the run, for each process that left something: its snapshot (path), or why there is none (problem); the other
 * is NULL. The strings are borrowed. */
void torch_run_each(const struct torch_run *t,
                    void (*visit)(void *context, long pid, const char *path, const char *problem), void *context);
/* Removes the directory. */
void torch_run_close(struct torch_run *t);

#endif
