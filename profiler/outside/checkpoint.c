#include "checkpoint.h"

#include "../../common/monotonic.h"
#include "checkpoint_worker.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* CUresult */
enum { NOT_PERMITTED = 800, NOT_SUPPORTED = 801, NOT_READY = 600, ILLEGAL_STATE = 401, NOT_INITIALIZED = 3 };

#define END_NS  5000000000
#define KILL_NS 1000000000

struct checkpoint {
    int fd;
    pid_t worker;
    char what[32]; /* what messages name */
};

/* --- the worker --- */

static int spawn(struct checkpoint *c, int pid)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
        return -1;
    c->worker = fork();
    if (c->worker == 0) {
        close(ends[0]);
        checkpoint_worker(ends[1], pid);
    }
    close(ends[1]);
    c->fd = ends[0];
    if (c->worker > 0)
        return 0;
    close(ends[0]);
    return -1;
}

/* 1: an answer; 0: none in time; -1: it is gone. */
static int receive(const struct checkpoint *c, struct worker_answer *a, int64_t end_ns)
{
    struct pollfd p = {.fd = c->fd, .events = POLLIN};
    for (;;) {
        const int64_t left_ns = end_ns - (int64_t)monotonic_ns();
        if (left_ns <= 0)
            return 0;
        const int64_t left_ms = left_ns / 1000000 + 1;
        const int rc = poll(&p, 1, left_ms < 3600000 ? (int)left_ms : 3600000);
        if (rc > 0)
            return recv(c->fd, a, sizeof *a, 0) == sizeof *a ? 1 : -1;
        if (rc < 0 && errno != EINTR)
            return -1;
    }
}

/* Whether it ended, in that time: who is stuck in a driver's kernel module does not even when it is killed. */
static int wait_end(const struct checkpoint *c, int *status, int64_t limit_ns)
{
    for (const int64_t end_ns = (int64_t)monotonic_ns() + limit_ns; waitpid(c->worker, status, WNOHANG) == 0;) {
        if ((int64_t)monotonic_ns() > end_ns)
            return 0;
        nanosleep(&(struct timespec){0, 2000000}, NULL);
    }
    return 1;
}

/* Its end, which it finds itself once nobody can ask; it may have to unlock the process for that. Returns the signal
 * that it died of. */
static int end_worker(struct checkpoint *c, int is_stuck)
{
    int status = 0;
    if (c->worker <= 0)
        return 0;
    close(c->fd);
    if (is_stuck || !wait_end(c, &status, END_NS)) {
        kill(c->worker, SIGKILL);
        wait_end(c, &status, KILL_NS);
    }
    c->worker = 0;
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static const char *doing(unsigned call)
{
    static const char *const texts[] = {"starting",    "asking for its state",          "looking at its GPUs",
                                        "locking it",  "moving its memory to the host", "restoring it",
                                        "unlocking it"};
    return call < sizeof texts / sizeof *texts ? texts[call] : "?";
}

static int refused(const struct checkpoint *c, unsigned call, const struct worker_answer *a, struct error *err)
{
    char text[sizeof a->text];
    snprintf(text, sizeof text, "%s", a->text);
    if (a->error == -1)
        return error_set(err, ENOSYS, "%s: %s", c->what, text);
    if (a->error == NOT_READY)
        return error_set(err, EBUSY, "%s: its GPU calls did not end in time, so it runs on; give it a longer --timeout",
                         c->what);
    if (a->error == ILLEGAL_STATE)
        return error_set(err, EINVAL, "%s: its state is another one by now; see 'memprof state %s'", c->what, c->what);
    if (a->error == NOT_INITIALIZED && call == WORKER_STATE)
        return error_set(err, EIO, "%s: the driver knows no such process, or may not look at it: does it use a GPU?",
                         c->what);
    return error_set(err, EIO, "%s: %s, the driver says: %s%s", c->what, doing(call), text,
                     a->error == NOT_PERMITTED ? "; root may, or CAP_SYS_PTRACE" : "");
}

static int ask(struct checkpoint *c, unsigned call, int64_t timeout_ns, int64_t limit_ns, struct worker_answer *a,
               struct error *err)
{
    const struct worker_request r = {.call = call, .timeout_ms = (uint32_t)(timeout_ns / 1000000)};
    int rc = -1;
    if (c->worker > 0 && send(c->fd, &r, sizeof r, MSG_NOSIGNAL) == sizeof r)
        rc = receive(c, a, (int64_t)monotonic_ns() + limit_ns);
    if (rc > 0)
        return a->error ? refused(c, call, a, err) : 0;
    const int signal_number = end_worker(c, rc == 0);
    if (rc == 0)
        return error_set(err, ETIMEDOUT, "%s: %s, the driver did not answer in %.1f s", c->what, doing(call),
                         (double)limit_ns / 1e9);
    return error_set(err, ECHILD, "%s: %s, the driver crashed (signal %d)", c->what, doing(call), signal_number);
}

/* --- for who asks --- */

int checkpoint_open(int pid, const char *what, int64_t limit_ns, struct checkpoint **c, struct error *err)
{
    struct worker_answer a;
    struct checkpoint *made = xcalloc(1, sizeof *made);
    *c = NULL;
    snprintf(made->what, sizeof made->what, "%s", what);
    if (spawn(made, pid)) {
        free(made);
        return error_set(err, EAGAIN, "%s: no process to be had for the driver: %s", what, strerror(errno));
    }
    int rc = ask(made, WORKER_OPEN, 0, limit_ns, &a, err);
    if (rc == 0)
        *c = made;
    else
        checkpoint_close(made);
    return rc;
}

void checkpoint_close(struct checkpoint *c)
{
    if (c)
        end_worker(c, 0);
    free(c);
}

int checkpoint_ask(struct checkpoint *c, int64_t limit_ns, enum checkpoint_state *state, struct error *err)
{
    struct worker_answer a;
    int rc = ask(c, WORKER_STATE, 0, limit_ns, &a, err);
    if (rc == 0)
        *state = (enum checkpoint_state)a.state;
    return rc;
}

int checkpoint_do(struct checkpoint *c, enum checkpoint_step step, int64_t timeout_ns, int64_t limit_ns,
                  struct error *err)
{
    struct worker_answer a;
    return ask(c, WORKER_STEP + step, timeout_ns, limit_ns, &a, err);
}

int checkpoint_look(struct checkpoint *c, int64_t limit_ns, struct checkpoint_gpus *gpus, struct error *err)
{
    struct worker_answer a;
    int rc = ask(c, WORKER_LOOK, 0, limit_ns, &a, err);
    if (rc == 0)
        *gpus = a.gpus;
    return rc;
}
