/* environment: a thread with the smallest stack starts this program again with an environment of 600 KB that lacks what
 * memprof needs: by posix_spawn, and by fork and execve. Each child allocates 7 blocks of 70 bytes in `child_work`. */
#include <limits.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ENTRIES 20000
static char text[ENTRIES][32];
static char *environment[ENTRIES + 1];
static char *arguments[] = {(char *)"environment", (char *)"child", NULL};
static char self[4096];

static __attribute__((noinline)) void child_work(void)
{
    for (int i = 0; i < 7; i++)
        free(malloc(70));
}

static int status_of(pid_t pid)
{
    int status = -1;
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void *thread(void *sum)
{
    pid_t pid;
    if (posix_spawn(&pid, self, NULL, NULL, arguments, environment))
        return NULL;
    *(int *)sum += status_of(pid);
    pid = fork();
    if (pid == 0) {
        execve(self, arguments, environment);
        _exit(127);
    }
    *(int *)sum += status_of(pid);
    return sum;
}

int main(int argc, char **argv)
{
    pthread_attr_t small;
    pthread_t t;
    int sum = 0;
    if (argc > 1) {
        child_work();
        return strcmp(argv[1], "child") ? 2 : 3;
    }
    self[readlink("/proc/self/exe", self, sizeof self - 1)] = 0;
    for (int i = 0; i < ENTRIES; i++) {
        snprintf(text[i], sizeof text[i], "VARIABLE_%d=some value of it", i);
        environment[i] = text[i];
    }
    pthread_attr_init(&small);
    if (pthread_attr_setstacksize(&small, PTHREAD_STACK_MIN) || pthread_create(&t, &small, thread, &sum))
        return 1;
    pthread_join(t, NULL);
    return sum == 6 ? 0 : 1;
}
