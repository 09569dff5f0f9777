/* The program gives its own GPUs back, or gets them again: the memprof that records it is started and does it, as who
 * calls the driver may hang, and knows what the recording has to say. Its end raises no signal here, and is nothing
 * that a program sees that waits for any child. */
#include "environment.h"
#include "record.h"
#include "session.h"

#include <alloca.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

extern char **__environ;

enum { OK = 0, NOT_RECORDED = -1, NOT_HERE = -4, REFUSED = -5 }; /* enum memprof_status */
enum { ENVIRONMENT_MOST = 1 << 15, DIGITS = 12, BROKEN = 127 };

static void write_number(char text[DIGITS], int number)
{
    char *end = text + DIGITS - 1, *p = end;
    *end = 0;
    do
        *--p = (char)('0' + number % 10);
    while (number /= 10);
    while ((*text++ = *p++))
        ;
}

/* "/proc/PID/fd/N" of the session is the collector's: its executable is "/proc/PID/exe". */
static int find_executable(char path[WIRE_SESSION_MAX])
{
    static const char last[] = "exe";
    const char *session = process.control->session_path;
    unsigned n = 0, slashes = 0;
    for (; n < WIRE_SESSION_MAX - sizeof last && session[n] && slashes < 3; n++) {
        path[n] = session[n];
        slashes += session[n] == '/';
    }
    for (unsigned i = 0; i < sizeof last; i++)
        path[n + i] = last[i];
    return slashes == 3;
}

/* What is started is no part of the recording. */
static void copy_environment(char **to, unsigned most)
{
    static const char *const ours[] = {WIRE_ENV_PRELOAD, WIRE_ENV_SESSION, WIRE_ENV_NVTX, "LD_AUDIT"};
    unsigned count = 0;
    for (char **e = __environ; *e && count < most; e++) {
        unsigned i = 0;
        while (i < sizeof ours / sizeof *ours && !environment_value(*e, ours[i]))
            i++;
        if (i == sizeof ours / sizeof *ours)
            to[count++] = *e;
    }
    to[count] = NULL;
}

/* In a copy of this process, which has only this thread: system calls alone. */
static _Noreturn void start(const char *path, char *const argv[], char *const env[])
{
    int nowhere = sys_open("/dev/null", O_WRONLY);
    if (nowhere >= 0)
        sys_call6(SYS_dup2, nowhere, 1, 0, 0, 0, 0);
    sys_call6(SYS_execve, (long)path, (long)argv, (long)env, 0, 0, 0);
    for (;;)
        sys_call6(SYS_exit_group, BROKEN, 0, 0, 0, 0, 0);
}

static int run(char *const argv[])
{
    char path[WIRE_SESSION_MAX];
    unsigned count = 0;
    int status = 0;
    long pid, rc;
    while (__environ[count] && count < ENVIRONMENT_MOST)
        count++;
    char **env = alloca((count + 1) * sizeof *env);
    if (!find_executable(path))
        return NOT_RECORDED;
    copy_environment(env, count);
    pid = sys_call6(SYS_clone, 0, 0, 0, 0, 0, 0); /* no signal at its end */
    if (pid == 0)
        start(path, argv, env);
    if (pid < 0)
        return REFUSED;
    do
        rc = sys_call6(SYS_wait4, pid, (long)&status, __WALL, 0, 0, 0);
    while (rc == -EINTR);
    return rc == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0 ? OK : REFUSED;
}

EXPORT int memprof_hook_yield(int is_restore);
EXPORT int memprof_hook_yield(int is_restore)
{
    char yield[] = "yield", restore[] = "restore", wait[] = "--wait", name[] = "memprof", pid[DIGITS];
    char *const argv[] = {name, is_restore ? restore : yield, pid, is_restore ? wait : NULL, NULL};
    if (!process.control || !gate.on || sys_getpid() != process.pid)
        return NOT_RECORDED;
    if (self.depth || process_is_filtered())
        return NOT_HERE;
    write_number(pid, process.pid);
    return run(argv);
}
