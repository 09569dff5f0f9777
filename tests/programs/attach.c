/* A process to attach to, which keeps a ledger of its own.
 *   attach N       N threads wait for lines on standard input: "go COUNT": each makes and frees COUNT blocks, and the
 *                  sums since the last line are printed: blocks, bytes, frees
 *   attach N busy  they make and free blocks all the time, check what is in them, and print "good" at the end of input
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS_MAX 64
#define HELD        32

struct worker {
    pthread_t thread;
    unsigned number, seed;
    unsigned long blocks, bytes, frees, damaged, rounds;
    unsigned char *held[HELD];
    size_t sizes[HELD];
};

static struct worker workers[THREADS_MAX];
static pthread_barrier_t begin, end;
static unsigned long count;
static int is_busy;
static volatile int is_over;

static void replace(struct worker *w, unsigned i, size_t size)
{
    unsigned char *p = w->held[i];
    if (p) {
        w->damaged += p[0] != (unsigned char)(w->number + i) || p[w->sizes[i] - 1] != (unsigned char)(w->number + i);
        free(p);
        w->frees++;
    }
    w->held[i] = NULL;
    if (!size)
        return;
    p = malloc(size);
    w->blocks++;
    w->bytes += size;
    memset(p, (int)(w->number + i), size);
    w->held[i] = p;
    w->sizes[i] = size;
}

static void churn(struct worker *w)
{
    w->seed = w->seed * 1103515245 + 12345;
    replace(w, w->seed >> 16 & (HELD - 1), 1 + (w->seed >> 8) % 3000);
}

static void *work(void *arg)
{
    struct worker *w = arg;
    for (; is_busy && !is_over; w->rounds++)
        churn(w);
    while (!is_busy) {
        pthread_barrier_wait(&begin);
        if (is_over)
            break;
        for (unsigned long i = 0; i < count; i++)
            churn(w);
        pthread_barrier_wait(&end);
    }
    for (unsigned i = 0; i < HELD; i++)
        replace(w, i, 0);
    return NULL;
}

static void tell(unsigned threads)
{
    unsigned long blocks = 0, bytes = 0, frees = 0;
    for (unsigned i = 0; i < threads; i++) {
        blocks += workers[i].blocks;
        bytes += workers[i].bytes;
        frees += workers[i].frees;
        workers[i].blocks = workers[i].bytes = workers[i].frees = 0;
    }
    printf("%lu %lu %lu\n", blocks, bytes, frees);
}

int main(int argc, char **argv)
{
    char line[64];
    unsigned threads = argc > 1 ? (unsigned)atoi(argv[1]) : 4;
    unsigned long damaged = 0;
    is_busy = argc > 2;
    pthread_barrier_init(&begin, NULL, threads + 1);
    pthread_barrier_init(&end, NULL, threads + 1);
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (unsigned i = 0; i < threads; i++) {
        workers[i].number = i;
        workers[i].seed = i + 1;
        pthread_create(&workers[i].thread, NULL, work, &workers[i]);
    }
    puts("ready");
    while (fgets(line, sizeof line, stdin)) {
        if (is_busy || sscanf(line, "go %lu", &count) != 1)
            continue;
        pthread_barrier_wait(&begin);
        pthread_barrier_wait(&end);
        tell(threads);
    }
    is_over = 1;
    if (!is_busy)
        pthread_barrier_wait(&begin);
    for (unsigned i = 0; i < threads; i++) {
        pthread_join(workers[i].thread, NULL);
        damaged += workers[i].damaged;
    }
    puts(damaged ? "damaged" : "good");
    return damaged != 0;
}
