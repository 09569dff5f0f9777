/* same_pid PID COUNT: children one after another that all get this pid; each third one executes itself. Their statuses
 * are their numbers. 77: not permitted. */
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

__attribute__((noinline)) static void child_work(int n)
{
    for (int i = 0; i < n; i++)
        free(malloc(100));
}

int main(int argc, char **argv)
{
    if (argc == 2)
        return atoi(argv[1]);
    pid_t pid = atoi(argv[1]);
    for (int i = 0; i < atoi(argv[2]); i++) {
        struct clone_args how = {.exit_signal = SIGCHLD, .set_tid = (uint64_t)&pid, .set_tid_size = 1};
        char number[16];
        int status;
        long child = syscall(SYS_clone3, &how, sizeof how);
        if (child == 0) {
            snprintf(number, sizeof number, "%d", i);
            child_work(10);
            if (i % 3 == 0)
                execl(argv[0], argv[0], number, NULL);
            _exit(i);
        }
        if (child < 0)
            return 77;
        waitpid(pid, &status, 0);
        if (WEXITSTATUS(status) != i)
            return 1;
    }
    return 0;
}
