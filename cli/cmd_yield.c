/* A program gives its GPUs back, and gets them again: yield, restore, state. */
#include "cli.h"

#include "../common/units.h"
#include "../profiler/outside/yield.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TIMEOUT_NS       10000000000
#define TIMEOUT_LEAST_NS 1000000
#define TIMEOUT_MOST_NS  86400000000000

/* --- arguments --- */

static int parse_pid(const char *command, const char *text, int *pid)
{
    const size_t length = strspn(text, "0123456789");
    *pid = length && !text[length] && length < 10 ? atoi(text) : 0;
    return *pid > 0 ? 0 : cli_usage("%s: '%s': expected the PID of a process", command, text);
}

static int parse(const struct arguments *a, struct yield_options *o)
{
    const char *command = command_infos[a->command].name;
    *o = (struct yield_options){.timeout_ns = TIMEOUT_NS, .is_forced = a->given[OPTION_force]};
    if (a->rest_count != 1)
        return cli_usage("%s: expected: memprof %s PID", command, command);
    if (a->given[OPTION_timeout] && (units_parse_ns(a->value[OPTION_timeout], &o->timeout_ns) ||
                                     o->timeout_ns < TIMEOUT_LEAST_NS || o->timeout_ns > TIMEOUT_MOST_NS))
        return cli_usage("%s: --timeout '%s': expected a time from 1ms to 86400s, such as 10s", command,
                         a->value[OPTION_timeout]);
    o->what = a->rest[0];
    return parse_pid(command, a->rest[0], &o->pid);
}

/* --- signals: a step is not left half done --- */

static sigset_t ending_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    return set;
}

static void hold_signals(void)
{
    sigset_t set = ending_signals();
    sigprocmask(SIG_BLOCK, &set, NULL);
}

/* Waits for one, for a second at most. */
static int has_signal(void)
{
    sigset_t set = ending_signals();
    return sigtimedwait(&set, NULL, &(struct timespec){1, 0}) > 0;
}

static int goes_on_waiting(void *arg, const char *lacking)
{
    int *is_told = arg;
    if (!*is_told)
        cli_note("%s; waiting for them", lacking);
    *is_told = 1;
    return !has_signal();
}

/* --- what is said --- */

static void print_notes(const char *what, struct yield_result *r)
{
    char *rest = NULL, *notes = buf_take(&r->notes);
    for (char *line = notes ? strtok_r(notes, "\n", &rest) : NULL; line; line = strtok_r(NULL, "\n", &rest))
        cli_note("%s: %s", what, line);
    free(notes);
}

/* What came of it: the status. already: what to say where there was nothing to do. */
static int tell(const struct yield_options *o, struct yield_result *r, int rc, const struct error *err,
                void (*print)(const char *what, const struct yield_result *r), const char *already)
{
    int status = rc ? cli_fail(err) : EXIT_OK;
    print_notes(o->what, r);
    if (status == EXIT_OK && r->is_already)
        cli_note("%s: %s", o->what, already);
    else if (status == EXIT_OK)
        print(o->what, r);
    return status;
}

static void print_given(const struct yield_gpu *gpu, int is_recorded)
{
    char given[UNITS_TEXT], blocks[UNITS_TEXT], rest[UNITS_TEXT];
    units_bytes(blocks, (int64_t)gpu->reserved_bytes);
    if (!gpu->is_known) {
        printf("%s: %s of blocks given back, and what the context had, which NVML does not say", gpu->name, blocks);
        return;
    }
    printf("%s: %s given back", gpu->name, units_bytes(given, (int64_t)gpu->given_bytes));
    if (is_recorded && gpu->given_bytes >= gpu->reserved_bytes)
        printf(" (%s of blocks, %s of the context)", blocks,
               units_bytes(rest, (int64_t)(gpu->given_bytes - gpu->reserved_bytes)));
}

static void print_yield(const char *what, const struct yield_result *r)
{
    char took[UNITS_TEXT];
    units_ns(took, r->took_ns);
    for (uint32_t i = 0; i < r->gpu_count; i++) {
        print_given(&r->gpu[i], r->is_recorded);
        printf(" in %s\n", took);
    }
    printf("%s: %s; 'memprof restore %s' brings it back\n", what,
           r->gpu_count ? "now in its host memory" : "its calls wait", what);
}

static void print_restore(const char *what, const struct yield_result *r)
{
    char took[UNITS_TEXT], bytes[UNITS_TEXT];
    units_ns(took, r->took_ns);
    for (uint32_t i = 0; i < r->gpu_count; i++)
        if (r->gpu[i].is_known)
            printf("%s: %s taken again\n", r->gpu[i].name, units_bytes(bytes, (int64_t)r->gpu[i].given_bytes));
    printf("%s: runs on, after %s\n", what, took);
}

static void print_state(const char *what, const struct yield_result *r)
{
    char bytes[UNITS_TEXT];
    printf("%s: %s\n", what, yield_state_text(r->state));
    for (uint32_t i = 0; i < r->gpu_count; i++) {
        const struct yield_gpu *gpu = &r->gpu[i];
        if (gpu->is_known)
            printf("%s: %s to be taken again\n", gpu->name, units_bytes(bytes, (int64_t)gpu->given_bytes));
        if (gpu->reserved_bytes)
            printf("%s: %s of blocks\n", gpu->name, units_bytes(bytes, (int64_t)gpu->reserved_bytes));
        if (gpu->managed_bytes)
            printf("%s: %s managed, which cannot be given back\n", gpu->name,
                   units_bytes(bytes, (int64_t)gpu->managed_bytes));
        if (gpu->foreign_bytes)
            printf("%s: %s of other processes, which cannot be given back\n", gpu->name,
                   units_bytes(bytes, (int64_t)gpu->foreign_bytes));
    }
}

/* --- commands --- */

static int restore(struct yield_options *o)
{
    int is_told = 0;
    struct yield_result r;
    struct error err = {""};
    o->arg = &is_told;
    int rc = yield_restore(o, &r, &err);
    return tell(o, &r, rc, &err, print_restore, "it was not given back");
}

int cmd_yield(const struct arguments *a)
{
    struct yield_options o;
    struct yield_result r;
    struct error err = {""};
    int status = parse(a, &o);
    if (status)
        return status;
    hold_signals();
    int rc = yield_give(&o, &r, &err);
    status = tell(&o, &r, rc, &err, print_yield, "it was given back already");
    if (status == EXIT_OK && a->given[OPTION_yield_wait]) {
        fflush(stdout);
        while (yield_goes_on(o.pid) && !has_signal())
            ;
        o.wait_for_room = goes_on_waiting;
        if (yield_goes_on(o.pid))
            status = restore(&o);
        else
            cli_note("%s: it has ended", o.what);
    }
    return cli_close_output(status);
}

int cmd_restore(const struct arguments *a)
{
    struct yield_options o;
    int status = parse(a, &o);
    if (status)
        return status;
    hold_signals();
    if (a->given[OPTION_restore_wait])
        o.wait_for_room = goes_on_waiting;
    return cli_close_output(restore(&o));
}

int cmd_state(const struct arguments *a)
{
    struct yield_options o;
    struct yield_result r;
    struct error err = {""};
    int status = parse(a, &o);
    if (status)
        return status;
    int rc = yield_ask(&o, &r, &err);
    return cli_close_output(tell(&o, &r, rc, &err, print_state, "")); /* is_already is never said here */
}
