#include "door.h"

#include "sys.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

static int ends[2];
static uint64_t identity[2]; /* inode numbers: the program may have closed ours, and opened something else */
static int is_open;

static uint64_t identity_of(int fd)
{
    struct stat st;
    return sys_call(SYS_fstat, fd, &st, 0) == 0 && S_ISSOCK(st.st_mode) ? st.st_ino : 0;
}

static void close_end(unsigned i)
{
    if (identity[i] && identity_of(ends[i]) == identity[i])
        sys_close(ends[i]);
}

static void shut(void)
{
    if (is_open) {
        close_end(0);
        close_end(1);
    }
    is_open = 0;
}

int door_open(void)
{
    shut();
    long rc = sys_call6(SYS_socketpair, AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, (long)ends, 0, 0);
    if (rc)
        return (int)rc;
    identity[0] = identity_of(ends[0]);
    identity[1] = identity_of(ends[1]);
    is_open = 1;
    return ends[0];
}

static int receive(int socket)
{
    char byte;
    int fd;
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof fd)];
    } control = {0};
    struct iovec part = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    long n = sys_call(SYS_recvmsg, socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n < 0)
        return (int)n;
    if (message.msg_controllen < sizeof control.header || control.header.cmsg_level != SOL_SOCKET ||
        control.header.cmsg_type != SCM_RIGHTS || control.header.cmsg_len != CMSG_LEN(sizeof fd))
        return -EPROTO;
    memcpy(&fd, CMSG_DATA(&control.header), sizeof fd);
    return fd;
}

int door_take(void)
{
    int fd = is_open && identity_of(ends[1]) == identity[1] ? receive(ends[1]) : -ENOTCONN;
    shut();
    return fd;
}
