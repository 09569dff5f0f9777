/* orphans spawn|vfork|raw: leaves a child behind and ends at once: one made by posix_spawn or vfork and execv, which
 * runs this program as `orphans child`; or by the bare system call, which sleeps for 0.3 s first. The child allocates 7
 * blocks of 70 bytes in `child_work`. */
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

extern char **environ;

static __attribute__((noinline)) void child_work(void)
{
    for (int i = 0; i < 7; i++)
        free(malloc(70));
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "spawn";
    char *child[] = {argv[0], "child", NULL};
    pid_t pid;
    if (strcmp(how, "child") == 0) {
        child_work();
        return 0;
    }
    if (strcmp(how, "spawn") == 0)
        _exit(posix_spawn(&pid, argv[0], NULL, NULL, child, environ) != 0);
    if (strcmp(how, "vfork") == 0) {
        pid = vfork();
        if (pid == 0) {
            execv(argv[0], child);
            _exit(127);
        }
        _exit(pid < 0);
    }
    if (syscall(SYS_fork) == 0) {
        usleep(300000);
        child_work();
    }
    _exit(0);
}
