#include "common_peak.h"

#include "../../common/array.h"
#include "../../common/chunk.h"
#include "../../common/db.h"
#include "../../common/search.h"
#include "../../common/wrap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    CHANGES_MOST = 2 << 20, /* that are looked at together */
    ROUNDS_MOST = 12,       /* of reading events */
    RUNS_OF_TIME = 4096,    /* no run of instants is longer than this part of all */
};

/* What the sum of all recordings is at least and at most changes by. Steps of one time happen together, events of one
 * time one after the other. */
struct change {
    int64_t time_ns, low, high;
    uint32_t order;
    int is_event;
};

struct run { /* of instants at which the sum may be higher than what is known to have been reached */
    int64_t from_ns, to_ns, most_bytes;
    double events; /* about */
    int is_chosen;
};

struct finder {
    struct many *many;
    int device;
    const int64_t *starts_ns;
    struct change *changes;
    size_t count, capacity;
    struct run *runs;
    size_t run_count, run_capacity;
    uint8_t *is_without; /* by file: its events cannot be read */
    struct chunk_codec *codec;
    int64_t best_bytes, best_ns;
    int64_t left_bytes; /* what no look at events could rule out */
    int64_t run_ns;     /* no longer than this */
};

/* --- changes --- */

static void add_change(struct finder *f, int64_t time_ns, int64_t low, int64_t high, int is_event)
{
    if (low == 0 && high == 0)
        return;
    struct change *c = ARRAY_ADD(f->changes, f->count, f->capacity);
    *c = (struct change){time_ns, low, high, (uint32_t)f->count, is_event};
}

struct level {
    int64_t low, high;
};

static void set_level(struct finder *f, struct level *level, int64_t time_ns, int64_t low, int64_t high)
{
    add_change(f, time_ns, wrap_subtract(low, level->low), wrap_subtract(high, level->high), 0);
    *level = (struct level){low, high};
}

/* The first bucket that ends after an instant of its recording. */
static uint32_t bucket_at(const struct many_row *row, int64_t time_ns)
{
    const uint32_t low = SEARCH_FIRST(row->bucket_count, i, row->buckets[i].start_ns + row->width_ns <= time_ns);
    return low;
}

static int64_t end_of(const struct many_row *row)
{
    return row->bucket_count ? row->buckets[row->bucket_count - 1].start_ns + row->width_ns : 0;
}

static int64_t held_before(const struct many_row *row, uint32_t bucket)
{
    return bucket ? row->buckets[bucket - 1].last_bytes : 0;
}

/* Where a bucket was highest that one was for sure, and the others were not below their lowest. Of a merged file one
 * instant is known at most, that of its own common peak. */
static void add_spike(struct finder *f, const struct many_row *row, const struct many_bucket *b, int64_t start_ns,
                      int64_t from_ns, int64_t to_ns)
{
    const int is_held = row->held_ns >= b->start_ns && row->held_ns < b->start_ns + row->width_ns;
    int64_t time_ns = start_ns + (row->is_sum ? row->held_ns : b->max_ns);
    int64_t high_bytes = !row->is_sum ? b->max_bytes : is_held ? row->held_bytes : 0;
    if (high_bytes <= b->min_bytes || time_ns < from_ns || time_ns >= to_ns)
        return;
    add_change(f, time_ns, high_bytes - b->min_bytes, 0, 1);
    add_change(f, time_ns + 1, b->min_bytes - high_bytes, 0, 0);
}

/* A recording in [from, to) as its timeline knows it. */
static void add_buckets(struct finder *f, const struct many_row *row, int64_t start_ns, int64_t from_ns, int64_t to_ns)
{
    struct level level = {0, 0};
    uint32_t i = bucket_at(row, from_ns - start_ns);
    if (i == row->bucket_count)
        return;
    set_level(f, &level, from_ns, held_before(row, i), held_before(row, i));
    for (; i < row->bucket_count; i++) {
        const struct many_bucket *b = &row->buckets[i];
        int64_t begin_ns = start_ns + b->start_ns, end_ns = begin_ns + row->width_ns;
        if (begin_ns >= to_ns)
            break;
        set_level(f, &level, begin_ns > from_ns ? begin_ns : from_ns, b->min_bytes, b->max_bytes);
        add_spike(f, row, b, start_ns, from_ns, to_ns);
        if (end_ns >= to_ns)
            break;
        set_level(f, &level, end_ns, b->last_bytes, b->last_bytes);
    }
    int64_t end_ns = start_ns + end_of(row);
    set_level(f, &level, end_ns < to_ns ? end_ns : to_ns, 0, 0);
}

static int by_time(const void *a, const void *b)
{
    const struct change *x = a, *y = b;
    if (x->time_ns != y->time_ns)
        return x->time_ns < y->time_ns ? -1 : 1;
    if (x->is_event != y->is_event)
        return x->is_event - y->is_event;
    return x->order < y->order ? -1 : 1;
}

static void sort_changes(struct finder *f)
{
    if (f->count)
        qsort(f->changes, f->count, sizeof *f->changes, by_time);
}

static void add_run(struct finder *f, int64_t from_ns, int64_t to_ns, int64_t most_bytes)
{
    struct run *last = f->run_count ? &f->runs[f->run_count - 1] : NULL;
    if (last && to_ns - last->from_ns <= f->run_ns) {
        last->to_ns = to_ns;
        if (most_bytes > last->most_bytes)
            last->most_bytes = most_bytes;
        return;
    }
    *ARRAY_ADD(f->runs, f->run_count, f->run_capacity) = (struct run){from_ns, to_ns, most_bytes, 0, 0};
}

enum sweep { SWEEP_BEST, SWEEP_RUNS, SWEEP_LEFT };

/* Over the changes, which are in order: raises what is known to have been reached; or, once that is known, lists the
 * runs that may have been higher, or keeps how high. */
static void sweep(struct finder *f, enum sweep what)
{
    int64_t low = 0, high = 0;
    for (size_t i = 0; i < f->count;) {
        const int64_t time_ns = f->changes[i].time_ns;
        int64_t most_bytes = INT64_MIN;
        while (i < f->count && f->changes[i].time_ns == time_ns) {
            const struct change *c = &f->changes[i++];
            low = wrap_add(low, c->low);
            high = wrap_add(high, c->high);
            int is_together = i < f->count && f->changes[i].time_ns == time_ns && !f->changes[i].is_event;
            if (is_together)
                continue;
            if (what == SWEEP_BEST && low > f->best_bytes) {
                f->best_bytes = low;
                f->best_ns = time_ns;
            }
            most_bytes = high > most_bytes ? high : most_bytes;
        }
        if (what == SWEEP_RUNS && most_bytes > f->best_bytes && i < f->count)
            add_run(f, time_ns, f->changes[i].time_ns, most_bytes);
        if (what == SWEEP_LEFT && most_bytes > f->best_bytes && most_bytes > f->left_bytes)
            f->left_bytes = most_bytes;
    }
}

/* --- events of the runs that are chosen --- */

struct reader {
    struct finder *f;
    const struct many_row *row;
    int64_t start_ns;
    size_t run, run_count; /* the next of them, which are in order */
    struct level level;    /* as it was added to the changes */
    int64_t held_bytes;    /* after the last event; of meaning where is_known */
    int is_known, is_open;
    int64_t passed_ns; /* where the run before ended */
};

static int64_t run_from(const struct reader *r)
{
    return r->f->runs[r->run].from_ns - r->start_ns;
}

static int64_t run_to(const struct reader *r)
{
    return r->f->runs[r->run].to_ns - r->start_ns;
}

/* What is held where the bucket begins that the run begins in is known: from there on all events count. */
static int64_t known_from(const struct reader *r)
{
    uint32_t bucket = bucket_at(r->row, run_from(r));
    return bucket < r->row->bucket_count ? r->row->buckets[bucket].start_ns : end_of(r->row);
}

static int64_t held_at_bucket(const struct reader *r)
{
    return held_before(r->row, bucket_at(r->row, run_from(r)));
}

static void open_run(struct reader *r)
{
    int64_t held = r->is_known ? r->held_bytes : held_at_bucket(r);
    int64_t from_ns = r->f->runs[r->run].from_ns;
    if (from_ns < r->start_ns + end_of(r->row))
        set_level(r->f, &r->level, from_ns, held, held);
    r->is_open = 1;
}

static void close_run(struct reader *r)
{
    if (!r->is_open)
        open_run(r);
    int64_t end_ns = r->start_ns + end_of(r->row), to_ns = r->f->runs[r->run].to_ns;
    set_level(r->f, &r->level, end_ns < to_ns ? end_ns : to_ns, 0, 0);
    r->passed_ns = run_to(r);
    r->run++;
    r->is_open = 0;
    /* two runs in one bucket: all events between them were counted */
    if (r->run < r->run_count && known_from(r) > r->passed_ns)
        r->is_known = 0;
}

/* 0: none of the runs is left. */
static int take_event(struct reader *r, const struct chunk_event *e)
{
    const int is_birth = chunk_op_is_birth(e->op);
    const int64_t time_ns = (int64_t)(e->time_ns < INT64_MAX / 4 ? e->time_ns : INT64_MAX / 4);
    if ((!is_birth && !chunk_op_is_loss(e->op)) || e->device != r->row->device_id)
        return 1;
    while (r->run < r->run_count && time_ns >= run_to(r))
        close_run(r);
    if (r->run == r->run_count)
        return 0;
    if (!r->is_known && time_ns < known_from(r))
        return 1;
    if (!r->is_known)
        r->held_bytes = held_at_bucket(r);
    r->is_known = 1;
    if (time_ns >= run_from(r) && !r->is_open)
        open_run(r);
    const int64_t change = (int64_t)(is_birth ? e->size_bytes : -e->size_bytes);
    r->held_bytes = wrap_add(r->held_bytes, change);
    if (!r->is_open)
        return 1;
    add_change(r->f, r->start_ns + time_ns, change, change, 1);
    r->level = (struct level){r->held_bytes, r->held_bytes};
    return 1;
}

static int read_chunk(struct reader *r, sqlite3_stmt *data, int64_t chunk_id, int *is_done, struct error *err)
{
    const struct chunk_event *events;
    int rc = 0;
    sqlite3_reset(data);
    sqlite3_bind_int64(data, 1, chunk_id);
    if (!db_next(data, &rc, err))
        return rc;
    long count =
        chunk_decode_events(r->f->codec, sqlite3_column_blob(data, 0), (size_t)sqlite3_column_bytes(data, 0), &events);
    if (count < 0)
        return error_set(err, (int)-count, "a part of the events is damaged");
    for (long i = 0; i < count && !*is_done; i++)
        *is_done = !take_event(r, &events[i]);
    return r->f->count > 2ul * CHANGES_MOST ? error_set(err, E2BIG, "more events than expected") : 0;
}

static int read_events(struct reader *r, sqlite3 *db, struct error *err)
{
    sqlite3_stmt *chunks = NULL, *data = NULL;
    int is_done = 0;
    int rc = db_prepare(db, "SELECT chunk_id, first_ns, last_ns FROM event_chunk ORDER BY chunk_id", &chunks, err);
    if (rc == 0)
        rc = db_prepare(db, "SELECT data FROM event_chunk WHERE chunk_id = ?", &data, err);
    while (rc == 0 && !is_done && r->run < r->run_count && db_next(chunks, &rc, err)) {
        while (r->run < r->run_count && sqlite3_column_int64(chunks, 1) >= run_to(r))
            close_run(r);
        if (r->run < r->run_count && (r->is_known || sqlite3_column_int64(chunks, 2) >= known_from(r)))
            rc = read_chunk(r, data, sqlite3_column_int64(chunks, 0), &is_done, err);
    }
    while (rc == 0 && r->run < r->run_count)
        close_run(r);
    sqlite3_finalize(chunks);
    sqlite3_finalize(data);
    return rc;
}

static int take_file(void *arg, struct recording *recording, int index, sqlite3 *db, struct error *err)
{
    struct finder *f = arg;
    const size_t count = f->count;
    struct reader r = {
        .f = f, .row = many_row(f->many, index, f->device), .start_ns = f->starts_ns[index], .run_count = f->run_count};
    int rc = read_events(&r, db, err);
    (void)recording;
    if (rc == 0)
        return 0;
    f->is_without[index] = 1;
    f->count = count; /* what was added is not whole */
    return rc == -E2BIG ? 0 : rc;
}

/* Whether its buckets do not say all about the chosen runs. */
static int is_needed(const struct finder *f, const struct many_row *row, int64_t start_ns)
{
    for (size_t k = 0; k < f->run_count; k++)
        for (uint32_t i = bucket_at(row, f->runs[k].from_ns - start_ns);
             i < row->bucket_count && start_ns + row->buckets[i].start_ns < f->runs[k].to_ns; i++)
            if (row->buckets[i].min_bytes != row->buckets[i].max_bytes)
                return 1;
    return 0;
}

static void read_file(struct finder *f, int index)
{
    const struct many_row *row = many_row(f->many, index, f->device);
    const struct recording *r = &f->many->list.recording[index];
    if (!row || !row->bucket_count)
        return;
    int is_wanted = is_needed(f, row, f->starts_ns[index]);
    if (is_wanted && (!r->events_kept || strcmp(r->events_kept, "all") != 0))
        f->is_without[index] = 1;
    if (is_wanted && !f->is_without[index] && !recordings_one(&f->many->list, index, db_open_read, take_file, f))
        f->is_without[index] = 1;
    for (size_t k = 0; (!is_wanted || f->is_without[index]) && k < f->run_count; k++)
        add_buckets(f, row, f->starts_ns[index], f->runs[k].from_ns, f->runs[k].to_ns);
}

/* --- rounds --- */

static int by_most(const void *a, const void *b)
{
    const struct run *x = a, *y = b;
    return x->most_bytes != y->most_bytes ? (x->most_bytes > y->most_bytes ? -1 : 1)
                                          : (x->from_ns > y->from_ns) - (x->from_ns < y->from_ns);
}

static int by_from(const void *a, const void *b)
{
    const struct run *x = a, *y = b;
    return (x->from_ns > y->from_ns) - (x->from_ns < y->from_ns);
}

/* How many events the runs have, as far as the buckets tell: as many frees as allocations. */
static void count_events(struct finder *f)
{
    for (int file = 0; file < f->many->list.count; file++) {
        const struct many_row *row = many_row(f->many, file, f->device);
        const int64_t start_ns = f->starts_ns[file];
        for (size_t k = 0; row && k < f->run_count; k++) {
            struct run *run = &f->runs[k];
            for (uint32_t i = bucket_at(row, run->from_ns - start_ns);
                 i < row->bucket_count && start_ns + row->buckets[i].start_ns < run->to_ns; i++) {
                int64_t begin_ns = start_ns + row->buckets[i].start_ns, end_ns = begin_ns + row->width_ns;
                begin_ns = begin_ns > run->from_ns ? begin_ns : run->from_ns;
                end_ns = end_ns < run->to_ns ? end_ns : run->to_ns;
                run->events +=
                    2 * (double)row->buckets[i].alloc_count * (double)(end_ns - begin_ns) / (double)row->width_ns;
            }
        }
    }
}

/* Takes the runs that may be highest out of all, as many as fit into one round. */
static size_t choose_runs(struct run *all, size_t *count, struct run *chosen, int64_t best_bytes)
{
    double events = 0;
    size_t kept = 0, taken = 0;
    if (*count)
        qsort(all, *count, sizeof *all, by_most);
    for (size_t i = 0; i < *count; i++) {
        if (all[i].most_bytes <= best_bytes)
            break;
        if (taken == 0 || events + all[i].events <= CHANGES_MOST) {
            events += all[i].events;
            chosen[taken++] = all[i];
        } else {
            all[kept++] = all[i];
        }
    }
    *count = kept;
    qsort(chosen, taken, sizeof *chosen, by_from);
    return taken;
}

static void search(struct finder *f)
{
    struct run *all = f->runs, *chosen = xcalloc(f->run_count + 1, sizeof *chosen);
    size_t all_count = f->run_count;
    for (int round = 0; round < ROUNDS_MOST; round++) {
        f->runs = chosen;
        f->run_count = choose_runs(all, &all_count, chosen, f->best_bytes);
        if (f->run_count == 0)
            break;
        f->count = 0;
        for (int i = 0; i < f->many->list.count; i++)
            read_file(f, i);
        sort_changes(f);
        sweep(f, SWEEP_BEST);
        sweep(f, SWEEP_LEFT);
    }
    for (size_t i = 0; i < all_count; i++)
        if (all[i].most_bytes > f->left_bytes)
            f->left_bytes = all[i].most_bytes;
    f->runs = all;
    free(chosen);
}

static void find(struct finder *f, struct common_peak *peak)
{
    for (int i = 0; i < f->many->list.count; i++) {
        const struct many_row *row = many_row(f->many, i, f->device);
        if (row)
            add_buckets(f, row, f->starts_ns[i], f->starts_ns[i], f->starts_ns[i] + end_of(row));
    }
    sort_changes(f);
    if (f->count)
        f->run_ns = (f->changes[f->count - 1].time_ns - f->changes[0].time_ns) / RUNS_OF_TIME;
    sweep(f, SWEEP_BEST);
    sweep(f, SWEEP_RUNS);
    count_events(f);
    search(f);
    peak->least_bytes = f->best_bytes;
    peak->time_ns = f->best_ns;
    peak->most_bytes = f->left_bytes > f->best_bytes ? f->left_bytes : f->best_bytes;
    for (int i = 0; i < f->many->list.count && peak->most_bytes > peak->least_bytes; i++)
        peak->without_events += f->is_without[i];
}

void common_peak_find_at(struct many *many, int device, const int64_t *starts_ns, struct common_peak *peak)
{
    struct finder f = {.many = many,
                       .device = device,
                       .starts_ns = starts_ns,
                       .is_without = xcalloc((size_t)many->list.count + 1, 1),
                       .codec = chunk_codec_open(),
                       .best_ns = -1};
    find(&f, peak);
    chunk_codec_close(f.codec);
    free(f.is_without);
    free(f.changes);
    free(f.runs);
}

void common_peak_find(struct many *many, int device, struct common_peak *peak)
{
    int64_t *starts_ns = xcalloc((size_t)many->list.count + 1, sizeof *starts_ns);
    struct many_sum sum;
    many_add(many, device, &sum);
    *peak = (struct common_peak){.clock = many_align(many, starts_ns),
                                 .least_bytes = sum.held_bytes,
                                 .most_bytes = sum.peak_bytes,
                                 .time_ns = -1};
    if (peak->clock >= MANY_CLOCK_WALL && sum.count)
        common_peak_find_at(many, device, starts_ns, peak);
    free(starts_ns);
}
