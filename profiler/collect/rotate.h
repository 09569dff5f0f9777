/*
 * rotate.h: a recording that goes on for long, in parts: what was recorded up to now is copied into a file of its own,
 * whole, and leaves the running file, whose accounts begin anew with what is live as inherited. The collector's thread
 * calls it; a second thread copies, from what the file was at that instant.
 */
#ifndef MEMPROF_ROTATE_H
#define MEMPROF_ROTATE_H

#include "../../common/error.h"

#include <stdint.h>

struct account;
struct drain;
struct store;
struct rotation;

struct rotate_options {
    int64_t every_ns;    /* 0: not by time */
    int64_t every_bytes; /* 0: not by size: so much more in the file than after the last time */
    int64_t keep;        /* files of this run; older ones go. 0: all stay */
};

/* path: of the running file. All is borrowed. */
struct rotation *rotate_open(const char *path, const struct rotate_options *options, struct store *store,
                             struct account *account, struct drain *drain);
/* Waits for what is being copied. */
void rotate_close(struct rotation *r);

/* Whether it is time, by the options; time_ns: of the recording. */
int rotate_is_due(const struct rotation *r, int64_t time_ns);
/* Somebody wants it: now, or as soon as the copy under way is done. */
void rotate_ask(struct rotation *r);
/* Ends the part: its last chunk, and the mark that it was. To be committed before rotate_begin. Returns 0 where there
 * is no room for a copy: then nothing has changed. */
int rotate_prepare(struct rotation *r, int64_t time_ns);
/* What is committed is a part: the accounts begin anew. To be committed before rotate_copy. */
void rotate_begin(struct rotation *r, int64_t time_ns);
/* Begins to copy the part. */
void rotate_copy(struct rotation *r);
/* When a copy is done, what it has leaves the running file. waits: until it is done. Returns 1 where that changed
 * something. */
int rotate_settle(struct rotation *r, int waits);
/* The recording ends: so does its last part. */
void rotate_end(struct rotation *r, int64_t end_ns);

#endif
