/*
 * executions THREADS: executions of a range "work" that overlap: each of THREADS threads makes 40, every fourth with
 * one of its own name inside. Blocks live for some executions, and are freed by whoever comes across them. A child
 * process has one execution of its own, in which it ends with blocks; a last one of the parent is never ended.
 */
#include <memprof.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PLACES = 32 };
static _Atomic(char *) places[PLACES];

static void put(int place, size_t size)
{
    char *p = size ? malloc(size) : NULL;
    if (p)
        p[0] = 1;
    free(atomic_exchange(&places[place], p));
}

static void *work(void *arg)
{
    unsigned state = (unsigned)(size_t)arg;
    for (int i = 0; i < 40; i++) {
        memprof_range_push("work");
        put(rand_r(&state) % PLACES, (size_t)rand_r(&state) % 3000);
        if (i % 4 == 0) {
            memprof_range_push("work");
            put(rand_r(&state) % PLACES, (size_t)rand_r(&state) % 20000);
            memprof_range_pop();
        }
        put(rand_r(&state) % PLACES, 0);
        usleep((unsigned)rand_r(&state) % 200);
        memprof_range_pop();
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int threads = argc > 1 ? atoi(argv[1]) : 3;
    pthread_t thread[8];
    for (int i = 0; i < threads && i < 8; i++)
        pthread_create(&thread[i], NULL, work, (void *)(size_t)(i + 1));
    for (int i = 0; i < threads && i < 8; i++)
        pthread_join(thread[i], NULL);
    pid_t child = fork();
    if (child == 0) {
        memprof_range_push("work");
        put(0, 5000);
        memprof_range_pop();
        memprof_range_push("work");
        put(1, 6000);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    memprof_range_push("work");
    put(2, 7000);
    return 0;
}
