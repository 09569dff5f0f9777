/*
 * tally.h: the running totals of whatever allocates (a site, a thread), and the exact value that each of them had when
 * its device, or its kind, was at the peak. That value is kept lazily: a peak that the next change ends gets a new
 * epoch; whoever changes first within an epoch saves what it held. Who did not change since still holds it.
 */
#ifndef MEMPROF_TALLY_H
#define MEMPROF_TALLY_H

#include "histogram.h"
#include "timeline.h"

#include "../../common/kind.h"

#include <stdint.h>

/* A level with its exact peak: bytes and blocks that are live now. */
struct level {
    uint64_t active_bytes;
    uint64_t active_count;
    uint64_t peak_bytes;
    uint64_t peak_count; /* blocks at the peak */
    uint64_t peak_ns;
    uint64_t peak_event; /* events up to the peak */
    uint32_t epoch;      /* of the newest ended peak */
    uint32_t at_peak;    /* 1: nothing has changed since the peak */
};

/* The site that held most at a peak, as last written. */
struct top {
    uint64_t bytes;
    uint32_t site_id; /* 0: none */
    int is_unsure;    /* it has less than it had: another one may have more */
};

struct reserved {
    uint64_t bytes;
    uint64_t peak_bytes;
    uint64_t peak_ns;
};

/* A kind of memory on a device. */
struct kind_account {
    struct level level;
    struct reserved reserved;
    struct top top;
    uint64_t sampled_bytes;          /* sum of the processes' latest samples */
    uint64_t reserved_sampled_bytes; /* what of reserved comes from samples: they, but never less than is active */
    uint64_t realloc_count;
    uint64_t temporary_bytes;
    uint64_t end_bytes;
    uint64_t end_count;
    uint64_t teardown_bytes; /* as of a tally */
    uint64_t teardown_count;
    struct histogram histogram; /* its sums are the kind's counts */
    struct size_class
        chunk_sizes[HISTOGRAM_CLASSES]; /* its sizes when the chunk began; parts of blocks: see chunk_sums */
};

struct device_account {
    uint64_t generation; /* changes when an epoch ends, a chunk begins, or the accounts are written */
    struct level level;
    struct reserved reserved;
    struct top top;
    uint64_t alloc_count;
    uint64_t alloc_bytes;
    uint64_t rss_bytes;
    uint64_t watch_bytes;   /* more active bytes than this are told to account_watch */
    uint64_t pending_bytes; /* of level.active_bytes: their free was requested */
    uint64_t used_bytes;    /* the driver's figures, as sampled last; total_bytes 0: never */
    uint64_t total_bytes;
    uint64_t sample_ns;  /* when */
    uint64_t written_ns; /* the newest one that has a row */
    struct timeline *timeline;
    struct kind_account *kinds[KIND_COUNT]; /* NULL until used */
    unsigned id;
    uint64_t written_epochs; /* sum of the levels' epochs at the last writing */
};

struct tally_peaks { /* the values at the peaks */
    uint64_t bytes;
    uint64_t count;
    uint64_t kind_bytes;
};

struct tally_rare { /* what ends, becomes memory of an allocator or is inherited: of few sites, or at the end alone */
    uint64_t end_bytes; /* of left_bytes */
    uint64_t end_count;
    uint64_t teardown_bytes; /* live when the interpreter began to take itself down, and freed by that or live still */
    uint64_t teardown_count;
    uint64_t moved_bytes; /* of left_bytes: became segments, so they are neither allocations nor frees */
    uint64_t moved_count;
    uint64_t start_bytes; /* of alloc_bytes: inherited, live when the accounts began anew (account_anew.c) */
    uint64_t start_count;
};

struct tally {           /* what most events change comes first: 96 bytes (site.h) */
    uint64_t generation; /* the device's, when this was touched last */
    uint64_t alloc_count;
    uint64_t alloc_bytes;
    uint64_t left_count; /* blocks that were freed or ended with their process */
    uint64_t left_bytes;
    uint64_t own_peak_bytes;
    uint64_t active_peak_bytes;
    uint64_t reserved_peak_bytes;
    uint64_t largest_bytes;
    uint64_t lifetime_ns;
    uint64_t temporary_count;
    uint64_t temporary_bytes;

    uint64_t saved_bytes; /* live when the peak of epoch ended */
    uint64_t saved_count;
    uint64_t saved_kind_bytes;
    uint32_t epoch;
    uint32_t kind_epoch;

    struct tally_rare *rare;    /* the owner's; NULL: all of it is 0 */
    struct tally_peaks written; /* as last written */
};

static inline const struct tally_rare *tally_rare(const struct tally *t)
{
    static const struct tally_rare none;
    return t->rare ? t->rare : &none;
}

static inline uint64_t tally_live_bytes(const struct tally *t)
{
    return t->alloc_bytes - t->left_bytes;
}

static inline uint64_t tally_live_count(const struct tally *t)
{
    return t->alloc_count - t->left_count;
}

/* Before the first change in a generation. */
static inline void tally_save(struct tally *t, const struct device_account *d, const struct kind_account *k)
{
    if (t->epoch != d->level.epoch) {
        t->epoch = d->level.epoch;
        t->saved_bytes = tally_live_bytes(t);
        t->saved_count = tally_live_count(t);
    }
    if (t->kind_epoch != k->level.epoch) {
        t->kind_epoch = k->level.epoch;
        t->saved_kind_bytes = tally_live_bytes(t);
    }
    t->generation = d->generation;
}

/* After the device's own numbers have changed. A block of size bytes, or (of a sampled recording) that stands for so
 * many bytes in so many blocks of `each`. */
static inline void tally_alloc(struct tally *t, uint64_t size, uint64_t count, uint64_t each,
                               const struct device_account *d)
{
    t->alloc_count += count;
    t->alloc_bytes += size;
    uint64_t live = t->alloc_bytes - t->left_bytes;
    if (live > t->own_peak_bytes)
        t->own_peak_bytes = live;
    if (d->level.active_bytes > t->active_peak_bytes)
        t->active_peak_bytes = d->level.active_bytes;
    if (d->reserved.bytes > t->reserved_peak_bytes)
        t->reserved_peak_bytes = d->reserved.bytes;
    if (each > t->largest_bytes)
        t->largest_bytes = each;
}

static inline void tally_free(struct tally *t, uint64_t size, uint64_t count, uint64_t lifetime_ns)
{
    t->left_count += count;
    t->left_bytes += size;
    t->lifetime_ns += lifetime_ns;
}

static inline void tally_temporary(struct tally *t, uint64_t size, uint64_t count)
{
    t->temporary_count += count;
    t->temporary_bytes += size;
}

/* The following ones need t->rare. */

static inline void tally_end(struct tally *t, uint64_t size, uint64_t count)
{
    t->left_count += count;
    t->left_bytes += size;
    t->rare->end_count += count;
    t->rare->end_bytes += size;
}

/* What is live is inherited; nothing else was. Its device's and kind's levels have begun anew. Where nothing is, it
 * needs no rare. */
static inline void tally_anew(struct tally *t)
{
    const uint64_t bytes = tally_live_bytes(t), count = tally_live_count(t);
    *t = (struct tally){.alloc_bytes = bytes, .alloc_count = count, .own_peak_bytes = bytes, .rare = t->rare};
    if (t->rare)
        *t->rare = (struct tally_rare){.start_bytes = bytes, .start_count = count};
}

static inline void tally_move(struct tally *t, uint64_t size)
{
    t->left_count++;
    t->left_bytes += size;
    t->rare->moved_count++;
    t->rare->moved_bytes += size;
}

/* Both levels sealed (level_seal). */
static inline struct tally_peaks tally_peaks(const struct tally *t, const struct device_account *d,
                                             const struct kind_account *k)
{
    int saved = t->epoch == d->level.epoch, kind_saved = t->kind_epoch == k->level.epoch;
    return (struct tally_peaks){saved ? t->saved_bytes : tally_live_bytes(t),
                                saved ? t->saved_count : tally_live_count(t),
                                kind_saved ? t->saved_kind_bytes : tally_live_bytes(t)};
}

/* Whether a later peak cannot change these values, as long as nothing changes the tally. */
static inline int tally_peaks_stay(const struct tally *t, const struct tally_peaks *p)
{
    return p->bytes == tally_live_bytes(t) && p->count == tally_live_count(t) && p->kind_bytes == tally_live_bytes(t);
}

static inline int tally_peaks_moved(const struct tally *t, const struct tally_peaks *p)
{
    return p->bytes != t->written.bytes || p->count != t->written.count || p->kind_bytes != t->written.kind_bytes;
}

/* The peak is the highest from now on; nobody has saved what it held at it. */
static inline void level_anew(struct level *l, uint64_t time_ns, uint64_t event_count)
{
    l->peak_bytes = l->active_bytes;
    l->peak_count = l->active_count;
    l->peak_ns = time_ns;
    l->peak_event = event_count;
    l->epoch++;
    l->at_peak = 1;
}

/* The peak is about to end. */
static inline void level_seal(struct level *l)
{
    l->epoch += l->at_peak;
    l->at_peak = 0;
}

/* Before a block is added: whether that ends a peak (an allocation of no bytes does, so that counts are exact too). */
static inline int level_ends_peak(const struct level *l, uint64_t size)
{
    return l->at_peak && l->active_bytes + size <= l->peak_bytes;
}

static inline void level_add(struct level *l, uint64_t size, uint64_t count, uint64_t time_ns, uint64_t event_count)
{
    l->active_bytes += size;
    l->active_count += count;
    if (l->active_bytes > l->peak_bytes) {
        l->peak_bytes = l->active_bytes;
        l->peak_count = l->active_count;
        l->peak_ns = time_ns;
        l->peak_event = event_count;
        l->at_peak = 1;
    }
}

static inline void level_drop(struct level *l, uint64_t size, uint64_t count)
{
    l->active_bytes -= size;
    l->active_count -= count;
}

#endif
