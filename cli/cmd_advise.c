#include "cli.h"

#include "../report/query/estimate.h"
#include "../report/text/advise.h"

#include <errno.h>
#include <unistd.h>

int cmd_advise(const struct arguments *a)
{
    struct advise_options options = {.device = a->value[OPTION_device],
                                     .progress = isatty(STDERR_FILENO) ? cli_show_progress : NULL};
    struct lens_options lens;
    struct report_out out;
    struct error err = {""};
    sqlite3 *db = NULL;
    options.file = cli_file(a);
    int status = options.file ? cli_output(a, &out) : EXIT_USAGE;
    if (status == 0)
        status = cli_lens(a, &lens);
    if (status)
        return status;
    if (options_number(a, OPTION_advise_top, 0, INT32_MAX, -1, &options.top))
        return EXIT_USAGE;
    int rc = reader_open_still(options.file, &db, &err);
    if (rc == 0)
        rc = estimate_refuse(db, options.file, "advise looks at each of them", &err);
    if (rc == 0)
        rc = lens_apply(db, &lens, &err);
    if (rc == 0)
        rc = advise_report(db, &options, &out, &err);
    sqlite3_close(db);
    if (rc)
        status = rc == -EINVAL && db ? cli_usage("%s", err.text) : cli_fail(&err);
    return cli_close_output(status);
}
