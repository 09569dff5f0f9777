#include "input.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PIECE_BYTES = 1 << 16, DATA_WAIT_MS = 60000, WRITER_TRIES = 100, WRITER_STEP_US = 50000 };

/* Whether there is something in a pipe, or may be yet; tee takes nothing out of it. A writer may be about to start. */
static int has_writer(int fd)
{
    int copy[2];
    ssize_t n = 0;
    if (pipe2(copy, O_CLOEXEC))
        return 1;
    for (int tries = 0; tries < WRITER_TRIES && n == 0; tries++) {
        if (tries)
            usleep(WRITER_STEP_US);
        n = tee(fd, copy[1], 1, SPLICE_F_NONBLOCK);
    }
    close(copy[0]);
    close(copy[1]);
    return n != 0;
}

int input_open(const char *path, struct stat *st, struct error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), code = 0;
    if (fd < 0)
        return error_set(err, errno, "%s: %s", path, strerror(errno));
    if (fstat(fd, st) || S_ISDIR(st->st_mode))
        code = EISDIR;
    else if (S_ISFIFO(st->st_mode) && !has_writer(fd))
        code = EPIPE;
    fcntl(fd, F_SETFL, O_RDONLY);
    if (!code)
        return fd;
    close(fd);
    return error_set(err, code, "%s: cannot be read: %s", path,
                     code == EPIPE ? "a pipe to which nobody writes" : strerror(code));
}

/* The next bytes; -errno. */
static ssize_t read_piece(int fd, char *to)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    ssize_t n;
    do {
        n = poll(&p, 1, DATA_WAIT_MS);
        if (n == 0)
            return -ETIMEDOUT;
        if (n > 0)
            n = read(fd, to, PIECE_BYTES);
    } while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : n;
}

int input_read(const char *path, size_t limit, char **text, size_t *length, struct error *err)
{
    struct stat st;
    ssize_t n = 1;
    *text = NULL;
    *length = 0;
    int fd = input_open(path, &st, err);
    if (fd < 0)
        return fd;
    int is_text = 1; /* what has a NUL is none, and may never end */
    for (size_t room = 0; n > 0 && is_text && *length <= limit;) {
        if (room - *length < PIECE_BYTES + 1)
            *text = xrealloc(*text, room += 2 * PIECE_BYTES);
        n = read_piece(fd, *text + *length);
        is_text = n <= 0 || !memchr(*text + *length, 0, (size_t)n);
        *length += n > 0 ? (size_t)n : 0;
    }
    close(fd);
    if (n >= 0 && *length <= limit) {
        (*text)[*length] = 0;
        return 0;
    }
    free(*text);
    *text = NULL;
    if (n < 0)
        return error_set(err, (int)-n, "%s: cannot be read: %s", path, strerror((int)-n));
    return error_set(err, E2BIG, "%s: more than %zu bytes", path, limit);
}
