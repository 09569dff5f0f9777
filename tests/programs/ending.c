/* ending HOW: allocates 10,000 blocks of 16 bytes in `work`, frees 9,000 of them, and ends in one of many ways. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *blocks[10000];
static __attribute__((noinline)) void work(void)
{
    for (int i = 0; i < 10000; i++)
        blocks[i] = malloc(16);
    for (int i = 0; i < 9000; i++)
        free(blocks[i]);
}
static void *ender(void *how)
{
    exit(*(char *)how == 't' ? 9 : 1);
}
static void *sleeper(void *unused)
{
    for (;;)
        pause();
    return unused;
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "exit";
    work();
    pthread_t thread;
    if (!strcmp(how, "exit"))
        exit(5);
    if (!strcmp(how, "_exit"))
        _exit(6);
    if (!strcmp(how, "_Exit"))
        _Exit(7);
    if (!strcmp(how, "quick_exit"))
        quick_exit(8);
    if (!strcmp(how, "thread")) {
        pthread_create(&thread, NULL, ender, (void *)how);
        pthread_join(thread, NULL);
    }
    if (!strcmp(how, "running")) { /* main returns while a thread still runs */
        pthread_create(&thread, NULL, sleeper, NULL);
        return 10;
    }
    if (!strcmp(how, "pthread_exit"))
        pthread_exit(NULL); /* the last thread: status 0 */
    if (!strcmp(how, "abort"))
        abort();
    if (!strcmp(how, "segv"))
        *(volatile int *)8 = 1;
    if (!strcmp(how, "kill"))
        kill(getpid(), SIGKILL);
    if (!strcmp(how, "term"))
        raise(SIGTERM);
    return 11;
}
