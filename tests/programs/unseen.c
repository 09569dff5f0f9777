/* Heaps of which a recording has few blocks: unseen replace|deep LIBRARY|small. Nothing of them is free. And one whose
 * blocks are freed by calls that it does not see: freed LIBRARY, and by threads that are gone then: threads LIBRARY; a
 * few of them alone: few LIBRARY; all, again and again: again LIBRARY. And one that frees what it does not see
 * allocated: taken LIBRARY. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCKS  8000
#define THREADS 3

static char *blocks[BLOCKS];

static void fill(void *(*take)(size_t), size_t size)
{
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = take(size);
        memset(blocks[i], 1, size);
    }
}

/* Once it is told to: as many blocks of the same size all the time. */
static void replace(void)
{
    char line[64];
    fill(malloc, 5000);
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        for (int i = 0; i < 400; i++) {
            int k = i * 19 % BLOCKS;
            usleep(5000);
            free(blocks[k]);
            blocks[k] = malloc(5000);
            memset(blocks[k], 2, 5000);
        }
        puts("replaced");
        fflush(stdout);
    }
}

static void go_on(size_t size)
{
    for (int i = 0; i < 200; i++) {
        char *block = malloc(size);
        memset(block, 1, size);
        usleep(5000);
        free(block);
    }
}

static int freed(void (*give_back)(void *))
{
    fill(malloc, 1000);
    for (int i = 0; i < BLOCKS - 1000; i++)
        give_back(blocks[i]);
    return !blocks[BLOCKS - 1];
}

static int freed_few(void (*give_back)(void *))
{
    fill(malloc, 4000);
    for (int i = 0; i < 500; i++)
        give_back(blocks[i]);
    return !blocks[BLOCKS - 1];
}

static int freed_again(void (*give_back)(void *))
{
    for (int round = 0; round < 5; round++) {
        fill(malloc, 4000);
        for (int i = 0; i < BLOCKS; i++)
            give_back(blocks[i]);
    }
    return 0;
}

static int taken(void *(*take)(size_t))
{
    fill(take, 4000);
    go_on(10000);
    for (int i = 0; i < BLOCKS; i++)
        free(blocks[i]);
    return 0;
}

static void (*give_back)(void *);
static pthread_barrier_t filled;

/* Nothing is freed while others allocate, and nobody allocates after that. */
static void *free_own(void *unused)
{
    char **own = calloc(BLOCKS, sizeof *own);
    for (int i = 0; i < BLOCKS; i++)
        own[i] = malloc(1000);
    pthread_barrier_wait(&filled);
    for (int i = 0; i < BLOCKS - 1000; i++)
        give_back(own[i]);
    free(own);
    return unused;
}

static int free_in_threads(void *library)
{
    pthread_t threads[THREADS];
    give_back = (void (*)(void *))dlsym(library, "give_back");
    pthread_barrier_init(&filled, NULL, THREADS);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, free_own, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "replace") == 0) {
        replace();
        return 0;
    }
    void *library = argc > 2 ? dlopen(argv[2], RTLD_NOW | RTLD_DEEPBIND) : NULL;
    void *(*own)(size_t) = library ? (void *(*)(size_t))dlsym(library, "own") : malloc;
    if (strcmp(argv[1], "freed") == 0)
        return freed((void (*)(void *))dlsym(library, "give_back"));
    if (strcmp(argv[1], "few") == 0)
        return freed_few((void (*)(void *))dlsym(library, "give_back"));
    if (strcmp(argv[1], "again") == 0)
        return freed_again((void (*)(void *))dlsym(library, "give_back"));
    if (strcmp(argv[1], "taken") == 0)
        return taken(own);
    if (strcmp(argv[1], "threads") == 0)
        return free_in_threads(library);
    fill(own, own == malloc ? 900 : 4000);
    char *large = malloc(20000);
    memset(large, 1, 20000);
    go_on(10000);
    printf("%d\n", blocks[1][0] + large[1]);
    _exit(fflush(stdout) ? 1 : 0); /* what is live stays so */
}
