/*
 * What `memprof advise` tells of the host, one mode each; with a second argument "mended" the same work with what it
 * advises done. Blocks are written to, so that nothing is optimized away.
 */
#include <memprof.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define OWN __attribute__((noinline))
enum { KIB = 1024, MIB = 1024 * KIB };

static int mended;

OWN static void *touched(void *p, size_t bytes)
{
    if (!p)
        abort();
    return memset(p, 1, bytes);
}

/* 8,000 requests of which each loses 1,000 bytes, beside a table of 8 MiB. Mended, each is kept until the next one. */
OWN static void *answer(void)
{
    void *p = malloc(1000); /* answer */
    return touched(p, 1000);
}

static void leak(void)
{
    void *table = touched(malloc(8 * MIB), 8 * MIB), *last = NULL;
    for (int i = 0; i < 8000; i++) {
        void *line = touched(malloc(64), 64), *p = answer();
        free(line);
        if (mended)
            free(last);
        last = p;
    }
    if (mended)
        free(last);
    free(table);
}

/* The same through a function that all allocate with: who calls it tells which of them loses its blocks. */
OWN static void *take(size_t bytes)
{
    return touched(malloc(bytes), bytes);
}

OWN static void *parse(void)
{
    void *p = take(1000);
    return p;
}

/* By its name another one that only passes it on. */
OWN static void *alloc_row(void)
{
    void *p = take(1000);
    return p;
}

OWN static void *lose(void)
{
    void *p = alloc_row(); /* lose */
    return p;
}

static void wrapper(void)
{
    void *last = NULL;
    for (int i = 0; i < 8000; i++) {
        void *parsed = parse(), *p = lose();
        free(parsed);
        if (mended)
            free(last);
        last = p;
    }
    if (mended)
        free(last);
}

/* 40 steps of which each keeps 1 KiB more, beside 64 KiB of scratch. */
static void steps(void)
{
    for (int i = 0; i < 40; i++) {
        memprof_range_push("step");
        void *kept = touched(malloc(KIB), KIB); /* kept */
        void *scratch = touched(malloc(64 * KIB), 64 * KIB);
        if (mended)
            free(kept);
        free(scratch);
        memprof_range_pop();
    }
}

/* 40 steps of which each keeps 1, 2, 3, 4 and 5 KiB more, on a line each. */
static void five(void)
{
    for (int i = 0; i < 40; i++) {
        memprof_range_push("step");
        void *kept[] = {touched(malloc(1 * KIB), KIB), /**/
                        touched(malloc(2 * KIB), KIB), /**/
                        touched(malloc(3 * KIB), KIB), /**/
                        touched(malloc(4 * KIB), KIB), /**/
                        touched(malloc(5 * KIB), KIB)};
        for (size_t k = 0; k < 5 && mended; k++)
            free(kept[k]);
        memprof_range_pop();
    }
}

/* 40 steps: forward makes 1 MiB, which is held for three; backward needs 512 KiB of its own. */
static void phase(void)
{
    void *held[3] = {NULL};
    for (int i = 0; i < 40; i++) {
        memprof_range_push("forward");
        void *activations = touched(malloc(MIB), MIB); /* activations */
        if (mended)
            free(activations);
        memprof_range_pop();
        memprof_range_push("backward");
        void *gradients = touched(malloc(MIB / 2), MIB / 2);
        free(gradients);
        memprof_range_pop();
        free(held[i % 3]);
        held[i % 3] = mended ? NULL : activations;
    }
    for (int i = 0; i < 3; i++)
        free(held[i]);
}

/* 40 steps: forward makes eight blocks, which are held for one to four steps more, and freed one of each step in turn.
 */
static void mixed(void)
{
    enum { BLOCKS = 8 };
    void *held[40][BLOCKS] = {{NULL}};
    for (int i = 0; i < 40; i++) {
        memprof_range_push("forward");
        for (int k = 0; k < BLOCKS; k++) {
            size_t size = MIB / BLOCKS + 16 * (size_t)(i * BLOCKS + k); /* no two alike: none is taken again */
            held[i][k] = touched(malloc(size), size);                   /* mixed */
        }
        for (int k = 0; k < BLOCKS && mended; k++)
            free(held[i][k]);
        memprof_range_pop();
        memprof_range_push("backward");
        void *gradients = touched(malloc(MIB / 2), MIB / 2);
        free(gradients);
        memprof_range_pop();
        for (int k = 0; k < BLOCKS && i % 4 == 3 && !mended; k++)
            for (int step = i < 4 ? 0 : i - 4; step < i; step++)
                free(held[step][k]);
    }
    for (int k = 0; k < BLOCKS && !mended; k++)
        free(held[39][k]);
}

/* 40 steps within an outer range, in three phases: load makes 1 MiB, which is held while work takes 2 MiB of its own
 * and is the peak; store reads what work left, and what load made goes behind it. What work left is freed by store,
 * which needed it. */
static void loop(void)
{
    for (int i = 0; i < 40; i++) {
        memprof_range_push("turn");
        memprof_range_push("load");
        void *batch = touched(malloc(MIB), MIB); /* batch */
        if (mended)
            free(batch);
        memprof_range_pop();
        memprof_range_push("work");
        void *scratch = touched(malloc(2 * MIB), 2 * MIB), *result = touched(malloc(MIB / 2), MIB / 2);
        free(scratch);
        memprof_range_pop();
        memprof_range_push("store");
        free(result);
        memprof_range_pop();
        if (!mended)
            free(batch);
        memprof_range_pop();
    }
}

/* The same without an outer range: what load made goes when the next load is through with it. */
static void turns(void)
{
    void *old = NULL;
    for (int i = 0; i < 40; i++) {
        memprof_range_push("load");
        void *batch = touched(malloc(MIB), MIB); /* turn */
        free(old);
        old = mended ? NULL : batch;
        if (mended)
            free(batch);
        memprof_range_pop();
        memprof_range_push("work");
        void *scratch = touched(malloc(2 * MIB), 2 * MIB);
        free(scratch);
        memprof_range_pop();
    }
    free(old);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Reads 4 MiB in a phase, and is done with it; then needs 3 MiB for thirty times as long. */
static void once(void)
{
    const double began = now();
    memprof_range_push("parse");
    void *text = touched(malloc(4 * MIB), 4 * MIB); /* text */
    void *tree = touched(malloc(MIB), MIB);
    if (mended)
        free(text);
    memprof_range_pop();
    const double took = now() - began, until = now() + 30 * took;
    while (now() < until) { /* a hundred rounds, which are no churn */
        const long pause_ns = (long)(took * 0.3e9);
        void *page = touched(malloc(3 * MIB), 3 * MIB);
        nanosleep(&(struct timespec){.tv_sec = pause_ns / 1000000000, .tv_nsec = pause_ns % 1000000000}, NULL);
        free(page);
    }
    free(tree);
    if (!mended)
        free(text);
}

/* Takes 300,000 buffers of 1,100 bytes of which none is there when the next one comes. */
OWN static void format(void)
{
    static char *buffer;
    if (mended && buffer) {
        touched(buffer, 1100);
        return;
    }
    buffer = touched(malloc(1100), 1100); /* format */
    if (!mended)
        free(buffer);
}

static void churn(void)
{
    for (int i = 0; i < 300000; i++)
        format();
}

/* So few that nobody would feel the difference. */
static void few(void)
{
    for (int i = 0; i < 5000; i++)
        format();
}

/* 250,000 pages of 8 KiB, a note beside each that outlives it. */
static void reuse(void)
{
    void *page = NULL, *note = NULL;
    for (int i = 0; i < 250000; i++) {
        if (!mended || !page)
            page = malloc(8 * KIB); /* page */
        touched(page, 8 * KIB);
        free(note);
        note = touched(malloc(100 + (size_t)i % 500), 100);
        if (!mended)
            free(page);
    }
    free(note);
    if (mended)
        free(page);
}

/* A list of 2,000 records of 64 bytes that grows by one at a time: 64 * (1 + 2 + ... + 1,999) bytes to copy. */
static void reallocs(void)
{
    char *list = NULL;
    size_t room = 0;
    for (size_t i = 1; i <= 2000; i++) {
        if (i * 64 > room) {
            room = mended ? 2 * room + 64 : i * 64;
            list = realloc(list, room); /* list */
        }
        touched(list + (i - 1) * 64, 64);
    }
    free(list);
}

static void wait_a_little(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
}

/* 8,000 blocks of 500 bytes that it collects on 16 lines, and keeps: its data rather than a leak. */
static void data(void)
{
    for (int i = 0; i < 500; i++) {
        void *kept[] = {
            /**/ malloc(500),
            /**/ malloc(500),
            /**/ malloc(500),
            /**/ malloc(500),
            /**/ malloc(500),
            /**/ malloc(500),
            /**/ malloc(500),
            /**/ malloc(500),
            /**/ malloc(500),
            /**/ malloc(500),
            /**/ malloc(500),
            /**/ malloc(500),
            /**/ malloc(500),
            /**/ malloc(500),
            /**/ malloc(500),
            /**/ malloc(500),
        };
        for (int k = 0; k < 16; k++)
            touched(kept[k], 500);
        wait_a_little();
    }
}

/* 16,000 of 250 on one line by 128 stacks, as a program has it whose allocations go through one function. */
OWN static void collect(int depth)
{
    if (depth)
        collect(depth - 1);
    else
        touched(malloc(250), 250);
    __asm__ volatile("");
}

static void stacks(void)
{
    for (int i = 0; i < 16000; i++) {
        collect(i % 128);
        if (i % 32 == 0)
            wait_a_little();
    }
}

/* Is killed while it holds 5 MiB, which is no leak. */
static void killed(void)
{
    touched(malloc(5 * MIB), 5 * MIB);
    raise(SIGKILL);
}

static const struct {
    const char *name;
    void (*run)(void);
} modes[] = {{"leak", leak},   {"wrapper", wrapper},   {"steps", steps},   {"phase", phase},
             {"mixed", mixed}, {"once", once},         {"churn", churn},   {"few", few},
             {"reuse", reuse}, {"reallocs", reallocs}, {"killed", killed}, {"loop", loop},
             {"turns", turns}, {"five", five},         {"data", data},     {"stacks", stacks}};

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
