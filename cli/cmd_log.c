#include "cli.h"

#include "../common/kind.h"
#include "../common/units.h"
#include "../report/live/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int parse(const struct arguments *a, struct log_options *o)
{
    o->device = a->value[OPTION_device];
    o->function = a->value[OPTION_log_func];
    o->follows = a->given[OPTION_follow];
    o->kind = -1;
    for (int i = 0; a->given[OPTION_kind] && i < KIND_COUNT && o->kind < 0; i++)
        if (!strcmp(kind_name((unsigned)i), a->value[OPTION_kind]))
            o->kind = i;
    if (a->given[OPTION_kind] && o->kind < 0)
        return cli_usage("log: --kind '%s': no such kind of memory; heap, map, device and pinned are some",
                         a->value[OPTION_kind]);
    if (a->given[OPTION_log_min_size] &&
        (units_parse_bytes(a->value[OPTION_log_min_size], &o->least_bytes) || o->least_bytes < 0))
        return cli_usage("log: --min-size '%s': expected bytes, such as 4096 or 1M", a->value[OPTION_log_min_size]);
    return options_number(a, OPTION_process, 1, INT32_MAX, 0, &o->pid);
}

int cmd_log(const struct arguments *a)
{
    struct log_options options = {0};
    struct error err = {""};
    int64_t damaged = 0;
    char *file = NULL;
    int status = cli_output(a, &options.out);
    if (a->given[OPTION_log_json])
        options.out.format = REPORT_JSON;
    if (status == 0)
        status = parse(a, &options);
    if (status == 0)
        status = cli_running_names(a, &options.open);
    if (status == 0)
        status = cli_running(a, &file);
    options.file = file;
    int rc = status ? 0 : log_run(&options, &damaged, &err);
    if (damaged)
        cli_note("%s: %lld damaged chunks of events were skipped", file, (long long)damaged);
    if (rc)
        status = rc == -ENODEV ? cli_usage("%s", err.text) : cli_fail(&err);
    free(file);
    return cli_close_output(status);
}
