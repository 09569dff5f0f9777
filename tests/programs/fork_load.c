/* fork_load CHILDREN: 3 threads allocate and free without a pause while main forks CHILDREN children; each child
 * allocates 50 blocks of 40 bytes in `child_work` and ends. A child that inherits a held lock of the profiler hangs
 * here. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static atomic_int stop;

static void *load(void *unused)
{
    (void)unused;
    void *ring[64] = {0};
    for (unsigned i = 0; !stop; i++) {
        free(ring[i % 64]);
        ring[i % 64] = malloc(i % 500 + 1);
    }
    for (int i = 0; i < 64; i++)
        free(ring[i]);
    return NULL;
}
static __attribute__((noinline)) void child_work(void)
{
    for (int i = 0; i < 50; i++)
        free(malloc(40));
}

int main(int argc, char **argv)
{
    int children = argc > 1 ? atoi(argv[1]) : 200;
    pthread_t t[3];
    for (int i = 0; i < 3; i++)
        pthread_create(&t[i], NULL, load, NULL);
    int bad = 0;
    for (int i = 0; i < children; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            child_work();
            _exit(0);
        }
        int status;
        if (waitpid(pid, &status, 0) < 0 || status)
            bad = 1;
    }
    stop = 1;
    for (int i = 0; i < 3; i++)
        pthread_join(t[i], NULL);
    return bad;
}
