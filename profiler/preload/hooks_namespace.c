/* What the kernel refuses to a program with threads: our own one ends before, and begins anew behind it. */
#include "order.h"
#include "real.h"

#include <errno.h>
#include <sched.h>

#define ALONE_FLAGS (CLONE_NEWUSER | CLONE_THREAD | CLONE_SIGHAND | CLONE_VM)

static void go_on(int was_stopped)
{
    int saved = errno;
    if (was_stopped)
        order_go_on();
    errno = saved;
}

EXPORT int unshare(int flags)
{
    if (unlikely(!real.unshare))
        real_init();
    int was_stopped = flags & ALONE_FLAGS ? order_stop() : 0;
    int result = real.unshare(flags);
    go_on(was_stopped);
    return result;
}

/* type 0: whichever the descriptor is of. */
EXPORT int setns(int fd, int type)
{
    if (unlikely(!real.setns))
        real_init();
    int was_stopped = !type || type & CLONE_NEWUSER ? order_stop() : 0;
    int result = real.setns(fd, type);
    go_on(was_stopped);
    return result;
}
