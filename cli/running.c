/* Which recording a command means that looks at one while it is made. */
#include "cli.h"

#include "../common/buf.h"
#include "../profiler/outside/outside.h"
#include "../profiler/outside/outside_find.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int in_directory(const char *file, const char *directory)
{
    size_t length = strlen(directory);
    return !strncmp(file, directory, length) && file[length] == '/' && !strchr(file + length + 1, '/');
}

/* The only one of this directory, or else the only one; NULL: none, or several. */
static const struct outside_found *choose(const struct outside_found *found, size_t count)
{
    const struct outside_found *here = NULL;
    char directory[PATH_MAX];
    size_t here_count = 0;
    if (!getcwd(directory, sizeof directory))
        *directory = 0;
    for (size_t i = 0; i < count; i++)
        if (in_directory(found[i].file, directory)) {
            here = &found[i];
            here_count++;
        }
    return here_count == 1 ? here : here_count == 0 && count == 1 ? found : NULL;
}

static int ask(const char *command, const struct outside_found *found, size_t count)
{
    struct buf list = BUF(1 << 16);
    for (size_t i = 0; i < count; i++)
        buf_printf(&list, "%s%d (%s)", i ? ", " : "", found[i].collector, found[i].file);
    int status =
        cli_usage("%s: %zu recordings are made now, say which by PID or FILE: %s", command, count, buf_text(&list));
    buf_free(&list);
    return status;
}

static int file_of_process(const char *command, const char *pid, char **file)
{
    struct outside *o;
    struct error err;
    if (outside_open(pid, &o, &err))
        return cli_fail(&err);
    *file = outside_file(outside_collector(o));
    outside_close(o);
    return *file ? 0 : cli_usage("%s: %s: its recording's file cannot be reached from here; name it", command, pid);
}

int cli_running(const struct arguments *a, char **file)
{
    const char *command = command_infos[a->command].name, *what = a->rest_count ? a->rest[0] : NULL;
    *file = NULL;
    if (a->rest_count > 1)
        return cli_usage("%s: one PID or FILE at a time, not also '%s'", command, a->rest[1]);
    if (what && *what && !what[strspn(what, "0123456789")])
        return file_of_process(command, what, file);
    if (what) {
        *file = xstrdup(what);
        return 0;
    }
    struct outside_found *found;
    size_t count = outside_find(&found);
    const struct outside_found *chosen = choose(found, count);
    int status = 0;
    if (chosen)
        *file = xstrdup(chosen->file);
    else if (count > 1)
        status = ask(command, found, count);
    else if (access("out.db", R_OK) == 0)
        *file = xstrdup("out.db");
    else
        status = cli_usage("%s: nothing is recorded now, and there is no out.db here; 'memprof run PROGRAM' records",
                           command);
    outside_found_free(found, count);
    return status;
}

/* What names are looked up by; one command looks at one recording. */
static struct lens_options skipped;
static uint64_t skips_found; /* a wrapper may not have been called yet */

static int open_skipping(const char *path, sqlite3 **db, struct error *err)
{
    int rc = reader_open_self(path, db, err);
    return rc == 0 && skipped.skip_count ? lens_apply(*db, &skipped, err) : rc;
}

int cli_running_names(const struct arguments *a, site_names_open **open)
{
    int status = cli_lens(a, &skipped);
    skipped.skips_found = &skips_found;
    skipped.pid = 0; /* log leaves out other processes' events itself */
    *open = open_skipping;
    return status;
}
