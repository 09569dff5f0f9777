#include "replace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum { READER_TRIES = 100, READER_STEP_US = 50000 };

static char *temporary_name(const char *path)
{
    char *name = xmalloc(strlen(path) + 16);
    sprintf(name, "%s.XXXXXX", path);
    return name;
}

/* A nameless file in the directory of path, which leaves nothing behind when we are killed; else one with a name. */
static int open_temporary(struct replace *r)
{
    char *directory = xstrdup(r->path), *slash = strrchr(directory, '/');
    if (slash)
        slash[slash == directory] = 0;
    int fd = open(slash ? directory : ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
    free(directory);
    r->temporary = temporary_name(r->path);
    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL))
        return fd;
    fd = mkostemp(r->temporary, O_CLOEXEC);
    r->is_named = fd >= 0;
    mode_t mask = umask(0);
    umask(mask);
    if (fd >= 0)
        fchmod(fd, 0666 & ~mask);
    return fd;
}

/* A device, or a pipe with a reader: without one, opening it would wait for ever. */
static int open_special(const char *path, int is_pipe)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY | (is_pipe ? O_NONBLOCK : 0));
    for (int tries = 0; is_pipe && fd < 0 && errno == ENXIO && tries < READER_TRIES; tries++) { /* it may just start */
        usleep(READER_STEP_US);
        fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    }
    if (is_pipe && fd >= 0)
        fcntl(fd, F_SETFL, O_WRONLY);
    return fd;
}

int replace_open(struct replace *r, const char *path, struct error *err)
{
    struct stat st;
    int fd;
    *r = (struct replace){.path = realpath(path, NULL)};
    if (!r->path)
        r->path = xstrdup(path); /* not there yet */
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
        fd = open_special(path, S_ISFIFO(st.st_mode));
    else
        fd = open_temporary(r);
    r->out = fd < 0 ? NULL : fdopen(fd, "w");
    if (r->out)
        return 0;
    int code = errno;
    free(r->path);
    free(r->temporary);
    return error_set(err, code, "%s: %s", path, code == ENXIO ? "a pipe that nobody reads" : strerror(code));
}

/* Gives the nameless file a name of its own, for the rename. */
static int name_temporary(struct replace *r)
{
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fileno(r->out));
    for (int tries = 0; tries < 100; tries++) {
        unsigned random = 0;
        if (getrandom(&random, sizeof random, 0) < 0)
            return -1;
        sprintf(r->temporary, "%s.%08x", r->path, random);
        if (linkat(AT_FDCWD, link, AT_FDCWD, r->temporary, AT_SYMLINK_FOLLOW) == 0) {
            r->is_named = 1;
            return 0;
        }
        if (errno != EEXIST)
            return -1;
    }
    return -1;
}

int replace_close(struct replace *r, int rc, struct error *err)
{
    if (rc == 0 && (fflush(r->out) || ferror(r->out) || (r->temporary && !r->is_named && name_temporary(r))))
        rc = error_set(err, errno ? errno : EIO, "%s: %s", r->path, strerror(errno ? errno : EIO));
    if (fclose(r->out) && rc == 0)
        rc = error_set(err, errno, "%s: %s", r->path, strerror(errno));
    if (rc == 0 && r->temporary && rename(r->temporary, r->path))
        rc = error_set(err, errno, "%s: %s", r->path, strerror(errno));
    if (rc && r->is_named)
        unlink(r->temporary);
    free(r->temporary);
    free(r->path);
    return rc;
}
