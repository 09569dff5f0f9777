/*
 * collect_private.h: a collection, shared by collect.c (how it goes from the program's start to the file's end) and
 * collect_parts.c (what it is made of).
 */
#ifndef MEMPROF_COLLECT_PRIVATE_H
#define MEMPROF_COLLECT_PRIVATE_H

#include "../account/account.h"
#include "../attach/attach.h"
#include "../store/output.h"
#include "collect.h"
#include "control.h"
#include "desk.h"
#include "drain.h"
#include "launch.h"
#include "nvml.h"
#include "policy.h"
#include "resident.h"
#include "rotate.h"

struct collection {
    const struct collect_options *options;
    char *const *argv;
    struct clock clock;
    struct launch_state launch;
    struct output output;
    struct store *store;
    struct session session;
    struct stacks *stacks;
    struct processes processes;
    struct drain *drain;
    struct desk *desk;
    struct control *control;
    struct policies *policies;
    struct account *account;
    struct watch *watch;
    struct resident *resident;
    struct rotation *rotation;
    struct nvml *nvml;                 /* NULL: no device yet */
    uint64_t nvml_counts[DEVICE_ROWS]; /* of the samples that were taken up */
    pid_t pid;
    int pidfd;
    uint64_t commit_ns, commit_wait_ns, commit_cost_ns, sample_ns, idle_since_ns, nap_ns, first_end_ns, filling_ns;
    uint64_t uncommitted_words;
    uint64_t sampled_announced; /* ends */
    uint32_t sampled_total;
    unsigned stops_at_end;     /* signals that came before the program ended were its own */
    struct attach_work detach; /* of collect_attach */
    int is_detached, detach_rc;
    uint64_t joined_ns; /* when it was last looked whether the process is still the one that was attached to */
    int told_stragglers, told_failure;
    int kept;        /* something of the program was committed */
    void *spare;     /* memory for when there is none */
    int uncommitted; /* something new since the last commit */
};

/* collect_parts.c: 0 or -errno with err. What was opened until then is closed by collect_close_parts. */
int collect_open_parts(struct collection *c, struct error *err);
int collect_start_program(struct collection *c, const char *path, struct error *err);
/* Where the program was started: all that goes by it. */
int collect_join_program(struct collection *c, struct error *err);
/* collect.c: until it is over, and to the file's end. */
void collect_go_on(struct collection *c, struct collect_result *result);
/* Nothing of it is in the file, which goes. */
void collect_drop(struct collection *c, int undo);
/* collect_attach.c: whether the process is gone, or was let go because that was asked for. */
int collect_attach_is_over(struct collection *c);
/* All but the store and the output. May be called again. */
void collect_close_parts(struct collection *c);

#endif
