/*
 * What `memprof advise` and reports tell of names, one mode each; with a second argument "mended" the same work with
 * what they advise done. Sizes, of blocks that are all freed at the end:
 *
 *     apart     4 MiB that are "embed" and "out"; each is copied for itself: 4 MiB more (mended: one copy of both)
 *     overlap   2 MiB of which "low" has the first three quarters and "high" the last three: copies of 1.5 MiB each,
 *               1 MiB more than what they shared
 *     views     16 MiB of which "row", 64 KiB, is all that anybody kept (mended: a copy of it)
 *     silent    names of which nothing is to be told: "left" and "right" of one block, which lie beside each other,
 *               copied for themselves; a gradient of two names that is a new block in each of five steps; two models
 *               one after the other, the second one not tied; a named block beside a larger one without a name
 *
 * Each mode works with 8 MiB after that, which is its peak.
 */
#include <memprof.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OWN __attribute__((noinline))
enum { KIB = 1024, MIB = 1024 * KIB };

static int mended;

OWN static char *make(size_t bytes)
{
    char *p = malloc(bytes); /* make */
    if (!p)
        abort();
    return memset(p, 1, bytes);
}

OWN static char *copy(const char *from, size_t bytes)
{
    char *p = malloc(bytes); /* copy */
    if (!p)
        abort();
    return memcpy(p, from, bytes);
}

OWN static void work(void)
{
    free(make(8 * MIB));
}

static void name_part(const char *block, const char *from, size_t bytes, const char *name)
{
    const struct memprof_view view = {from, 1, 1, {(int64_t)bytes}, {1}};
    memprof_view(block, &view, name);
}

static void apart(void)
{
    char *weights = make(4 * MIB);
    memprof_name(weights, "embed");
    name_part(weights, weights, 4 * MIB, "out");
    char *embed = copy(weights, 4 * MIB), *out = mended ? embed : copy(weights, 4 * MIB);
    memprof_name(embed, "embed");
    name_part(out, out, 4 * MIB, "out");
    free(weights);
    work();
    if (out != embed)
        free(out);
    free(embed);
}

static void overlap(void)
{
    const size_t part = 3 * MIB / 2;
    char *both = make(2 * MIB);
    name_part(both, both, part, "low");
    name_part(both, both + MIB / 2, part, "high");
    char *low = copy(both, mended ? 2 * MIB : part), *high = mended ? low : copy(both + MIB / 2, part);
    name_part(low, low, part, "low");
    name_part(high, mended ? low + MIB / 2 : high, part, "high");
    free(both);
    work();
    if (high != low)
        free(high);
    free(low);
}

static void views(void)
{
    char *batch = make(16 * MIB), *row = batch + 5 * MIB;
    if (mended) {
        row = copy(row, 64 * KIB);
        memprof_name(row, "row");
        free(batch);
    } else {
        name_part(batch, row, 64 * KIB, "row");
    }
    work();
    free(mended ? row : batch);
}

static void beside(void)
{
    char *flat = make(2 * MIB);
    name_part(flat, flat, MIB, "left");
    name_part(flat, flat + MIB, MIB, "right");
    char *left = copy(flat, MIB), *right = copy(flat + MIB, MIB);
    memprof_name(left, "left");
    memprof_name(right, "right");
    free(flat);
    work();
    free(left);
    free(right);
}

static void steps(void)
{
    char *last = NULL;
    for (int i = 0; i < 5; i++) {
        char *gradient = make(MIB);
        memprof_name(gradient, "embed.grad");
        name_part(gradient, gradient, MIB, "out.grad");
        free(last);
        last = gradient;
    }
    free(last);
}

static void models(void)
{
    char *tied = make(MIB);
    memprof_name(tied, "model.embed");
    name_part(tied, tied, MIB, "model.out");
    free(tied);
    char *embed = make(MIB), *out = make(MIB);
    memprof_name(embed, "model.embed");
    memprof_name(out, "model.out");
    free(out);
    free(embed);
}

static void silent(void)
{
    char *large = make(4 * MIB), *small = make(64 * KIB);
    memprof_name(small, "small");
    beside();
    steps();
    models();
    free(small);
    free(large);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } modes[] = {{"apart", apart}, {"overlap", overlap}, {"views", views}, {"silent", silent}};
    mended = argc > 2 && strcmp(argv[2], "mended") == 0;
    for (size_t i = 0; argc > 1 && i < sizeof modes / sizeof *modes; i++)
        if (strcmp(argv[1], modes[i].name) == 0) {
            modes[i].run();
            return 0;
        }
    fprintf(stderr, "usage: sharing MODE [mended]\n");
    return 2;
}
