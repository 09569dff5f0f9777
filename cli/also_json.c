/* --also-json FILE: the same report as JSON, from the same look at a recording, which may go on meanwhile. */
#include "cli.h"

#include "../common/db.h"

#include <errno.h>
#include <string.h>

int cli_also_open(const struct arguments *a, const char *recording, const struct report_out *out,
                  struct report_out *also, struct error *err)
{
    const char *path = a->value[OPTION_also_json];
    *also = (struct report_out){.file = NULL};
    if (!a->given[OPTION_also_json])
        return 0;
    if (db_same_file(recording, path))
        return error_set(err, EINVAL, "--also-json %s: is the recording itself; give another name", path);
    *also = *out;
    also->format = REPORT_JSON;
    also->width = also->color = 0;
    also->file = fopen(path, "we");
    return also->file ? 0 : error_set(err, errno, "%s: %s", path, strerror(errno));
}

/* Tables of a report's own would stand in the way of the second time. */
int cli_also_first(sqlite3 *db, const struct report_out *also, struct error *err)
{
    return also->file ? db_exec(db, "SAVEPOINT also", err) : 0;
}

int cli_also_second(sqlite3 *db, struct error *err)
{
    return db_exec(db, "ROLLBACK TO also; RELEASE also", err);
}

int cli_also_close(struct report_out *also, const struct arguments *a, int rc, struct error *err)
{
    if (!also->file)
        return rc;
    int is_bad = fflush(also->file) || ferror(also->file);
    is_bad |= fclose(also->file) != 0;
    also->file = NULL;
    return rc       ? rc
           : is_bad ? error_set(err, errno ? errno : EIO, "%s: %s", a->value[OPTION_also_json],
                                strerror(errno ? errno : EIO))
                    : 0;
}
