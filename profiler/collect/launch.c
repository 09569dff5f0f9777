#include "launch.h"

#include "../wire.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

int launch_prepare(struct launch_state *state, struct error *err)
{
    static const int handled[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGCONT, SIGWINCH, SIGTSTP};
    sigset_t ours, blocked;
    *state = (struct launch_state){.signal_fd = -1};
    sigemptyset(&ours);
    for (unsigned i = 0; i < sizeof handled / sizeof *handled; i++)
        sigaddset(&ours, handled[i]);
    blocked = ours;
    sigaddset(&blocked, SIGPIPE); /* a closed stderr must not end the recording */
    sigaddset(&blocked, SIGXFSZ); /* a file-size limit is an error of the write, not our end */
    sigprocmask(SIG_BLOCK, &blocked, &state->mask);
    sigaction(SIGCHLD, &(struct sigaction){.sa_handler = SIG_DFL}, &state->child_action);
    getrlimit(RLIMIT_NOFILE, &state->files);
    setrlimit(RLIMIT_NOFILE, &(struct rlimit){state->files.rlim_max, state->files.rlim_max});
    state->signal_fd = signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK);
    if (state->signal_fd < 0) {
        int rc = error_set(err, errno, "signalfd: %s", strerror(errno));
        launch_restore(state);
        return rc;
    }
    return 0;
}

static void undo(const struct launch_state *state)
{
    setrlimit(RLIMIT_NOFILE, &state->files);
    sigaction(SIGCHLD, &state->child_action, NULL);
    sigprocmask(SIG_SETMASK, &state->mask, NULL);
}

void launch_over(void)
{
    sigset_t of_the_terminal;
    sigemptyset(&of_the_terminal);
    sigaddset(&of_the_terminal, SIGTSTP);
    sigaddset(&of_the_terminal, SIGCONT);
    sigaddset(&of_the_terminal, SIGWINCH);
    sigprocmask(SIG_UNBLOCK, &of_the_terminal, NULL);
}

void launch_restore(struct launch_state *state)
{
    struct signalfd_siginfo info;
    sigset_t failures;
    /* What is still pending was meant for the program, or is an error that a write has told already. */
    sigemptyset(&failures);
    sigaddset(&failures, SIGPIPE);
    sigaddset(&failures, SIGXFSZ);
    while (sigtimedwait(&failures, NULL, &(struct timespec){0, 0}) > 0)
        ;
    while (state->signal_fd >= 0 && read(state->signal_fd, &info, sizeof info) == sizeof info)
        ;
    if (state->signal_fd >= 0)
        close(state->signal_fd);
    state->signal_fd = -1;
    undo(state);
}

static char *assignment(const char *name, const char *value, const char *more)
{
    size_t n = strlen(name) + strlen(value) + (more ? strlen(more) : 0) + 3;
    char *text = xmalloc(n);
    snprintf(text, n, "%s=%s%s%s", name, value, more && *more ? ":" : "", more ? more : "");
    return text;
}

/* The value, where entry is an assignment to name. */
static const char *value_of(const char *entry, const char *name)
{
    size_t n = strlen(name);
    return strncmp(entry, name, n) == 0 && entry[n] == '=' ? entry + n + 1 : NULL;
}

#define OURS 4 /* variables that we set, at most */

/* Our own environment with our variables set; the array and its strings from *first on are the caller's. */
static char **environment_with(const char *library, const char *session, size_t *first)
{
    size_t count = 0, n = 0;
    const char *users = NULL, *users_nvtx = NULL, *value;
    while (environ[count])
        count++;
    char **out = xcalloc(count + OURS + 1, sizeof *out);
    for (size_t i = 0; i < count; i++) {
        if ((value = value_of(environ[i], WIRE_ENV_PRELOAD)))
            users = value;
        else if ((value = value_of(environ[i], WIRE_ENV_NVTX)))
            users_nvtx = value;
        else if (!value_of(environ[i], WIRE_ENV_SESSION) && !value_of(environ[i], WIRE_ENV_NVTX_NEXT))
            out[n++] = environ[i];
    }
    *first = n;
    out[n++] = assignment(WIRE_ENV_SESSION, session, NULL);
    out[n++] = assignment(WIRE_ENV_PRELOAD, library, users);
    out[n++] = assignment(WIRE_ENV_NVTX, library, NULL);
    if (users_nvtx && *users_nvtx && strcmp(users_nvtx, library) != 0)
        out[n++] = assignment(WIRE_ENV_NVTX_NEXT, users_nvtx, NULL);
    return out;
}

/* As execvp does: what is executable, but no format of the kernel's, is a script of sh. */
static int execute(const char *path, char *const argv[], char **env)
{
    execve(path, argv, env);
    if (errno != ENOEXEC)
        return errno;
    size_t count = 0;
    while (argv[count])
        count++;
    char **shell = calloc(count + 3, sizeof *shell);
    if (!shell)
        return ENOMEM;
    shell[0] = (char *)"sh";
    shell[1] = (char *)path;
    for (size_t i = 1; i < count; i++)
        shell[i + 1] = argv[i];
    execve("/bin/sh", shell, env);
    free(shell);
    return ENOEXEC;
}

static _Noreturn void child(const struct launch_state *state, const char *path, char *const argv[], char **env,
                            int report)
{
    struct rusage usage;
    undo(state);
    getrusage(RUSAGE_SELF, &usage);
    int before_kib = (int)usage.ru_maxrss;
    ssize_t n = write(report, &before_kib, sizeof before_kib);
    int code = execute(path, argv, env);
    n = write(report, &code, sizeof code);
    (void)n;
    _exit(126);
}

int launch_replace(const char *path, char *const argv[], struct error *err)
{
    int code = execute(path, argv, environ);
    return error_set(err, code, "%s: cannot be run: %s", path, strerror(code));
}

/* 0 at the pipe's end. */
static int read_int(int fd, int *value)
{
    ssize_t n;
    do
        n = read(fd, value, sizeof *value);
    while (n < 0 && errno == EINTR);
    return n == sizeof *value;
}

pid_t launch_start(struct launch_state *state, const char *path, char *const argv[], const char *library,
                   const char *session, struct error *err)
{
    int report[2], code = 0;
    if (pipe2(report, O_CLOEXEC))
        return error_set(err, errno, "%s: pipe: %s", path, strerror(errno));
    size_t first = 0;
    char **env = library ? environment_with(library, session, &first) : environ;
    pid_t pid = fork();
    if (pid == 0)
        child(state, path, argv, env, report[1]);
    int fork_code = errno;
    close(report[1]);
    if (library) {
        for (size_t i = first; env[i]; i++)
            free(env[i]);
        free(env);
    }
    if (pid < 0) {
        pid = error_set(err, fork_code, "%s: fork: %s", path, strerror(fork_code));
    } else {
        int before_kib = 0;
        state->before_bytes = read_int(report[0], &before_kib) ? (uint64_t)before_kib * 1024 : UINT64_MAX;
        if (read_int(report[0], &code)) { /* it did not start */
            while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
                ;
            pid = error_set(err, code, "%s: cannot be run: %s", path, strerror(code));
        }
    }
    close(report[0]);
    return pid;
}

int launch_exit_status(int wait_status)
{
    return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}
