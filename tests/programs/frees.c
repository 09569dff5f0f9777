/* frees SEED STEPS [LEAST]: two threads that allocate, resize and free each other's blocks and maps at random, and a
 * ledger of who freed what of whose. Prints a line for each pair of a function that frees and one that allocated:
 * "FREER ALLOCATOR blocks bytes other-blocks other-bytes reallocs", other-...: of the other thread's. LEAST: of blocks
 * that free() ends those alone that can hold so many bytes. */
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#define NOINLINE __attribute__((noinline))
enum { SLOTS = 64, PAGE = 4096 };
enum { SMALL, LARGE, GROW, MAKE_MAP, HERE, THERE, NOTHING, DROP_MAP, NAMES };
static const char *const names[NAMES] = {"small", "large", "grow", "make_map", "here", "there", "nothing", "drop_map"};

static struct slot {
    void *p;
    size_t size;
    int site, thread;
} slots[SLOTS];
static struct sum {
    long count, bytes, other_count, other_bytes, reallocs;
} ledger[NAMES][NAMES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t turn;
static uint64_t seed;
static long steps;
static size_t least;

static unsigned below(unsigned limit)
{
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    return (unsigned)(seed >> 33) % limit;
}

static NOINLINE void *small(size_t size)
{
    return malloc(size);
}

static NOINLINE void *large(size_t size)
{
    return calloc(1, size);
}

static NOINLINE void *grow(void *p, size_t size)
{
    return realloc(p, size);
}

static NOINLINE void here(void *p)
{
    free(p);
}

static NOINLINE void there(void *p)
{
    free(p);
}

static NOINLINE void nothing(void *p)
{
    if (realloc(p, 0))
        abort();
}

static NOINLINE void *make_map(size_t size)
{
    return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static NOINLINE void drop_map(char *p, size_t size)
{
    size_t half = size / PAGE / 2 * PAGE; /* a block is gone with its last part */
    if (half)
        munmap(p, half);
    munmap(p + half, size - half);
}

static void ended(int freer, const struct slot *s, int thread, int is_realloc)
{
    struct sum *sum = &ledger[freer][s->site];
    sum->count++;
    sum->bytes += (long)s->size;
    sum->other_count += s->thread != thread;
    sum->other_bytes += s->thread != thread ? (long)s->size : 0;
    sum->reallocs += is_realloc;
}

static void drop(struct slot *s, int thread)
{
    int freer = s->site == MAKE_MAP ? DROP_MAP : HERE + (int)below(3);
    int is_told = freer >= NOTHING || malloc_usable_size(s->p) >= least; /* realloc's stack is told anyway */
    if (is_told)
        ended(freer, s, thread, 0);
    if (freer == DROP_MAP)
        drop_map(s->p, s->size);
    else
        (freer == HERE ? here : freer == THERE ? there : nothing)(s->p);
    s->p = NULL;
}

static void make(struct slot *s, int thread)
{
    unsigned what = below(8);
    s->thread = thread;
    if (what == 0) {
        s->site = MAKE_MAP;
        s->size = (1 + below(8)) * PAGE;
        s->p = make_map(s->size);
    } else {
        s->site = what < 6 ? SMALL : LARGE;
        s->size = what < 6 ? 1 + below(500) : 1 + below(300000);
        s->p = (s->site == SMALL ? small : large)(s->size);
    }
}

static void resize(struct slot *s, int thread)
{
    size_t size = below(4) ? s->size + 1 + below(8) : 1 + below(200000); /* in place, most likely; elsewhere */
    ended(GROW, s, thread, 1);
    s->p = grow(s->p, size);
    s->size = size;
    s->site = GROW;
    s->thread = thread;
}

static void *run(void *argument)
{
    int thread = (int)(intptr_t)argument;
    pthread_barrier_wait(&turn);
    for (long i = 0; i < steps; i++) {
        pthread_mutex_lock(&lock);
        struct slot *s = &slots[below(SLOTS)];
        if (!s->p)
            make(s, thread);
        else if (s->site != MAKE_MAP && below(3) == 0)
            resize(s, thread);
        else
            drop(s, thread);
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

int main(int argc, char *argv[])
{
    pthread_t threads[2];
    if (argc < 3)
        return 2;
    seed = strtoull(argv[1], NULL, 10);
    steps = atol(argv[2]);
    least = argc > 3 ? strtoul(argv[3], NULL, 10) : 0;
    pthread_barrier_init(&turn, NULL, 2);
    for (intptr_t i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, run, (void *)i);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < NAMES; i++)
        for (int j = 0; j < NAMES; j++) {
            const struct sum *s = &ledger[i][j];
            if (s->count)
                printf("%s %s %ld %ld %ld %ld %ld\n", names[i], names[j], s->count, s->bytes, s->other_count,
                       s->other_bytes, s->reallocs);
        }
    return 0;
}
