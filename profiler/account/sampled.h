/*
 * sampled.h: a sampled recording's sites. Of each stack there is one for each size of its sampled blocks, so that all
 * of a site's blocks stand for equally many: accounts then hold estimates. The bytes of a block are those that it
 * stands for. Its count is a whole number, its weight rounded up or down by chance, so that it is right in the mean.
 */
#ifndef MEMPROF_SAMPLED_H
#define MEMPROF_SAMPLED_H

#include "../../common/map.h"
#include "../../common/rows.h"

#include <stdint.h>

struct sample {
    uint64_t size_bytes; /* of each block; 0: the site's are recorded whole */
    uint64_t bytes;      /* that each stands for */
    uint64_t whole;      /* blocks that each stands for, and a further one with the probability fraction */
    double fraction;
};

struct sampled {
    uint64_t mean_bytes; /* 0: this recording is not sampled */
    struct map sites;    /* by stack and size */
    struct sample *of;   /* by site */
    uint32_t capacity;
    uint32_t *written; /* sites without a row in site_sample yet */
    uint32_t written_count, written_capacity;
};

/* The sample of a site; NULL: it is recorded whole. */
static inline struct sample *sample_at(const struct sampled *s, uint32_t site)
{
    return site < s->capacity && s->of[site].size_bytes ? &s->of[site] : NULL;
}

/* How many blocks one stands for: the same at its birth and at its death. key: of the live table. */
static inline uint64_t sample_count(const struct sample *s, uint64_t key, uint64_t birth_ns)
{
    uint64_t x = (key ^ birth_ns * 0xd6e8feb86659fd93ull) * 0x9e3779b97f4a7c15ull;
    x = (x ^ x >> 32) * 0xd6e8feb86659fd93ull;
    return s->whole + ((double)(x >> 11) * 0x1p-53 < s->fraction);
}

struct event;
struct store;
struct site_table;
/* The site of a sampled block of the heap, created where it is new. */
uint32_t sampled_site(struct sampled *s, struct site_table *sites, const struct event *e);
void sampled_write(struct sampled *s, struct store *store); /* rows of site_sample */
void sampled_close(struct sampled *s);

#endif
