/* stop_world SECONDS [quiet]: stops its two working threads by a signal wherever they are, as a garbage collector does,
 * and lets them go on, again and again. While they stand it allocates, or with `quiet` it does not. The workers' heaps
 * are arenas of their own, so that whoever stands in malloc has nothing that the first thread needs. Prints how often
 * it stopped them and how many blocks they made. SIGALRM ends it where it hangs. */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { WORKERS = 2, STOP = SIGUSR1, GO = SIGUSR2, BLOCKS = 12, HANGING = 20 /* seconds */ };

static sem_t stopped, ready;
static volatile unsigned round_number;
static volatile int ending;

static void stop(int signal)
{
    (void)signal;
    int saved = errno;
    unsigned here = round_number;
    sigset_t all_but_two;
    sigfillset(&all_but_two);
    sigdelset(&all_but_two, GO);
    sigdelset(&all_but_two, SIGALRM);
    sem_post(&stopped);
    while (round_number == here)
        sigsuspend(&all_but_two);
    errno = saved;
}

static void go(int signal)
{
    (void)signal;
}

/* too large for the cache of each thread, so that malloc takes the arena's lock */
static __attribute__((noinline)) void work(unsigned step)
{
    void *blocks[BLOCKS];
    for (unsigned i = 0; i < BLOCKS; i++)
        blocks[i] = malloc(1100 + (step + i * 97) % 2000);
    for (unsigned i = 0; i < BLOCKS; i++)
        free(blocks[i]);
}

static void *worker(void *blocks)
{
    unsigned step = 0;
    work(step++); /* its arena is made before the world stops */
    sem_post(&ready);
    for (; !ending; step++)
        work(step);
    *(long *)blocks = (long)step * BLOCKS;
    return NULL;
}

static __attribute__((noinline)) void collect(void)
{
    void *blocks[BLOCKS];
    for (unsigned i = 0; i < BLOCKS; i++)
        blocks[i] = malloc(1100);
    for (unsigned i = 0; i < BLOCKS; i++)
        free(blocks[i]);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void wait_for_all(sem_t *semaphore)
{
    for (int i = 0; i < WORKERS; i++)
        while (sem_wait(semaphore) != 0)
            ;
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? atof(argv[1]) : 1, end = now() + seconds;
    pthread_t threads[WORKERS];
    long blocks[WORKERS], rounds = 0, all = 0;
    struct sigaction action = {.sa_handler = stop, .sa_flags = SA_RESTART};
    sigfillset(&action.sa_mask);
    sigaction(STOP, &action, NULL);
    action.sa_handler = go;
    sigaction(GO, &action, NULL);
    alarm((unsigned)seconds + HANGING);
    sem_init(&stopped, 0, 0);
    sem_init(&ready, 0, 0);
    for (int i = 0; i < WORKERS; i++)
        pthread_create(&threads[i], NULL, worker, &blocks[i]);
    wait_for_all(&ready);
    for (; now() < end; rounds++) {
        for (int i = 0; i < WORKERS; i++)
            pthread_kill(threads[i], STOP);
        wait_for_all(&stopped);
        if (argc < 3)
            collect();
        round_number++;
        for (int i = 0; i < WORKERS; i++)
            pthread_kill(threads[i], GO);
        nanosleep(&(struct timespec){0, 20000}, NULL);
    }
    ending = 1;
    for (int i = 0; i < WORKERS; i++) {
        pthread_join(threads[i], NULL);
        all += blocks[i];
    }
    printf("%ld %ld\n", rounds, all);
    return 0;
}
