#include "symbolize.h"

#include "../../common/db.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static _Noreturn void child(const char *path, const struct finish_options *options, int report)
{
    struct error err = {""};
    sqlite3 *db = NULL;
    int rc = db_open_write(path, &db, &err);
    if (rc == 0) {
        /* a killed process loses nothing by this, only a crashed machine would */
        sqlite3_exec(db, "PRAGMA synchronous = OFF; PRAGMA cache_size = -8192; PRAGMA temp_store = MEMORY", NULL, NULL,
                     NULL);
        struct finish_options own = *options;
        own.recording = path;
        rc = finish_database(db, &own, &err);
        if (rc == 0)
            rc = db_leave_log(db, 0, &err); /* where a reader kept it when the recording ended */
    }
    if (db && sqlite3_close(db) != SQLITE_OK && rc == 0)
        rc = error_set(&err, EIO, "%s: not closed properly", path);
    if (rc) {
        ssize_t n = write(report, &err, sizeof err);
        (void)n;
    }
    _exit(rc ? 1 : 0);
}

static int wait_for(pid_t pid, int signal_fd, int *status)
{
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0), stopped = 0;
    struct pollfd fds[2] = {{.fd = pidfd, .events = POLLIN}, {.fd = signal_fd, .events = POLLIN}};
    while (pidfd >= 0 && !stopped) {
        struct signalfd_siginfo info;
        if (poll(fds, 2, -1) < 0 && errno != EINTR)
            break;
        if (fds[0].revents)
            break;
        while (signal_fd >= 0 && read(signal_fd, &info, sizeof info) == sizeof info)
            stopped |= info.ssi_signo != SIGUSR1 && info.ssi_signo != SIGUSR2;
    }
    if (stopped)
        kill(pid, SIGKILL);
    if (pidfd >= 0)
        close(pidfd);
    while (waitpid(pid, status, 0) < 0 && errno == EINTR)
        ;
    return stopped;
}

int symbolize_file(const char *path, const struct finish_options *options, int signal_fd, struct error *err)
{
    int report[2], status = 0;
    struct error reported = {""};
    if (pipe(report))
        return error_set(err, errno, "%s: pipe: %s", path, strerror(errno));
    pid_t pid = fork();
    if (pid == 0) {
        close(report[0]);
        child(path, options, report[1]);
    }
    int code = errno;
    close(report[1]);
    if (pid < 0) {
        close(report[0]);
        return error_set(err, code, "%s: fork: %s", path, strerror(code));
    }
    int stopped = wait_for(pid, signal_fd, &status);
    ssize_t n = read(report[0], &reported, sizeof reported);
    close(report[0]);
    if (status == 0) {
        finish_forget(path);
        return 0;
    }
    /* what it had not committed is taken back by the next one that opens the file for writing */
    sqlite3 *db = NULL;
    if (db_open_write(path, &db, NULL) == 0)
        sqlite3_close(db);
    if (stopped)
        return error_set(err, EINTR, "%s: symbolizing stopped; 'memprof report' does it", path);
    if (WIFSIGNALED(status))
        return error_set(err, EIO, "%s: symbolizing ended by signal %d (%s); the recording is whole, its names are not",
                         path, WTERMSIG(status), strsignal(WTERMSIG(status)));
    if (n == sizeof reported && err)
        *err = reported;
    else if (err)
        error_set(err, EIO, "%s: symbolizing failed", path);
    return -EIO;
}
