/* Begins another part of a recording that goes on, and says which file the one before it becomes. */
#include "cli.h"

#include "../common/buf.h"
#include "../common/db.h"
#include "../common/monotonic.h"
#include "../profiler/outside/outside_find.h"
#include "../profiler/outside/request.h"

#include <dirent.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define WAIT_NS 2000000000u /* for the file: a copy under way is done first */
#define LOOK_NS 5000000u

/* Of a name such as "out.20261124-190312.347.db", or the same with ".part" while it is copied: how much is the file's.
 * 0: it is no part's. */
static size_t part_length(const char *name, const char *file)
{
    const size_t stem = db_stem(file), rest = strlen(file + stem);
    static const char when[] = ".99999999-999999.999";
    if (strncmp(name, file, stem) != 0)
        return 0;
    for (const char *at = name + stem, *form = when; *form; at++, form++)
        if (*form == '9' ? *at < '0' || *at > '9' : *at != *form)
            return 0;
    const size_t length = stem + sizeof when - 1 + rest;
    const char *end = name + stem + sizeof when - 1;
    return strncmp(end, file + stem, rest) == 0 && (!end[rest] || strcmp(end + rest, ".part") == 0) ? length : 0;
}

/* The last part of the recording that has a file, or gets one; "": none. */
static void find_newest(const char *directory, const char *file, char newest[NAME_MAX + 1])
{
    DIR *d = opendir(directory);
    *newest = 0;
    for (const struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
        size_t length = part_length(e->d_name, file);
        if (length && length <= NAME_MAX && strncmp(e->d_name, newest, length) > 0) {
            memcpy(newest, e->d_name, length);
            newest[length] = 0;
        }
    }
    if (d)
        closedir(d);
}

static int ask(const struct outside *o, const char *what, struct error *err)
{
    enum wire_reply reply = WIRE_REPLY_DONE;
    return request_ask(o, what, WIRE_WISH_ROTATE, 0, "", &reply, err);
}

/* path: of the running file. */
static int ask_and_tell(const struct outside *o, const char *what, const char *path, struct error *err)
{
    const char *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path;
    const int head = (int)(file - path);
    char before[NAME_MAX + 1], newest[NAME_MAX + 1];
    struct buf directory = BUF(PATH_MAX);
    buf_printf(&directory, "%.*s.", head, path);
    find_newest(buf_text(&directory), file, before);
    int rc = ask(o, what, err);
    const uint64_t begin_ns = monotonic_ns();
    do {
        find_newest(buf_text(&directory), file, newest);
    } while (rc == 0 && strcmp(newest, before) <= 0 && monotonic_ns() - begin_ns < WAIT_NS &&
             nanosleep(&(struct timespec){0, LOOK_NS}, NULL) == 0);
    if (rc == 0 && strcmp(newest, before) > 0)
        cli_note("%.*s%s: what was recorded up to now; %s goes on", head, path, newest, path);
    else if (rc == 0)
        cli_note("%s: asked; there is no file of the part yet: a copy under way ends first, and needs room", path);
    buf_free(&directory);
    return rc;
}

int cmd_rotate(const struct arguments *a)
{
    struct error err = {""};
    struct outside *o = NULL;
    if (a->rest_count != 1)
        return cli_usage("rotate: expected: memprof rotate PID|FILE");
    const char *what = a->rest[0];
    int rc = outside_open(what, &o, &err);
    if (rc)
        return cli_fail(&err);
    const int is_pid = !what[strspn(what, "0123456789")];
    char *path = is_pid ? outside_file(outside_collector(o)) : xstrdup(what);
    rc = path ? ask_and_tell(o, what, path, &err) : ask(o, what, &err);
    free(path);
    outside_close(o);
    return rc ? cli_fail(&err) : EXIT_OK;
}
