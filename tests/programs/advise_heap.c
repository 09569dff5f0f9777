/*
 * What allocators take beside what is asked for, one mode each; with a second argument "mended" the same blocks in one
 * array. At the peak it prints glibc's own figures: bytes in use, with what is mapped.
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OWN __attribute__((noinline))

static int mended;
static char *array;
static size_t used;

OWN static void *take(size_t bytes)
{
    char *p = mended ? array + used : malloc(bytes); /* take */
    used += bytes;
    return memset(p, 1, bytes);
}

/* The peak is where all of them live. */
static void run(size_t bytes, int count)
{
    void **blocks = malloc((size_t)count * sizeof *blocks);
    if (mended)
        array = malloc(bytes * (size_t)count);
    for (int i = 0; i < count; i++)
        blocks[i] = take(bytes);
    struct mallinfo2 info = mallinfo2();
    printf("%zu\n", info.uordblks + info.hblkhd);
    for (int i = 0; i < count && !mended; i++)
        free(blocks[i]);
    free(array);
    free(blocks);
}

static const struct {
    const char *name;
    size_t bytes;
    int count;
} modes[] = {
    {"tiny", 32, 200000},   /* 48 each: 3,200,000 more */
    {"many", 32, 1200000},  /* 19,200,000 more, which are no holes */
    {"small", 24, 200000},  /* 32: 1,600,000 */
    {"few", 32, 90000},     /* too few to be many */
    {"waste", 72, 200000},  /* 80: 1,600,000 of 14,400,000 */
    {"pages", 139264, 100}, /* 34 pages, and a header: 35 */
    {"large", 1000, 20000}, /* 1008: nothing to say */
};

int main(int argc, char **argv)
{
    mended = argc > 2 && strcmp(argv[2], "mended") == 0;
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (argc > 1 && strcmp(argv[1], modes[i].name) == 0) {
            run(modes[i].bytes, modes[i].count);
            return 0;
        }
    fprintf(stderr, "usage: advise_heap MODE [mended]\n");
    return 2;
}
