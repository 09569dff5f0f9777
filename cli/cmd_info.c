#include "cli.h"

#include "../report/text/info.h"

int cmd_info(const struct arguments *a)
{
    struct report_out out;
    struct error err = {""};
    sqlite3 *db = NULL;
    const char *path = cli_file(a);
    int status = path ? cli_output(a, &out) : EXIT_USAGE;
    if (status)
        return status;
    int rc = reader_open_still(path, &db, &err);
    if (rc == 0)
        rc = info_report(db, path, &out, &err);
    sqlite3_close(db);
    return cli_close_output(rc ? cli_fail(&err) : EXIT_OK);
}
