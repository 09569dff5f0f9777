/* What a collection is made of: opened before the program, joined as it starts, and closed. */
#include "collect_private.h"

#include "../account/account_figures.h"
#include "../account/names.h"
#include "facts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HEAP_SAMPLE_NS 10000000u

static void take_events(void *arg, const struct event *events, size_t count)
{
    struct collection *c = arg;
    desk_devices(c->desk);
    resident_events(c->resident, events, count);
}

static int take_name(void *arg, unsigned process_id, uint64_t time_ns, const struct name_said *said)
{
    const struct collection *c = arg;
    return account_name(c->account, process_id, time_ns, said);
}

static void take_sync(void *arg, const struct drain_sync *sync)
{
    const struct collection *c = arg;
    control_sync(c->control, sync->flags, sync->time_ns);
    desk_sync(c->desk, sync);
}

static void take_epoch(void *arg, uint64_t time_ns)
{
    const struct collection *c = arg;
    account_epoch(c->account, time_ns);
}

static int take_policy(void *arg, unsigned process_id, const char *text, size_t bytes)
{
    const struct collection *c = arg;
    return policies_set(c->policies, text, bytes, NULL, process_id);
}

int collect_open_parts(struct collection *c, struct error *err)
{
    const struct collect_options *o = c->options;
    int rc = launch_prepare(&c->launch, err);
    if (rc)
        return rc;
    rc = output_prepare(&c->output, o->output, err);
    if (rc)
        return rc;
    rc = store_create(c->output.path, &c->store, err);
    if (rc) {
        output_remove(&c->output, 1);
        return rc;
    }
    output_claim(&c->output);
    if (c->output.is_other)
        fprintf(stderr, "memprof: %s is being written by another memprof; recording into %s\n", o->output,
                c->output.path);
    clock_calibrate(&c->clock);
    struct session_options session = {
        .library = o->library,
        .depth = o->depth,
        .follow = o->follow,
        .use_tsc = c->clock.use_tsc,
        .is_paused = o->is_paused,
        .has_orders = o->policy_has_orders,
        .free_stacks = o->free_stacks,
        .free_least_bytes = o->free_least_bytes,
        .sample_bytes = o->sample_bytes,
        .least_bytes = o->least_bytes,
        .sample_seed = o->sample_seed,
        .is_attached = o->is_attached,
        .sample_interval = o->heap_sample ? clock_ticks(&c->clock, HEAP_SAMPLE_NS) : 0,
    };
    rc = session_open(&c->session, &session, err);
    if (rc == 0) {
        c->stacks = stacks_open(c->store);
        struct account_options account = {
            .aggregate = o->aggregate, .max_events = o->max_events, .sample_bytes = o->sample_bytes};
        c->account = account_open(c->store, &account);
    }
    return rc;
}

int collect_start_program(struct collection *c, const char *path, struct error *err)
{
    clock_restart(&c->clock); /* what memprof itself did before is no part of the run */
    c->pid = launch_start(&c->launch, path, c->argv, c->options->library, c->session.control->session_path, err);
    if (c->pid < 0)
        return c->pid;
    return collect_join_program(c, err);
}

int collect_join_program(struct collection *c, struct error *err)
{
    c->pidfd = (int)syscall(SYS_pidfd_open, c->pid, 0);
    /* a signal for us is the program's where we have started it */
    int first_pidfd = c->options->is_attached ? -1 : c->pidfd;
    int rc = watch_start(&c->watch, &c->session, &c->clock, c->launch.signal_fd, c->pid, first_pidfd, err);
    if (rc)
        return rc;
    watch_first(c->watch, c->pidfd);
    /* the default slack would make each nap of 50 us one of 100 */
    prctl(PR_SET_TIMERSLACK, 1000ul, 0ul, 0ul, 0ul);
    processes_open(&c->processes, &c->session, c->store, &c->clock, c->watch, c->stacks, c->pid);
    c->processes.first_before_bytes = c->launch.before_bytes;
    struct drain_sink sink = {take_events, c, take_name, take_sync, take_epoch, take_policy};
    c->drain = drain_open(&c->session, c->store, &c->clock, &c->processes, sink);
    if (c->options->free_stacks)
        drain_free_stacks(c->drain);
    c->desk = desk_open(&c->session, c->account, drain_state(c->drain).devices);
    c->control = control_open(&c->session, c->drain, c->account, &c->processes, &c->clock, c->options->is_paused);
    c->policies =
        policies_open(&c->session, c->drain, c->account, &c->processes, c->store, &c->clock, c->options->quiet);
    if (c->options->policy_text)
        policies_set(c->policies, c->options->policy_text, strlen(c->options->policy_text), c->options->policy_name, 0);
    c->rotation = rotate_open(c->output.path, &c->options->rotate, c->store, c->account, c->drain);
    control_rotates(c->control, c->rotation);
    c->resident = resident_open(c->options->follow, c->store, c->account, c->drain, &c->processes, &c->clock);
    facts_begin(c->store, c->options, c->argv, &c->clock);
    store_commit(c->store);
    return 0;
}

void collect_close_parts(struct collection *c)
{
    out_of_memory_then(NULL, NULL);
    free(c->spare);
    c->spare = NULL;
    watch_stop(c->watch);
    nvml_stop(c->nvml);
    c->nvml = NULL;
    rotate_close(c->rotation);
    c->rotation = NULL;
    resident_close(c->resident);
    c->resident = NULL;
    if (c->drain) {
        drain_close(c->drain);
        processes_close(&c->processes);
    }
    policies_close(c->policies);
    control_close(c->control);
    desk_close(c->desk);
    account_close(c->account);
    stacks_close(c->stacks);
    session_close(&c->session);
    if (c->pidfd >= 0)
        close(c->pidfd);
    c->watch = NULL;
    c->drain = NULL;
    c->desk = NULL;
    c->control = NULL;
    c->policies = NULL;
    c->account = NULL;
    c->stacks = NULL;
    c->pidfd = -1;
}
