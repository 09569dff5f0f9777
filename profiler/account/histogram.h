/*
 * histogram.h: what a kind of memory was asked for, by size and by lifetime, in powers of two. Class 0 is the value 0,
 * class n the values from 2^(n-1) on.
 */
#ifndef MEMPROF_HISTOGRAM_H
#define MEMPROF_HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_CLASSES 65u

struct size_class {
    uint64_t alloc_count;
    uint64_t alloc_bytes;
    uint64_t free_count;
    uint64_t temporary_count;
    uint64_t lifetime_ns;
};

struct lifetime_class {
    uint64_t free_count;
    uint64_t free_bytes;
};

struct histogram {
    struct size_class sizes[HISTOGRAM_CLASSES];
    struct lifetime_class lifetimes[HISTOGRAM_CLASSES];
};

/* value: below 2^63 */
static inline unsigned histogram_class(uint64_t value)
{
    return 63 - (unsigned)__builtin_clzll(value << 1 | 1);
}

/* So many blocks of each bytes, size in all. */
static inline void histogram_alloc(struct histogram *h, uint64_t size, uint64_t count, uint64_t each)
{
    struct size_class *c = &h->sizes[histogram_class(each)];
    c->alloc_count += count;
    c->alloc_bytes += size;
}

/* It was no block after all. */
static inline void histogram_undo(struct histogram *h, uint64_t size)
{
    struct size_class *c = &h->sizes[histogram_class(size)];
    c->alloc_count--;
    c->alloc_bytes -= size;
}

static inline void histogram_free(struct histogram *h, uint64_t size, uint64_t count, uint64_t each,
                                  uint64_t lifetime_ns, unsigned temporary)
{
    struct size_class *c = &h->sizes[histogram_class(each)];
    struct lifetime_class *l = &h->lifetimes[histogram_class(lifetime_ns)];
    c->free_count += count;
    c->temporary_count += temporary ? count : 0;
    c->lifetime_ns += lifetime_ns * count;
    l->free_count += count;
    l->free_bytes += size;
}

/* The bytes of a part of a block, which has others. */
static inline void histogram_cut(struct histogram *h, uint64_t size, uint64_t lifetime_ns)
{
    h->lifetimes[histogram_class(lifetime_ns)].free_bytes += size;
}

/* Their sums. */
struct histogram_sums {
    uint64_t alloc_count, alloc_bytes, free_count, free_bytes, temporary_count, lifetime_ns;
};
void histogram_sum(const struct histogram *h, struct histogram_sums *sums);

struct store;
/* Writes size_class and lifetime_class rows, those in use. */
void histogram_write(const struct histogram *h, struct store *store, unsigned device, unsigned kind);

#endif
