#include "output.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char *with_suffix(const char *path, const char *suffix)
{
    size_t n = strlen(path) + strlen(suffix) + 1;
    char *text = xmalloc(n);
    snprintf(text, n, "%s%s", path, suffix);
    return text;
}

static void remove_suffixed(const char *path, const char *suffix)
{
    char *name = with_suffix(path, suffix);
    unlink(name);
    free(name);
}

/* A database is its file and, where its collector was killed, its log; the shared-memory file is made anew. */
static int move(const char *from, const char *to)
{
    char *log_from = with_suffix(from, "-wal"), *log_to = with_suffix(to, "-wal");
    remove_suffixed(to, "-wal");
    remove_suffixed(to, "-shm");
    remove_suffixed(to, "-journal");
    int rc = rename(from, to) ? -errno : 0;
    if (rc == 0) {
        rename(log_from, log_to);
        remove_suffixed(from, "-shm");
        remove_suffixed(from, "-journal");
    }
    free(log_from);
    free(log_to);
    return rc;
}

int output_prepare(struct output *output, const char *path, struct error *err)
{
    struct stat st;
    *output = (struct output){path, 0};
    if (lstat(path, &st)) {
        if (errno != ENOENT)
            return error_set(err, errno, "%s: %s; choose another place with -o", path, strerror(errno));
        remove_suffixed(path, "-wal"); /* of a file that is gone: SQLite would take it for the new one's */
        remove_suffixed(path, "-shm");
        remove_suffixed(path, "-journal");
        return 0;
    }
    if (!S_ISREG(st.st_mode))
        return error_set(err, EINVAL, "%s: exists and is not a regular file; choose another place with -o", path);
    char *old = with_suffix(path, ".old");
    int rc = move(path, old);
    if (rc)
        error_set(err, -rc, "%s: cannot be renamed to %s: %s; choose another place with -o", path, old, strerror(-rc));
    output->moved = rc == 0;
    free(old);
    return rc;
}

void output_undo(const struct output *output)
{
    unlink(output->path);
    remove_suffixed(output->path, "-wal");
    remove_suffixed(output->path, "-shm");
    remove_suffixed(output->path, "-journal");
    if (output->moved) {
        char *old = with_suffix(output->path, ".old");
        move(old, output->path);
        free(old);
    }
}
