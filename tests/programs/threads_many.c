/* threads_many THREADS: threads that come and go, 16 at a time; each allocates 20 blocks of 30 bytes in `thread_work`,
 * frees 19 and hands the last to main, which frees it. */
#include <pthread.h>
#include <stdlib.h>

static __attribute__((noinline)) void *thread_work(void *unused)
{
    (void)unused;
    for (int i = 0; i < 19; i++)
        free(malloc(30));
    return malloc(30);
}

int main(int argc, char **argv)
{
    int threads = argc > 1 ? atoi(argv[1]) : 5000;
    pthread_t t[16];
    for (int i = 0; i < threads; i += 16) {
        int batch = threads - i < 16 ? threads - i : 16;
        for (int k = 0; k < batch; k++)
            if (pthread_create(&t[k], NULL, thread_work, NULL))
                return 1;
        for (int k = 0; k < batch; k++) {
            void *last;
            pthread_join(t[k], &last);
            free(last);
        }
    }
    return 0;
}
