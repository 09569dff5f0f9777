#include "symbols_cache.h"

#include "../../common/array.h"
#include "../../common/io.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_BYTES_MAX  (16u << 20)
#define TOTAL_BYTES_MAX (256ull << 20)
#define FILES_MAX       65536 /* looked at */
#define FILES_KEPT      4096
#define SUFFIX          ".symbols"

/* The directory, made when make is not 0; -1: none. Only one that is ours is used. */
static int open_directory(int make)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    char path[4096];
    int is_home = !cache || *cache != '/';
    if (is_home && (!home || *home != '/'))
        return -1;
    int n = snprintf(path, sizeof path, "%s%s", is_home ? home : cache, is_home ? "/.cache" : "");
    if (n < 0 || (size_t)n + 16 >= sizeof path)
        return -1;
    if (make)
        mkdir(path, 0700);
    strcat(path, "/memprof");
    if (make)
        mkdir(path, 0700);
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    struct stat st;
    if (fd >= 0 && (fstat(fd, &st) || st.st_uid != geteuid() || (st.st_mode & 022))) {
        close(fd);
        return -1;
    }
    return fd;
}

static int file_name(const char *build_id, char name[160])
{
    size_t length = build_id ? strlen(build_id) : 0;
    if (length < 8 || length > 128 || strspn(build_id, "0123456789abcdefABCDEF") != length)
        return 0;
    snprintf(name, 160, "%s" SUFFIX, build_id);
    return 1;
}

struct symbols_table *symbols_cache_read(const char *path, const char *build_id)
{
    char name[160];
    int directory = file_name(build_id, name) ? open_directory(0) : -1;
    if (directory < 0)
        return NULL;
    int fd = openat(directory, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    close(directory);
    if (fd < 0)
        return NULL;
    struct stat st;
    struct symbols_table *t = NULL;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() && st.st_size > 0 &&
        st.st_size <= (off_t)FILE_BYTES_MAX) {
        size_t length = (size_t)st.st_size;
        void *bytes = xmalloc(length);
        if (io_read(fd, bytes, length) == length)
            t = symbols_table_open(bytes, length);
        else
            free(bytes);
    }
    close(fd);
    if (t && !symbols_table_is_current(t, path)) {
        symbols_table_close(t);
        t = NULL;
    }
    return t;
}

/* 1: it is there. */
static int write_file(const char *name, const void *bytes, size_t length)
{
    int directory = open_directory(1), failed = 1;
    if (directory < 0)
        return 0;
    char temporary[192];
    snprintf(temporary, sizeof temporary, "%.160s.%d", name, (int)getpid());
    int fd = openat(directory, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd >= 0) {
        failed = io_write(fd, bytes, length) != 0;
        failed |= close(fd) != 0;
        /* Readers see the old file or the new one, never a part. */
        failed = failed || renameat(directory, temporary, directory, name) != 0;
        if (failed)
            unlinkat(directory, temporary, 0);
    }
    close(directory);
    return !failed;
}

int symbols_cache_write(const char *build_id, const struct symbols_table *fresh, const struct symbols_table *old)
{
    char name[160];
    if (!file_name(build_id, name) || !symbols_table_may_cache(fresh))
        return 0;
    const void *bytes;
    size_t length = symbols_table_bytes(fresh, &bytes);
    struct buf merged = BUF(FILE_BYTES_MAX);
    if (old && symbols_table_merge(fresh, old, &merged) == 0) {
        bytes = merged.data;
        length = merged.length;
    }
    int is_written = length <= FILE_BYTES_MAX && write_file(name, bytes, length);
    buf_free(&merged);
    return is_written;
}

struct aged {
    char name[200];
    struct timespec used;
    uint64_t size;
};

static int by_age(const void *a, const void *b)
{
    const struct aged *x = a, *y = b;
    if (x->used.tv_sec != y->used.tv_sec)
        return x->used.tv_sec < y->used.tv_sec ? -1 : 1;
    return x->used.tv_nsec < y->used.tv_nsec ? -1 : x->used.tv_nsec > y->used.tv_nsec;
}

void symbols_cache_trim(void)
{
    int fd = open_directory(0);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d) {
        if (fd >= 0)
            close(fd);
        return;
    }
    struct aged *files = NULL;
    size_t count = 0, capacity = 0;
    uint64_t total = 0;
    struct dirent *e;
    struct stat st;
    while ((e = readdir(d)) && count < FILES_MAX) {
        /* our own names only, half-written ones included */
        if (!strstr(e->d_name, SUFFIX) || strlen(e->d_name) >= sizeof files->name ||
            fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
            continue;
        ARRAY_ROOM(files, count + 1ul, capacity);
        strcpy(files[count].name, e->d_name);
        files[count].used = st.st_mtim;
        files[count].size = (uint64_t)st.st_size;
        total += files[count++].size;
    }
    if (total > TOTAL_BYTES_MAX || count > FILES_KEPT) {
        qsort(files, count, sizeof *files, by_age);
        for (size_t i = 0; i < count && (total > TOTAL_BYTES_MAX / 4 * 3 || count - i > FILES_KEPT / 4 * 3); i++)
            if (unlinkat(fd, files[i].name, 0) == 0)
                total -= files[i].size;
    }
    free(files);
    closedir(d);
}
