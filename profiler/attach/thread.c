#include "thread.h"

#include "../../common/monotonic.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define STOP_NS        200000000ull /* a thread in the middle of the kernel's own work stops later */
#define NAP_NS         50000
#define CODE_64        0x33 /* cs */
#define STATE_BYTES    65536
#define STATE_LEAST    576 /* below that it was not xsave that the kernel saved it by */
#define RESTART_SYS    (-512)
#define RESTART_NOINTR (-513)
#define RESTART_NOHAND (-514)
#define RESTART_BLOCK  (-516)

int thread_seize(struct thread *t, pid_t tid)
{
    *t = (struct thread){.tid = tid};
    if (ptrace(PTRACE_SEIZE, tid, 0, PTRACE_O_TRACEEXEC) == 0)
        return 0;
    t->is_gone = 1;
    return -errno;
}

/* What waitpid told. 0: it goes on; 1: it is stopped because we asked for that, or stands still. */
static int take_status(struct thread *t, int status)
{
    if (!WIFSTOPPED(status)) {
        t->is_gone = 1;
        return -ESRCH;
    }
    int number = WSTOPSIG(status), event = status >> 16;
    if (event == PTRACE_EVENT_EXEC) {
        ptrace(PTRACE_DETACH, t->tid, 0, 0);
        t->is_gone = 1;
        return -ESRCH;
    }
    t->is_stopped = 1;
    if (event == PTRACE_EVENT_STOP && number == SIGTRAP)
        return 1;
    if (event == 0 && !(THREAD_OTHER_SIGNALS & THREAD_SIGNAL((unsigned)number)))
        return -EFAULT;
    /* a signal of its own, or its group stops */
    t->is_stopped = 0;
    if (ptrace(event == PTRACE_EVENT_STOP ? PTRACE_LISTEN : PTRACE_CONT, t->tid, 0, event ? 0 : number) == 0)
        return 0;
    t->is_gone = 1;
    return -ESRCH;
}

static int pass_on(struct thread *t)
{
    int number = 0;
    siginfo_t info;
    if (ptrace(PTRACE_GETSIGINFO, t->tid, 0, &info) == 0)
        number = info.si_signo;
    t->is_stopped = 0;
    return ptrace(PTRACE_CONT, t->tid, 0, number) ? -errno : 0;
}

/* What take_status says of it, if there is something. */
static int look(struct thread *t)
{
    int status;
    pid_t pid = waitpid(t->tid, &status, __WALL | WNOHANG);
    if (pid == 0)
        return 0;
    if (pid > 0)
        return take_status(t, status);
    t->is_gone = 1;
    return -ESRCH;
}

int thread_look(struct thread *t)
{
    int rc = look(t);
    return rc == 1 ? thread_go(t) : rc;
}

int thread_look_other(struct thread *t)
{
    int rc = t->is_gone ? -ESRCH : thread_look(t);
    return rc == -EFAULT ? pass_on(t) : rc;
}

static int read_state(struct thread *t)
{
    static char state[STATE_BYTES];
    struct iovec part = {state, sizeof state};
    if (ptrace(PTRACE_GETREGS, t->tid, 0, &t->registers) ||
        ptrace(PTRACE_GETSIGMASK, t->tid, sizeof t->signals, &t->signals))
        return -errno;
    t->state_bytes = ptrace(PTRACE_GETREGSET, t->tid, NT_X86_XSTATE, &part) ? 0 : part.iov_len;
    return 0;
}

int thread_stop(struct thread *t)
{
    const uint64_t end_ns = monotonic_ns() + STOP_NS;
    if (t->is_gone)
        return -ESRCH;
    if (!t->is_stopped && ptrace(PTRACE_INTERRUPT, t->tid, 0, 0))
        return -errno;
    while (!t->is_stopped) {
        int rc = look(t);
        if (rc == -EFAULT) /* the program's own fault, for its own handler */
            rc = pass_on(t);
        if (rc < 0)
            return rc;
        if (rc == 0 && monotonic_ns() > end_ns)
            return -ETIMEDOUT;
        if (rc == 0)
            nanosleep(&(struct timespec){0, NAP_NS}, NULL);
    }
    return read_state(t);
}

int thread_go(struct thread *t)
{
    t->is_stopped = 0;
    return ptrace(PTRACE_CONT, t->tid, 0, 0) ? -errno : 0;
}

int thread_go_with(struct thread *t, const struct user_regs_struct *r)
{
    return ptrace(PTRACE_SETREGS, t->tid, 0, r) ? -errno : thread_go(t);
}

void thread_release(struct thread *t)
{
    if (t->is_gone || (!t->is_stopped && thread_stop(t)))
        return;
    ptrace(PTRACE_DETACH, t->tid, 0, 0);
    t->is_gone = 1;
}

int thread_waits_at(const struct thread *t, uint64_t address)
{
    char path[64], text[256] = "";
    unsigned long long number, set, info, time;
    snprintf(path, sizeof path, "/proc/%d/syscall", (int)t->tid);
    FILE *file = fopen(path, "re");
    int is_read = file && fgets(text, sizeof text, file);
    if (file)
        fclose(file);
    return is_read && sscanf(text, "%llu 0x%llx 0x%llx 0x%llx", &number, &set, &info, &time) == 4 &&
           number == SYS_rt_sigtimedwait && time == address;
}

/* A line of /proc/TID/status that is a mask of signals. 0: it cannot be read. */
static int status_mask(const struct thread *t, const char *format, uint64_t *mask)
{
    char path[64], line[128];
    unsigned long long value;
    int is_found = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)t->tid);
    FILE *file = fopen(path, "re");
    while (file && !is_found && fgets(line, sizeof line, file))
        is_found = sscanf(line, format, &value) == 1;
    if (file)
        fclose(file);
    if (is_found)
        *mask = value;
    return is_found;
}

int thread_blocks(const struct thread *t, uint64_t *signals)
{
    return status_mask(t, "SigBlk: %llx", signals);
}

/* epoll_wait ends with EINTR for a stop, too, of which the program knows nothing: it goes on where nothing has come. */
static void hide_stop(const struct thread *t, struct user_regs_struct *r)
{
    uint64_t own, all;
    if ((long)r->rax != -EINTR || ((long)r->orig_rax != SYS_epoll_wait && (long)r->orig_rax != SYS_epoll_pwait))
        return;
    if (status_mask(t, "SigPnd: %llx", &own) && status_mask(t, "ShdPnd: %llx", &all) && !((own | all) & ~t->signals))
        r->rax = (unsigned long long)RESTART_NOHAND; /* else it shall see it */
}

int thread_put_back(struct thread *t)
{
    hide_stop(t, &t->registers);
    if (ptrace(PTRACE_SETSIGMASK, t->tid, sizeof t->signals, &t->signals) ||
        ptrace(PTRACE_SETREGS, t->tid, 0, &t->registers))
        return -errno;
    return 0;
}

int thread_is_plain(const struct thread *t)
{
    return t->registers.cs == CODE_64 && t->state_bytes >= STATE_LEAST;
}

void thread_restart(struct user_regs_struct *r)
{
    if ((long)r->orig_rax < 0)
        return;
    switch ((long)r->rax) {
    case RESTART_SYS:
    case RESTART_NOINTR:
    case RESTART_NOHAND:
        r->rax = r->orig_rax;
        break;
    case RESTART_BLOCK:
        r->rax = SYS_restart_syscall;
        break;
    default:
        return;
    }
    r->rip -= 2;
}
