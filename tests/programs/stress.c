/*
 * stress THREADS ROUNDS SEED: threads that exchange blocks through shared slots, so that most blocks are freed, or
 * grown by a realloc that moves them, by another thread than allocated them; addresses are reused at once all the time.
 * Counts what it did itself and prints "allocs frees bytes", reallocs counted as a free and an allocation.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { SLOTS = 512 };
static _Atomic(char *) slots[SLOTS];
static atomic_ulong allocs, frees, bytes;
static unsigned long rounds, seed;

static uint64_t next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static __attribute__((noinline)) void *work(void *number)
{
    uint64_t state = (seed + 1) * 2654435761u + (uintptr_t)number * 7919;
    unsigned long my_allocs = 0, my_frees = 0, my_bytes = 0;
    for (unsigned long i = 0; i < rounds; i++) {
        uint64_t r = next(&state);
        size_t size = (r >> 20) % 8 ? (r >> 24) % 200 + 8 : (r >> 24) % 40000 + 8;
        char *p;
        if (r % 4 == 0 && (p = atomic_exchange(&slots[(r >> 8) % SLOTS], NULL))) {
            p = realloc(p, size); /* someone else's block */
            my_frees++;
        } else {
            p = r % 16 == 5 ? calloc(1, size) : r % 16 == 6 ? aligned_alloc(64, size) : malloc(size);
        }
        p[0] = 1;
        my_allocs++;
        my_bytes += size;
        p = atomic_exchange(&slots[(r >> 40) % SLOTS], p);
        if (p) {
            free(p);
            my_frees++;
        }
    }
    allocs += my_allocs;
    frees += my_frees;
    bytes += my_bytes;
    return NULL;
}

int main(int argc, char **argv)
{
    static char out[256];
    setvbuf(stdout, out, _IOFBF, sizeof out);
    int threads = argc > 1 ? atoi(argv[1]) : 4;
    rounds = argc > 2 ? strtoul(argv[2], NULL, 10) : 100000;
    seed = argc > 3 ? strtoul(argv[3], NULL, 10) : 1;
    pthread_t t[64];
    if (threads > 64)
        return 2;
    for (long i = 0; i < threads; i++)
        if (pthread_create(&t[i], NULL, work, (void *)(i + 1)))
            return 1;
    for (int i = 0; i < threads; i++)
        pthread_join(t[i], NULL);
    for (int i = 0; i < SLOTS; i++)
        if (slots[i]) {
            free(slots[i]);
            frees++;
        }
    printf("%lu %lu %lu\n", (unsigned long)allocs, (unsigned long)frees, (unsigned long)bytes);
    return 0;
}
