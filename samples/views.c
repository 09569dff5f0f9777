/*
 * Names of blocks and views of parts of them (memprof.h), and what becomes of them:
 *
 *     weights   one block of 1,048,576 bytes (256 x 1024 floats, "parameter"), and views of it:
 *       rows      rows 64 to 127: 64 x 1024, 262,144 bytes from byte 262,144 on
 *       columns   every second column: 256 x 512 with stride 2, nearly all of it
 *       reversed  the last row backwards: 1024 with stride -1, 4,096 bytes from byte 1,044,480 on
 *       bytes     the same block as 16 bytes: another size of item
 *     scratch   a block of 3,000 bytes that is freed; its address is taken again by another of 3,000, that has no name
 *     grads     40 times a block of 512 bytes, named and freed: the first 16 and the last have a row
 *     late      a block of 200,000 bytes, named long after it was allocated
 *     nothing   a name of memory on the stack: no block
 *
 * What is live at the end: weights, 3,000 bytes without a name, late.
 */
#include <memprof.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 256, COLUMNS = 1024 };

static void *take(size_t bytes)
{
    void *p = malloc(bytes);
    if (!p)
        exit(1);
    return memset(p, 1, bytes);
}

static void name_views(const float *weights)
{
    const struct memprof_view rows = {weights + 64 * COLUMNS, sizeof *weights, 2, {64, COLUMNS}, {COLUMNS, 1}};
    const struct memprof_view columns = {weights, sizeof *weights, 2, {ROWS, COLUMNS / 2}, {COLUMNS, 2}};
    const struct memprof_view reversed = {weights + ROWS * COLUMNS - 1, sizeof *weights, 1, {COLUMNS}, {-1}};
    const struct memprof_view bytes = {weights, 1, 1, {16}, {1}};
    memprof_view(weights, &rows, "rows");
    memprof_view(weights, &columns, "columns");
    memprof_view(weights, &reversed, "reversed");
    memprof_view(NULL, &bytes, "bytes");
}

static void use_again(void)
{
    void *scratch = take(3000);
    memprof_name(scratch, "scratch");
    const size_t address = (size_t)scratch;
    free(scratch);
    void *again = take(3000);
    printf("scratch: %s\n", (size_t)again == address ? "the same address" : "another address");
    for (int i = 0; i < 40; i++) {
        void *gradient = take(512);
        memprof_name(gradient, "grad");
        memprof_category(gradient, "gradient");
        free(gradient);
    }
}

int main(void)
{
    int on_the_stack = 0;
    float *weights = take((size_t)ROWS * COLUMNS * sizeof *weights);
    void *late = take(200000);
    memprof_name(weights, "weights");
    memprof_category(weights, "parameter");
    name_views(weights);
    use_again();
    memprof_name(late, "late");
    memprof_name(&on_the_stack, "nothing");
    return 0;
}
