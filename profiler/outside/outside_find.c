#include "outside_find.h"

#include "../../common/array.h"
#include "../../common/db.h"
#include "outside.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MEMFD_LINK "/memfd:memprof (deleted)"
enum { NAME_BYTES = 64, HEADER_BYTES = 100, APPLICATION_AT = 68 };

static int is_number(const char *text)
{
    return *text && !text[strspn(text, "0123456789")];
}

/* Calls see for each descriptor of the process with its name in /proc and what it is a link to, until that returns 1.
 * Returns whether it did. */
static int each_descriptor(int pid, int (*see)(void *arg, const char *name, const char *link), void *arg)
{
    char name[NAME_BYTES], link[PATH_MAX];
    int found = 0;
    snprintf(name, sizeof name, "/proc/%d/fd", pid);
    DIR *directory = opendir(name);
    for (struct dirent *e; directory && !found && (e = readdir(directory));) {
        if (!is_number(e->d_name) || snprintf(name, sizeof name, "/proc/%d/fd/%s", pid, e->d_name) >= (int)sizeof name)
            continue;
        ssize_t n = readlink(name, link, sizeof link - 1);
        if (n <= 0)
            continue;
        link[n] = 0;
        found = see(arg, name, link);
    }
    if (directory)
        closedir(directory);
    return found;
}

/* --- its file --- */

/* Of SQLite's, with our application id. */
static int is_recording_file(const char *path)
{
    unsigned char header[HEADER_BYTES] = {0};
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return 0;
    ssize_t n = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? pread(fd, header, sizeof header, 0) : -1;
    close(fd);
    const unsigned char *id = header + APPLICATION_AT;
    return n == HEADER_BYTES && !memcmp(header, "SQLite format 3", 16) &&
           ((uint32_t)id[0] << 24 | (uint32_t)id[1] << 16 | (uint32_t)id[2] << 8 | id[3]) == DB_APPLICATION_ID;
}

static int is_file(void *arg, const char *name, const char *link)
{
    char **file = arg;
    struct stat as_open, as_named;
    if (*link != '/' || stat(name, &as_open) || stat(link, &as_named) || as_open.st_ino != as_named.st_ino ||
        as_open.st_dev != as_named.st_dev || !is_recording_file(link))
        return 0;
    *file = xstrdup(link);
    return 1;
}

char *outside_file(int collector)
{
    char *file = NULL;
    each_descriptor(collector, is_file, &file);
    return file;
}

/* --- all of them --- */

static int is_session(void *arg, const char *name, const char *link)
{
    (void)arg, (void)name;
    return !strcmp(link, MEMFD_LINK);
}

/* Who looks on has the memory open, too. */
static int is_collector(int pid)
{
    char text[16];
    struct error unused;
    struct outside *o;
    snprintf(text, sizeof text, "%d", pid);
    if (!each_descriptor(pid, is_session, NULL) || outside_open(text, &o, &unused))
        return 0;
    int is = outside_collector(o) == pid;
    outside_close(o);
    return is;
}

static int by_collector(const void *a, const void *b)
{
    return ((const struct outside_found *)a)->collector - ((const struct outside_found *)b)->collector;
}

size_t outside_find(struct outside_found **found)
{
    size_t count = 0, capacity = 0;
    DIR *directory = opendir("/proc");
    *found = NULL;
    for (struct dirent *e; directory && (e = readdir(directory));) {
        int pid = is_number(e->d_name) ? atoi(e->d_name) : 0;
        char *file = pid > 0 && is_collector(pid) ? outside_file(pid) : NULL;
        if (file)
            *ARRAY_ADD(*found, count, capacity) = (struct outside_found){pid, file};
    }
    if (directory)
        closedir(directory);
    if (count)
        qsort(*found, count, sizeof **found, by_collector);
    return count;
}

void outside_found_free(struct outside_found *found, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(found[i].file);
    free(found);
}
