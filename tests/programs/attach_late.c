/*
 * A process to attach to whose first thread cannot be stopped for a while, and then holds the loader's lock: it waits
 * for a child made by vfork within a call of dl_iterate_phdr. A second thread only waits. A line on standard input is
 * how many milliseconds it lasts; the answer comes afterwards.
 */
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;

static void *wait_for_ever(void *arg)
{
    pthread_mutex_lock(&lock);
    for (;;)
        pthread_cond_wait(&never, &lock);
    return arg;
}

static int hold(struct dl_phdr_info *info, size_t size, void *ms)
{
    (void)info, (void)size;
    long n = *(long *)ms;
    puts("holds");
    if (vfork() == 0) {
        nanosleep(&(struct timespec){n / 1000, n % 1000 * 1000000}, NULL);
        _exit(0);
    }
    return 1;
}

int main(void)
{
    char line[64];
    pthread_t thread;
    setvbuf(stdout, NULL, _IOLBF, 0);
    pthread_create(&thread, NULL, wait_for_ever, NULL);
    puts("ready");
    while (fgets(line, sizeof line, stdin)) {
        long ms = atol(line);
        dl_iterate_phdr(hold, &ms);
        puts("held");
    }
    puts("good");
    return 0;
}
