/* spawn: runs itself as `spawn child` in five ways: posix_spawn, posix_spawnp, vfork + exec, system, popen; each child
 * allocates 7 blocks of 70 bytes in `child_work`. execve gets an environment without LD_PRELOAD in the vfork case. */
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static __attribute__((noinline)) void child_work(void)
{
    for (int i = 0; i < 7; i++)
        free(malloc(70));
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        child_work();
        return 3;
    }
    char self[4096], command[4200];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    self[length] = 0;
    snprintf(command, sizeof command, "%s child", self);
    char *child[] = {self, "child", NULL};
    char *empty[] = {"PATH=/bin", NULL};
    pid_t pid;
    int status, sum = 0;

    if (posix_spawn(&pid, self, NULL, NULL, child, environ))
        return 1;
    waitpid(pid, &status, 0);
    sum += WEXITSTATUS(status);
    if (posix_spawnp(&pid, self, NULL, NULL, child, environ))
        return 1;
    waitpid(pid, &status, 0);
    sum += WEXITSTATUS(status);
    pid = vfork();
    if (pid == 0) {
        execve(self, child, empty);
        _exit(127);
    }
    waitpid(pid, &status, 0);
    sum += WEXITSTATUS(status);
    status = system(command);
    sum += WEXITSTATUS(status);
    FILE *f = popen(command, "r");
    status = pclose(f);
    sum += WEXITSTATUS(status);
    (void)argv;
    return sum == 15 ? 0 : 1;
}
