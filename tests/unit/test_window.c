/* Windows of a run against a naive replay of its events: arrays that are searched from front to back, for every window
 * from the first event on. */
#include "../../common/chunk.h"
#include "../../common/kind.h"
#include "../../report/query/survivors.h"
#include "../../report/query/window.h"
#include "naive_parts.h"
#include "random.h"
#include "random_run.h"
#include "scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SITES_MAX = 200 };

/* --- the naive replay -------------------------------------------------------------------------------------------- */

static struct chunk_event *events;
static size_t event_count, chunk_count;
static int64_t site_ids[SITES_MAX];
static unsigned site_device[SITES_MAX], site_kind[SITES_MAX];
static size_t site_count;
static int64_t teardown_ns[64];

static void read_back(void)
{
    sqlite3_stmt *s;
    free(events);
    events = account_kept_events(&event_count, &chunk_count);
    site_count = 0;
    memset(teardown_ns, 0, sizeof teardown_ns);
    sqlite3_prepare_v2(account_db, "SELECT site_id, device_id, kind FROM site ORDER BY site_id", -1, &s, NULL);
    for (; sqlite3_step(s) == SQLITE_ROW; site_count++) {
        assert_true(site_count < SITES_MAX);
        site_ids[site_count] = sqlite3_column_int64(s, 0);
        site_device[site_count] = (unsigned)sqlite3_column_int(s, 1);
        for (unsigned k = 0; k < KIND_COUNT; k++)
            if (strcmp(kind_name(k), (const char *)sqlite3_column_text(s, 2)) == 0)
                site_kind[site_count] = k;
    }
    sqlite3_finalize(s);
    sqlite3_prepare_v2(account_db, "SELECT process_id, time_ns FROM teardown", -1, &s, NULL);
    while (sqlite3_step(s) == SQLITE_ROW)
        teardown_ns[sqlite3_column_int(s, 0)] = sqlite3_column_int64(s, 1);
    sqlite3_finalize(s);
}

struct naive_block {
    struct chunk_event birth; /* of a part: its address and size */
    int is_requested, was_temporary;
    size_t block; /* number of the birth: parts share it */
    int in_window;
};

struct naive_site {
    int64_t v[STAT_VALUE_COUNT], live_bytes, live_count, left_bytes, left_count;
};

struct naive_level {
    int64_t active, count, peak, peak_ns, peak_count;
};

static struct naive_site naive[SITES_MAX];
static struct naive_level levels[2][KIND_COUNT + 1];
static struct naive_block *held;
static uint8_t *is_left; /* by number of the birth */
static size_t held_count;

static size_t naive_site_at(uint32_t id)
{
    for (size_t i = 0; i < site_count; i++)
        if (site_ids[i] == id)
            return i;
    fail_msg("no site %u", id);
    return 0;
}

static size_t find_held(const struct chunk_event *e)
{
    for (size_t i = held_count; i-- > 0;)
        if (held[i].birth.address == e->address && held[i].birth.process_id == e->process_id &&
            held[i].birth.kind == e->kind && held[i].birth.device == e->device)
            return i;
    return SIZE_MAX;
}

static int is_thread_newest(size_t event, const struct naive_block *b)
{
    for (size_t i = event; i-- > 0;)
        if ((events[i].op == CHUNK_alloc || events[i].op == CHUNK_realloc_alloc) &&
            events[i].thread_id == b->birth.thread_id)
            return i == b->block && events[i].address == b->birth.address; /* the first part, of several */
    return 0;
}

static void naive_peaks(int64_t time_ns)
{
    for (unsigned d = 0; d < 2; d++)
        for (unsigned k = 0; k <= KIND_COUNT; k++) {
            struct naive_level *l = &levels[d][k];
            if (l->active <= l->peak)
                continue;
            l->peak = l->active;
            l->peak_ns = time_ns;
            l->peak_count = l->count;
            naive_parts_peak(d, k);
            for (size_t i = 0; i < site_count; i++) {
                if (site_device[i] != d || (k < KIND_COUNT && site_kind[i] != k))
                    continue;
                if (k == KIND_COUNT) {
                    naive[i].v[STAT_at_peak_bytes] = naive[i].live_bytes;
                    naive[i].v[STAT_at_peak_count] = naive[i].live_count;
                } else {
                    naive[i].v[STAT_at_kind_peak_bytes] = naive[i].live_bytes;
                }
            }
        }
    for (size_t i = 0; i < site_count; i++)
        if (naive[i].live_bytes > naive[i].v[STAT_own_peak_bytes])
            naive[i].v[STAT_own_peak_bytes] = naive[i].live_bytes;
}

static void naive_change(size_t site, int64_t bytes, int64_t count)
{
    naive[site].live_bytes += bytes;
    naive[site].live_count += count;
    for (int all = 0; all < 2; all++) {
        struct naive_level *l = &levels[site_device[site]][all ? KIND_COUNT : site_kind[site]];
        l->active += bytes;
        l->count += count;
    }
}

static int is_in(const struct window_range *r, size_t count, int64_t time_ns)
{
    for (size_t i = 0; i < count; i++)
        if (time_ns >= r[i].from_ns && (time_ns < r[i].to_ns || r[i].to_ns == WINDOW_END))
            return (int)i + 1;
    return 0;
}

/* Whether the teardown of its process began in the range that the event is in, with the block live. */
static int naive_torn(const struct window_range *r, size_t count, const struct chunk_event *e,
                      const struct naive_block *b)
{
    int64_t began = teardown_ns[e->process_id];
    int in = is_in(r, count, (int64_t)e->time_ns);
    return began && in && is_in(r, count, began) == in && (int64_t)e->time_ns >= began &&
           (int64_t)b->birth.time_ns <= began;
}

/* Parts that are left behind; a block counts once. */
static void leave(const struct naive_block *b)
{
    size_t site = naive_site_at(b->birth.site_id);
    naive[site].left_bytes += (int64_t)b->birth.size_bytes;
    naive[site].left_count += !is_left[b->block];
    is_left[b->block] = 1;
}

static int naive_temporary(size_t n, size_t at)
{
    const unsigned op = events[n].op;
    if (op == CHUNK_cut || op == CHUNK_to_segment)
        return 0;
    return held[at].is_requested ? held[at].was_temporary : op != CHUNK_realloc_free && is_thread_newest(n, &held[at]);
}

/* Whether it is all that is left of its block. */
static int naive_is_last(size_t at)
{
    for (size_t i = 0; i < held_count; i++)
        if (i != at && held[i].block == held[at].block)
            return 0;
    return 1;
}

static void naive_event(size_t n, const struct window_range *r, size_t count)
{
    const struct chunk_event *e = &events[n];
    int inside = is_in(r, count, (int64_t)e->time_ns) != 0;
    size_t site = e->op == CHUNK_oom || !e->site_id ? 0 : naive_site_at(e->site_id);
    int64_t *v = naive[site].v, size = (int64_t)e->size_bytes;
    size_t at = find_held(e);
    switch (e->op) {
    case CHUNK_alloc:
    case CHUNK_realloc_alloc:
        held[held_count++] = (struct naive_block){.birth = *e, .block = n, .in_window = inside};
        naive_change(site, size, 1);
        naive_parts_birth(e, inside);
        if (inside) {
            v[STAT_alloc_count]++;
            v[STAT_alloc_bytes] += size;
            if (size > v[STAT_largest_bytes])
                v[STAT_largest_bytes] = size;
            naive_peaks((int64_t)e->time_ns);
            if (levels[e->device][KIND_COUNT].active > v[STAT_active_peak_bytes])
                v[STAT_active_peak_bytes] = levels[e->device][KIND_COUNT].active;
        }
        break;
    case CHUNK_free_requested:
        assert_true(at != SIZE_MAX);
        held[at].is_requested = 1;
        held[at].was_temporary = is_thread_newest(n, &held[at]);
        break;
    case CHUNK_split:
        assert_true(at != SIZE_MAX);
        held[held_count] = held[at];
        held[held_count].birth.address += e->size_bytes;
        held[held_count++].birth.size_bytes -= e->size_bytes;
        held[at].birth.size_bytes = e->size_bytes;
        break;
    case CHUNK_free:
    case CHUNK_realloc_free:
    case CHUNK_cut:
    case CHUNK_to_segment:
        assert_true(at != SIZE_MAX);
        naive_parts_loss(
            &(struct naive_loss){&held[at].birth, e, inside, e->op != CHUNK_cut, inside && naive_temporary(n, at),
                                 inside && e->op != CHUNK_to_segment && naive_torn(r, count, e, &held[at])});
        if (inside && e->op == CHUNK_to_segment) {
            v[STAT_alloc_count]--;
            v[STAT_alloc_bytes] -= size;
        } else if (inside) {
            int is_last = e->op != CHUNK_cut, is_temporary = naive_temporary(n, at);
            int is_torn = naive_torn(r, count, e, &held[at]);
            v[STAT_free_bytes] += size;
            v[STAT_free_count] += is_last;
            v[STAT_temporary_count] += is_temporary;
            v[STAT_temporary_bytes] += is_temporary ? size : 0;
            v[STAT_lifetime_ns] += is_last ? (int64_t)(e->time_ns - held[at].birth.time_ns) : 0;
            v[STAT_end_bytes] += is_torn ? size : 0;
            v[STAT_end_count] += is_torn && is_last;
            if (is_torn && held[at].in_window)
                leave(&held[at]);
        }
        naive_change(site, -size, e->op == CHUNK_cut ? 0 : -1);
        held[at] = held[--held_count];
        break;
    case CHUNK_end:
        if (inside) {
            v[STAT_end_bytes] += size;
            v[STAT_end_count] += (int64_t)e->address;
        }
        naive_change(site, -size, -(int64_t)e->address);
        for (size_t i = 0; i < held_count;) {
            if (held[i].birth.process_id != e->process_id || held[i].birth.site_id != e->site_id) {
                i++;
                continue;
            }
            if (held[i].in_window) /* blocks of a window end with their process, in it or in a gap before its end */
                leave(&held[i]);
            naive_parts_end(&held[i].birth, naive_is_last(i), inside);
            held[i] = held[--held_count];
        }
        break;
    default:
        break;
    }
}

static void naive_window(const struct window_range *r, size_t count)
{
    int before = 0, started = 0;
    memset(naive, 0, sizeof naive);
    memset(levels, 0, sizeof levels);
    held = realloc(held, (event_count + 1) * 2 * sizeof *held);
    held_count = 0;
    naive_parts_begin();
    free(is_left);
    is_left = calloc(event_count + 1, 1);
    for (size_t n = 0; n <= event_count; n++) {
        int64_t time_ns = n < event_count ? (int64_t)events[n].time_ns : INT64_MAX - 1;
        for (size_t i = (size_t)before; i < count && r[i].from_ns <= time_ns; i++, before++) {
            for (size_t k = 0; k < site_count && !started; k++) {
                naive[k].v[STAT_start_bytes] = naive[k].live_bytes;
                naive[k].v[STAT_start_count] = naive[k].live_count;
            }
            if (!started)
                naive_parts_enter();
            started = 1;
            naive_parts_range();
            naive_peaks(r[i].from_ns);
        }
        if (n == event_count || (time_ns >= r[count - 1].to_ns && r[count - 1].to_ns != WINDOW_END))
            break;
        naive_event(n, r, count);
    }
    for (size_t i = 0; i < site_count; i++) {
        naive[i].v[STAT_end_bytes] += naive[i].live_bytes;
        naive[i].v[STAT_end_count] += naive[i].live_count;
    }
    naive_parts_finish();
    while (held_count) {
        if (held[held_count - 1].in_window)
            leave(&held[held_count - 1]);
        held_count--;
    }
}

/* --- comparison -------------------------------------------------------------------------------------------------- */

static const struct replay_site *replayed(const struct replay *r, int64_t id)
{
    static const struct replay_site nothing;
    for (uint32_t i = 0; i < r->site_count; i++)
        if (r->sites[i].id == id)
            return &r->sites[i];
    return &nothing;
}

static void compare(const char *who, const struct replay *r, uint32_t known)
{
    for (size_t i = 0; i < site_count; i++)
        for (int stat = 0; stat < STAT_VALUE_COUNT; stat++) {
            int64_t value = replayed(r, site_ids[i])->stats.value[stat];
            if (known >> stat & 1 && value != naive[i].v[stat])
                fail_msg("%s: site %ld: %s %ld, expected %ld", who, (long)site_ids[i], stat_infos[stat].column,
                         (long)value, (long)naive[i].v[stat]);
        }
    for (uint32_t i = 0; i < r->total_count; i++) {
        const struct replay_total *t = &r->totals[i];
        const struct naive_level *l = &levels[t->device][t->kind];
        assert_int_equal(t->stats.value[STAT_at_peak_bytes], l->peak);
        if (l->peak) {
            assert_int_equal(t->peak_active_ns, l->peak_ns);
            assert_int_equal(t->peak_active_count, l->peak_count);
        }
    }
}

static void compare_survivors(const struct window_range *ranges, size_t count, const struct replay *r)
{
    struct error err;
    if (survivors_load(account_db, NULL, ranges, count, r, &err))
        fail_msg("%s", err.text);
    for (size_t i = 0; i < site_count; i++) {
        assert_int_equal(account_query("SELECT total(live_bytes) FROM temp.survivor WHERE site_id = %ld", site_ids[i]),
                         naive[i].left_bytes);
        assert_int_equal(account_query("SELECT total(live_count) FROM temp.survivor WHERE site_id = %ld", site_ids[i]),
                         naive[i].left_count);
    }
}

static struct window_result check(const struct window_range *ranges, size_t count)
{
    struct error err;
    struct replay window = {0}, all = {0};
    struct window_result result;
    naive_window(ranges, count);
    if (window_load(account_db, ranges, count, WINDOW_PROCESSES, &window, &result, &err))
        fail_msg("%s", err.text);
    assert_true(result.is_counted && !result.chunks_damaged);
    compare("window", &window, window.site_count ? window.sites[0].stats.known : 0);
    assert_true(result.has_parts);
    naive_parts_compare("window", &window);
    compare_survivors(ranges, count, &window);
    replay_free(&window);
    if (replay_load(account_db, NULL, ranges, count, 0, &all, &err))
        fail_msg("%s", err.text);
    compare("replay", &all, all.site_count ? all.sites[0].stats.known : 0);
    naive_parts_compare("replay", &all);
    replay_free(&all);
    return result;
}

/* random_run.c gives process n the threads 4n and 4n + 1. */
static void add_threads(void)
{
    assert_int_equal(sqlite3_exec(account_db,
                                  "INSERT INTO thread SELECT DISTINCT key_id, key_id / 4, key_id, '', 0, NULL FROM "
                                  "account WHERE scope = 'thread'",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
}

static int64_t random_time(void)
{
    return rnd(3) ? (int64_t)rnd(random_run_end_ns + 100) : (int64_t)events[rnd(event_count)].time_ns;
}

static void test_windows(void **state)
{
    (void)state;
    int64_t summed = 0;
    for (uint64_t round = 0; round < random_volume(4, 1); round++) {
        struct account_run r;
        random_run(&r, 4711 + round, &(struct account_options){0});
        add_threads();
        read_back();
        assert_true(chunk_count > 15 && account_query("SELECT count(*) FROM teardown") > 0);
        for (int i = 0; i < 24; i++) {
            struct window_range w = {random_time(), random_time()};
            if (w.from_ns > w.to_ns)
                w = (struct window_range){w.to_ns, w.from_ns};
            if (i % 8 == 0)
                w.to_ns = WINDOW_END;
            if (i % 8 == 1)
                w.from_ns = 0;
            if (i == 16) /* short ones, of all lengths */
                w.to_ns = w.from_ns;
            if (i > 16)
                w.to_ns = w.from_ns + (1 << i % 12);
            summed += check(&w, 1).chunks_summed;
        }
        struct window_range many[40];
        for (int i = 0; i < 40; i++) {
            many[i].from_ns = random_time();
            many[i].to_ns = many[i].from_ns + (int64_t)rnd(random_run_end_ns / 50);
        }
        size_t count = window_unite(many, 40);
        assert_true(count > 1 && count < 40);
        check(many, count);
        account_run_close(&r);
    }
    assert_true(summed > 20); /* or it tested nothing but events */
}

/* Ranges one behind the other, as the steps of a loop are: where no event lies between, their chunks are summed. */
static void test_ranges_that_meet(void **state)
{
    (void)state;
    struct account_run r;
    random_run(&r, 815, &(struct account_options){0});
    add_threads();
    read_back();
    for (int round = 0; round < 4; round++) {
        struct window_range met[64];
        size_t count = 0;
        int64_t from_ns = round % 2 ? (int64_t)events[event_count / 10].time_ns : 0;
        for (size_t n = event_count / 9; count < 60 && n + 2 < event_count; n += event_count / 70) {
            int64_t to_ns = (int64_t)events[n].time_ns + 1, next_ns = (int64_t)events[n + 1].time_ns;
            if (to_ns >= next_ns)
                continue;
            met[count++] = (struct window_range){from_ns, to_ns};
            from_ns = round > 1 && count % 20 == 0 ? next_ns + 1 : next_ns; /* of a few, one event lies between */
        }
        met[count++] = (struct window_range){from_ns, round % 2 ? WINDOW_END : from_ns + 1};
        assert_true(count > 20);
        /* 36 of 75, and 18 if each chunk in which an end lies were read; the others are, for what sums do not tell */
        assert_true(check(met, count).chunks_summed > (int64_t)chunk_count / 3);
    }
    account_run_close(&r);
}

/* The whole run is what the recorder says of it. */
static void test_whole(void **state)
{
    (void)state;
    struct account_run r;
    struct error err;
    struct replay w = {0};
    struct window_result result;
    const struct window_range whole = {0, WINDOW_END};
    random_run(&r, 99, &(struct account_options){0});
    add_threads();
    assert_int_equal(window_load(account_db, &whole, 1, WINDOW_PARTS, &w, &result, &err), 0);
    static const int stats[] = {STAT_alloc_count,     STAT_alloc_bytes,   STAT_free_count,    STAT_free_bytes,
                                STAT_temporary_count, STAT_at_peak_bytes, STAT_at_peak_count, STAT_at_kind_peak_bytes,
                                STAT_own_peak_bytes,  STAT_end_bytes,     STAT_end_count};
    for (uint32_t i = 0; i < w.site_count; i++) {
        for (size_t k = 0; k < sizeof stats / sizeof *stats; k++)
            assert_int_equal(
                w.sites[i].stats.value[stats[k]],
                account_query("SELECT %s FROM site WHERE site_id = %ld", stat_infos[stats[k]].column, w.sites[i].id));
        if (w.sites[i].torn_count && w.sites[i].device == 0) /* of a row without blocks there is none */
            assert_int_equal(
                w.sites[i].torn_bytes,
                account_query("SELECT total(freed_bytes) FROM site_teardown WHERE site_id = %ld", w.sites[i].id));
    }
    assert_int_equal(w.event_count, account_query("SELECT sum(event_count) FROM event_chunk"));
    assert_true(result.has_parts && w.thread_count > 20);
    for (uint32_t i = 0; i < w.thread_count; i++)
        for (size_t k = 0; k < sizeof stats / sizeof *stats; k++)
            assert_int_equal(w.threads[i].stats.value[stats[k]],
                             account_query("SELECT %s FROM account WHERE scope = 'thread' AND key_id = %ld AND "
                                           "device_id = %d AND kind = '%s'",
                                           stat_infos[stats[k]].column, w.threads[i].id, w.threads[i].device,
                                           kind_name(w.threads[i].kind)));
    for (uint32_t i = 0; i < w.total_count; i++) {
        const struct replay_total *t = &w.totals[i];
        const char *kind = kind_name(t->kind);
        assert_int_equal(t->peak_active_ns, account_query("SELECT peak_active_ns FROM total WHERE device_id = %d AND "
                                                          "kind = '%s'",
                                                          t->device, kind));
        assert_int_equal(
            t->peak_active_count,
            account_query("SELECT peak_active_count FROM total WHERE device_id = %d AND kind = '%s'", t->device, kind));
        assert_int_equal(
            t->stats.value[STAT_end_bytes],
            account_query("SELECT end_active_bytes FROM total WHERE device_id = %d AND kind = '%s'", t->device, kind));
    }
    replay_free(&w);
    account_run_close(&r);
}

static int64_t counted(const struct replay *r)
{
    static const int stats[] = {STAT_alloc_count, STAT_alloc_bytes, STAT_free_count, STAT_free_bytes,
                                STAT_temporary_count};
    int64_t sum = r->event_count;
    for (uint32_t i = 0; i < r->site_count; i++)
        for (size_t k = 0; k < sizeof stats / sizeof *stats; k++)
            sum += (int64_t)(k + 1) * r->sites[i].stats.value[stats[k]] * (r->sites[i].id % 7 + 1);
    for (uint32_t i = 0; i < r->thread_count; i++)
        for (size_t k = 0; k < sizeof stats / sizeof *stats; k++)
            sum += (int64_t)(k + 1) * r->threads[i].stats.value[stats[k]] * (r->threads[i].id % 7 + 8);
    for (uint32_t i = 0; i < r->size_count; i++)
        sum += (r->sizes[i].alloc_count + 2 * r->sizes[i].alloc_bytes + 3 * r->sizes[i].free_count +
                4 * r->sizes[i].temporary_count) *
               (r->sizes[i].log2_size + 2);
    return sum;
}

/* Cut at so many instants, the windows between are together the run. */
static void test_parts_add_up(void **state)
{
    (void)state;
    struct account_run r;
    struct error err;
    struct replay w = {0};
    struct window_result result;
    int64_t sum = 0, at = 0;
    const int cuts = (int)random_volume(100, 25);
    random_run(&r, 5, &(struct account_options){0});
    add_threads();
    for (int i = 0; i <= cuts + 1; i++) {
        struct window_range part = {at, i > cuts ? WINDOW_END : at + (int64_t)rnd(2 * random_run_end_ns / cuts)};
        if (i == cuts)
            part = (struct window_range){0, WINDOW_END};
        assert_int_equal(window_load(account_db, &part, 1, WINDOW_PARTS, &w, &result, &err), 0);
        assert_true(result.has_parts);
        sum += i == cuts ? -counted(&w) : counted(&w);
        at = i == cuts ? at : part.to_ns;
        replay_free(&w);
    }
    assert_int_equal(sum, 0);
    account_run_close(&r);
}

/* Events of the last part of a run, or of none of it. */
static void test_what_is_not_kept(void **state)
{
    (void)state;
    struct account_run r;
    struct error err;
    struct replay w = {0};
    struct window_result result;
    struct window_range late, early;
    random_run(&r, 31, &(struct account_options){.max_events = 1});
    read_back();
    assert_true(chunk_count > 0 && events[0].time_ns > 2000);
    late = (struct window_range){(int64_t)events[event_count / 2].time_ns, WINDOW_END};
    early = (struct window_range){1000, (int64_t)events[event_count / 2].time_ns};
    assert_int_equal(window_load(account_db, &late, 1, WINDOW_PARTS, &w, &result, &err), 0);
    assert_true(result.is_counted);
    replay_free(&w);
    assert_int_equal(window_load(account_db, &early, 1, WINDOW_SITES, &w, &result, &err), 0);
    assert_false(result.is_counted);
    for (uint32_t i = 0; i < w.site_count; i++)
        assert_false(w.sites[i].stats.known >> STAT_alloc_count & 1);
    replay_free(&w);
    account_run_close(&r);

    random_run(&r, 31, &(struct account_options){.aggregate = 1});
    assert_int_equal(account_query("SELECT count(*) FROM event_chunk"), 0);
    assert_int_equal(window_load(account_db, &early, 1, WINDOW_SITES, &w, &result, &err), 0);
    assert_false(result.is_counted);
    assert_int_equal(result.end_ns, account_query("SELECT max(time_ns) FROM keyframe WHERE time_ns < %ld AND reason "
                                                  "NOT IN ('peak', 'reserved peak')",
                                                  early.to_ns));
    replay_free(&w);
    account_run_close(&r);
}

static void test_unite(void **state)
{
    (void)state;
    struct window_range r[] = {{50, 60}, {10, 20}, {15, 30}, {30, 31}, {12, 13}, {70, WINDOW_END}, {80, 90}};
    assert_int_equal(window_unite(r, 7), 3);
    assert_int_equal(r[0].from_ns, 10);
    assert_int_equal(r[0].to_ns, 31);
    assert_int_equal(r[1].from_ns, 50);
    assert_int_equal(r[2].to_ns, WINDOW_END);
    assert_int_equal(window_unite(r, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_windows),          cmocka_unit_test(test_whole),
        cmocka_unit_test(test_parts_add_up),     cmocka_unit_test(test_ranges_that_meet),
        cmocka_unit_test(test_what_is_not_kept), cmocka_unit_test(test_unite),
    };
    int failed = cmocka_run_group_tests(tests, scratch_begin, scratch_end);
    free(events);
    free(held);
    free(is_left);
    return failed;
}
