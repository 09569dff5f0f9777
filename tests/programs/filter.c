/* filter HOW WHAT NUMBER: a seccomp filter that kills the process at system call NUMBER, set by HOW: prctl or syscall;
 * then WHAT: "work" allocates in two threads for 300 ms and exits with 7, "threads" in 100 more that begin behind the
 * filter, "exec" executes true; "refused": the call fails, and a forked child allocates. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static volatile int may_go;

static void *work(void *seconds)
{
    while (!may_go)
        ;
    for (double end = now() + *(double *)seconds; now() < end; usleep(1000)) /* there may be a hundred threads */
        for (int i = 0; i < 20; i++)
            free(malloc((size_t)(i + 1) * 500));
    return NULL;
}

static int child_status(double seconds)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        work(&seconds);
        _exit(7);
    }
    return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : 6;
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    int is_refused = strcmp(argv[2], "refused") == 0;
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)atoi(argv[3]), 0, 1),
        BPF_STMT(BPF_RET | BPF_K, is_refused ? SECCOMP_RET_ERRNO | EPERM : SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {4, code};
    double seconds = 0.3;
    pthread_t thread;
    pthread_create(&thread, NULL, work, &seconds);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        return 3;
    if (strcmp(argv[1], "prctl") == 0 ? prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)
                                      : (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program))
        return 4;
    if (strcmp(argv[1], "syscall") == 0) /* the collector finds such a filter when it looks */
        usleep(200000);
    may_go = 1;
    if (strcmp(argv[2], "exec") == 0) {
        execl("/bin/true", "true", (char *)NULL);
        return 5;
    }
    if (is_refused)
        return child_status(seconds);
    pthread_t more[100];
    int count = strcmp(argv[2], "threads") == 0 ? 100 : 0;
    for (int i = 0; i < count; i++)
        pthread_create(&more[i], NULL, work, &seconds);
    work(&seconds);
    pthread_join(thread, NULL);
    for (int i = 0; i < count; i++)
        pthread_join(more[i], NULL);
    exit(7);
}
