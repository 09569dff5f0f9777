/* A process that runs already: recorded from now on, and let go again. */
#include "cli.h"

#include "../common/monotonic.h"
#include "../profiler/attach/attach.h"
#include "../profiler/collect/collect.h"
#include "../profiler/outside/outside.h"
#include "../profiler/wire.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DETACH_NS 20000000000ull /* until the recording has let go: its helper has 10 s for a safe place */
#define LOOK_NS   10000000

static int parse_pid(const struct arguments *a, int *pid)
{
    char *end;
    const char *command = command_infos[a->command].name;
    if (a->rest_count != 1)
        return cli_usage("%s: expected: memprof %s PID", command, command);
    errno = 0;
    long number = strtol(a->rest[0], &end, 10);
    if (errno || *end || end == a->rest[0] || number <= 0 || number > INT32_MAX)
        return cli_usage("%s: '%s': expected the PID of a process", command, a->rest[0]);
    *pid = (int)number;
    return 0;
}

static int attach(const struct collect_options *options, const char *what, int pid)
{
    struct collect_result result = {0};
    struct outside *o = NULL;
    struct error err = {""};
    if (outside_open(what, &o, &err) == 0) {
        error_set(&err, EBUSY, "%s: PID %d records it already; 'memprof report' shows its file while it goes on", what,
                  outside_collector(o));
        outside_close(o);
        return cli_fail(&err);
    }
    int rc = collect_attach(options, pid, &result, &err);
    free(result.output);
    return rc ? cli_fail_output(rc, &err) : result.status;
}

int cmd_attach(const struct arguments *a)
{
    struct error err = {""};
    int pid;
    int64_t depth, max_events;
    if (parse_pid(a, &pid) || options_number(a, OPTION_depth, 1, WIRE_STACK_MAX, 512, &depth) ||
        options_number(a, OPTION_max_events, 1, INT64_MAX, 0, &max_events))
        return EXIT_USAGE;
    if (a->given[OPTION_aggregate] && max_events)
        return cli_usage("attach: --aggregate keeps no events and --max-events keeps the last ones; give one of them");
    char *output = output_name(a->given[OPTION_output] ? a->value[OPTION_output] : "out.db", &err);
    if (!output)
        return cli_fail(&err), EXIT_USAGE;
    char *library = cli_library(&err), *text = cli_options_text(a);
    struct collect_options options = {
        .output = output,
        .library = library,
        .options_text = text,
        .aggregate = a->given[OPTION_aggregate],
        .max_events = (uint64_t)max_events,
        .depth = (unsigned)depth,
        .with_source = a->given[OPTION_source],
        .heap_sample = 1, /* its looks are also those for libraries that were loaded since */
        .symbolize = !a->given[OPTION_no_symbols],
        .quiet = a->given[OPTION_quiet],
        .is_attached = 1,
    };
    int status = library ? attach(&options, a->rest[0], pid) : cli_fail(&err);
    free(output);
    free(library);
    free(text);
    return status;
}

/* --- detach --- */

/* Its collector is gone: the slots are put back from here. */
static int detach_alone(int pid)
{
    struct attach_work work;
    struct error err = {""};
    int rc = attach_end_start(&work, pid, &err);
    if (rc == 0)
        attach_end_done(&work, 1, &rc, &err);
    return rc ? cli_fail(&err) : EXIT_OK;
}

/* The collector does it, and ends its file. */
static int detach_by(const struct outside *o, const char *what)
{
    struct error err;
    const uint64_t begin_ns = monotonic_ns();
    if (!outside_is_attached(o))
        return error_set(&err, EINVAL,
                         "%s: 'memprof run' records it to its end; only what 'memprof attach' records can "
                         "be let go",
                         what),
               cli_fail(&err);
    kill(outside_collector(o), SIGTERM);
    while (outside_is_recording(o)) {
        if (monotonic_ns() - begin_ns > DETACH_NS)
            return error_set(&err, ETIMEDOUT,
                             "%s: its collector (PID %d) does not answer; if it is stopped, 'kill -CONT %d'", what,
                             outside_collector(o), outside_collector(o)),
                   cli_fail(&err);
        nanosleep(&(struct timespec){0, LOOK_NS}, NULL);
    }
    return EXIT_OK;
}

int cmd_detach(const struct arguments *a)
{
    struct outside *o = NULL;
    struct error err;
    int pid = 0;
    const char *what = a->rest_count == 1 ? a->rest[0] : "";
    if (!*what)
        return cli_usage("detach: expected: memprof detach PID|FILE");
    const int is_pid = !what[strspn(what, "0123456789")];
    if (is_pid && parse_pid(a, &pid))
        return EXIT_USAGE;
    if (outside_open(what, &o, &err))
        return is_pid ? detach_alone(pid) : cli_fail(&err);
    int status = detach_by(o, what);
    outside_close(o);
    return status;
}
