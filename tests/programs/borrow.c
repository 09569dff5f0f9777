/* borrow N: N children that run beside their parent in its memory (clone with CLONE_VM alone), each of which executes
 * this program as `borrow child`; the parent allocates 2000 blocks of 70 bytes in `parent_work` meanwhile. */
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static char *program;

static int become(void *unused)
{
    (void)unused;
    char *child[] = {program, "child", NULL};
    execve(program, child, environ);
    _exit(127);
}

static __attribute__((noinline)) void parent_work(void)
{
    for (int i = 0; i < 2000; i++)
        free(malloc(70));
}

int main(int argc, char **argv)
{
    static _Alignas(16) char stack[65536];
    program = argv[0];
    for (int n = argc > 1 ? atoi(argv[1]) : 0; n > 0; n--) {
        int status;
        pid_t pid = clone(become, stack + sizeof stack, CLONE_VM | SIGCHLD, NULL);
        parent_work();
        if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
            return 1;
    }
    return 0;
}
