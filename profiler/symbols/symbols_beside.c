#include "symbols_beside.h"

#include "../../common/beside.h"
#include "../../common/error.h"
#include "../../common/io.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC     BESIDE_SYMBOLS_MAGIC
#define BYTES_MAX (64u << 20)
#define SUFFIX    "-symbols"

/* The file is MAGIC and entries one after the other: this, the path, the build-id and the table, which guards itself
 * (symbols_table.h). */
struct entry {
    uint64_t table_bytes;
    uint32_t path_bytes, build_id_bytes;
};

struct symbols_beside {
    char *bytes;
    size_t length;
};

struct symbols_beside_writer {
    struct buf out;
};

static int name_of(const char *recording, const char *suffix, char name[PATH_MAX])
{
    int n = snprintf(name, PATH_MAX, "%s" SUFFIX "%s", recording, suffix);
    return n > 0 && n < PATH_MAX;
}

/* Another user could put names into our reports. */
static int is_ours(int fd, struct stat *st)
{
    return fstat(fd, st) == 0 && S_ISREG(st->st_mode) && st->st_uid == geteuid() && !(st->st_mode & 022);
}

struct symbols_beside *symbols_beside_open(const char *recording)
{
    char name[PATH_MAX];
    struct stat st;
    uint64_t magic;
    if (!name_of(recording, "", name))
        return NULL;
    int fd = open(name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return NULL;
    struct symbols_beside *b = xcalloc(1, sizeof *b);
    if (is_ours(fd, &st) && st.st_size >= (off_t)sizeof magic && st.st_size <= (off_t)BYTES_MAX) {
        b->bytes = xmalloc((size_t)st.st_size);
        b->length = io_read(fd, b->bytes, (size_t)st.st_size);
    }
    close(fd);
    if (b->length >= sizeof magic && (memcpy(&magic, b->bytes, sizeof magic), magic == MAGIC))
        return b;
    symbols_beside_close(b);
    return NULL;
}

void symbols_beside_close(struct symbols_beside *b)
{
    if (b)
        free(b->bytes);
    free(b);
}

static struct symbols_table *open_table(const char *bytes, size_t length, const char *path)
{
    void *own = xmalloc(length);
    memcpy(own, bytes, length);
    struct symbols_table *t = symbols_table_open(own, length);
    if (t && !symbols_table_is_current(t, path)) {
        symbols_table_close(t);
        t = NULL;
    }
    return t;
}

struct symbols_table *symbols_beside_read(const struct symbols_beside *b, const char *path, const char *build_id)
{
    struct entry e;
    size_t path_bytes = strlen(path), build_id_bytes = build_id ? strlen(build_id) : 0;
    for (size_t at = sizeof(uint64_t); b && b->length - at >= sizeof e;) {
        memcpy(&e, b->bytes + at, sizeof e);
        at += sizeof e;
        size_t rest = b->length - at;
        if (e.table_bytes == 0 || e.table_bytes > rest ||
            (uint64_t)e.path_bytes + e.build_id_bytes > rest - e.table_bytes)
            return NULL;
        const char *names = b->bytes + at, *table = names + e.path_bytes + e.build_id_bytes;
        if (e.path_bytes == path_bytes && memcmp(names, path, path_bytes) == 0 && e.build_id_bytes == build_id_bytes &&
            (!build_id_bytes || memcmp(names + path_bytes, build_id, build_id_bytes) == 0))
            return open_table(table, e.table_bytes, path);
        at += e.path_bytes + e.build_id_bytes + e.table_bytes;
    }
    return NULL;
}

struct symbols_beside_writer *symbols_beside_begin(void)
{
    struct symbols_beside_writer *w = xcalloc(1, sizeof *w);
    uint64_t magic = MAGIC;
    w->out = (struct buf)BUF(BYTES_MAX);
    buf_add(&w->out, &magic, sizeof magic);
    return w;
}

void symbols_beside_add(struct symbols_beside_writer *w, const char *path, const char *build_id,
                        const struct symbols_table *fresh, const struct symbols_table *old)
{
    struct buf merged = BUF(BYTES_MAX);
    const void *bytes;
    if (!symbols_table_may_cache(fresh ? fresh : old))
        return;
    size_t length = symbols_table_bytes(fresh ? fresh : old, &bytes);
    if (fresh && old && symbols_table_merge(fresh, old, &merged) == 0) {
        bytes = merged.data;
        length = merged.length;
    }
    struct entry e = {length, (uint32_t)strlen(path), build_id ? (uint32_t)strlen(build_id) : 0};
    if (w->out.length + sizeof e + e.path_bytes + e.build_id_bytes + length <= BYTES_MAX) {
        buf_add(&w->out, &e, sizeof e);
        buf_add(&w->out, path, e.path_bytes);
        if (e.build_id_bytes)
            buf_add(&w->out, build_id, e.build_id_bytes);
        buf_add(&w->out, bytes, length);
    }
    buf_free(&merged);
}

/* --- what a report that was killed left of writing --- */

/* What a number of a process would be written as; 0: it is none. */
static long pid_of(const char *text)
{
    char again[32];
    char *end;
    errno = 0;
    long pid = strtol(text, &end, 10);
    snprintf(again, sizeof again, "%ld", pid);
    return errno == 0 && *end == 0 && pid > 0 && pid <= INT_MAX && strcmp(text, again) == 0 ? pid : 0;
}

/* A file of ours and its beginning, as far as it was written. */
static int is_left(int directory, const char *name)
{
    struct stat st;
    uint64_t magic = MAGIC;
    char head[sizeof magic];
    int fd = openat(directory, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return 0;
    int is = is_ours(fd, &st) && st.st_nlink == 1 && (st.st_mode & 07777) == 0600;
    size_t length = is ? io_read(fd, head, sizeof head) : 0;
    close(fd);
    return is && memcmp(head, &magic, length) == 0;
}

/* Those of processes that are gone. One that lives where its number means nothing here, in a container, only loses the
 * hint that it was about to leave. */
static void remove_left(const char *recording)
{
    char path[PATH_MAX];
    if (!name_of(recording, ".", path))
        return;
    char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path, *directory = !slash ? "." : slash == path ? "/" : path;
    size_t length = strlen(name);
    char *prefix = xstrdup(name);
    if (slash)
        *slash = 0;
    DIR *d = opendir(directory);
    for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
        long pid = strncmp(e->d_name, prefix, length) == 0 ? pid_of(e->d_name + length) : 0;
        if (pid && kill((pid_t)pid, 0) != 0 && errno == ESRCH && is_left(dirfd(d), e->d_name))
            unlinkat(dirfd(d), e->d_name, 0);
    }
    if (d)
        closedir(d);
    free(prefix);
}

void symbols_beside_end(struct symbols_beside_writer *w, const char *recording)
{
    char name[PATH_MAX], temporary[PATH_MAX], suffix[32];
    struct stat st;
    snprintf(suffix, sizeof suffix, ".%d", (int)getpid());
    int fd = -1;
    if (!w->out.failed && w->out.length > sizeof(uint64_t) && stat(recording, &st) == 0 && st.st_uid == geteuid() &&
        name_of(recording, "", name) && name_of(recording, suffix, temporary))
        fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd >= 0) {
        int failed = io_write(fd, w->out.data, w->out.length);
        failed |= close(fd);
        if (failed || beside_look(recording, BESIDE_SYMBOLS) == BESIDE_OTHER || rename(temporary, name))
            unlink(temporary);
        remove_left(recording);
    }
    buf_free(&w->out);
    free(w);
}

void symbols_beside_remove(const char *recording)
{
    beside_remove_one(recording, BESIDE_SYMBOLS);
    remove_left(recording);
}
