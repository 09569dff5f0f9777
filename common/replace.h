/*
 * replace.h: an output file that is replaced whole or not at all: it is written beside its place and renamed. A link is
 * followed; what is no regular file (a pipe, a terminal, a device) is written to as it is, and never replaced.
 */
#ifndef MEMPROF_REPLACE_H
#define MEMPROF_REPLACE_H

#include "error.h"

#include <stdio.h>

struct replace {
    FILE *out;
    char *path;      /* what is replaced, links followed */
    char *temporary; /* NULL: the place itself is written to */
    int is_named;    /* temporary exists */
};

/* 0, or -errno with err, which names the path. */
int replace_open(struct replace *r, const char *path, struct error *err);
/* Closes it. rc: what its writing gave; the place is left as it was unless that is 0. Returns rc, or -errno with err.
 */
int replace_close(struct replace *r, int rc, struct error *err);

#endif
