#include "cli.h"

#include "../report/query/stat.h"
#include "../report/query/stat_near.h"
#include "../report/text/row_columns.h"

#include <string.h>

static int find(const char *command, const char *option, const char *text, int *stat)
{
    *stat = stat_find(text, strlen(text));
    if (*stat >= STAT_SHOWN_COUNT)
        return cli_usage("%s: --%s '%s': a column of 'memprof lines' alone", command, option, text);
    if (*stat >= 0)
        return 0;
    struct buf names = BUF(4096);
    int status = stat_list_near(text, STAT_SHOWN_COUNT, &names)
                     ? cli_usage("%s: --%s '%s': did you mean %s?", command, option, text, buf_text(&names))
                     : cli_usage("%s: --%s '%s': no such statistic; 'memprof %s --%s help' lists them", command, option,
                                 text, command, option);
    buf_free(&names);
    return status;
}

int cli_sort(const char *command, const char *text, int *stat)
{
    return find(command, "sort", text, stat);
}

int cli_stat(const struct arguments *a, int *stat)
{
    return a->given[OPTION_stat] ? find(command_infos[a->command].name, "stat", a->value[OPTION_stat], stat) : 0;
}

int cli_stat_help(const struct arguments *a, const struct report_out *out)
{
    static const enum option_id options[] = {OPTION_sort, OPTION_stat};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (a->given[options[i]] && strcmp(a->value[options[i]], "help") == 0) {
            stat_list(out, STAT_SHOWN_COUNT);
            return 1;
        }
    return 0;
}
