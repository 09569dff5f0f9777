#include "cli.h"

#include "../report/query/stat.h"

#include <string.h>

static int is_begun(int stat, const char *text)
{
    size_t length = strlen(text);
    return strncmp(stat_infos[stat].name, text, length) == 0 && stat_infos[stat].name[length] == '.';
}

/* Statistics whose first word it is: "end.bytes or end.count"; 0: none. */
static int list_begun(const char *text, struct buf *out)
{
    int count = 0, listed = 0;
    for (int i = 0; i < STAT_SHOWN_COUNT; i++)
        count += is_begun(i, text);
    for (int i = 0; i < STAT_SHOWN_COUNT; i++)
        if (is_begun(i, text))
            buf_printf(out, "%s%s", listed++ == 0 ? "" : listed == count ? " or " : ", ", stat_infos[i].name);
    return count;
}

int cli_sort(const char *command, const char *text, int *stat)
{
    *stat = stat_find(text, strlen(text));
    if (*stat >= 0)
        return 0;
    struct buf names = BUF(4096);
    int status = list_begun(text, &names)
                     ? cli_usage("%s: --sort '%s': %s?", command, text, buf_text(&names))
                     : cli_usage("%s: --sort '%s': no such statistic; 'memprof %s --sort help' lists them", command,
                                 text, command);
    buf_free(&names);
    return status;
}
