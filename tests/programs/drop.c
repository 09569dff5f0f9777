/* drop DIR: becomes nobody inside chroot DIR, then allocates 300 blocks of 31 bytes in `work`: 100 in main, 100 in a
 * thread, 100 in a forked child. */
#include <grp.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static __attribute__((noinline)) void *work(void *unused)
{
    for (int i = 0; i < 100; i++)
        free(malloc(31));
    return unused;
}

int main(int argc, char **argv)
{
    if (argc < 2 || chroot(argv[1]) || chdir("/") || setgroups(0, NULL) || setgid(65534) || setuid(65534))
        return 77;
    work(NULL);
    pthread_t thread;
    if (pthread_create(&thread, NULL, work, NULL))
        return 1;
    pthread_join(thread, NULL);
    pid_t pid = fork();
    if (pid == 0) {
        work(NULL);
        _exit(0);
    }
    int status;
    waitpid(pid, &status, 0);
    return status != 0;
}
