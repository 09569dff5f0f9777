#include "ownpeak_chunk.h"

#include "../../common/array.h"
#include "../../common/chunk.h"
#include "../../common/wrap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_EVENTS 256u /* numbers of the sites in a block fit a byte */
#define BLOCK_WORDS  (BLOCK_EVENTS / 64)

/* Followed sets that an event concerns, in the mean of a chunk. Up to there each event is added to each of its sets;
 * beyond, blocks of events are bounded first. */
#define DIRECT_SETS 24u

struct touched {     /* a site in the chunk */
    uint32_t site;   /* index + 1; 0: not in the model */
    uint32_t events; /* that change it */
    uint32_t block;  /* the block that all below is of */
    uint32_t number; /* in the block */
    int64_t net, rise, fall;
};

struct members { /* followed sets that hold a site */
    uint32_t first, count;
};

struct pair {
    uint32_t number, set;
};

struct course { /* of a followed set */
    int64_t live, best;
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
    struct touched *touched; /* by number of the site in the chunk, from 1 */
    struct members *members; /* the same */
    uint32_t touched_end;    /* highest number + 1 */
    uint32_t *number_of;     /* by site; 0 outside of a chunk */
    uint64_t *is_touched;    /* a bit a site; 0 outside of a chunk */
    uint32_t *rank_of_word;  /* touched sites before the 64 of a word */
    uint32_t *sorted;        /* sites that are touched, ascending */
    size_t sorted_count;
    struct pair *pairs;
    size_t pair_count, pair_capacity;
    uint32_t *sets; /* of all members: index of the followed set */
    struct active *active;
    size_t active_count, active_capacity;
    struct course *courses; /* by followed set */
    struct step *steps;     /* NULL until used */
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

/* --- which sites, and which sets hold them ----------------------------------------------------------------------- */

static size_t site_words(const struct ownpeak_worker *w)
{
    return w->in->site_count / 64 + 1;
}

static void touch_sites(struct ownpeak_worker *w, const struct chunk_change *changes, size_t count)
{
    w->touched_end = 1;
    for (size_t i = 0; i < count; i++) {
        uint32_t number = changes[i].site_number;
        for (; w->touched_end <= number; w->touched_end++)
            w->touched[w->touched_end] = (struct touched){.block = UINT32_MAX};
        struct touched *t = &w->touched[number];
        if (!t->events++)
            t->site = site_index(w, changes[i].site_id);
    }
    for (uint32_t n = 1; n < w->touched_end; n++) {
        uint32_t site = w->touched[n].site;
        w->members[n] = (struct members){0, 0};
        if (!site)
            continue;
        w->number_of[site - 1] = n;
        w->is_touched[(site - 1) / 64] |= 1ull << (site - 1) % 64;
    }
    w->sorted_count = 0;
    for (size_t word = 0; word < site_words(w); word++) {
        w->rank_of_word[word] = (uint32_t)w->sorted_count;
        for (uint64_t bits = w->is_touched[word]; bits; bits &= bits - 1)
            w->sorted[w->sorted_count++] = (uint32_t)(word * 64) + (uint32_t)__builtin_ctzll(bits);
    }
}

static void leave_sites(struct ownpeak_worker *w)
{
    for (size_t i = 0; i < w->sorted_count; i++) {
        w->number_of[w->sorted[i]] = 0;
        w->is_touched[w->sorted[i] / 64] = 0;
    }
}

/* How many touched sites lie before this one: its place in sorted. */
static uint32_t rank_of(const struct ownpeak_worker *w, uint32_t site)
{
    uint64_t before = w->is_touched[site / 64] & ((1ull << site % 64) - 1);
    return w->rank_of_word[site / 64] + (uint32_t)__builtin_popcountll(before);
}

/* Every pair of a touched site and an active set that holds it. */
static void pair_sets(struct ownpeak_worker *w)
{
    w->pair_count = 0;
    for (uint32_t a = 0; a < w->active_count; a++) {
        const struct ownpeak_set *s = &w->in->sets[w->active[a].set];
        const struct ownpeak_range *r = w->in->ranges + s->first_range, *end = r + s->range_count;
        for (; r < end; r++)
            for (uint32_t at = rank_of(w, r->first), to = rank_of(w, r->end); at < to; at++) {
                uint32_t number = w->number_of[w->sorted[at]];
                *ARRAY_ADD(w->pairs, w->pair_count, w->pair_capacity) = (struct pair){number, a};
                w->members[number].count++;
            }
    }
}

/* Returns how often an event concerns a set, in all. */
static uint64_t link_members(struct ownpeak_worker *w)
{
    uint64_t concerns = 0;
    uint32_t total = 0;
    pair_sets(w);
    for (uint32_t n = 1; n < w->touched_end; n++) {
        struct members *m = &w->members[n];
        concerns += (uint64_t)m->count * w->touched[n].events;
        m->first = total;
        total += m->count;
        m->count = 0;
    }
    w->sets = xrealloc(w->sets, (w->pair_capacity + 1) * sizeof *w->sets);
    for (size_t i = 0; i < w->pair_count; i++) {
        struct members *m = &w->members[w->pairs[i].number];
        w->sets[m->first + m->count++] = w->pairs[i].set;
    }
    return concerns;
}

/* --- event by event ---------------------------------------------------------------------------------------------- */

static void run_events(struct ownpeak_worker *w, const struct chunk_change *changes, size_t count)
{
    struct course *courses = w->courses;
    for (size_t i = 0; i < w->active_count; i++)
        courses[i] = (struct course){w->active[i].live, w->active[i].live};
    for (size_t i = 0; i < count; i++) {
        const struct members m = w->members[changes[i].site_number];
        const uint32_t *set = w->sets + m.first, *end = set + m.count;
        for (; set < end; set++) {
            struct course *c = &courses[*set];
            c->live = wrap_add(c->live, changes[i].bytes);
            c->best = c->live > c->best ? c->live : c->best;
        }
    }
    for (size_t i = 0; i < w->active_count; i++)
        raise_best(&w->in->sets[w->active[i].set], courses[i].best);
}

/* --- block by block ---------------------------------------------------------------------------------------------- */

static size_t take_steps(struct ownpeak_worker *w, const struct chunk_change *changes, size_t count)
{
    size_t n = 0;
    if (!w->steps)
        w->steps = xmalloc(CHUNK_EVENTS * sizeof *w->steps);
    for (size_t i = 0; i < count; i++)
        if (w->touched[changes[i].site_number].site)
            w->steps[n++] = (struct step){changes[i].site_number, changes[i].bytes};
    return n;
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

struct block_course { /* of all live bytes in a block */
    int64_t net, rise;
    int64_t falls; /* sum over the sites */
};

static size_t follow_sites(struct ownpeak_worker *w, const struct step *steps, uint8_t *numbers, size_t count,
                           uint32_t block, struct block_course *all)
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
        const struct members *m = &w->members[w->in_block[i]];
        for (uint32_t k = 0; k < m->count; k++) {
            uint32_t at = w->sets[m->first + k];
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
    struct block_course all = {0, 0, 0};
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
    w->touched = xmalloc((CHUNK_EVENTS + 1) * sizeof *w->touched);
    w->members = xmalloc((CHUNK_EVENTS + 1) * sizeof *w->members);
    w->number_of = xcalloc(input->site_count + 1, sizeof *w->number_of);
    w->is_touched = xcalloc(site_words(w), sizeof *w->is_touched);
    w->rank_of_word = xmalloc(site_words(w) * sizeof *w->rank_of_word);
    w->sorted = xmalloc((input->site_count + 1) * sizeof *w->sorted);
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
    free(w->members);
    free(w->number_of);
    free(w->is_touched);
    free(w->sorted);
    free(w->rank_of_word);
    free(w->pairs);
    free(w->sets);
    free(w->active);
    free(w->courses);
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
    *ARRAY_ADD(w->active, w->active_count, w->active_capacity) =
        (struct active){.set = set, .block = UINT32_MAX, .live = live_bytes};
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
    touch_sites(w, changes, (size_t)count);
    if (link_members(w) <= (uint64_t)count * DIRECT_SETS) {
        w->courses = xrealloc(w->courses, (w->active_capacity + 1) * sizeof *w->courses);
        run_events(w, changes, (size_t)count);
    } else {
        w->sets_in_block = xrealloc(w->sets_in_block, (w->active_capacity + 1) * sizeof *w->sets_in_block);
        size_t steps = take_steps(w, changes, (size_t)count);
        for (size_t at = 0; at < steps; at += BLOCK_EVENTS)
            run_block(w, w->steps + at, steps - at < BLOCK_EVENTS ? steps - at : BLOCK_EVENTS,
                      (uint32_t)(at / BLOCK_EVENTS));
    }
    leave_sites(w);
    return 0;
}
