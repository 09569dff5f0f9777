#include "rights.h"

#include "process.h"
#include "session.h"
#include "status.h"

#include <fcntl.h>
#include <linux/capability.h>

#define STATUS_BYTES 2048 /* its lines of interest stand in the first 1,200, unless it has hundreds of groups */

static uint64_t capabilities(const char *text, const char *name)
{
    const char *line = status_line(text, name);
    return line ? status_number(&line, 16) : ~0ull;
}

/* "Uid:\t1000\t0\t0\t0": the real one and the one in effect. Where they differ, the next image starts in secure mode.
 */
static int has_two(const char *text, const char *name)
{
    const char *line = status_line(text, name);
    uint64_t real = line ? status_number(&line, 10) : 0;
    return line && status_number(&line, 10) != real;
}

/* Of an image that root executes; another user's has the ambient ones. */
static uint64_t next_capabilities(const char *text)
{
    const char *line = status_line(text, "\nUid:");
    if (!line || status_number(&line, 10) == 0)
        return capabilities(text, "\nCapBnd:") | capabilities(text, "\nCapInh:");
    return capabilities(text, "\nCapAmb:");
}

/* /proc shows a process's files to nobody who lacks a capability that it has, but for who may trace everybody. */
static enum wire_reach by_status(const char *text)
{
    uint64_t next = next_capabilities(text);
    if (has_two(text, "\nUid:") || has_two(text, "\nGid:"))
        return WIRE_REACH_SECURE;
    if (process.control->capabilities & ~next && !(next >> CAP_SYS_PTRACE & 1))
        return WIRE_REACH_CAPABILITIES;
    return WIRE_REACH_YES;
}

enum wire_reach rights_of_next(void)
{
    char text[STATUS_BYTES];
    enum wire_reach reach = WIRE_REACH_YES;
    int fd = process.control->capabilities ? sys_open("/proc/self/status", O_RDONLY | O_CLOEXEC) : -1;
    long n = fd < 0 ? -1 : sys_read(fd, text, sizeof text - 1);
    if (fd >= 0)
        sys_close(fd);
    if (n > 0) {
        text[n] = 0;
        reach = by_status(text);
    }
    return reach == WIRE_REACH_YES && !session_has_space() ? WIRE_REACH_ADDRESSES : reach;
}
