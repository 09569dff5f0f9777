#include "cli.h"
#include "policy_file.h"

#include "../common/buf.h"
#include "../common/build.h"
#include "../common/units.h"
#include "../profiler/collect/collect.h"
#include "../profiler/collect/range_run.h"
#include "../profiler/collect/torch_run.h"
#include "../profiler/wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define FREE_LEAST_BYTES                                                                                               \
    4096 /* of --free-stacks without a number: few of a program's blocks, and most of its bytes                        \
          */

/* The loader's auditor for the program, in front of the user's own; it lies beside the library. */
static int set_auditor(const char *library, struct error *err)
{
    const char *users = getenv("LD_AUDIT");
    struct buf value = BUF(1 << 20);
    int length = (int)(strlen(library) - strlen(".so"));
    buf_printf(&value, "%.*s_audit.so", length, library);
    if (access(value.data, R_OK)) {
        int rc =
            error_set(err, ENOENT, "--deepbind, --cuda-delivery=audit: %s is not there; run 'make' or 'make install'",
                      value.data);
        buf_free(&value);
        return rc;
    }
    if (users && *users)
        buf_printf(&value, ":%s", users);
    setenv("LD_AUDIT", value.data, 1);
    buf_free(&value);
    return 0;
}

/* Last of all, so that no module of the program's own is hidden. */
static int add_python_path(struct error *err)
{
    const char *before = getenv("PYTHONPATH");
    char *directory = cli_python_path(err);
    struct buf path = BUF(1 << 20);
    if (!directory)
        return -ENOENT;
    buf_printf(&path, "%s%s%s", before ? before : "", before && *before ? ":" : "", directory);
    free(directory);
    int rc = path.failed || setenv("PYTHONPATH", path.data, 1) ? error_set(err, ENOMEM, "PYTHONPATH: too long") : 0;
    buf_free(&path);
    return rc;
}

static int wants_python(const struct arguments *a)
{
    const char *value = getenv("MEMPROF_PYTHON");
    return a->given[OPTION_python_module] || (value && strcmp(value, "1") == 0);
}

/* 0, or minus the exit status after a message. */
static int prepare_ranges(const struct arguments *a, const char *functions[RANGE_RUN_MAX], struct range_run *ranges)
{
    struct error err;
    int count = 0;
    for (int i = 0; i < a->use_count; i++) {
        if (a->use[i].id != OPTION_range)
            continue;
        if (count == RANGE_RUN_MAX)
            return -cli_usage("%s: more than %d --range", command_infos[a->command].name, RANGE_RUN_MAX);
        functions[count++] = a->use[i].value;
    }
    int rc = count ? range_run_prepare(ranges, functions, count, &err) : 0;
    return rc == -EINVAL ? -cli_usage("%s: %s", command_infos[a->command].name, err.text) : rc ? -cli_fail(&err) : 0;
}

static void tell_missing(const char *function, const char *why)
{
    cli_note("--range %s: not recorded: %s", function, why);
}

static void tell_unnamed(const char *why)
{
    cli_note("--torch-names: nothing was named: %s", why);
}

/* "90s", "1h", "2d", or else bytes. A number alone could be either. 0, or the exit status after a message. */
static int parse_rotate(const struct arguments *a, struct rotate_options *rotate)
{
    const char *text = a->value[OPTION_rotate];
    int64_t number = 0;
    if (options_number(a, OPTION_keep, 1, 1000000, 0, &rotate->keep))
        return EXIT_USAGE;
    if (rotate->keep && !text)
        return cli_usage("run: --keep belongs to --rotate");
    size_t length = text ? strlen(text) : 0;
    if (!text)
        return 0;
    int is_long = length && (text[length - 1] == 'h' || text[length - 1] == 'd');
    if (is_long) {
        char *end;
        number = strtol(text, &end, 10);
        if (end == text + length - 1 && number > 0 && number <= 100000)
            rotate->every_ns = number * (text[length - 1] == 'h' ? 3600 : 86400) * 1000000000;
    } else if (units_parse_bytes(text, &number) == 0 && length && strspn(text, "0123456789") < length) {
        rotate->every_bytes = number;
    } else if (length && strspn(text, "0123456789.") < length && units_parse_ns(text, &number) == 0) {
        rotate->every_ns = number;
    }
    if (rotate->every_ns < 0 || (rotate->every_ns == 0 && rotate->every_bytes <= 0))
        return cli_usage("run: --rotate '%s': expected a time, such as 90s or 1h, or bytes, such as 512M or 1G", text);
    return 0;
}

/* What is recorded of the heap's blocks. 0, or minus the exit status after a message. */
static int thinning(const struct arguments *a, struct collect_options *o)
{
    int64_t sample_bytes = 0, least_bytes = 0, seed = 0;
    const char *command = command_infos[a->command].name;
    if (a->given[OPTION_sample] && (units_parse_bytes(a->value[OPTION_sample], &sample_bytes) || sample_bytes < 1 ||
                                    sample_bytes > (int64_t)WIRE_SAMPLE_MOST))
        return -cli_usage("%s: --sample=%s: expected bytes from 1 to 4G, such as 512K", command,
                          a->value[OPTION_sample]);
    if (a->given[OPTION_least_size] &&
        (units_parse_bytes(a->value[OPTION_least_size], &least_bytes) || least_bytes < 0))
        return -cli_usage("%s: --min-size=%s: expected bytes, such as 1K", command, a->value[OPTION_least_size]);
    if (options_number(a, OPTION_sample_seed, 0, INT64_MAX, 0, &seed))
        return -EXIT_USAGE;
    if (a->given[OPTION_sample_seed] && !sample_bytes)
        return -cli_usage("%s: --sample-seed is of --sample BYTES", command);
    if (sample_bytes && a->given[OPTION_max_events])
        return -cli_usage("%s: --sample keeps no events and --max-events keeps the last ones; give one of them",
                          command);
    if ((sample_bytes || least_bytes) && a->given[OPTION_torch_snapshot])
        return -cli_usage("%s: --torch-snapshot compares all events; leave out --sample and --min-size", command);
    if ((sample_bytes || least_bytes) && a->given[OPTION_free_stacks])
        return -cli_usage("%s: --free-stacks tells of all blocks; leave out --sample and --min-size", command);
    if (sample_bytes && a->given[OPTION_rotate])
        return -cli_usage("%s: --sample keeps no events, of which --rotate makes files; give one of them", command);
    if (!a->given[OPTION_sample_seed] && getrandom(&seed, sizeof seed, 0) == sizeof seed)
        seed &= INT64_MAX;
    o->sample_bytes = (uint64_t)sample_bytes;
    o->sample_seed = (uint64_t)seed;
    o->least_bytes = (uint64_t)least_bytes;
    o->aggregate |= sample_bytes != 0;
    return 0;
}

int run_program(const struct arguments *a, char *const program[], struct collect_result *result)
{
    const char *command = command_infos[a->command].name;
    struct error err = {""};
    int64_t depth, max_events;
    struct collect_options thin = {.aggregate = a->given[OPTION_aggregate]};
    int thin_status = thinning(a, &thin);
    if (thin_status)
        return thin_status;
    if (options_number(a, OPTION_depth, 1, WIRE_STACK_MAX, 512, &depth) ||
        options_number(a, OPTION_max_events, 1, INT64_MAX, 0, &max_events))
        return -EXIT_USAGE;
    if (a->given[OPTION_aggregate] && max_events)
        return -cli_usage("%s: --aggregate keeps no events and --max-events keeps the last ones; give one of them",
                          command);
    struct rotate_options rotate = {0};
    if (parse_rotate(a, &rotate))
        return -EXIT_USAGE;
    int64_t free_least = FREE_LEAST_BYTES;
    const char *least = a->value[OPTION_free_stacks];
    if (least && (units_parse_bytes(least, &free_least) || free_least < 0))
        return -cli_usage("%s: --free-stacks='%s': expected bytes, such as 0 (all), 4096 or 1M", command, least);
    int audit = 0; /* the second of its words */
    if (options_choose(a, OPTION_cuda_delivery, &audit))
        return -EXIT_USAGE;
    if (a->given[OPTION_torch_snapshot] && (a->given[OPTION_aggregate] || max_events))
        return -cli_usage("%s: --torch-snapshot compares all events; leave out --aggregate and --max-events", command);
    if (audit && !build_has_cuda)
        return -cli_usage("%s: --cuda-delivery=audit: this build is without CUDA (make CUDA=0)", command);
    audit |= a->given[OPTION_deepbind];
    const char *pattern = a->given[OPTION_output] ? a->value[OPTION_output] : "out.db";
    char *policy = NULL;
    int has_orders = 0;
    if (a->given[OPTION_policy] && policy_file(a->value[OPTION_policy], &policy, &has_orders))
        return -EXIT_USAGE;
    char *output = output_name(pattern, &err), rank_name[OUTPUT_RANK_NAME];
    int64_t rank = 0;
    int has_rank = output_rank(pattern, rank_name, &rank);
    if (!output) {
        cli_fail(&err);
        free(policy);
        return -EXIT_USAGE;
    }
    if (a->given[OPTION_python_allocators])
        setenv("PYTHONMALLOC", "malloc", 1);
    const char *functions[RANGE_RUN_MAX];
    struct range_run ranges = {.directory = NULL};
    struct torch_run torch = {NULL}, names = {NULL};
    int status = -prepare_ranges(a, functions, &ranges);
    if (status == 0 && a->given[OPTION_torch_snapshot] && torch_run_prepare(&torch, &err))
        status = cli_fail(&err);
    if (status == 0 && a->given[OPTION_torch_names] && torch_run_prepare_names(&names, &err))
        status = cli_fail(&err);
    if (status == 0 && wants_python(a) && add_python_path(&err))
        status = cli_fail(&err);
    if (status) {
        range_run_close(&ranges);
        torch_run_close(&torch);
        torch_run_close(&names);
        free(output);
        free(policy);
        return -status;
    }
    char *library = cli_library(&err), *text = cli_options_text(a);
    struct collect_options options = {
        .output = output,
        .library = library,
        .options_text = text,
        .rank_name = has_rank ? rank_name : NULL,
        .rank = rank,
        .follow = !a->given[OPTION_no_follow],
        .aggregate = thin.aggregate,
        .sample_bytes = thin.sample_bytes,
        .sample_seed = thin.sample_seed,
        .least_bytes = thin.least_bytes,
        .max_events = (uint64_t)max_events,
        .depth = (unsigned)depth,
        .with_source = a->given[OPTION_source],
        .heap_sample = !a->given[OPTION_no_heap_sample],
        .symbolize = !a->given[OPTION_no_symbols],
        .is_paused = a->given[OPTION_paused],
        .policy_name = policy ? a->value[OPTION_policy] : NULL,
        .policy_text = policy,
        .policy_has_orders = has_orders,
        .free_stacks = a->given[OPTION_free_stacks],
        .free_least_bytes = (uint64_t)free_least,
        .rotate = rotate,
        .quiet = a->given[OPTION_quiet],
        .is_required = a->command == COMMAND_check,
    };
    int rc = !library || (audit && set_auditor(library, &err)) ? -ENOENT : collect_run(&options, program, result, &err);
    if (rc)
        status = -cli_fail_output(rc, &err);
    if (torch.directory && result->recorded)
        torch_check(&torch, result->output, a->given[OPTION_quiet]);
    if (ranges.directory && result->recorded)
        range_run_missing(&ranges, tell_missing);
    if (names.directory && result->recorded)
        torch_run_unnamed(&names, tell_unnamed);
    range_run_close(&ranges);
    torch_run_close(&torch);
    torch_run_close(&names);
    free(output);
    free(library);
    free(policy);
    free(text);
    return status;
}

int cmd_run(const struct arguments *a)
{
    struct collect_result result = {0};
    if (a->rest_count == 0)
        return cli_usage("run: no program given; expected: memprof run [OPTIONS] PROGRAM [ARG...]");
    int rc = run_program(a, a->rest, &result);
    free(result.output);
    return rc ? -rc : result.status;
}
