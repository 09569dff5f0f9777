/*
 * A small classifier (64 -> 256 -> 10) trained for 100 steps of 32 samples, with a validation pass over all 512 samples
 * after every 25 steps. Activations come from a pool that keeps what it is given back, by exact size.
 *
 * What memprof must show:
 *
 * - forward is called 104 times. Its hidden layer costs 2 allocations, of 32,768 and 524,288 bytes, its output 2, of
 *   1,536 and 20,480: the pool serves all other calls. Its scratch costs 104 temporaries: 100 of 128 bytes, 4 of 2,048.
 * - update allocates 65,536 bytes afresh in each of 100 steps: temporaries, 6,553,600 bytes.
 * - The peak is in step 26, in update, not in the validation: the pool still holds the validation's 544,768
 *   bytes, which nobody uses until step 50. At that instant (bytes): weights and gradients 151,552, samples
 *   131,072, labels 2,048, the net 1,024, pool 611,840 (544,768 + 67,072), the step 65,536: 963,072 in all.
 * - 216 allocations, 7,472,128 bytes; nothing is leaked.
 */
#include <memprof.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { IN = 64, HIDDEN = 256, OUT = 10, BATCH = 32, SAMPLES = 512, STEPS = 100, VALIDATE_EVERY = 25, POOL_BLOCKS = 32 };

struct pool { /* keeps freed blocks for the next request of the same size, as GPU allocators do */
    struct pool_block {
        void *memory;
        size_t size_bytes;
        int used;
    } blocks[POOL_BLOCKS];
    int count;
};

static void *pool_alloc(struct pool *pool, size_t size_bytes)
{
    size_bytes = (size_bytes + 511) / 512 * 512;
    for (int i = 0; i < pool->count; i++) {
        struct pool_block *b = &pool->blocks[i];
        if (!b->used && b->size_bytes == size_bytes) {
            b->used = 1;
            return b->memory;
        }
    }
    if (pool->count == POOL_BLOCKS)
        abort();
    void *memory = malloc(size_bytes);
    if (!memory)
        abort();
    pool->blocks[pool->count++] = (struct pool_block){memory, size_bytes, 1};
    return memory;
}

static void pool_free(struct pool *pool, void *memory)
{
    for (int i = 0; i < pool->count; i++)
        if (pool->blocks[i].memory == memory)
            pool->blocks[i].used = 0;
}

static void pool_destroy(struct pool *pool)
{
    for (int i = 0; i < pool->count; i++)
        free(pool->blocks[i].memory);
}

struct net {
    struct pool pool;
    float *w1, *w2; /* IN x HIDDEN, HIDDEN x OUT */
    float *g1, *g2; /* their gradients */
    char reserved[1024 - sizeof(struct pool) - 4 * sizeof(float *)];
};

struct activations { /* of one batch */
    float *hidden;   /* rows x HIDDEN */
    float *out;      /* rows x OUT, probabilities */
};

static float *filled(size_t count, float scale)
{
    float *f = malloc(count * sizeof *f);
    if (!f)
        abort();
    for (size_t i = 0; i < count; i++)
        f[i] = scale * (float)((i * 2654435761u >> 8) % 2001 - 1000.0) / 1000;
    return f;
}

static void multiply(float *out, const float *a, const float *b, int rows, int inner, int columns)
{
    memset(out, 0, (size_t)rows * columns * sizeof *out);
    for (int r = 0; r < rows; r++)
        for (int i = 0; i < inner; i++)
            for (int c = 0; c < columns; c++)
                out[r * columns + c] += a[r * inner + i] * b[i * columns + c];
}

static struct activations forward(struct net *n, const float *x, int rows)
{
    struct activations a;
    a.hidden = pool_alloc(&n->pool, (size_t)rows * HIDDEN * sizeof(float));
    multiply(a.hidden, x, n->w1, rows, IN, HIDDEN);
    for (int i = 0; i < rows * HIDDEN; i++)
        a.hidden[i] = fmaxf(a.hidden[i], 0);

    a.out = pool_alloc(&n->pool, (size_t)rows * OUT * sizeof(float));
    multiply(a.out, a.hidden, n->w2, rows, HIDDEN, OUT);

    float *scratch = malloc(rows * sizeof *scratch); /* the largest output of each row */
    for (int r = 0; r < rows; r++) {
        scratch[r] = a.out[r * OUT];
        for (int c = 1; c < OUT; c++)
            scratch[r] = fmaxf(scratch[r], a.out[r * OUT + c]);
        float sum = 0;
        for (int c = 0; c < OUT; c++)
            sum += a.out[r * OUT + c] = expf(a.out[r * OUT + c] - scratch[r]);
        for (int c = 0; c < OUT; c++)
            a.out[r * OUT + c] /= sum;
    }
    free(scratch);
    return a;
}

static void release(struct net *n, struct activations a)
{
    pool_free(&n->pool, a.out);
    pool_free(&n->pool, a.hidden);
}

static float loss(struct activations a, const int *labels, int rows)
{
    float sum = 0;
    for (int r = 0; r < rows; r++)
        sum -= logf(a.out[r * OUT + labels[r]] + 1e-9f);
    return sum / rows;
}

static void backward(struct net *n, struct activations a, const float *x, const int *labels, int rows)
{
    float *delta = pool_alloc(&n->pool, (size_t)rows * HIDDEN * sizeof(float));
    for (int r = 0; r < rows; r++)
        a.out[r * OUT + labels[r]] -= 1;
    memset(n->g1, 0, IN * HIDDEN * sizeof *n->g1);
    memset(n->g2, 0, HIDDEN * OUT * sizeof *n->g2);
    for (int r = 0; r < rows; r++)
        for (int h = 0; h < HIDDEN; h++) {
            float d = 0;
            for (int c = 0; c < OUT; c++) {
                n->g2[h * OUT + c] += a.hidden[r * HIDDEN + h] * a.out[r * OUT + c] / rows;
                d += a.out[r * OUT + c] * n->w2[h * OUT + c];
            }
            delta[r * HIDDEN + h] = a.hidden[r * HIDDEN + h] > 0 ? d / rows : 0;
            for (int i = 0; i < IN; i++)
                n->g1[i * HIDDEN + h] += x[r * IN + i] * delta[r * HIDDEN + h];
        }
    pool_free(&n->pool, delta);
}

static void update(struct net *n, float rate)
{
    float *step = malloc(IN * HIDDEN * sizeof *step);
    for (int i = 0; i < IN * HIDDEN; i++)
        n->w1[i] -= step[i] = rate * n->g1[i];
    for (int i = 0; i < HIDDEN * OUT; i++)
        n->w2[i] -= rate * n->g2[i];
    free(step);
}

static void train(struct net *n, const float *samples, const int *labels)
{
    for (int step = 1; step <= STEPS; step++) {
        int first = step * BATCH % SAMPLES;
        memprof_range_push("step");
        struct activations a = forward(n, samples + first * IN, BATCH);
        backward(n, a, samples + first * IN, labels + first, BATCH);
        release(n, a);
        update(n, 0.1f);
        memprof_range_pop();
        if (step % VALIDATE_EVERY == 0) {
            memprof_mark("validation");
            a = forward(n, samples, SAMPLES);
            printf("step %3d  loss %.4f\n", step, loss(a, labels, SAMPLES));
            release(n, a);
        }
    }
}

int main(void)
{
    static char out[4096];
    setvbuf(stdout, out, _IOFBF, sizeof out); /* or it would be one more block */

    struct net *n = calloc(1, sizeof *n);
    n->w1 = filled(IN * HIDDEN, 0.1f);
    n->w2 = filled(HIDDEN * OUT, 0.1f);
    n->g1 = filled(IN * HIDDEN, 0);
    n->g2 = filled(HIDDEN * OUT, 0);
    float *samples = filled(SAMPLES * IN, 1);
    int *labels = calloc(SAMPLES, sizeof *labels);
    for (int s = 0; s < SAMPLES; s++) /* the largest of the sample's first ten values */
        for (int c = 1; c < OUT; c++)
            if (samples[s * IN + c] > samples[s * IN + labels[s]])
                labels[s] = c;

    train(n, samples, labels);

    pool_destroy(&n->pool);
    free(labels);
    free(samples);
    free(n->g2);
    free(n->g1);
    free(n->w2);
    free(n->w1);
    free(n);
    return 0;
}
