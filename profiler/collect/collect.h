/*
 * collect.h: `memprof run` and `memprof attach`: starts the program with the library preloaded, drains its rings,
 * writes the database.
 */
#ifndef MEMPROF_COLLECT_H
#define MEMPROF_COLLECT_H

#include "../../common/error.h"
#include "rotate.h"

#include <stdint.h>

struct collect_options {
    const char *output;       /* path of the database, patterns already replaced */
    const char *library;      /* absolute path of libmemprof.so */
    const char *options_text; /* for meta 'options' */
    const char *rank_name;    /* the environment variable that says which rank of a job this is; NULL: none does */
    int64_t rank;
    int follow; /* record children */
    int aggregate;
    uint64_t max_events; /* 0: all */
    unsigned depth;      /* frames of a stack, 1..WIRE_STACK_MAX */
    int heap_sample;     /* reserved bytes of the heap */
    int with_source;
    int symbolize;                         /* 0: leave that to the first report */
    int is_paused;                         /* from the beginning on */
    const char *policy_name, *policy_text; /* the file and what is in it, which was parsed already; NULL: none */
    int policy_has_orders;                 /* by which programs may be asked to do something */
    int is_attached;                       /* to a process that runs already (collect_attach) */
    int free_stacks;                       /* who frees, of a heap's blocks those that can hold so many: */
    uint64_t free_least_bytes;
    struct rotate_options rotate;
    uint64_t sample_bytes; /* mean between two sampled blocks of the heap; 0: all are recorded */
    uint64_t sample_seed;
    uint64_t least_bytes; /* smaller blocks of the heap are counted alone */
    int quiet;            /* no closing lines on stderr */
    int is_required;      /* a program that cannot be recorded is an error, not run without */
};

struct collect_result {
    int status;           /* what memprof exits with: the program's status, 128 + signal, 126/127 as shells do */
    uint64_t event_count; /* recorded */
    char *output; /* where, which may be beside what was asked for: NULL where nothing was; the caller's to free */
    int recorded; /* 0: nothing could be recorded (static binary, ...): the reason was printed, no file is left */
};

/* argv: the program, looked up in PATH. Returns 0 with result filled, or -errno with err when it could not start:
 * -EEXIST where something that is no recording has the output's name. */
int collect_run(const struct collect_options *options, char *const argv[], struct collect_result *result,
                struct error *err);

/* The same of a process that runs already: until it ends, or a signal asks this one to end; then the process is as it
 * was before. -errno with err: it cannot be attached to, and nothing has changed. */
int collect_attach(const struct collect_options *options, int pid, struct collect_result *result, struct error *err);

#endif
