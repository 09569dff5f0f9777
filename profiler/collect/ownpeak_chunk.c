#include "ownpeak_chunk.h"

#include "wrap.h"

#include "../../common/array.h"
#include "../../common/chunk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_EVENTS 256u /* numbers of the sites in a block fit a byte */
#define BLOCK_WORDS  (BLOCK_EVENTS / 64)

struct touched { /* a site in the chunk */
    uint32_t site;
    uint32_t first_member, member_count; /* followed sets that hold it */
    uint32_t block;                      /* the block that all below is of */
    uint32_t number;                     /* in the block */
    int64_t net, rise, fall;
};

struct active { /* a followed set */
    uint32_t set;
    uint32_t block;
    int64_t live;
    int64_t net, rise, fall;
    uint64_t sites[BLOCK_WORDS]; /* of the block, by number: those that it holds */
};

struct step { /* an event that changes live bytes */
    uint32_t touched;
    int64_t change;
};

struct ownpeak_worker {
    const struct ownpeak_input *in;
    struct chunk_codec *codec;
    struct touched *touched;
    size_t touched_count, touched_capacity;
    uint32_t *touched_of; /* by site: index + 1 */
    uint32_t *members;
    size_t member_capacity;
    struct active *active;
    size_t active_count, active_capacity;
    struct step *steps;
    uint32_t *in_block, *sets_in_block;
};

static void raise_best(struct ownpeak_set *s, int64_t best)
{
    int64_t known = ownpeak_best(s);
    while (best > known &&
           !__atomic_compare_exchange_n(&s->low_bytes, &known, best, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

static uint32_t site_index(const struct ownpeak_worker *w, uint32_t id)
{
    return id < w->in->site_ids ? w->in->site_of[id] : 0;
}

static uint32_t touch(struct ownpeak_worker *w, uint32_t site)
{
    if (!w->touched_of[site]) {
        ARRAY_GROW(w->touched, w->touched_count, w->touched_capacity);
        w->touched[w->touched_count++] = (struct touched){.site = site, .block = UINT32_MAX};
        w->touched_of[site] = (uint32_t)w->touched_count;
    }
    return w->touched_of[site] - 1;
}

static size_t take_steps(struct ownpeak_worker *w, const struct chunk_change *changes, size_t count)
{
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t site = site_index(w, changes[i].site_id);
        if (site)
            w->steps[n++] = (struct step){touch(w, site - 1), changes[i].bytes};
    }
    return n;
}

static int by_site(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* Places in sorted (sites that are touched, ascending) of those in the range. */
static size_t first_at(const uint32_t *sorted, size_t count, uint32_t site)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (sorted[middle] < site)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Calls for every pair of a touched site and an active set that holds it: first to count, then to fill. */
static void each_member(struct ownpeak_worker *w, const uint32_t *sorted, int fill)
{
    for (uint32_t a = 0; a < w->active_count; a++) {
        const struct ownpeak_set *s = &w->in->sets[w->active[a].set];
        const struct ownpeak_range *r = w->in->ranges + s->first_range, *end = r + s->range_count;
        size_t at = 0;
        while (at < w->touched_count && r < end) {
            /* on to the first range that ends after the site, then to the first site in it */
            size_t low = 0, high = (size_t)(end - r);
            while (low < high) {
                size_t middle = low + (high - low) / 2;
                if (r[middle].end <= sorted[at])
                    low = middle + 1;
                else
                    high = middle;
            }
            r += low;
            if (r == end)
                break;
            at += first_at(sorted + at, w->touched_count - at, r->first);
            for (; at < w->touched_count && sorted[at] < r->end; at++) {
                struct touched *t = &w->touched[w->touched_of[sorted[at]] - 1];
                if (fill)
                    w->members[t->first_member + t->member_count] = a;
                t->member_count++;
            }
        }
    }
}

static void link_members(struct ownpeak_worker *w)
{
    uint32_t *sorted = xmalloc((w->touched_count + 1) * sizeof *sorted);
    for (size_t i = 0; i < w->touched_count; i++)
        sorted[i] = w->touched[i].site;
    qsort(sorted, w->touched_count, sizeof *sorted, by_site);
    each_member(w, sorted, 0);
    size_t total = 0;
    for (size_t i = 0; i < w->touched_count; i++) {
        w->touched[i].first_member = (uint32_t)total;
        total += w->touched[i].member_count;
        w->touched[i].member_count = 0;
    }
    if (total > w->member_capacity) {
        w->member_capacity = total;
        w->members = xrealloc(w->members, total * sizeof *w->members);
    }
    each_member(w, sorted, 1);
    free(sorted);
}

static void replay(struct ownpeak_worker *w, const struct active *a, const struct step *steps, const uint8_t *numbers,
                   size_t count)
{
    struct ownpeak_set *s = &w->in->sets[a->set];
    int64_t live = a->live, best = ownpeak_best(s);
    for (size_t i = 0; i < count; i++) {
        uint64_t is_in = a->sites[numbers[i] / 64] >> numbers[i] % 64 & 1;
        live = wrap_add(live, steps[i].change & -(int64_t)is_in);
        best = live > best ? live : best;
    }
    raise_best(s, best);
}

struct course { /* of all live bytes in a block */
    int64_t net, rise;
    int64_t falls; /* sum over the sites */
};

static size_t follow_sites(struct ownpeak_worker *w, const struct step *steps, uint8_t *numbers, size_t count,
                           uint32_t block, struct course *all)
{
    size_t sites = 0;
    for (size_t i = 0; i < count; i++) {
        struct touched *t = &w->touched[steps[i].touched];
        if (t->block != block) {
            t->block = block;
            t->number = (uint32_t)sites;
            t->net = t->rise = t->fall = 0;
            w->in_block[sites++] = steps[i].touched;
        }
        numbers[i] = (uint8_t)t->number;
        t->net = wrap_add(t->net, steps[i].change);
        t->rise = t->net > t->rise ? t->net : t->rise;
        t->fall = t->net < t->fall ? t->net : t->fall;
        all->net = wrap_add(all->net, steps[i].change);
        all->rise = all->net > all->rise ? all->net : all->rise;
    }
    for (size_t i = 0; i < sites; i++)
        all->falls = wrap_add(all->falls, w->touched[w->in_block[i]].fall);
    return sites;
}

static size_t follow_sets(struct ownpeak_worker *w, size_t sites, uint32_t block)
{
    size_t sets = 0;
    for (size_t i = 0; i < sites; i++) {
        const struct touched *t = &w->touched[w->in_block[i]];
        for (uint32_t k = 0; k < t->member_count; k++) {
            uint32_t at = w->members[t->first_member + k];
            struct active *a = &w->active[at];
            if (a->block != block) {
                a->block = block;
                a->net = a->rise = a->fall = 0;
                memset(a->sites, 0, sizeof a->sites);
                w->sets_in_block[sets++] = at;
            }
            a->net = wrap_add(a->net, t->net);
            a->rise = wrap_add(a->rise, t->rise);
            a->fall = wrap_add(a->fall, t->fall);
            a->sites[i / 64] |= 1ull << i % 64;
        }
    }
    return sets;
}

static void run_block(struct ownpeak_worker *w, const struct step *steps, size_t count, uint32_t block)
{
    uint8_t numbers[BLOCK_EVENTS];
    struct course all = {0, 0, 0};
    size_t sites = follow_sites(w, steps, numbers, count, block, &all);
    size_t sets = follow_sets(w, sites, block);
    for (size_t i = 0; i < sets; i++) {
        struct active *a = &w->active[w->sets_in_block[i]];
        /* It rises by what its sites do, and by what all sites do and those outside it make room for. */
        int64_t shared = wrap_add(all.rise, a->fall - all.falls);
        if (wrap_add(a->live, shared < a->rise ? shared : a->rise) > ownpeak_best(&w->in->sets[a->set]))
            replay(w, a, steps, numbers, count);
        a->live = wrap_add(a->live, a->net);
    }
}

/* --- one chunk --------------------------------------------------------------------------------------------------- */

struct ownpeak_worker *ownpeak_worker_open(const struct ownpeak_input *input)
{
    struct ownpeak_worker *w = xcalloc(1, sizeof *w);
    w->in = input;
    w->touched_of = xcalloc(input->site_count + 1, sizeof *w->touched_of);
    w->steps = xmalloc(CHUNK_EVENTS * sizeof *w->steps);
    w->in_block = xmalloc(BLOCK_EVENTS * sizeof *w->in_block);
    w->codec = chunk_codec_open();
    if (w->codec)
        return w;
    ownpeak_worker_close(w);
    return NULL;
}

void ownpeak_worker_close(struct ownpeak_worker *w)
{
    if (!w)
        return;
    chunk_codec_close(w->codec);
    free(w->touched);
    free(w->touched_of);
    free(w->members);
    free(w->active);
    free(w->steps);
    free(w->in_block);
    free(w->sets_in_block);
    free(w);
}

void ownpeak_worker_clear(struct ownpeak_worker *w)
{
    w->active_count = 0;
}

void ownpeak_worker_follow(struct ownpeak_worker *w, uint32_t set, int64_t live_bytes)
{
    ARRAY_GROW(w->active, w->active_count, w->active_capacity);
    w->active[w->active_count++] = (struct active){.set = set, .block = UINT32_MAX, .live = live_bytes};
}

size_t ownpeak_worker_followed(const struct ownpeak_worker *w)
{
    return w->active_count;
}

int ownpeak_worker_run(struct ownpeak_worker *w, const void *data, size_t length)
{
    const struct chunk_change *changes;
    long count = chunk_decode_changes(w->codec, data, length, &changes);
    if (count < 0 || count > (long)CHUNK_EVENTS)
        return -EBADMSG;
    w->sets_in_block = xrealloc(w->sets_in_block, (w->active_capacity + 1) * sizeof *w->sets_in_block);
    size_t steps = take_steps(w, changes, (size_t)count);
    link_members(w);
    for (size_t at = 0; at < steps; at += BLOCK_EVENTS)
        run_block(w, w->steps + at, steps - at < BLOCK_EVENTS ? steps - at : BLOCK_EVENTS,
                  (uint32_t)(at / BLOCK_EVENTS));
    for (size_t i = 0; i < w->touched_count; i++)
        w->touched_of[w->touched[i].site] = 0;
    w->touched_count = 0;
    return 0;
}
