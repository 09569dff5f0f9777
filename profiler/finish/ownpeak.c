/*
 * The largest live bytes of sets of sites, exact to the event, by branch and bound over the chunks of events. From what
 * each chunk did to each site follow a set's live bytes at the chunk's start and bounds within it: that plus the rises
 * of its sites, and the device's highest live bytes meanwhile (from the timeline) less what the sites outside the set
 * hold at least. Only chunks in which a set may exceed its best so far are decoded, those with the highest bounds
 * first; within a chunk the same is done again for blocks of events.
 */
#include "finish_private.h"
#include "ownpeak_chunk.h"
#include "ownpeak_timeline.h"

#include "../../common/array.h"
#include "../../common/chunk.h"
#include "../../common/wrap.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Processor time of one thread; what is not known by then stays unknown. */
#define BOUNDS_NS 100000000ll
#define ROUND_NS  80000000ll

/* What a chunk takes, and each set that competes in it, as far as that is known before. Where all of it is too much for
 * one round, the first sets have a round alone. */
#define CHUNK_NS   500000ll
#define COMPETE_NS 5000ll
#define FIRST_SETS 24u

/* A set that competes in more chunks than the round has time for is given up when an eighth of its time is over. */
#define GIVE_UP_NS (ROUND_NS / 8)

#define THREADS_MAX    4
#define CANDIDATES_MAX (8u << 20)
#define SITE_ID_SLACK  (1u << 20)
#define DAMAGED        "a chunk of events is damaged"
#define TOO_MANY       "too many lines could have had theirs at too many moments"

struct sum {
    int64_t live, rise;
    int64_t least; /* never less within the chunk */
};

struct device {
    uint32_t first, end;               /* its sites */
    struct ownpeak_timeline *timeline; /* NULL: not used */
    int64_t high_bytes;                /* the most within the chunk */
    int64_t least;                     /* the least that its sites hold together within the chunk */
};

struct candidate { /* a set that may have its peak in a chunk */
    uint32_t set;
    uint32_t chunk; /* place in chunks */
    int64_t live;   /* at its start */
    int64_t bound;
};

enum { FIRST = 1, REST = 2 }; /* the sets that matter most, and the others */

struct chunk {
    int64_t id;
    uint32_t first, count; /* candidates */
    unsigned done;         /* whose sets are settled here: FIRST, REST */
    uint32_t tops;         /* sets whose highest bound is here */
    int64_t bound;         /* highest of its candidates, for those without tops */
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
    struct device *devices;
    size_t device_count;
    uint32_t *device_of; /* by set */
    struct candidate *candidates;
    size_t candidate_count, candidate_capacity;
    struct chunk *chunks;
    size_t chunk_count, chunk_capacity;
    int is_damaged, timelines_lie;
    /* the threads */
    pthread_mutex_t lock;
    sqlite3_stmt *statement;
    unsigned round;    /* of FIRST, REST or both */
    size_t next;       /* chunk of the round */
    size_t run_count;  /* chunks that were run in it */
    uint8_t *given_up; /* by set */
    int has_given_up;  /* in this round */
    int is_stopped;
};

static int64_t cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int is_over_budget(struct pass *p)
{
    return cpu_ns() - p->start_ns > BOUNDS_NS;
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

/* --- devices --------------------------------------------------------------------------------- */

static int open_devices(struct pass *p)
{
    const struct model *m = p->m;
    uint32_t *device_of_group = xcalloc(m->group_count + 1, sizeof *device_of_group);
    int rc = 0;
    p->devices = xcalloc(m->group_count + 1, sizeof *p->devices);
    for (size_t i = 0; i < m->group_count && rc == 0; i++) {
        const struct model_group *g = &m->groups[i];
        if (i == 0 || g->device != m->groups[i - 1].device) {
            struct device *d = &p->devices[p->device_count++];
            *d = (struct device){.first = g->device_first, .end = g->device_first + g->device_count};
            rc = ownpeak_timeline_open(m->db, g->device, &d->timeline, p->err);
        }
        device_of_group[i] = (uint32_t)p->device_count - 1;
    }
    p->device_of = xcalloc(p->set_count + 1, sizeof *p->device_of);
    for (size_t i = 0; i < p->set_count; i++)
        if (p->sets[i].range_count)
            p->device_of[i] = device_of_group[m->sites[p->ranges[p->sets[i].first_range].first].group];
    free(device_of_group);
    return rc;
}

/* --- bounds ------------------------------------------------------------------------------------------------------ */

static struct sum set_sum(const struct pass *p, const struct ownpeak_set *s)
{
    struct sum total = {0, 0, 0};
    const struct ownpeak_range *r = p->ranges + s->first_range, *end = r + s->range_count;
    for (; r < end; r++) {
        total.live = wrap_add(total.live, p->sums[r->end].live - p->sums[r->first].live);
        total.rise = wrap_add(total.rise, p->sums[r->end].rise - p->sums[r->first].rise);
        total.least = wrap_add(total.least, p->sums[r->end].least - p->sums[r->first].least);
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

/* Sums of the sites' values over the chunk. */
static void sum_sites(struct pass *p, const struct chunk_delta *deltas, size_t count)
{
    size_t n = p->m->site_count;
    for (size_t i = 0; i < n; i++)
        p->sums[i + 1] = (struct sum){p->live[i], 0, p->live[i]};
    for (size_t i = 0; i < count; i++) {
        uint32_t site = site_index(p, deltas[i].site_id);
        if (!site)
            continue;
        struct sum *s = &p->sums[site];
        s->rise = wrap_add(s->rise, (int64_t)deltas[i].rise_bytes);
        s->least =
            s->least > 0 && deltas[i].free_bytes < (uint64_t)s->least ? s->least - (int64_t)deltas[i].free_bytes : 0;
    }
    for (size_t i = 0; i < n; i++) {
        p->sums[i + 1].live = wrap_add(p->sums[i].live, p->sums[i + 1].live);
        p->sums[i + 1].rise = wrap_add(p->sums[i].rise, p->sums[i + 1].rise);
        p->sums[i + 1].least = wrap_add(p->sums[i].least, p->sums[i + 1].least);
    }
}

static void bound_chunk(struct pass *p, const struct chunk_delta *deltas, size_t count, uint32_t chunk)
{
    sum_sites(p, deltas, count);
    for (size_t i = 0; i < p->device_count; i++) {
        struct device *d = &p->devices[i];
        d->least = wrap_subtract(p->sums[d->end].least, p->sums[d->first].least);
    }
    for (size_t i = 0; i < p->set_count; i++) {
        struct ownpeak_set *s = &p->sets[i];
        if (s->low_bytes >= s->high_bytes || !s->range_count)
            continue;
        const struct device *d = &p->devices[p->device_of[i]];
        struct sum sum = set_sum(p, s);
        int64_t bound = wrap_add(sum.live, sum.rise);
        int64_t shared = wrap_subtract(d->high_bytes, wrap_subtract(d->least, sum.least));
        if (sum.live > s->low_bytes)
            s->low_bytes = sum.live;
        if (d->high_bytes < OWNPEAK_UNKNOWN && shared < bound)
            bound = shared;
        if (bound > s->high_bytes)
            bound = s->high_bytes;
        if (bound <= s->low_bytes)
            continue;
        *ARRAY_ADD(p->candidates, p->candidate_count, p->candidate_capacity) =
            (struct candidate){(uint32_t)i, chunk, sum.live, bound};
    }
}

/* What a part of a rotated recording inherited. */
static uint64_t started(const struct pass *p, size_t site)
{
    return (uint64_t)model_stat(p->m, &p->m->sites[site], STAT_start_bytes);
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
        p->live[site] = (int64_t)(started(p, site) + p->allocated[site] - p->freed[site]);
    }
}

/* A timeline that says less than is live now is not that of these events: 0. */
static int check_timelines(const struct pass *p)
{
    for (size_t i = 0; i < p->device_count; i++) {
        const struct device *d = &p->devices[i];
        int64_t live = 0;
        for (uint32_t n = d->first; n < d->end; n++)
            live = wrap_add(live, p->live[n]);
        if (live > d->high_bytes)
            return 0;
    }
    return 1;
}

/* The chunks must tell the whole story of every site. What a teardown freed was freed, and live at the end. A block
 * that turned out to be an allocator's memory came and went by the chunks, and by the accounts never was. */
static int adds_up(const struct pass *p)
{
    int has_teardown = db_int(p->m->db, "SELECT EXISTS (SELECT 1 FROM teardown)", 0) != 0;
    int has_segments = db_int(p->m->db, "SELECT EXISTS (SELECT 1 FROM segment)", 0) != 0;
    int has_end = db_meta_int(p->m->db, "part_end_ns", 0) == 0;
    for (size_t i = 0; i < p->m->site_count; i++) {
        const struct model_site *site = &p->m->sites[i];
        const uint64_t moved = p->allocated[i] - (uint64_t)model_stat(p->m, site, STAT_alloc_bytes);
        const uint64_t ended = p->freed[i] - (uint64_t)model_stat(p->m, site, STAT_free_bytes) - moved;
        /* of a recording that goes on elsewhere, or was cut off, what is live is at the end, too */
        const uint64_t live = has_end ? 0 : (uint64_t)p->live[i];
        const uint64_t end = (uint64_t)model_stat(p->m, site, STAT_end_bytes) - live;
        if ((moved && !has_segments) || moved > p->allocated[i] || ended > end || (ended != end && !has_teardown))
            return 0;
    }
    return 1;
}

static void begin_again(struct pass *p)
{
    size_t bytes = p->m->site_count * sizeof *p->live;
    for (size_t i = 0; i < p->m->site_count; i++)
        p->live[i] = (int64_t)started(p, i);
    memset(p->allocated, 0, bytes);
    memset(p->freed, 0, bytes);
    p->candidate_count = p->chunk_count = 0;
    p->timelines_lie = 0;
    for (size_t i = 0; i < p->device_count; i++) {
        ownpeak_timeline_close(p->devices[i].timeline);
        p->devices[i].timeline = NULL;
    }
}

static int bound_all(struct pass *p)
{
    sqlite3_stmt *s = NULL;
    int rc =
        db_prepare(p->m->db,
                   "SELECT chunk_id, first_event, event_count, site_delta, first_ns, last_ns FROM event_chunk WHERE "
                   "first_event >= (SELECT coalesce(max(value), 0) FROM meta WHERE key = 'part_first_event') ORDER BY "
                   "chunk_id",
                   &s, p->err);
    if (rc)
        return rc;
    int64_t events = db_meta_int(p->m->db, "part_first_event", 0);
    int64_t before = db_meta_int(p->m->db, "part_chunk", 1) - 1; /* chunks of the parts before */
    int step = SQLITE_DONE;
    while (!p->incomplete && (step = sqlite3_step(s)) == SQLITE_ROW) {
        if (sqlite3_column_int64(s, 0) != wrap_add(before, (int64_t)p->chunk_count + 1) ||
            sqlite3_column_int64(s, 1) != events) {
            p->incomplete = "events are missing";
            break;
        }
        events = wrap_add(events, sqlite3_column_int64(s, 2));
        const struct chunk_delta *deltas;
        const void *data = sqlite3_column_blob(s, 3);
        long count = data ? chunk_decode_deltas(p->codec, data, (size_t)sqlite3_column_bytes(s, 3), &deltas) : -EBADMSG;
        if (count < 0) {
            p->incomplete = DAMAGED;
            break;
        }
        ARRAY_ADD(p->chunks, p->chunk_count, p->chunk_capacity)->id = sqlite3_column_int64(s, 0);
        for (size_t i = 0; i < p->device_count; i++)
            p->devices[i].high_bytes =
                ownpeak_timeline_most(p->devices[i].timeline, sqlite3_column_int64(s, 4), sqlite3_column_int64(s, 5));
        bound_chunk(p, deltas, (size_t)count, (uint32_t)p->chunk_count - 1);
        apply_deltas(p, deltas, (size_t)count);
        p->timelines_lie |= !check_timelines(p);
        if (p->timelines_lie)
            break;
        if (p->candidate_count > CANDIDATES_MAX)
            drop_beaten(p);
        if (p->candidate_count > CANDIDATES_MAX || is_over_budget(p))
            p->incomplete = TOO_MANY;
        if (finish_interrupted)
            rc = -EINTR;
        if (rc)
            break;
    }
    if (rc == 0 && !p->incomplete && !p->timelines_lie && step != SQLITE_DONE)
        rc = db_error(p->m->db, p->err);
    sqlite3_finalize(s);
    if (rc == 0 && p->timelines_lie) { /* once more without them */
        begin_again(p);
        return bound_all(p);
    }
    if (rc == 0 && !p->incomplete && !adds_up(p))
        p->incomplete = "the events do not add up to the accounts";
    return rc;
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

/* --- threads ----------------------------------------------------------------------------------------------------- */

static unsigned turn_of(const struct ownpeak_set *s)
{
    return s->rank < FIRST_SETS ? FIRST : REST;
}

/* Whether the round is to look at a candidate in its chunk. */
static int competes(const struct pass *p, const struct chunk *c, const struct candidate *k)
{
    const struct ownpeak_set *s = &p->sets[k->set];
    return k->bound > ownpeak_best(s) && turn_of(s) & p->round & ~c->done && !p->given_up[k->set];
}

/* Sets whose chunks alone take longer than what is left of the round would only keep it busy. A thread calls this that
 * has spent spent_ns. */
static void give_up(struct pass *p, int64_t spent_ns)
{
    uint32_t *left = xcalloc(p->set_count + 1, sizeof *left); /* chunks */
    int64_t affordable = (int64_t)p->run_count * (ROUND_NS - spent_ns) / spent_ns;
    for (size_t i = p->next; i < p->chunk_count; i++)
        for (uint32_t n = 0; n < p->chunks[i].count; n++) {
            const struct candidate *k = &p->candidates[p->chunks[i].first + n];
            left[k->set] += (uint32_t)competes(p, &p->chunks[i], k);
        }
    for (size_t i = 0; i < p->set_count; i++)
        p->given_up[i] |= left[i] > affordable + affordable / 4;
    free(left);
}

struct runner {
    struct pass *p;
    struct ownpeak_worker *worker;
    struct buf data;
    pthread_t thread;
};

/* The next chunk of the round in which sets compete, read into the runner's buffer; NULL: no more. The lock is held: it
 * guards the database and everything of the pass but the sets' best values. */
static struct chunk *take_chunk(struct runner *r)
{
    struct pass *p = r->p;
    while (p->next < p->chunk_count && !p->is_stopped) {
        struct chunk *c = &p->chunks[p->next++];
        ownpeak_worker_clear(r->worker);
        for (uint32_t i = 0; i < c->count; i++) {
            const struct candidate *k = &p->candidates[c->first + i];
            if (competes(p, c, k))
                ownpeak_worker_follow(r->worker, k->set, k->live);
        }
        if (!ownpeak_worker_followed(r->worker)) {
            c->done |= p->round;
            continue;
        }
        p->run_count++;
        sqlite3_reset(p->statement);
        sqlite3_bind_int64(p->statement, 1, c->id);
        buf_reset(&r->data);
        const void *data = sqlite3_step(p->statement) == SQLITE_ROW ? sqlite3_column_blob(p->statement, 0) : NULL;
        if (data)
            buf_add(&r->data, data, (size_t)sqlite3_column_bytes(p->statement, 0));
        return c;
    }
    return NULL;
}

static void *run(void *argument)
{
    struct runner *r = argument;
    struct pass *p = r->p;
    int64_t start_ns = cpu_ns();
    pthread_mutex_lock(&p->lock);
    for (struct chunk *c; (c = take_chunk(r));) {
        pthread_mutex_unlock(&p->lock);
        int rc = r->data.length ? ownpeak_worker_run(r->worker, r->data.data, r->data.length) : -EBADMSG;
        pthread_mutex_lock(&p->lock);
        if (rc == 0)
            c->done |= p->round;
        else
            p->is_damaged = 1;
        int64_t spent_ns = cpu_ns() - start_ns;
        if (finish_interrupted || spent_ns > ROUND_NS)
            p->is_stopped = 1;
        else if (p->round != (FIRST | REST) && spent_ns > GIVE_UP_NS && !p->has_given_up++)
            give_up(p, spent_ns);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

static void run_round(struct pass *p, unsigned round, struct runner *runners, size_t count)
{
    size_t started = 1;
    p->round = round;
    p->next = p->run_count = 0;
    p->has_given_up = p->is_stopped = 0;
    while (started < count && pthread_create(&runners[started].thread, NULL, run, &runners[started]) == 0)
        started++;
    run(&runners[0]);
    for (size_t i = 1; i < started; i++)
        pthread_join(runners[i].thread, NULL);
}

/* All sets together, so that no chunk is read twice; where that takes too long, those that matter most have a round,
 * and a budget, of their own. */
static void run_rounds(struct pass *p, struct runner *runners, size_t count)
{
    int64_t expected_ns = 0;
    for (size_t i = 0; i < p->chunk_count; i++)
        expected_ns += p->chunks[i].count ? CHUNK_NS + p->chunks[i].count * COMPETE_NS : 0;
    if (expected_ns / (int64_t)count <= ROUND_NS) {
        run_round(p, FIRST | REST, runners, count);
        if (!p->is_stopped)
            return;
    }
    for (unsigned round = FIRST; round <= REST && !finish_interrupted; round++)
        run_round(p, round, runners, count);
}

/* Known is every set that no chunk left out could have raised. */
static void take_peaks(struct pass *p)
{
    uint8_t *open = xcalloc(p->set_count + 1, 1);
    int any = 0;
    for (size_t i = 0; i < p->chunk_count; i++)
        for (uint32_t n = 0; n < p->chunks[i].count; n++) {
            const struct candidate *k = &p->candidates[p->chunks[i].first + n];
            const struct ownpeak_set *s = &p->sets[k->set];
            if ((p->given_up[k->set] || !(p->chunks[i].done & turn_of(s))) && k->bound > s->low_bytes)
                open[k->set] = 1;
        }
    for (size_t n = 0; n < p->set_count; n++) {
        if (open[n] || !p->sets[n].range_count)
            any = 1;
        else
            p->sets[n].peak_bytes = p->sets[n].low_bytes;
    }
    free(open);
    if (any)
        p->incomplete = p->is_damaged ? DAMAGED : TOO_MANY;
}

static int run_chunks(struct pass *p)
{
    struct ownpeak_input input = {p->ranges, p->sets, p->site_of, p->site_ids, p->m->site_count};
    struct runner runners[THREADS_MAX];
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    size_t count = 0, want = cores < 1 ? 1 : cores > THREADS_MAX ? THREADS_MAX : (size_t)cores;
    order_chunks(p);
    for (; count < want && (runners[count].worker = ownpeak_worker_open(&input)); count++) {
        runners[count].p = p;
        runners[count].data = (struct buf)BUF(1u << 30);
    }
    int rc = count ? db_prepare(p->m->db, "SELECT data FROM event_chunk WHERE chunk_id = ?", &p->statement, p->err)
                   : error_set(p->err, ENOMEM, "out of memory");
    if (rc == 0) {
        pthread_mutex_init(&p->lock, NULL);
        run_rounds(p, runners, count);
        pthread_mutex_destroy(&p->lock);
        sqlite3_finalize(p->statement);
        rc = finish_interrupted ? -EINTR : 0;
    }
    if (rc == 0)
        take_peaks(p);
    for (size_t i = 0; i < count; i++) {
        ownpeak_worker_close(runners[i].worker);
        buf_free(&runners[i].data);
    }
    return rc;
}

static void open_pass(struct pass *p)
{
    size_t n = p->m->site_count;
    p->live = xcalloc(n + 1, sizeof *p->live);
    for (size_t i = 0; i < n; i++)
        p->live[i] = (int64_t)started(p, i);
    p->allocated = xcalloc(n + 1, sizeof *p->allocated);
    p->freed = xcalloc(n + 1, sizeof *p->freed);
    p->sums = xcalloc(n + 1, sizeof *p->sums);
    p->given_up = xcalloc(p->set_count + 1, 1);
    p->codec = chunk_codec_open();
}

static void close_pass(struct pass *p)
{
    free(p->site_of);
    free(p->live);
    free(p->allocated);
    free(p->freed);
    free(p->sums);
    free(p->given_up);
    for (size_t i = 0; i < p->device_count; i++)
        ownpeak_timeline_close(p->devices[i].timeline);
    free(p->devices);
    free(p->device_of);
    free(p->candidates);
    free(p->chunks);
    chunk_codec_close(p->codec);
}

int ownpeak_compute(const struct model *m, const struct ownpeak_range *ranges, struct ownpeak_set *sets,
                    size_t set_count, const char **incomplete, struct error *err)
{
    *incomplete = NULL;
    if (!set_count)
        return 0;
    struct pass p = {.m = m, .ranges = ranges, .sets = sets, .set_count = set_count, .err = err, .start_ns = cpu_ns()};
    int rc = 0;
    open_pass(&p);
    if (!p.codec)
        rc = error_set(err, ENOMEM, "out of memory");
    else if (!map_sites(&p))
        p.incomplete = "site numbers out of range";
    else if ((rc = open_devices(&p)) == 0)
        rc = bound_all(&p);
    if (rc == 0 && !p.incomplete)
        rc = run_chunks(&p);
    else if (rc == 0)
        for (size_t i = 0; i < set_count; i++) /* what needs no events */
            sets[i].peak_bytes = -1;
    *incomplete = p.incomplete;
    close_pass(&p);
    return rc;
}
