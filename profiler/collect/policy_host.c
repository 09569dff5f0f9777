#include "policy_host.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CGROUPS "/sys/fs/cgroup"
enum { TEXT_BYTES = 4096 };

static int read_text(const char *path, char text[TEXT_BYTES])
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, TEXT_BYTES - 1);
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = 0;
    return n > 0;
}

static int read_figure(const char *group, const char *file, uint64_t *bytes)
{
    char path[PATH_MAX], text[TEXT_BYTES], *end;
    if (snprintf(path, sizeof path, CGROUPS "%s/%s", group, file) >= (int)sizeof path || !read_text(path, text))
        return 0;
    *bytes = strtoull(text, &end, 10); /* "max": there is none */
    return end > text;
}

/* The smallest limit of the group and those that it is in (version 2). */
static int of_group(uint64_t *used_bytes, uint64_t *total_bytes)
{
    char group[TEXT_BYTES], *path = group, *slash;
    int is_limited = 0;
    if (!read_text("/proc/self/cgroup", group) || !(path = strstr(group, "0::/")))
        return 0;
    path += strlen("0::");
    path[strcspn(path, "\n")] = 0;
    for (;;) {
        uint64_t limit, now;
        if (read_figure(path, "memory.max", &limit) && read_figure(path, "memory.current", &now) && limit &&
            (!is_limited || limit < *total_bytes)) {
            *total_bytes = limit;
            *used_bytes = now;
            is_limited = 1;
        }
        if (!(slash = strrchr(path, '/')) || !path[0])
            return is_limited;
        *slash = 0;
    }
}

static int find_kib(const char *text, const char *name, uint64_t *bytes)
{
    unsigned long long kib;
    const char *line = strstr(text, name);
    if (!line || sscanf(line + strlen(name), "%llu", &kib) != 1)
        return 0;
    *bytes = kib * 1024;
    return 1;
}

int policy_host(uint64_t *used_bytes, uint64_t *total_bytes)
{
    char text[TEXT_BYTES];
    uint64_t available;
    if (of_group(used_bytes, total_bytes))
        return 1;
    if (!read_text("/proc/meminfo", text) || !find_kib(text, "MemTotal:", total_bytes) ||
        !find_kib(text, "MemAvailable:", &available))
        return 0;
    *used_bytes = available < *total_bytes ? *total_bytes - available : 0;
    return 1;
}
