#include "pidns.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A line of /proc/PID/status, from behind its name. */
static int status_line(int pid, const char *name, char *line, int room)
{
    char path[64];
    size_t length = strlen(name);
    int found = 0;
    snprintf(path, sizeof path, "/proc/%d/status", pid);
    FILE *f = fopen(path, "re");
    while (f && !found && fgets(line, room, f))
        found = strncmp(line, name, length) == 0;
    if (f)
        fclose(f);
    if (found)
        memmove(line, line + length, strlen(line + length) + 1);
    return found;
}

/* "NSpid: 4711 12 1": the pid in each namespace, the process's own last. */
static int own_pid(int pid)
{
    char line[512];
    const char *last = status_line(pid, "NSpid:", line, sizeof line) ? strrchr(line, '\t') : NULL;
    return last ? atoi(last + 1) : 0;
}

/* "Uid: 1000 0 0 0": the second is in effect. A program that runs with another one than ours is a new image with other
 * rights. One that runs with ours may have forbidden everybody to look. */
static int has_our_rights(int pid)
{
    char line[512];
    unsigned real, effective;
    return status_line(pid, "Uid:", line, sizeof line) && sscanf(line, "%u %u", &real, &effective) == 2 &&
           effective == geteuid();
}

int pidns_has_session(int pid)
{
    static const char name[] = "/memfd:memprof";
    char path[64], text[16384 + 1];
    size_t kept = 0;
    int found = 0;
    snprintf(path, sizeof path, "/proc/%d/maps", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT || errno == ESRCH || (errno == EACCES && !has_our_rights(pid)) ? 0 : -1;
    while (!found) {
        ssize_t n = read(fd, text + kept, sizeof text - 1 - kept);
        if (n <= 0)
            break;
        size_t length = kept + (size_t)n;
        text[length] = 0;
        found = strstr(text, name) != NULL;
        kept = length < sizeof name - 1 ? length : sizeof name - 1;
        memmove(text, text + length - kept, kept);
    }
    close(fd);
    return found;
}

uint64_t pidns_of(int pid)
{
    char path[64], link[64];
    snprintf(path, sizeof path, "/proc/%d/ns/pid", pid);
    ssize_t n = readlink(path, link, sizeof link - 1);
    link[n > 0 ? n : 0] = 0;
    return strncmp(link, "pid:[", 5) == 0 ? strtoull(link + 5, NULL, 10) : 0;
}

/* Of an image that was replaced by one without the library before it was found only a number that nobody gets again
 * tells: the first one of a namespace that is known. */
static int is_it(int pid, int inner, uint64_t pid_namespace)
{
    if (pid_namespace && pidns_of(pid) != pid_namespace)
        return 0;
    return (pid_namespace && inner == 1) || pidns_has_session(pid) > 0;
}

int pidns_find(int inner, uint64_t pid_namespace, int (*is_known)(void *arg, int pid), void *arg)
{
    int found = 0;
    DIR *proc = opendir("/proc");
    for (struct dirent *entry; proc && !found && (entry = readdir(proc));) {
        int pid = atoi(entry->d_name);
        if (pid > 0 && own_pid(pid) == inner && !is_known(arg, pid) && is_it(pid, inner, pid_namespace))
            found = pid;
    }
    if (proc)
        closedir(proc);
    return found;
}

unsigned pidns_threads(int pid, int *ids, unsigned room)
{
    char path[64];
    unsigned count = 0;
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *tasks = opendir(path);
    for (struct dirent *entry; tasks && (entry = readdir(tasks));) {
        int id = atoi(entry->d_name), own = id > 0 ? own_pid(id) : 0;
        if (own && count++ < room)
            ids[count - 1] = own;
    }
    if (tasks)
        closedir(tasks);
    return count;
}
