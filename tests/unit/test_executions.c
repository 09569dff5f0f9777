/* Executions of a range against a walk through all events for each of them; slopes against all pairs. */
#include "../../common/chunk.h"
#include "../../report/query/executions.h"
#include "../../report/query/growth.h"
#include "../../report/query/theil_sen.h"
#include "random.h"
#include "random_run.h"
#include "scratch.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SITES_MAX = 200, EXECUTIONS = 300 };

static struct chunk_event *events;
static size_t event_count;
static int site_device[SITES_MAX];

static void read_back(void)
{
    size_t chunk_count;
    sqlite3_stmt *s;
    free(events);
    events = account_kept_events(&event_count, &chunk_count);
    sqlite3_prepare_v2(account_db, "SELECT site_id, device_id FROM site", -1, &s, NULL);
    while (sqlite3_step(s) == SQLITE_ROW) {
        assert_true(sqlite3_column_int(s, 0) < SITES_MAX);
        site_device[sqlite3_column_int(s, 0)] = sqlite3_column_int(s, 1);
    }
    sqlite3_finalize(s);
}

static int is_birth(const struct chunk_event *e)
{
    return e->op == CHUNK_alloc || e->op == CHUNK_realloc_alloc;
}

static int64_t change_of(const struct chunk_event *e)
{
    return is_birth(e) ? (int64_t)e->size_bytes : chunk_op_is_loss(e->op) ? -(int64_t)e->size_bytes : 0;
}

static struct execution_row naive(const struct execution *x, int device)
{
    struct execution_row row = {0};
    int64_t live = 0;
    int entered = 0;
    for (size_t i = 0; i <= event_count; i++) {
        const struct chunk_event *e = &events[i];
        int64_t time_ns = i < event_count ? (int64_t)e->time_ns : INT64_MAX;
        if (!entered && time_ns >= x->start_ns) {
            row.start_bytes = row.peak_bytes = live;
            entered = 1;
        }
        if (time_ns >= x->end_ns)
            break;
        if (!e->site_id || site_device[e->site_id] != device)
            continue;
        live += change_of(e);
        if (!entered)
            continue;
        row.peak_bytes = live > row.peak_bytes ? live : row.peak_bytes;
        row.alloc_bytes += is_birth(e)                 ? (int64_t)e->size_bytes
                           : e->op == CHUNK_to_segment ? -(int64_t)e->size_bytes
                                                       : 0;
        row.alloc_count += is_birth(e) - (e->op == CHUNK_to_segment);
        if (e->op == CHUNK_free || e->op == CHUNK_realloc_free || e->op == CHUNK_cut)
            row.free_bytes += (int64_t)e->size_bytes;
        row.free_count += e->op == CHUNK_free || e->op == CHUNK_realloc_free;
    }
    row.end_bytes = live;
    return row;
}

static int by_start(const void *a, const void *b)
{
    const struct execution *x = a, *y = b;
    return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

/* Short and long ones, most of which overlap; some take no time, some reach beyond the end. */
static void make_executions(struct executions *e, struct execution all[EXECUTIONS])
{
    for (int i = 0; i < EXECUTIONS; i++) {
        int64_t at = rnd(2) ? (int64_t)rnd(random_run_end_ns) : (int64_t)events[rnd(event_count)].time_ns;
        int64_t lasted = rnd(3) ? 1 << rnd(15) : (int64_t)rnd(random_run_end_ns);
        all[i] = (struct execution){.start_ns = at, .end_ns = rnd(10) ? at + lasted : at, .is_ended = rnd(20) != 0};
    }
    qsort(all, EXECUTIONS, sizeof *all, by_start);
    *e = (struct executions){.execution = all, .count = EXECUTIONS};
}

static void compare(const struct executions *e, const struct executions_result *result)
{
    for (uint32_t d = 0; d < result->device_count; d++)
        for (uint32_t i = 0; i < e->count; i++) {
            struct execution_row expected = naive(&e->execution[i], (int)result->device[d].device_id);
            assert_true(e->execution[i].is_known);
            if (memcmp(&expected, &result->device[d].rows[i], sizeof expected) != 0)
                fail_msg("execution %u, device %u: peak %ld, expected %ld", i, d,
                         (long)result->device[d].rows[i].peak_bytes, (long)expected.peak_bytes);
        }
}

static int samples_seen;
static const struct executions *sampled;
static const uint32_t *sampled_indexes;

static int take(void *arg, int sample, const struct at_live *sites, size_t count)
{
    (void)arg;
    int64_t held[SITES_MAX] = {0};
    const int64_t end_ns = sampled->execution[sampled_indexes[sample]].end_ns;
    for (size_t i = 0; i < event_count && (int64_t)events[i].time_ns < end_ns; i++)
        held[events[i].site_id] += change_of(&events[i]);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(sites[i].bytes, held[sites[i].site_id]);
    samples_seen++;
    return 0;
}

static void test_rows(void **state)
{
    (void)state;
    int64_t summed = 0;
    for (uint64_t round = 0; round < random_volume(4, 2); round++) {
        struct account_run r;
        struct error err = {""};
        struct execution all[EXECUTIONS];
        struct executions e;
        struct executions_result result, alone;
        random_run(&r, 815 + round, &(struct account_options){0});
        read_back();
        make_executions(&e, all);
        if (round % 2) /* a few: most chunks lie between them */
            e.count = 10;
        uint32_t ends[] = {1, 2, 5};
        for (int i = 0; i < 3; i++)
            for (int k = i + 1; k < 3; k++)
                if (all[ends[k]].end_ns < all[ends[i]].end_ns) {
                    uint32_t other = ends[i];
                    ends[i] = ends[k];
                    ends[k] = other;
                }
        struct executions_samples samples = {.indexes = ends, .count = 3, .take = take};
        sampled = &e;
        sampled_indexes = ends;
        samples_seen = 0;
        assert_int_equal(executions_measure(account_db, &e,
                                            &(struct executions_options){.with_rows = 1, .samples = &samples}, &result,
                                            &err),
                         0);
        assert_int_equal(samples_seen, 3);
        assert_int_equal(result.chunks_damaged, 0);
        compare(&e, &result);
        assert_int_equal(
            executions_measure(account_db, &e, &(struct executions_options){.samples = &samples}, &alone, &err), 0);
        assert_int_equal(samples_seen, 6);
        summed += result.chunks_summed + alone.chunks_summed;
        executions_result_free(&result);
        executions_result_free(&alone);
        account_run_close(&r);
    }
    assert_true(summed > random_volume(50, 2)); /* or it tested nothing but events */
}

/* Of a run whose first events were dropped only what is behind a stored instant is known; of one without any, nothing.
 */
static void test_what_is_not_kept(void **state)
{
    (void)state;
    struct account_run r;
    struct error err = {""};
    struct execution all[EXECUTIONS];
    struct executions e;
    struct executions_result result;
    int known = 0;
    random_run(&r, 31, &(struct account_options){.max_events = 1});
    read_back();
    make_executions(&e, all);
    assert_int_equal(executions_measure(account_db, &e, &(struct executions_options){.with_rows = 1}, &result, &err),
                     0);
    for (uint32_t i = 0; i < e.count; i++) {
        assert_int_equal(all[i].is_known, all[i].start_ns >= result.known_from_ns);
        known += all[i].is_known;
        for (uint32_t d = 0; all[i].is_known && d < result.device_count; d++) {
            struct execution_row expected = naive(&all[i], (int)result.device[d].device_id);
            /* what was live before the events that are kept is not in them: the changes are */
            const struct execution_row *row = &result.device[d].rows[i];
            assert_int_equal(row->end_bytes - row->start_bytes, expected.end_bytes - expected.start_bytes);
            assert_int_equal(row->peak_bytes - row->start_bytes, expected.peak_bytes - expected.start_bytes);
            assert_int_equal(row->alloc_bytes, expected.alloc_bytes);
        }
    }
    assert_true(known > 10 && known < EXECUTIONS);
    executions_result_free(&result);
    account_run_close(&r);

    random_run(&r, 31, &(struct account_options){.aggregate = 1});
    assert_int_equal(executions_measure(account_db, &e, &(struct executions_options){.with_rows = 1}, &result, &err),
                     -ENODATA);
    executions_result_free(&result);
    account_run_close(&r);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double slope_of_all_pairs(const int64_t *places, const int64_t *values, size_t count)
{
    double *slopes = malloc(count * count / 2 * sizeof *slopes);
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t k = i + 1; k < count; k++)
            slopes[n++] = (double)(values[k] - values[i]) / (double)(places[k] - places[i]);
    qsort(slopes, n, sizeof *slopes, by_value);
    double slope = n % 2 ? slopes[n / 2] : (slopes[n / 2 - 1] + slopes[n / 2]) / 2;
    free(slopes);
    return slope;
}

static void test_slopes(void **state)
{
    (void)state;
    static int64_t places[900], values[900];
    random_seed = 5;
    for (unsigned round = 0; round < random_volume(60, 12); round++) {
        size_t count = round % 4 < 3 ? 2 + round : 300 + rnd(600);
        uint64_t noise = round % 3 == 0 ? 1 : round % 3 == 1 ? 5 : 1 << 20; /* the first two have many equal slopes */
        int64_t slope = (int64_t)rnd(2000) - 1000, place = 0;
        for (size_t i = 0; i < count; i++) {
            place += round % 2 ? 1 : 1 + (int64_t)rnd(4);
            places[i] = place;
            values[i] = (1ll << 32) + slope * place + (int64_t)rnd(noise);
        }
        double expected = slope_of_all_pairs(places, values, count), got = theil_sen_slope(places, values, count);
        double away = got - expected;
        assert_true(away < 1e-7 && away > -1e-7);
        if (noise == 1)
            assert_true(got == (double)slope);
    }
    /* a leak of 1,024 bytes with an odd execution in three, in more than are looked at */
    size_t many = 3 * THEIL_SEN_POINTS;
    int64_t *leak = malloc(many * sizeof *leak);
    for (size_t i = 0; i < many; i++)
        leak[i] = (int64_t)i * 1024 + (rnd(3) ? 0 : (int64_t)rnd(1 << 20));
    double slope = theil_sen_slope(NULL, leak, many);
    assert_true(slope > 1023.99 && slope < 1024.01);
    for (size_t i = 0; i < many; i++)
        leak[i] = (int64_t)i * 1024;
    assert_true(theil_sen_slope(NULL, leak, many) == 1024.0);
    free(leak);
    assert_true(theil_sen_slope(NULL, values, 1) == 0 && theil_sen_slope(NULL, values, 0) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_what_is_not_kept),
        cmocka_unit_test(test_slopes),
    };
    int failed = cmocka_run_group_tests(tests, scratch_begin, scratch_end);
    free(events);
    return failed;
}
