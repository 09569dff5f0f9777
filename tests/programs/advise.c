/*
 * What `memprof advise` tells of the host, one mode each; with a second argument "mended" the same work with what it
 * advises done. Blocks are written to, so that nothing is optimized away.
 */
#include <memprof.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OWN __attribute__((noinline, noclone))
enum { KIB = 1024, MIB = 1024 * KIB };

static int mended;

OWN static void *touched(void *p, size_t bytes)
{
    if (!p)
        abort();
    return memset(p, 1, bytes);
}

/* 2,000 requests of which each loses 4 KiB, beside a table of 8 MiB: 7.8125 MiB of a peak of 15.8125 MiB. */
OWN static void *answer(void)
{
    void *p = malloc(4 * KIB); /* answer */
    return touched(p, 4 * KIB);
}

static void leak(void)
{
    void *table = touched(malloc(8 * MIB), 8 * MIB);
    for (int i = 0; i < 2000; i++) {
        void *p = answer();
        if (mended)
            free(p);
    }
    free(table);
}

static const struct {
    const char *name;
    void (*run)(void);
} modes[] = {{"leak", leak}};

int main(int argc, char **argv)
{
    mended = argc > 2 && strcmp(argv[2], "mended") == 0;
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (argc > 1 && strcmp(argv[1], modes[i].name) == 0) {
            modes[i].run();
            return 0;
        }
    fprintf(stderr, "usage: advise MODE [mended]\n");
    return 2;
}
