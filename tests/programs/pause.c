/*
 * pause MODE: blocks before, in and after pauses of the recording, and a ledger of those that are recorded.
 *   threads SEED   four threads at random: sizes of few classes, so that addresses are used again; realloc and free of
 *                  what was born before, in or after a pause, by whichever thread
 *   orders         as lines on standard input say: take N, drop N (the oldest), child (takes 5, drops 3), pause, resume
 */
#include <memprof.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, PLACES = 400, STEPS = 4000, PHASES = 7, MOST = 100000 };

struct ledger {
    long alloc_count, alloc_bytes, free_count;
};

struct place {
    pthread_mutex_t mutex;
    void *p;
    size_t size;
    int is_seen; /* its block was born while the recording went on */
};

static struct place places[PLACES]; /* of all threads */
static struct ledger ledgers[THREADS];
static pthread_barrier_t barrier;
static int is_recording = 1;
static uint64_t seed;

/* Whose line all of them are. */
__attribute__((noinline)) static void *take(void *old, size_t size)
{
    void *p = old ? realloc(old, size) : malloc(size);
    if (!p)
        abort();
    memset(p, 1, size);
    return p;
}

static uint64_t next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void drop(struct place *l, struct ledger *ledger)
{
    free(l->p);
    ledger->free_count += l->is_seen;
    l->p = NULL;
}

static void step(struct ledger *ledger, uint64_t *state)
{
    static const size_t sizes[] = {24, 40, 100, 100, 1000, 5000, 40000, 200000};
    struct place *l = &places[next(state) % PLACES];
    size_t size = sizes[next(state) % 8];
    unsigned what = next(state) % 4;
    pthread_mutex_lock(&l->mutex);
    if (l->p && what > 1) {
        drop(l, ledger);
    } else {
        ledger->free_count += l->p && l->is_seen;
        l->p = take(l->p, size);
        l->size = size;
        l->is_seen = is_recording;
        ledger->alloc_count += is_recording;
        ledger->alloc_bytes += is_recording * (long)size;
    }
    pthread_mutex_unlock(&l->mutex);
}

static void *work(void *argument)
{
    struct ledger *ledger = argument;
    uint64_t state = seed * 1000 + (uint64_t)(ledger - ledgers) + 1;
    for (int phase = 0; phase < PHASES; phase++) {
        pthread_barrier_wait(&barrier); /* the recording is as it shall be */
        for (int i = 0; i < STEPS; i++)
            step(ledger, &state);
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

static int run_threads(void)
{
    pthread_t threads[THREADS];
    struct ledger sum = {0};
    long end_count = 0, end_bytes = 0;
    pthread_barrier_init(&barrier, NULL, THREADS + 1);
    for (int i = 0; i < PLACES; i++)
        pthread_mutex_init(&places[i].mutex, NULL);
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, work, &ledgers[i]))
            abort();
    for (int phase = 0; phase < PHASES; phase++) {
        is_recording = phase % 2 == 0;
        int status = is_recording ? memprof_resume() : memprof_pause();
        if (status != MEMPROF_OK)
            printf("phase %d: %d\n", phase, status);
        pthread_barrier_wait(&barrier);
        pthread_barrier_wait(&barrier);
    }
    memprof_resume(); /* what is freed from here on is freed in a recording */
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        sum.alloc_count += ledgers[i].alloc_count;
        sum.alloc_bytes += ledgers[i].alloc_bytes;
        sum.free_count += ledgers[i].free_count;
    }
    for (int i = 0; i < PLACES; i++)
        if (places[i].p && i % 2) {
            drop(&places[i], &sum);
        } else if (places[i].p && places[i].is_seen) {
            end_count++;
            end_bytes += (long)places[i].size;
        }
    printf("%ld|%ld|%ld|%ld|%ld\n", sum.alloc_count, sum.alloc_bytes, sum.free_count, end_count, end_bytes);
    return 0;
}

static void *blocks[MOST];
static int taken, dropped;

static void take_some(int count)
{
    for (int i = 0; i < count && taken < MOST; i++)
        blocks[taken++] = take(NULL, 100);
}

static void drop_some(int count)
{
    for (int i = 0; i < count && dropped < taken; i++)
        free(blocks[dropped++]);
}

static void begin_child(void)
{
    int pid = fork();
    if (!pid) {
        take_some(5);
        drop_some(3);
        _exit(0);
    }
    waitpid(pid, NULL, 0);
}

/* By vfork, as most programs start others. */
static int start(const char *path, char *const argv[])
{
    int status = 0, pid = vfork();
    if (!pid) {
        execv(path, argv);
        _exit(127);
    }
    return pid < 0 || waitpid(pid, &status, 0) != pid ? -1 : -status;
}

static int begin_again(const char *line)
{
    printf("done 0 %s", line);
    execv("/proc/self/exe", (char *[]){"pause", "orders", NULL});
    return -1;
}

static int run_orders(void)
{
    char line[64];
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("pid %d\n", getpid());
    while (fgets(line, sizeof line, stdin)) {
        int count = atoi(line + 5), status = 0;
        if (!strncmp(line, "take ", 5))
            take_some(count);
        else if (!strncmp(line, "drop ", 5))
            drop_some(count);
        else if (!strncmp(line, "child", 5))
            begin_child();
        else if (!strncmp(line, "vfork", 5))
            status = start("/proc/self/exe", (char *[]){"pause", "taker", NULL});
        else if (!strncmp(line, "setuid", 6)) /* as nobody a program that is somebody else's on its own account */
            status = start("/bin/su", (char *[]){"su", "--version", NULL});
        else if (!strncmp(line, "nobody", 6))
            status = getuid() ? 0 : setuid(65534);
        else if (!strncmp(line, "exec", 4))
            status = begin_again(line);
        else if (!strncmp(line, "pause", 5))
            status = memprof_pause();
        else if (!strncmp(line, "resume", 6))
            status = memprof_resume();
        printf("done %d %s", status, line);
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 2 && !strcmp(argv[1], "threads")) {
        seed = strtoull(argv[2], NULL, 10);
        return run_threads();
    }
    if (argc > 1 && !strcmp(argv[1], "taker")) {
        take_some(5);
        drop_some(3);
        return 0;
    }
    return argc > 1 && !strcmp(argv[1], "orders") ? run_orders() : 2;
}
