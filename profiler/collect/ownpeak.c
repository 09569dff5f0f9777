/*
 * The largest live bytes of sets of sites, exact to the event, by branch and bound over the chunks of events. From what
 * each chunk did to each site follow a set's live bytes at the chunk's start and a bound within it: that plus the rises
 * of its sites. Only chunks in which a set may exceed its best so far are decoded, those with the highest bounds first;
 * within a chunk the same is done again for blocks of events.
 */
#include "finish_private.h"

#include "../../common/chunk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BUDGET_NS      3000000000ll /* of processor time; what is not known by then stays unknown */
#define BLOCK_EVENTS   256u
#define CANDIDATES_MAX (8u << 20)
#define SITE_ID_SLACK  (1u << 20)

struct sum {
    int64_t live, rise;
};

struct candidate { /* a set that may have its peak in a chunk */
    uint32_t set;
    uint32_t chunk; /* place in chunks */
    int64_t live;   /* at its start */
    int64_t bound;
};

struct chunk {
    int64_t id;
    uint32_t first, count; /* candidates */
    uint32_t tops;         /* sets whose highest bound is here */
    int64_t bound;         /* highest of its candidates, for those without tops */
};

struct touched { /* a site in the chunk at hand */
    uint32_t site;
    uint32_t first_member, member_count; /* candidates (by place in active) that hold it */
    uint32_t block;                      /* the block that net and rise are of */
    int64_t net, rise;
    uint8_t is_in; /* of the set being replayed */
};

struct active { /* a candidate in the chunk at hand */
    uint32_t set;
    uint32_t block;
    int64_t live;
    int64_t net, rise;
};

struct step { /* an event that changes live bytes */
    uint32_t touched;
    int64_t change;
};

struct pass {
    const struct model *m;
    const struct ownpeak_range *ranges;
    struct ownpeak_set *sets;
    size_t set_count;
    struct error *err;
    struct chunk_codec *codec;
    const char *incomplete;
    int64_t start_ns;
    uint32_t *site_of; /* by site id: index + 1 */
    size_t site_ids;
    int64_t *live; /* by site */
    uint64_t *allocated, *freed;
    struct sum *sums; /* over the sites before */
    struct candidate *candidates;
    size_t candidate_count, candidate_capacity;
    struct chunk *chunks;
    size_t chunk_count, chunk_capacity;
    /* the chunk at hand */
    struct touched *touched;
    size_t touched_count, touched_capacity;
    uint32_t *touched_of; /* by site: index + 1 */
    uint32_t *members;
    size_t member_count, member_capacity;
    struct active *active;
    size_t active_count, active_capacity;
    struct step *steps;
    uint32_t *in_block, *sets_in_block;
};

#define GROW(array, count, capacity)                                                                                   \
    do {                                                                                                               \
        if ((count) == (capacity)) {                                                                                   \
            (capacity) = (capacity) ? (capacity)*2 : 256;                                                              \
            (array) = xrealloc((array), (capacity) * sizeof *(array));                                                 \
        }                                                                                                              \
    } while (0)

static int64_t add(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b); /* a hostile file may hold any number */
}

static int64_t cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int is_over_budget(struct pass *p)
{
    return cpu_ns() - p->start_ns > BUDGET_NS;
}

static uint32_t site_index(const struct pass *p, uint32_t id)
{
    return id < p->site_ids ? p->site_of[id] : 0;
}

static int map_sites(struct pass *p)
{
    const struct model *m = p->m;
    int64_t last = 0;
    for (size_t i = 0; i < m->site_count; i++) {
        if (m->sites[i].id < 0)
            return 0;
        if (m->sites[i].id > last)
            last = m->sites[i].id;
    }
    if (last > (int64_t)(m->site_count * 8 + SITE_ID_SLACK))
        return 0;
    p->site_ids = (size_t)last + 1;
    p->site_of = xcalloc(p->site_ids, sizeof *p->site_of);
    for (size_t i = 0; i < m->site_count; i++)
        p->site_of[m->sites[i].id] = (uint32_t)i + 1;
    return 1;
}

/* --- bounds ------------------------------------------------------------------------------------------------------ */

static struct sum set_sum(const struct pass *p, const struct ownpeak_set *s)
{
    struct sum total = {0, 0};
    const struct ownpeak_range *r = p->ranges + s->first_range, *end = r + s->range_count;
    for (; r < end; r++) {
        total.live = add(total.live, p->sums[r->end].live - p->sums[r->first].live);
        total.rise = add(total.rise, p->sums[r->end].rise - p->sums[r->first].rise);
    }
    return total;
}

/* Best values only grow, so a candidate once beaten stays beaten. */
static void drop_beaten(struct pass *p)
{
    size_t kept = 0;
    for (size_t i = 0; i < p->candidate_count; i++)
        if (p->candidates[i].bound > p->sets[p->candidates[i].set].low_bytes)
            p->candidates[kept++] = p->candidates[i];
    p->candidate_count = kept;
}

static void bound_chunk(struct pass *p, const struct chunk_delta *deltas, size_t count, uint32_t chunk)
{
    size_t n = p->m->site_count;
    for (size_t i = 0; i < n; i++)
        p->sums[i + 1].rise = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t site = site_index(p, deltas[i].site_id);
        if (site)
            p->sums[site].rise = add(p->sums[site].rise, (int64_t)deltas[i].rise_bytes);
    }
    for (size_t i = 0; i < n; i++) {
        p->sums[i + 1].live = add(p->sums[i].live, p->live[i]);
        p->sums[i + 1].rise = add(p->sums[i].rise, p->sums[i + 1].rise);
    }
    for (size_t i = 0; i < p->set_count; i++) {
        struct ownpeak_set *s = &p->sets[i];
        if (s->low_bytes >= s->high_bytes)
            continue;
        struct sum sum = set_sum(p, s);
        int64_t bound = add(sum.live, sum.rise);
        if (sum.live > s->low_bytes)
            s->low_bytes = sum.live;
        if (bound > s->high_bytes)
            bound = s->high_bytes;
        if (bound <= s->low_bytes)
            continue;
        GROW(p->candidates, p->candidate_count, p->candidate_capacity);
        p->candidates[p->candidate_count++] = (struct candidate){(uint32_t)i, chunk, sum.live, bound};
    }
}

static void apply_deltas(struct pass *p, const struct chunk_delta *deltas, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t site = site_index(p, deltas[i].site_id);
        if (!site)
            continue;
        site--;
        p->allocated[site] += deltas[i].alloc_bytes;
        p->freed[site] += deltas[i].free_bytes;
        p->live[site] = (int64_t)(p->allocated[site] - p->freed[site]);
    }
}

/* The chunks must tell the whole story of every site. */
static int adds_up(const struct pass *p)
{
    for (size_t i = 0; i < p->m->site_count; i++) {
        const int64_t *stat = p->m->sites[i].stat;
        if (p->allocated[i] != (uint64_t)stat[STAT_alloc_bytes] ||
            p->freed[i] != (uint64_t)stat[STAT_free_bytes] + (uint64_t)stat[STAT_end_bytes])
            return 0;
    }
    return 1;
}

static int bound_all(struct pass *p)
{
    sqlite3_stmt *s = NULL;
    int rc =
        db_prepare(p->m->db, "SELECT chunk_id, first_event, event_count, site_delta FROM event_chunk ORDER BY chunk_id",
                   &s, p->err);
    if (rc)
        return rc;
    int64_t events = 0;
    int step = SQLITE_DONE;
    while (!p->incomplete && (step = sqlite3_step(s)) == SQLITE_ROW) {
        if (sqlite3_column_int64(s, 0) != (int64_t)p->chunk_count + 1 || sqlite3_column_int64(s, 1) != events) {
            p->incomplete = "events are missing";
            break;
        }
        events = add(events, sqlite3_column_int64(s, 2));
        const struct chunk_delta *deltas;
        const void *data = sqlite3_column_blob(s, 3);
        long count = data ? chunk_decode_deltas(p->codec, data, (size_t)sqlite3_column_bytes(s, 3), &deltas) : -EBADMSG;
        if (count < 0) {
            p->incomplete = "a chunk of events is damaged";
            break;
        }
        GROW(p->chunks, p->chunk_count, p->chunk_capacity);
        p->chunks[p->chunk_count] = (struct chunk){.id = sqlite3_column_int64(s, 0)};
        bound_chunk(p, deltas, (size_t)count, (uint32_t)p->chunk_count);
        p->chunk_count++;
        apply_deltas(p, deltas, (size_t)count);
        if (p->candidate_count > CANDIDATES_MAX)
            drop_beaten(p);
        if (p->candidate_count > CANDIDATES_MAX || is_over_budget(p))
            p->incomplete = "too many lines compete for too many moments";
        if (finish_interrupted)
            rc = -EINTR;
        if (rc)
            break;
    }
    if (rc == 0 && !p->incomplete && step != SQLITE_DONE)
        rc = db_error(p->m->db, p->err);
    sqlite3_finalize(s);
    if (rc == 0 && !p->incomplete && !adds_up(p))
        p->incomplete = "the events do not add up to the accounts";
    return rc;
}

/* --- one chunk --------------------------------------------------------------------------------------------------- */

static int is_in_set(const struct pass *p, const struct ownpeak_set *s, uint32_t site)
{
    const struct ownpeak_range *r = p->ranges + s->first_range;
    size_t low = 0, high = s->range_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (r[middle].end <= site)
            low = middle + 1;
        else
            high = middle;
    }
    return low < s->range_count && r[low].first <= site;
}

static uint32_t touch(struct pass *p, uint32_t site)
{
    if (!p->touched_of[site]) {
        GROW(p->touched, p->touched_count, p->touched_capacity);
        p->touched[p->touched_count++] = (struct touched){.site = site, .block = UINT32_MAX};
        p->touched_of[site] = (uint32_t)p->touched_count;
    }
    return p->touched_of[site] - 1;
}

static size_t take_steps(struct pass *p, const struct chunk_event *events, size_t count)
{
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        const struct chunk_event *e = &events[i];
        int is_alloc = e->op == CHUNK_alloc || e->op == CHUNK_realloc_alloc;
        if (!is_alloc && e->op != CHUNK_free && e->op != CHUNK_realloc_free && e->op != CHUNK_end)
            continue;
        uint32_t site = site_index(p, e->site_id);
        if (site)
            p->steps[n++] =
                (struct step){touch(p, site - 1), is_alloc ? (int64_t)e->size_bytes : -(int64_t)e->size_bytes};
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
static void each_member(struct pass *p, const uint32_t *sorted, int fill)
{
    for (uint32_t a = 0; a < p->active_count; a++) {
        const struct ownpeak_set *s = &p->sets[p->active[a].set];
        const struct ownpeak_range *r = p->ranges + s->first_range, *end = r + s->range_count;
        size_t at = 0;
        while (at < p->touched_count && r < end) {
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
            at += first_at(sorted + at, p->touched_count - at, r->first);
            for (; at < p->touched_count && sorted[at] < r->end; at++) {
                struct touched *t = &p->touched[p->touched_of[sorted[at]] - 1];
                if (fill)
                    p->members[t->first_member + t->member_count] = a;
                t->member_count++;
            }
        }
    }
}

static void link_members(struct pass *p)
{
    uint32_t *sorted = xmalloc((p->touched_count + 1) * sizeof *sorted);
    for (size_t i = 0; i < p->touched_count; i++)
        sorted[i] = p->touched[i].site;
    qsort(sorted, p->touched_count, sizeof *sorted, by_site);
    each_member(p, sorted, 0);
    size_t total = 0;
    for (size_t i = 0; i < p->touched_count; i++) {
        p->touched[i].first_member = (uint32_t)total;
        total += p->touched[i].member_count;
        p->touched[i].member_count = 0;
    }
    if (total > p->member_capacity) {
        p->member_capacity = total;
        p->members = xrealloc(p->members, total * sizeof *p->members);
    }
    each_member(p, sorted, 1);
    free(sorted);
}

static void replay(struct pass *p, const struct active *a, const struct step *steps, size_t count, size_t sites)
{
    struct ownpeak_set *s = &p->sets[a->set];
    for (size_t i = 0; i < sites; i++) {
        struct touched *t = &p->touched[p->in_block[i]];
        t->is_in = (uint8_t)is_in_set(p, s, t->site);
    }
    int64_t live = a->live, best = s->low_bytes;
    for (size_t i = 0; i < count; i++) {
        if (!p->touched[steps[i].touched].is_in)
            continue;
        live = add(live, steps[i].change);
        if (live > best)
            best = live;
    }
    s->low_bytes = best;
}

static void run_block(struct pass *p, const struct step *steps, size_t count, uint32_t block)
{
    size_t sites = 0, sets = 0;
    for (size_t i = 0; i < count; i++) {
        struct touched *t = &p->touched[steps[i].touched];
        if (t->block != block) {
            t->block = block;
            t->net = t->rise = 0;
            p->in_block[sites++] = steps[i].touched;
        }
        t->net = add(t->net, steps[i].change);
        if (t->net > t->rise)
            t->rise = t->net;
    }
    for (size_t i = 0; i < sites; i++) {
        const struct touched *t = &p->touched[p->in_block[i]];
        for (uint32_t k = 0; k < t->member_count; k++) {
            uint32_t at = p->members[t->first_member + k];
            struct active *a = &p->active[at];
            if (a->block != block) {
                a->block = block;
                a->net = a->rise = 0;
                p->sets_in_block[sets++] = at;
            }
            a->net = add(a->net, t->net);
            a->rise = add(a->rise, t->rise);
        }
    }
    for (size_t i = 0; i < sets; i++) {
        struct active *a = &p->active[p->sets_in_block[i]];
        if (add(a->live, a->rise) > p->sets[a->set].low_bytes)
            replay(p, a, steps, count, sites);
        a->live = add(a->live, a->net);
    }
}

static int run_chunk(struct pass *p, const struct chunk *c, sqlite3_stmt *s)
{
    p->active_count = 0;
    for (uint32_t i = 0; i < c->count; i++) {
        const struct candidate *k = &p->candidates[c->first + i];
        if (k->bound <= p->sets[k->set].low_bytes)
            continue;
        GROW(p->active, p->active_count, p->active_capacity);
        p->active[p->active_count++] = (struct active){.set = k->set, .block = UINT32_MAX, .live = k->live};
    }
    if (!p->active_count)
        return 0;
    p->sets_in_block = xrealloc(p->sets_in_block, p->active_capacity * sizeof *p->sets_in_block);
    sqlite3_bind_int64(s, 1, c->id);
    const struct chunk_event *events;
    const void *data = sqlite3_step(s) == SQLITE_ROW ? sqlite3_column_blob(s, 0) : NULL;
    long count = data ? chunk_decode_events(p->codec, data, (size_t)sqlite3_column_bytes(s, 0), &events) : -EBADMSG;
    if (count > (long)CHUNK_EVENTS)
        count = -EBADMSG;
    if (count >= 0) {
        size_t steps = take_steps(p, events, (size_t)count);
        link_members(p);
        for (size_t at = 0; at < steps; at += BLOCK_EVENTS)
            run_block(p, p->steps + at, steps - at < BLOCK_EVENTS ? steps - at : BLOCK_EVENTS,
                      (uint32_t)(at / BLOCK_EVENTS));
    }
    for (size_t i = 0; i < p->touched_count; i++)
        p->touched_of[p->touched[i].site] = 0;
    p->touched_count = 0;
    sqlite3_reset(s);
    if (count < 0)
        p->incomplete = "a chunk of events is damaged";
    return 0;
}

/* --- which chunks, in which order -------------------------------------------------------------------------------- */

static int by_chunk(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    if (x->chunk != y->chunk)
        return x->chunk < y->chunk ? -1 : 1;
    return x->set < y->set ? -1 : x->set > y->set;
}

/* A chunk where some set has its highest bound most likely holds its peak, and then beats the set's other chunks. */
static int by_promise(const void *a, const void *b)
{
    const struct chunk *x = a, *y = b;
    if (x->tops != y->tops)
        return x->tops > y->tops ? -1 : 1;
    if (x->bound != y->bound)
        return x->bound > y->bound ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

static void order_chunks(struct pass *p)
{
    drop_beaten(p);
    if (p->candidate_count)
        qsort(p->candidates, p->candidate_count, sizeof *p->candidates, by_chunk);
    uint32_t *top = xcalloc(p->set_count + 1, sizeof *top); /* candidate + 1 */
    for (size_t i = 0; i < p->candidate_count; i++) {
        const struct candidate *k = &p->candidates[i];
        struct chunk *c = &p->chunks[k->chunk];
        if (!c->count++)
            c->first = (uint32_t)i;
        if (k->bound > c->bound)
            c->bound = k->bound;
        if (!top[k->set] || k->bound > p->candidates[top[k->set] - 1].bound)
            top[k->set] = (uint32_t)i + 1;
    }
    for (size_t i = 0; i < p->set_count; i++)
        if (top[i])
            p->chunks[p->candidates[top[i] - 1].chunk].tops++;
    free(top);
    if (p->chunk_count)
        qsort(p->chunks, p->chunk_count, sizeof *p->chunks, by_promise);
}

static int run_chunks(struct pass *p)
{
    sqlite3_stmt *s = NULL;
    int rc = db_prepare(p->m->db, "SELECT data FROM event_chunk WHERE chunk_id = ?", &s, p->err);
    order_chunks(p);
    size_t i = 0;
    for (; i < p->chunk_count && rc == 0 && !p->incomplete; i++) {
        rc = run_chunk(p, &p->chunks[i], s);
        if (rc == 0 && finish_interrupted)
            rc = -EINTR;
        if (is_over_budget(p))
            p->incomplete = "too many lines compete for too many moments";
    }
    sqlite3_finalize(s);
    /* Known: every set that no chunk left out could have raised. */
    uint8_t *open = xcalloc(p->set_count + 1, 1);
    int any = 0;
    for (; i < p->chunk_count; i++)
        for (uint32_t n = 0; n < p->chunks[i].count; n++) {
            const struct candidate *k = &p->candidates[p->chunks[i].first + n];
            if (k->bound > p->sets[k->set].low_bytes)
                any = open[k->set] = 1;
        }
    for (size_t n = 0; n < p->set_count && rc == 0; n++)
        if (!open[n])
            p->sets[n].peak_bytes = p->sets[n].low_bytes;
    free(open);
    if (!any)
        p->incomplete = NULL;
    return rc;
}

static void open_pass(struct pass *p)
{
    size_t n = p->m->site_count;
    p->live = xcalloc(n + 1, sizeof *p->live);
    p->allocated = xcalloc(n + 1, sizeof *p->allocated);
    p->freed = xcalloc(n + 1, sizeof *p->freed);
    p->sums = xcalloc(n + 1, sizeof *p->sums);
    p->touched_of = xcalloc(n + 1, sizeof *p->touched_of);
    p->steps = xmalloc(CHUNK_EVENTS * sizeof *p->steps);
    p->in_block = xmalloc(BLOCK_EVENTS * sizeof *p->in_block);
    p->codec = chunk_codec_open();
}

static void close_pass(struct pass *p)
{
    free(p->site_of);
    free(p->live);
    free(p->allocated);
    free(p->freed);
    free(p->sums);
    free(p->candidates);
    free(p->chunks);
    free(p->touched);
    free(p->touched_of);
    free(p->members);
    free(p->active);
    free(p->steps);
    free(p->in_block);
    free(p->sets_in_block);
    chunk_codec_close(p->codec);
}

int ownpeak_compute(const struct model *m, const struct ownpeak_range *ranges, struct ownpeak_set *sets,
                    size_t set_count, const char **incomplete, struct error *err)
{
    *incomplete = NULL;
    if (!set_count)
        return 0;
    struct pass p = {.m = m, .ranges = ranges, .sets = sets, .set_count = set_count, .err = err, .start_ns = cpu_ns()};
    char *kept = db_meta_text(m->db, "events_kept");
    int rc = 0;
    open_pass(&p);
    if (!kept || strcmp(kept, "all"))
        p.incomplete = "not all events were kept";
    else if (!p.codec)
        rc = error_set(err, ENOMEM, "out of memory");
    else if (!map_sites(&p))
        p.incomplete = "site numbers out of range";
    else
        rc = bound_all(&p);
    if (rc == 0 && !p.incomplete)
        rc = run_chunks(&p);
    else if (rc == 0)
        for (size_t i = 0; i < set_count; i++) /* what needs no events */
            sets[i].peak_bytes = -1;
    *incomplete = p.incomplete;
    free(kept);
    close_pass(&p);
    return rc;
}
