/* forks raw|kill|namespace: a child that libc knows nothing of allocates 10 blocks of 30 bytes in `child_work` and
 * exits with status 6, or is killed by SIGKILL, or is the first process of a new pid namespace; its parent waits for it
 * without asking how it ended. forks old PROGRAM [ARG]...: runs the program as on a Linux before 4.14, which does not
 * know MADV_WIPEONFORK. */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static __attribute__((noinline)) void child_work(void)
{
    for (int i = 0; i < 10; i++)
        free(malloc(30));
}

static __attribute__((noinline)) void parent_work(void)
{
    for (int i = 0; i < 20; i++)
        free(malloc(50));
}

static int old(char **program)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MADV_WIPEONFORK, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof code / sizeof *code, code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0))
        return 77;
    execv(program[0], program);
    return 127;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "raw";
    if (strcmp(what, "old") == 0)
        return argc > 2 ? old(argv + 2) : 2;
    parent_work();
    long flags = SIGCHLD | (strcmp(what, "namespace") == 0 ? CLONE_NEWPID : 0);
    long pid = syscall(SYS_clone, flags, 0, 0, 0, 0);
    if (pid < 0)
        return 77;
    if (pid == 0) {
        child_work();
        if (strcmp(what, "kill") == 0)
            syscall(SYS_kill, syscall(SYS_getpid), SIGKILL);
        _exit(6);
    }
    return waitid(P_PID, (id_t)pid, NULL, WEXITED) ? 1 : 0;
}
