#include "output.h"

#include "../../common/beside.h"
#include "../../common/db.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define NUMBERS_MAX    10000 /* of names that are tried where the wanted one is being written */
#define LOCK_ROUNDS    500   /* of 10 ms: then its holder is stopped, and we go on without */
#define HEADER_BYTES   100
#define APPLICATION_AT 68 /* in the header of an SQLite file, as its format says */

static char *with_suffix(const char *path, const char *suffix)
{
    size_t n = strlen(path) + strlen(suffix) + 1;
    char *text = xmalloc(n);
    snprintf(text, n, "%s%s", path, suffix);
    return text;
}

static int has_suffixed(const char *path, const char *suffix)
{
    char *name = with_suffix(path, suffix);
    int there = access(name, F_OK) == 0;
    free(name);
    return there;
}

/* A database is its file and, where its collector was killed, its log; the shared-memory file is made anew. */
static int move(const char *from, const char *to)
{
    char *log_from = with_suffix(from, "-wal"), *log_to = with_suffix(to, "-wal");
    beside_remove(to);
    int rc = rename(from, to) ? -errno : 0;
    if (rc == 0) {
        beside_remove_one(from, BESIDE_SYMBOLS);
        beside_remove_one(from, BESIDE_SHM);
        beside_remove_one(from, BESIDE_JOURNAL);
        if (beside_look(from, BESIDE_WAL) == BESIDE_OWN)
            rename(log_from, log_to);
    }
    free(log_from);
    free(log_to);
    return rc;
}

/* "out.1.db" of "out.db" */
static char *numbered(const char *path, int number)
{
    size_t n = strlen(path) + 16;
    int stem = (int)db_stem(path);
    char *text = xmalloc(n);
    snprintf(text, n, "%.*s.%d%s", stem, path, number, path + stem);
    return text;
}

static void lock_directory(struct output *output)
{
    char *directory = xstrdup(output->path);
    char *slash = strrchr(directory, '/');
    if (slash)
        slash[slash == directory] = 0;
    output->directory_fd = open(slash ? directory : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; output->directory_fd >= 0 && flock(output->directory_fd, LOCK_EX | LOCK_NB) && i < LOCK_ROUNDS; i++)
        if (errno == EWOULDBLOCK)
            usleep(10000);
        else if (errno != EINTR) /* a file system without locks */
            break;
    free(directory);
}

static void unlock_directory(struct output *output)
{
    if (output->directory_fd >= 0)
        close(output->directory_fd);
    output->directory_fd = -1;
}

enum found { FOUND_NOTHING, FOUND_OURS, FOUND_BUSY, FOUND_OTHER, FOUND_LIMIT };

static enum found look(const char *path, struct error *err)
{
    static const char magic[16] = "SQLite format 3";
    struct stat st;
    unsigned char header[HEADER_BYTES] = {0};
    if (lstat(path, &st))
        return FOUND_NOTHING;
    if (!S_ISREG(st.st_mode)) {
        error_set(err, EEXIST, "%s: exists and is not a regular file; choose another place with -o", path);
        return FOUND_OTHER;
    }
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    int busy = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK;
    ssize_t n = fd >= 0 ? pread(fd, header, sizeof header, 0) : -1;
    int code = errno;
    if (fd >= 0)
        close(fd);
    if (busy)
        return FOUND_BUSY;
    if (n < 0 && (code == EMFILE || code == ENFILE)) {
        error_set(err, code, "%s: exists and cannot be read (%s); it is left as it is", path, strerror(code));
        return FOUND_LIMIT;
    }
    if (n < 0) {
        error_set(err, EEXIST, "%s: exists and cannot be read (%s); it is left as it is: choose another name with -o",
                  path, strerror(code));
        return FOUND_OTHER;
    }
    if (n == 0) /* nothing is lost with it */
        return FOUND_NOTHING;
    const unsigned char *id = header + APPLICATION_AT;
    if (memcmp(header, magic, sizeof magic) == 0) {
        sqlite3 *db = NULL;
        if (((uint32_t)id[0] << 24 | (uint32_t)id[1] << 16 | (uint32_t)id[2] << 8 | id[3]) == DB_APPLICATION_ID)
            return FOUND_OURS;
        /* what says so may be in the log of a killed collector still */
        if (has_suffixed(path, "-wal") && db_open_read(path, &db, NULL) == 0) {
            sqlite3_close(db);
            return FOUND_OURS;
        }
    }
    error_set(err, EEXIST,
              "%s: exists and is no recording of memprof; it is left as it is: choose another name with -o", path);
    return FOUND_OTHER;
}

/* Moves what is at path out of the way, so that output_remove can bring all of it back. */
static int set_aside(struct output *output, struct error *err)
{
    char *old = with_suffix(output->path, ".old"), *older = with_suffix(old, "~");
    enum found found = look(old, err);
    int rc = found == FOUND_OTHER ? -EEXIST : beside_check(old, err);
    if (rc == 0 && found == FOUND_BUSY)
        rc = error_set(err, EEXIST, "%s: is being written; choose another name with -o", old);
    if (rc == 0 && found == FOUND_OURS)
        rc = look(older, err) == FOUND_OTHER ? -EEXIST : beside_check(older, err);
    if (rc == 0 && found == FOUND_OURS) {
        rc = move(old, older);
        output->older_hidden = rc == 0;
    }
    if (rc == 0) {
        rc = move(output->path, old);
        output->moved = rc == 0;
    }
    if (rc && rc != -EEXIST)
        error_set(err, -rc, "%s: cannot be renamed to %s: %s; choose another place with -o", output->path, old,
                  strerror(-rc));
    if (rc && output->older_hidden) {
        move(older, old);
        output->older_hidden = 0;
    }
    free(old);
    free(older);
    return rc;
}

int output_prepare(struct output *output, const char *path, struct error *err)
{
    *output = (struct output){.path = xstrdup(path), .fd = -1, .directory_fd = -1};
    lock_directory(output);
    enum found found = look(path, err);
    /* a name that somebody may want to keep is not taken in passing */
    for (int i = 1; found == FOUND_BUSY && i < NUMBERS_MAX; i++) {
        free(output->path);
        output->path = numbered(path, i);
        output->is_other = i;
        if (access(output->path, F_OK) && errno == ENOENT && beside_check(output->path, NULL) == 0)
            found = FOUND_NOTHING;
    }
    int rc = 0;
    if (found == FOUND_BUSY)
        rc = error_set(err, EEXIST, "%s: is being written, as are all others up to it", output->path);
    else if (found == FOUND_LIMIT)
        rc = -EMFILE;
    else if (found == FOUND_OTHER || beside_check(output->path, err))
        rc = -EEXIST;
    else if (found == FOUND_OURS)
        rc = set_aside(output, err);
    else if (unlink(output->path) && errno != ENOENT) /* an empty file */
        rc = error_set(err, errno, "%s: %s; choose another place with -o", output->path, strerror(errno));
    else
        beside_remove(output->path); /* of a file that is gone */
    if (rc)
        output_close(output);
    return rc;
}

void output_claim(struct output *output)
{
    output->fd = open(output->path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (output->fd >= 0)
        flock(output->fd, LOCK_EX | LOCK_NB);
    unlock_directory(output);
}

void output_keep(struct output *output)
{
    char *older = with_suffix(output->path, ".old~");
    if (output->older_hidden || look(older, NULL) == FOUND_OURS) {
        unlink(older);
        beside_remove(older);
    }
    output->older_hidden = 0;
    free(older);
}

void output_remove(struct output *output, int undo)
{
    char *old = with_suffix(output->path, ".old"), *older = with_suffix(old, "~");
    if (output->directory_fd < 0)
        lock_directory(output);
    unlink(output->path);
    beside_remove(output->path);
    if (undo && output->moved)
        move(old, output->path);
    if (undo && output->older_hidden)
        move(older, old);
    else if (!undo)
        output_keep(output);
    output->moved = output->older_hidden = 0;
    unlock_directory(output);
    free(old);
    free(older);
}

int output_set_aside(const char *path, struct error *err)
{
    struct output output;
    int rc = output_prepare(&output, path, err);
    if (rc == 0)
        output_close(&output);
    return rc;
}

void output_close(struct output *output)
{
    unlock_directory(output);
    if (output->fd >= 0)
        close(output->fd);
    free(output->path);
    *output = (struct output){.fd = -1, .directory_fd = -1};
}
