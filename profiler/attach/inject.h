/*
 * inject.h: a call in a thread of another process, at a moment when that is safe. The process stays whole however this
 * one ends: no breakpoint is set, and what the thread runs (stub.h) puts everything back by itself.
 */
#ifndef MEMPROF_INJECT_H
#define MEMPROF_INJECT_H

#include "target.h"

struct inject_call {
    const char *library;  /* to be loaded; NULL: function is there already */
    const char *symbol;   /* the function of it that is called */
    uint64_t function;    /* its address, where library is NULL */
    const char *argument; /* its only one */
};

/* Returns 0 with what the function returned (an int) in *result, or -errno with one line in err. */
int inject(struct target *t, const struct inject_call *call, int *result, struct error *err);

#endif
