#include "outside.h"

#include "../../common/db.h"
#include "../../common/io.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ENVIRON_MAX (8u << 20) /* bytes of an environment that are looked at */
#define READS       100u       /* of a row, which the collector writes anew once a millisecond */
#define MEMFD_LINK  "/memfd:memprof (deleted)"
#define PATH_BYTES  64u
#define MAPPED_MAX  256u /* recordings of one process */

struct outside {
    int fd;
    int collector;
};

/* --- the shared memory --- */

static int read_at(int fd, void *to, size_t size, uint64_t offset)
{
    return pread(fd, to, size, (off_t)offset) == (ssize_t)size;
}

/* Why what is open is none of ours; NULL: it is. */
static const char *refusal(int fd)
{
    struct wire_control c;
    struct stat st;
    if (fstat(fd, &st) || !S_ISREG(st.st_mode) || fcntl(fd, F_GET_SEALS) < 0 ||
        !read_at(fd, &c, offsetof(struct wire_control, library_path), 0) || c.magic != WIRE_MAGIC)
        return "no shared memory of memprof is there";
    if (c.version != WIRE_VERSION)
        return "it is recorded by another version of memprof, whose own commands reach it";
    if ((uint64_t)st.st_size != WIRE_TOTAL_BYTES || c.total_bytes != WIRE_TOTAL_BYTES)
        return "its shared memory has not the size that it says";
    return NULL;
}

/* "/proc/PID/fd/N", as a session is named: nothing else of an environment is opened. */
static int is_session_path(const char *path, int *pid)
{
    int fd, end = 0;
    char again[PATH_BYTES];
    if (sscanf(path, "/proc/%d/fd/%d%n", pid, &fd, &end) != 2 || path[end] || *pid <= 0 || fd < 0)
        return 0;
    snprintf(again, sizeof again, "/proc/%d/fd/%d", *pid, fd);
    return !strcmp(path, again);
}

static int open_session(const char *what, const char *path, struct outside **o, struct error *err)
{
    int pid, fd;
    if (!is_session_path(path, &pid))
        return error_set(err, EPROTO, "%s: its %s names no session; is it recorded?", what, WIRE_ENV_SESSION);
    fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 && (errno == EACCES || errno == EPERM))
        return error_set(err, EACCES, "%s: its recording is another user's; ask as that user", what);
    if (fd < 0)
        return error_set(err, ESRCH, "%s: its recording has ended", what);
    const char *why = refusal(fd);
    if (why) {
        close(fd);
        return error_set(err, EPROTO, "%s: %s", what, why);
    }
    *o = xmalloc(sizeof **o);
    **o = (struct outside){.fd = fd, .collector = pid};
    if (outside_is_recording(*o))
        return 0;
    outside_close(*o);
    *o = NULL;
    return error_set(err, ESRCH, "%s: its recording has ended", what);
}

/* --- a process --- */

/* The session that this process is the collector of. 1: path has it; 0: of none; -errno: it cannot be looked at. A file
 * that is not NULL must be open there, too. */
static int find_collected(int pid, const struct stat *file, char path[PATH_BYTES])
{
    char link[PATH_BYTES], name[PATH_BYTES];
    int has_session = 0, has_file = file == NULL;
    snprintf(name, sizeof name, "/proc/%d/fd", pid);
    DIR *directory = opendir(name);
    if (!directory)
        return -errno;
    for (struct dirent *e; (e = readdir(directory)) && !(has_session && has_file);) {
        struct stat st;
        if (!isdigit((unsigned char)e->d_name[0]) ||
            snprintf(name, sizeof name, "/proc/%d/fd/%s", pid, e->d_name) >= (int)sizeof name)
            continue;
        if (!has_file && stat(name, &st) == 0)
            has_file = st.st_dev == file->st_dev && st.st_ino == file->st_ino;
        ssize_t n = has_session ? -1 : readlink(name, link, sizeof link - 1);
        if (n > 0) {
            link[n] = 0;
            has_session = !strcmp(link, MEMFD_LINK);
            if (has_session)
                strcpy(path, name);
        }
    }
    closedir(directory);
    return has_session && has_file;
}

/* What the process's environment was as it began. The caller frees it; NULL: errno says why. */
static char *read_environment(int pid, size_t *size_bytes)
{
    char name[PATH_BYTES];
    snprintf(name, sizeof name, "/proc/%d/environ", pid);
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    char *text = xmalloc(ENVIRON_MAX + 1);
    *size_bytes = io_read(fd, text, ENVIRON_MAX);
    text[*size_bytes] = 0;
    close(fd);
    return text;
}

/* 1: path has what the process's environment says; 0: nothing; -errno. */
static int find_recorded(int pid, char path[PATH_BYTES])
{
    const size_t length = strlen(WIRE_ENV_SESSION "=");
    size_t size_bytes = 0;
    int found = 0;
    char *text = read_environment(pid, &size_bytes);
    if (!text)
        return -errno;
    for (const char *p = text; p < text + size_bytes && !found; p += strlen(p) + 1)
        if (!strncmp(p, WIRE_ENV_SESSION "=", length)) {
            snprintf(path, PATH_BYTES, "%s", p + length);
            found = 1;
        }
    free(text);
    return found;
}

/* --- a process that was attached to --- */

/* The memory that it has mapped, newest last: of a recording before, it stays mapped. 0: none. */
static size_t mapped_sessions(int pid, ino_t found[MAPPED_MAX])
{
    char name[PATH_BYTES], line[PATH_MAX + 128];
    size_t count = 0;
    snprintf(name, sizeof name, "/proc/%d/maps", pid);
    FILE *file = fopen(name, "re");
    while (file && fgets(line, sizeof line, file)) {
        unsigned long long inode;
        if (strstr(line, MEMFD_LINK) && sscanf(line, "%*s %*s %*s %*s %llu", &inode) == 1 && count < MAPPED_MAX)
            found[count++] = (ino_t)inode;
    }
    if (file)
        fclose(file);
    return count;
}

/* 1: path has the session of a collector that goes on, which is mapped there; 0: none. */
static int find_attached(int pid, char path[PATH_BYTES])
{
    ino_t mapped[MAPPED_MAX];
    size_t count = mapped_sessions(pid, mapped);
    DIR *directory = count ? opendir("/proc") : NULL;
    int found = 0;
    for (struct dirent *e; directory && !found && (e = readdir(directory));) {
        struct stat st;
        int collector = isdigit((unsigned char)e->d_name[0]) ? atoi(e->d_name) : 0;
        if (!collector || collector == pid || find_collected(collector, NULL, path) != 1 || stat(path, &st))
            continue;
        for (size_t i = 0; i < count; i++)
            found |= mapped[i] == st.st_ino;
    }
    if (directory)
        closedir(directory);
    return found;
}

static int open_process(const char *what, struct outside **o, struct error *err)
{
    char path[PATH_BYTES] = "", *end;
    errno = 0;
    long pid = strtol(what, &end, 10);
    if (errno || pid <= 0 || pid > INT32_MAX)
        return error_set(err, ENOENT, "%s: no such process; expected a PID or a recording", what);
    /* a collector may itself be recorded: who names it means what it records */
    int rc = find_collected((int)pid, NULL, path);
    if (rc == 0)
        rc = find_recorded((int)pid, path);
    if (rc == 0)
        rc = find_attached((int)pid, path);
    if (rc == -EACCES || rc == -EPERM)
        return error_set(err, EACCES,
                         "%s: a process of another user, or one that may not be looked at; name its "
                         "recording's file",
                         what);
    if (rc < 0)
        return error_set(err, ENOENT, "%s: no such process; expected a PID or a recording", what);
    if (rc == 0)
        return error_set(err, ESRCH, "%s: not recorded; start it with 'memprof run', or 'memprof attach' to it", what);
    return open_session(what, path, o, err);
}

/* --- a file --- */

static int open_file(const char *file, struct outside **o, struct error *err)
{
    char path[PATH_BYTES] = "";
    sqlite3 *db = NULL;
    struct stat st;
    if (stat(file, &st))
        return error_set(err, errno == EACCES ? EACCES : ENOENT, "%s: %s; expected a PID or a recording", file,
                         strerror(errno));
    int rc = db_open_read(file, &db, err);
    if (rc)
        return rc;
    char *state = db_meta_text(db, "state");
    int64_t pid = state && !strcmp(state, "recording") ? db_meta_int(db, "collector_pid", 0) : 0;
    free(state);
    sqlite3_close(db);
    if (pid <= 0 || pid > INT32_MAX)
        return error_set(err, ESRCH, "%s: its recording has ended", file);
    rc = find_collected((int)pid, &st, path);
    if (rc == -EACCES || rc == -EPERM)
        return error_set(err, EACCES, "%s: its recording is another user's; ask as that user", file);
    if (rc <= 0) /* the number may be another process's by now */
        return error_set(err, ESRCH, "%s: its recording has ended, or is on another machine", file);
    return open_session(file, path, o, err);
}

int outside_open(const char *what, struct outside **o, struct error *err)
{
    *o = NULL;
    return *what && !what[strspn(what, "0123456789")] ? open_process(what, o, err) : open_file(what, o, err);
}

int outside_writer(const char *file)
{
    char path[PATH_BYTES] = "";
    struct error unused;
    sqlite3 *db = NULL;
    struct stat st;
    if (stat(file, &st) || db_open_read(file, &db, &unused))
        return -1;
    char *state = db_meta_text(db, "state");
    int64_t pid = state && !strcmp(state, "recording") ? db_meta_int(db, "collector_pid", 0) : 0;
    free(state);
    sqlite3_close(db);
    int fd = pid > 0 && pid <= INT32_MAX ? (int)syscall(SYS_pidfd_open, (pid_t)pid, 0) : -1;
    if (fd >= 0 && find_collected((int)pid, &st, path) <= 0) { /* the number may be another process's by now */
        close(fd);
        fd = -1;
    }
    return fd;
}

void outside_close(struct outside *o)
{
    if (o)
        close(o->fd);
    free(o);
}

int outside_collector(const struct outside *o)
{
    return o->collector;
}

int outside_is_attached(const struct outside *o)
{
    uint32_t flags = 0;
    return read_at(o->fd, &flags, sizeof flags, offsetof(struct wire_control, flags)) && flags & WIRE_ATTACHED;
}

int outside_fd(const struct outside *o)
{
    return o->fd;
}

/* A collector whose programs have all let go of the memory seals it, and what it writes from then on is its own. */
int outside_is_recording(const struct outside *o)
{
    struct wire_control c;
    return !(fcntl(o->fd, F_GET_SEALS) & F_SEAL_WRITE) &&
           read_at(o->fd, c.owner, sizeof c.owner, offsetof(struct wire_control, owner)) &&
           read_at(o->fd, &c.state, sizeof c.state, offsetof(struct wire_control, state)) && c.state == WIRE_STATE_ON &&
           wire_collector_lives(&c);
}

int outside_row(const struct outside *o, unsigned index, char name[WIRE_NAME_BYTES + 1], struct wire_figures *figures)
{
    const uint64_t rows = WIRE_DESK_OFFSET + offsetof(struct wire_desk, rows),
                   at = rows + index * sizeof(struct wire_row);
    struct wire_row row;
    uint32_t count = 0, version = 0;
    if (!read_at(o->fd, &count, sizeof count, WIRE_DESK_OFFSET + offsetof(struct wire_desk, row_count)) ||
        index >= count || index >= WIRE_FIGURES)
        return 0;
    for (unsigned i = 0; i < READS; i++) {
        if (!read_at(o->fd, &version, sizeof version, at + offsetof(struct wire_row, version)) ||
            !read_at(o->fd, &row, sizeof row, at) ||
            !read_at(o->fd, &row.version, sizeof row.version, at + offsetof(struct wire_row, version)))
            return 0;
        if (row.version != version) /* the copy that was valid may have been written meanwhile */
            continue;
        memcpy(name, row.name, WIRE_NAME_BYTES);
        name[WIRE_NAME_BYTES] = 0;
        *figures = row.figures[version & 1];
        return 1;
    }
    return 0;
}
