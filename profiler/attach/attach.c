#include "attach.h"

#include "../../common/io.h"
#include "inject.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define HOOK_ATTACH "memprof_hook_attach"
#define HOOK_DETACH "memprof_hook_detach"
#define HOOK_DOOR   "memprof_hook_door"

struct answer {
    int rc;
    char text[sizeof((struct error *)0)->text];
};

static int joined(pid_t pid, int result, struct error *err)
{
    switch (result) {
    case 0:
        return 0;
    case -EBUSY:
        return error_set(err, EBUSY, "%d: it is being recorded already", (int)pid);
    case -ESRCH:
        return error_set(err, ESRCH, "%d: it cannot open the shared memory of this memprof, or that has ended",
                         (int)pid);
    case -EEXIST:
        return error_set(err, EINVAL, "%d: libmemprof.so was preloaded into it; it cannot be attached to", (int)pid);
    default:
        return error_set(err, EAGAIN, "%d: it could not join the recording (%d)", (int)pid, result);
    }
}

/* A descriptor through one end of its pair of sockets, which is this one there. */
static int send_in(pid_t pid, int its, int fd)
{
    char byte = 0;
    struct iovec part = {&byte, 1};
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof fd)];
    } control = {.header = {CMSG_LEN(sizeof fd), SOL_SOCKET, SCM_RIGHTS}};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    memcpy(CMSG_DATA(&control.header), &fd, sizeof fd);
    int process = (int)syscall(SYS_pidfd_open, pid, 0),
        own = process < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, process, its, 0),
        rc = own >= 0 && sendmsg(own, &message, MSG_DONTWAIT | MSG_NOSIGNAL) == 1 ? 0 : -errno;
    if (own >= 0)
        close(own);
    if (process >= 0)
        close(process);
    return rc;
}

/* Which function is called: of the library that is in it already, or else of the one at this path. One that the former
 * lacks is refused here, as nobody looks there: the latter is asked by dlsym. */
static int choose(const struct target *t, struct inject_call *call, const char *library, const char *symbol,
                  struct error *err)
{
    call->library = t->library ? NULL : library;
    call->symbol = symbol;
    call->function = t->library ? remote_symbol(&t->remote, t->library, symbol, NULL) : 0;
    if (!t->library || call->function)
        return 0;
    return error_set(err, EINVAL,
                     "%d: the library of memprof in it (%s) has no %s, and stays until it ends; start the process anew",
                     (int)t->pid, t->library->name, symbol);
}

/* The session of another user, such as root's for a server's worker: the process may not open it by its path, so it is
 * given the descriptor. */
static int put_in_by_door(struct target *t, struct inject_call *call, const char *session, int *result,
                          struct error *err)
{
    int its = 0, fd, rc = choose(t, call, call->library, HOOK_DOOR, err);
    call->argument = "";
    if (rc == 0)
        rc = inject(t, call, &its, err);
    if (rc || its < 0) {
        *result = its;
        return rc;
    }
    fd = open(session, O_RDWR | O_CLOEXEC);
    *result = fd < 0 || send_in(t->pid, its, fd) ? -ESRCH : 0;
    if (fd >= 0)
        close(fd);
    if (*result) /* the pair is closed by the next call, if there is one */
        return 0;
    rc = choose(t, call, call->library, HOOK_ATTACH, err);
    return rc ? rc : inject(t, call, result, err);
}

static int put_in(pid_t pid, const char *library, const char *session, struct error *err)
{
    struct target t;
    struct inject_call call = {.argument = session};
    int result = 0, rc = target_open(&t, pid, library, err);
    if (rc)
        return rc;
    rc = choose(&t, &call, library, HOOK_ATTACH, err);
    if (rc == 0)
        rc = inject(&t, &call, &result, err);
    if (rc == 0 && result == -ESRCH)
        rc = put_in_by_door(&t, &call, session, &result, err);
    target_close(&t);
    return rc ? rc : joined(pid, result, err);
}

static int take_out(pid_t pid, struct error *err)
{
    struct target t;
    struct inject_call call = {.argument = ""};
    int result = 0, rc = target_open(&t, pid, NULL, err);
    if (rc)
        return rc;
    call.function = t.library ? remote_symbol(&t.remote, t.library, HOOK_DETACH, NULL) : 0;
    if (call.function)
        rc = inject(&t, &call, &result, err);
    if (!call.function || (rc == 0 && result == -ESRCH))
        rc = error_set(err, ESRCH, "%d: nothing is attached to it", (int)pid);
    target_close(&t);
    if (rc == 0 && result)
        rc = error_set(err, EAGAIN, "%d: not all of its slots could be put back; the hooks in them record nothing",
                       (int)pid);
    return rc;
}

/* A process of its own: all that it traces goes on when it ends. No signal for memprof is for it, nor does it end with
 * it, so that what has begun is brought to its end. */
static _Noreturn void help(int pipe, pid_t pid, const char *library, const char *session)
{
    struct answer answer = {0};
    struct error err = {""};
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    prctl(PR_SET_NAME, "memprof-attach", 0, 0, 0);
    setsid();
    answer.rc = library ? put_in(pid, library, session, &err) : take_out(pid, &err);
    memcpy(answer.text, err.text, sizeof answer.text);
    io_write(pipe, &answer, sizeof answer);
    _exit(0);
}

static int start(struct attach_work *work, pid_t pid, const char *library, const char *session, struct error *err)
{
    int ends[2];
    *work = (struct attach_work){0, -1};
    if (pipe2(ends, O_CLOEXEC))
        return error_set(err, errno, "pipe: %s", strerror(errno));
    fflush(NULL);
    work->helper = fork();
    if (work->helper == 0)
        help(ends[1], pid, library, session);
    close(ends[1]);
    work->pipe = ends[0];
    if (work->helper > 0)
        return 0;
    int rc = error_set(err, errno, "fork: %s", strerror(errno));
    close(ends[0]);
    *work = (struct attach_work){0, -1};
    return rc;
}

int attach_end_done(struct attach_work *work, int wait, int *rc, struct error *err)
{
    struct answer answer;
    struct pollfd poll_fd = {.fd = work->pipe, .events = POLLIN};
    if (!wait && poll(&poll_fd, 1, 0) != 1)
        return 0;
    if (io_read(work->pipe, &answer, sizeof answer) == sizeof answer) {
        answer.text[sizeof answer.text - 1] = 0;
        *rc = answer.rc;
        memcpy(err->text, answer.text, sizeof err->text);
    } else {
        *rc = error_set(err, ECHILD, "memprof's helper was killed while it attached or detached; ask again");
    }
    close(work->pipe);
    while (waitpid(work->helper, NULL, 0) < 0 && errno == EINTR)
        ;
    *work = (struct attach_work){0, -1};
    return 1;
}

int attach_check(pid_t pid, const char *library, struct error *err)
{
    struct target t;
    int rc = target_open(&t, pid, library, err);
    if (rc == 0)
        target_close(&t);
    return rc;
}

int attach_begin(pid_t pid, const char *library, const char *session, struct error *err)
{
    struct attach_work work;
    int rc = start(&work, pid, library, session, err);
    if (rc == 0)
        attach_end_done(&work, 1, &rc, err);
    return rc;
}

int attach_end_start(struct attach_work *work, pid_t pid, struct error *err)
{
    return start(work, pid, NULL, NULL, err);
}
