#include "cli.h"

#include "../common/units.h"
#include "../report/live/top.h"

#include <stdlib.h>
#include <string.h>

#define INTERVAL_LEAST_NS 100000000
#define INTERVAL_MOST_NS  3600000000000

static int parse(const struct arguments *a, struct top_options *o)
{
    int by = SITE_NAMES_BY_LINE, sort = RUNNING_SORT_ACTIVE;
    o->interval_ns = 1000000000;
    if (a->given[OPTION_interval] && (units_parse_ns(a->value[OPTION_interval], &o->interval_ns) ||
                                      o->interval_ns < INTERVAL_LEAST_NS || o->interval_ns > INTERVAL_MOST_NS))
        return cli_usage("top: --interval '%s': expected seconds from 0.1 to 3600, such as 2 or 500ms",
                         a->value[OPTION_interval]);
    if (options_choose(a, OPTION_live_by, &by) || options_choose(a, OPTION_live_sort, &sort) ||
        options_number(a, OPTION_live_top, 0, INT32_MAX, o->out.format == REPORT_TEXT ? 20 : 0, &o->rows))
        return EXIT_USAGE;
    if (a->given[OPTION_json] && !a->given[OPTION_once])
        return cli_usage("top: --json goes with --once");
    o->view = (struct running_view){
        .by = (enum site_names_by)by, .sort = (enum running_sort)sort, .device = a->value[OPTION_device]};
    o->is_once = a->given[OPTION_once];
    return 0;
}

int cmd_top(const struct arguments *a)
{
    struct top_options options = {0};
    struct error err = {""};
    char *file = NULL;
    int status = cli_output(a, &options.out);
    if (status == 0)
        status = parse(a, &options);
    if (status == 0)
        status = cli_running_names(a, &options.open);
    if (status == 0)
        status = cli_running(a, &file);
    options.file = file;
    if (status == 0 && top_run(&options, &err))
        status = cli_fail(&err);
    free(file);
    return cli_close_output(status);
}
