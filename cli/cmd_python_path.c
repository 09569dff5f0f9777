#include "cli.h"

#include <stdlib.h>

int cmd_python_path(const struct arguments *a)
{
    struct error err = {""};
    if (a->rest_count)
        return cli_usage("python-path: '%s': it takes no arguments", a->rest[0]);
    char *directory = cli_python_path(&err);
    if (!directory)
        return cli_fail(&err);
    puts(directory);
    free(directory);
    return cli_close_output(EXIT_OK);
}
