/*
 * recordings.h: several recordings that one command reads: names and patterns become a list, whose order says nothing
 * about the arguments, and each file is open only while it is looked at. What cannot be read, or not to its end, stays
 * in the list with the reason.
 */
#ifndef MEMPROF_RECORDINGS_H
#define MEMPROF_RECORDINGS_H

#include "../../common/error.h"

#include <sqlite3.h>
#include <stdint.h>

enum { RECORDINGS_MAX = 100000 };

struct recording { /* strings are the list's; NULL: unknown */
    char *path;    /* as it was named, or as a pattern found it */
    int is_read;   /* it was opened: what follows is known, as far as the file has it */
    char *problem; /* why it could not be opened, or not be read to its end; NULL: nothing was in the way */
    int number;    /* its place before recordings_sort */
    int64_t rank;  /* -1: unknown */
    char *host, *boot_id, *command, *events_kept;
    int64_t start_unix_ns;      /* 0: unknown */
    int64_t start_monotonic_ns; /* the same instant on the machine's own clock (boot_id says which); 0: unknown */
    int64_t duration_ns;        /* as far as it goes */
};

struct recordings {
    struct recording *recording;
    int count, capacity;
    int repeated_count; /* files that were named more than once: they are in the list once */
};

/* Whether a word names several files: none has that very name, and there is a *, ? or [ in it. */
int recordings_is_pattern(const char *word);

/* The files of words, patterns expanded; sorted by name, numbers within names by value ("run.2.db" before "run.10.db").
 * A pattern without a match stays in the list, with that as its problem. 0, or -E2BIG with err. recordings_free in all
 * cases. */
int recordings_find(const char *const *words, int count, struct recordings *list, struct error *err);
void recordings_free(struct recordings *list);

/* How a file is opened: cli's reader_open and its sisters. 0; 1 with err, where only a part of it can be read; -errno
 * with err. */
typedef int recordings_open(const char *path, sqlite3 **db, struct error *err);
/* What is done with one that is open. Where it returns -errno with err, the recording gets that as its problem, and the
 * next one follows: nothing that was taken of it so far is taken back. */
typedef int recordings_take(void *arg, struct recording *recording, int index, sqlite3 *db, struct error *err);
/* Opens one after the other, in the list's order, and fills in what struct recording has. Those with a problem from a
 * call before are left out where they could not even be opened. Returns how many could be opened. */
int recordings_each(struct recordings *list, recordings_open *open, recordings_take *take, void *arg);
/* The same of one of them: whether it could be opened. */
int recordings_one(struct recordings *list, int index, recordings_open *open, recordings_take *take, void *arg);

/* Once they were looked at: by rank, those without one last; then by name. */
void recordings_sort(struct recordings *list);

/* "damaged: ...": its problem without the name in front, which many messages begin with. */
const char *recordings_reason(const struct recording *recording);
/* "run.3.db: damaged: ...": with the name, once. The caller frees it. */
char *recordings_problem(const struct recording *recording);

#endif
