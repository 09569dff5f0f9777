/* The accounts of events one by one: limits, peaks, failures, the timeline, frees that wait. */
#include "../../common/chunk.h"
#include "../../common/kind.h"
#include "account_run.h"
#include "scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static void feed_pairs(struct account_run *r, uint64_t events)
{
    struct event pairs[64];
    for (uint64_t i = 0; i < events; i += 2) {
        struct event *pair = &pairs[i % 64];
        pair[0] = (struct event){.op = EVENT_ALLOC, .size_bytes = 10, .process_id = 1, .thread_id = 1, .stack_id = 1};
        pair[1] = (struct event){.op = EVENT_FREE, .process_id = 1, .thread_id = 1};
        pair[0].time_ns = pair[1].time_ns = i * 50;
        pair[0].address = pair[1].address = 0x1000 + i % 64 * 16;
        if (i % 64 == 62 || i + 2 >= events)
            account_events(r->account, pairs, i % 64 + 2);
    }
}

static void test_max_events(void **state)
{
    (void)state;
    struct account_run r;
    account_run_open(&r, &(struct account_options){.max_events = 150000});
    feed_pairs(&r, 1000000);
    account_finish(r.account, 50000000);
    int64_t kept = account_query("SELECT sum(event_count) FROM event_chunk"),
            first = account_query("SELECT min(first_event) FROM event_chunk");
    assert_true(kept >= 150000 && kept <= 150000 + 2 * (int64_t)CHUNK_EVENTS);
    assert_int_equal(first + kept, 1000000);
    /* where the events begin, there is a key frame, and none before */
    assert_int_equal(account_query("SELECT min(event_count) FROM keyframe WHERE reason='periodic'"), first);
    assert_int_equal(account_query("SELECT alloc_count FROM total WHERE kind='all'"), 500000);
    account_run_close(&r);
}

/* More combinations of device, hook and op than a chunk can name: chunks end early, nothing is lost. */
static void test_many_tuples(void **state)
{
    (void)state;
    enum { EVENTS = 100000 };
    struct account_run r;
    account_run_open(&r, &(struct account_options){0});
    for (uint64_t i = 0; i < EVENTS; i += 2) {
        struct event e = {.op = EVENT_ALLOC,
                          .time_ns = i,
                          .size_bytes = 10,
                          .process_id = 1,
                          .thread_id = 1,
                          .stack_id = 1,
                          .hook = (uint8_t)(i / 2 % 251),
                          .device = (uint8_t)(i / 2 % 7),
                          .address = 0x1000 + i * 16};
        account_events(r.account, &e, 1);
        e.op = EVENT_FREE;
        e.time_ns++;
        if (i % 10 == 0)
            account_events(r.account, &e, 1);
    }
    account_finish(r.account, EVENTS);
    uint64_t events = EVENTS / 2 + EVENTS / 10;
    assert_true(account_query("SELECT count(*) FROM event_chunk") > 100);
    assert_int_equal(account_query("SELECT sum(event_count) FROM event_chunk"), events);
    assert_int_equal(
        account_query("SELECT count(*) FROM event_chunk WHERE first_event <> (SELECT coalesce(sum(event_count), 0) "
                      "FROM event_chunk c WHERE c.chunk_id < event_chunk.chunk_id)"),
        0);
    assert_int_equal(account_query("SELECT count(*) FROM keyframe JOIN event_chunk c USING(chunk_id) WHERE "
                                   "keyframe.event_count NOT BETWEEN first_event AND first_event + c.event_count"),
                     0);
    assert_int_equal(account_query("SELECT count(DISTINCT chunk_id) > 1 FROM keyframe"), 1);
    assert_int_equal(account_query("SELECT sum(alloc_count) FROM total WHERE kind = 'all'"), EVENTS / 2);
    uint64_t read = 0;
    size_t count, chunk_count;
    struct chunk_event *e = account_kept_events(&count, &chunk_count);
    for (size_t i = 0; i < count; i++)
        read += e[i].op != CHUNK_alloc || e[i].hook == e[i].time_ns / 2 % 251;
    free(e);
    assert_int_equal(read, events);
    account_run_close(&r);
}

static void test_aggregate_keyframes_are_bounded(void **state)
{
    (void)state;
    struct account_run r;
    /* so few events to keep that each chunk would begin with one: 136 are due, and half of 128 go when the 129th comes;
     * from then on each second chunk has one: 129, 131, 133, 135 */
    account_run_open(&r, &(struct account_options){.aggregate = 1, .max_events = 1});
    feed_pairs(&r, 136ull * CHUNK_EVENTS - CHUNK_EVENTS / 2);
    assert_int_equal(account_query("SELECT count(*) FROM keyframe"), 64 + 4);
    assert_int_equal(account_query("SELECT min(d) = 2 AND max(d) = 2 FROM (SELECT (event_count - lag(event_count) OVER "
                                   "(ORDER BY event_count)) / %u AS d FROM keyframe WHERE event_count >= %u)",
                                   CHUNK_EVENTS, 128 * CHUNK_EVENTS),
                     1);
    account_finish(r.account, 1);
    account_run_close(&r);
}

/* A sum of two peaks of the same height: the first one counts, with what was live then. */
static void test_first_of_equal_peaks(void **state)
{
    (void)state;
    struct account_run r;
    struct event e[] = {
        {.op = EVENT_ALLOC, .time_ns = 10, .address = 16, .size_bytes = 100, .stack_id = 1},
        {.op = EVENT_ALLOC, .time_ns = 11, .address = 32, .size_bytes = 0, .stack_id = 2},
        {.op = EVENT_FREE, .time_ns = 12, .address = 16},
        {.op = EVENT_ALLOC, .time_ns = 13, .address = 16, .size_bytes = 100, .stack_id = 3},
    };
    account_run_open(&r, &(struct account_options){0});
    for (unsigned i = 0; i < 4; i++)
        e[i].process_id = 1, e[i].thread_id = 1;
    account_events(r.account, e, 4);
    account_finish(r.account, 20);
    assert_int_equal(account_query("SELECT peak_active_ns FROM total WHERE kind='all'"), 10);
    assert_int_equal(account_query("SELECT peak_active_count FROM total WHERE kind='all'"), 1);
    assert_int_equal(account_query("SELECT at_peak_bytes FROM site WHERE stack_id=1"), 100);
    assert_int_equal(account_query("SELECT at_peak_count FROM site WHERE stack_id=2"), 0);
    assert_int_equal(account_query("SELECT at_peak_bytes FROM site WHERE stack_id=3"), 0);
    account_run_close(&r);
}

/* A failure on the host is made good by as much in one block, of the same process. */
static void test_failures_made_good(void **state)
{
    (void)state;
    struct account_run r;
    struct event e[] = {
        {.op = EVENT_OOM, .process_id = 1, .size_bytes = 1000},
        {.op = EVENT_OOM, .process_id = 1, .size_bytes = 1000},
        {.op = EVENT_OOM, .process_id = 1, .size_bytes = 5000},
        {.op = EVENT_OOM, .process_id = 2, .size_bytes = 1000},
        {.op = EVENT_OOM, .process_id = 1, .size_bytes = 1000, .device = 1, .kind = KIND_device},
        {.op = EVENT_ALLOC, .process_id = 1, .size_bytes = 999},
        {.op = EVENT_ALLOC, .process_id = 1, .size_bytes = 1000, .device = 1, .kind = KIND_device},
        {.op = EVENT_ALLOC, .process_id = 1, .size_bytes = 1000}, /* here */
        {.op = EVENT_OOM, .process_id = 1, .size_bytes = 1000},
        {.op = EVENT_ALLOC, .process_id = 1, .size_bytes = 4999}, /* and here */
    };
    size_t n = sizeof e / sizeof *e;
    account_run_open(&r, &(struct account_options){0});
    for (size_t i = 0; i < n; i++)
        e[i].thread_id = e[i].process_id, e[i].stack_id = 1, e[i].time_ns = 10 * (i + 1), e[i].address = 64 * (i + 1);
    account_events(r.account, e, n);
    account_finish(r.account, 1000);
    assert_int_equal(account_query("SELECT count(*) FROM oom"), 6);
    assert_int_equal(account_query("SELECT sum(1 << oom_id) FROM oom_had WHERE time_ns = 80"), 1 << 1 | 1 << 2);
    assert_int_equal(account_query("SELECT sum(1 << oom_id) FROM oom_had WHERE time_ns = 100"), 1 << 6);
    assert_int_equal(account_query("SELECT count(*) FROM oom_had"), 3);
    account_run_close(&r);
    /* more sizes than are waited for: what has no place is not made good, and none of it takes another's */
    account_run_open(&r, &(struct account_options){0});
    for (uint64_t i = 0; i < 200; i++) {
        struct event o = {.op = EVENT_OOM, .process_id = 1, .thread_id = 1, .stack_id = 1, .time_ns = i + 1};
        o.size_bytes = 100 + i;
        account_events(r.account, &o, 1);
    }
    struct event had = {.op = EVENT_ALLOC, .process_id = 1, .thread_id = 1, .stack_id = 1, .time_ns = 500};
    had.size_bytes = 110, had.address = 64;
    account_events(r.account, &had, 1);
    account_finish(r.account, 1000);
    assert_int_equal(account_query("SELECT count(*) FROM oom_had"), 11);
    account_run_close(&r);
}

/* The largest blocks, those live at the end included. */
static void test_largest(void **state)
{
    (void)state;
    struct account_run r;
    account_run_open(&r, &(struct account_options){0});
    for (uint64_t i = 1; i <= 20000; i++) {
        struct event e[2] = {
            {.op = EVENT_ALLOC,
             .time_ns = i * 10,
             .address = i * 16,
             .size_bytes = i * 7919 % 20011,
             .process_id = 1,
             .thread_id = 1,
             .stack_id = 1},
            {.op = EVENT_FREE, .time_ns = i * 10 + 5, .address = i * 16, .process_id = 1, .thread_id = 1}};
        account_events(r.account, e, i % 3 ? 2 : 1);
    }
    struct event end = {.op = EVENT_PROCESS_END, .time_ns = 1000000, .process_id = 1, .thread_id = 1};
    account_events(r.account, &end, 1);
    account_finish(r.account, 1000000);
    assert_int_equal(account_query("SELECT count(*) FROM block"), 4096);
    /* sizes are i * 7919 mod 20011 for i up to 20000: all of 1..20010 but ten, each once */
    uint64_t missing = 0, least = 20010;
    char *seen = calloc(20011, 1);
    for (uint64_t i = 1; i <= 20000; i++)
        seen[i * 7919 % 20011] = 1;
    for (uint64_t found = 0; found < 4096; least--)
        seen[least] ? found++ : missing++;
    assert_int_equal(account_query("SELECT min(size_bytes) FROM block"), least + 1);
    assert_int_equal(account_query("SELECT count(DISTINCT size_bytes) FROM block"), 4096);
    assert_int_equal(account_query("SELECT count(*) FROM block WHERE free_ns IS NULL AND address / 16 %% 3 <> 0"), 0);
    assert_int_equal(account_query("SELECT count(*) FROM block WHERE free_ns IS NOT NULL AND address / 16 %% 3 = 0"),
                     0);
    free(seen);
    account_run_close(&r);
}

/* Ten allocations in ten seconds: a few hundred rows, peak and time exact in each level. */
static void test_quiet_timeline(void **state)
{
    (void)state;
    struct account_run r;
    account_run_open(&r, &(struct account_options){0});
    for (unsigned i = 1; i <= 10; i++) {
        struct event e = {.op = i == 8 ? EVENT_FREE : EVENT_ALLOC,
                          .time_ns = i * 1000000000ull + 77,
                          .address = i == 8 ? 16 : i * 16,
                          .size_bytes = i < 9 ? 100 : 10,
                          .process_id = 1,
                          .thread_id = 1,
                          .stack_id = 1};
        account_events(r.account, &e, 1);
    }
    account_finish(r.account, 11000000000);
    assert_true(account_query("SELECT count(*) FROM timeline") < 1100);
    assert_true(account_query("SELECT count(*) FROM timeline WHERE level=0") > 200);
    assert_int_equal(
        account_query("SELECT count(*) FROM timeline WHERE active_max_bytes=700 AND active_max_ns=7000000077"),
        account_query("SELECT max(level) + 1 FROM timeline"));
    assert_int_equal(account_query("SELECT sum(alloc_count) FROM timeline WHERE level=0"), 9);
    assert_int_equal(account_query("SELECT max(time_ns + width_ns) >= 11000000000 FROM timeline WHERE level=0"), 1);
    assert_int_equal(account_query("SELECT count(*) FROM timeline WHERE level=0 AND time_ns %% width_ns"), 0);
    account_run_close(&r);
}

/* Whatever has been written when: every level is whole. */
static void test_levels_after_each_flush(void **state)
{
    (void)state;
    struct account_run r;
    account_run_open(&r, &(struct account_options){0});
    for (unsigned i = 1; i <= 3000; i++) {
        struct event e = {.op = EVENT_ALLOC,
                          .time_ns = i * 1024ull * (i > 2000 ? 40 : 1),
                          .address = i * 16,
                          .size_bytes = 1,
                          .process_id = 1,
                          .thread_id = 1};
        account_events(r.account, &e, 1);
        if (i % 23)
            continue;
        account_flush(r.account, e.time_ns);
        int64_t levels = account_query("SELECT max(level) FROM timeline");
        assert_int_equal(account_query("SELECT count(*) <= 64 FROM timeline WHERE level=%d", (int)levels), 1);
        for (int level = 0; level <= levels; level++) {
            assert_int_equal(account_query("SELECT sum(alloc_count) FROM timeline WHERE level=%d", level), i);
            assert_int_equal(account_query("SELECT max(active_max_bytes) FROM timeline WHERE level=%d", level), i);
            assert_int_equal(account_query("SELECT count(DISTINCT width_ns) FROM timeline WHERE level=%d", level), 1);
        }
    }
    account_run_close(&r);
}

/* While the run goes on a commit writes few buckets, whole ones; at its end come all that there are. */
static void test_fine_level_at_end(void **state)
{
    (void)state;
    const unsigned bucket_ns = 1024, count = 6000;
    struct account_run r;
    account_run_open(&r, &(struct account_options){0});
    for (unsigned i = 1; i <= count; i++) {
        struct event e = {.op = EVENT_ALLOC,
                          .time_ns = i * bucket_ns,
                          .address = i * 16,
                          .size_bytes = 3,
                          .process_id = 1,
                          .thread_id = 1};
        account_events(r.account, &e, 1);
        if (i % 170)
            continue;
        account_flush(r.account, e.time_ns);
        assert_true(account_query("SELECT count(*) FROM timeline WHERE level=0") <= 1024);
        for (int64_t level = account_query("SELECT max(level) FROM timeline"); level >= 0; level--) {
            assert_int_equal(account_query("SELECT sum(alloc_count) FROM timeline WHERE level=%d", (int)level), i);
            assert_int_equal(account_query("SELECT sum(alloc_bytes) FROM timeline WHERE level=%d", (int)level), i * 3);
            assert_int_equal(
                account_query("SELECT sum(width_ns) FROM timeline WHERE level=%d", (int)level) >= i * bucket_ns, 1);
        }
    }
    account_finish(r.account, count * bucket_ns);
    assert_int_equal(account_query("SELECT count(*) FROM timeline WHERE level=0"), count + 1);
    assert_int_equal(
        account_query("SELECT count(*) FROM timeline WHERE level=0 AND alloc_bytes=3 AND alloc_count=1 AND "
                      "width_ns=%u AND active_max_ns=time_ns AND active_max_bytes=time_ns / %u * 3",
                      bucket_ns, bucket_ns),
        count);
    account_run_close(&r);
}

static void test_end_keyframe(void **state)
{
    (void)state;
    struct account_run r;
    account_run_open(&r, &(struct account_options){0});
    for (unsigned i = 1; i <= 10; i++) {
        struct event e = {.op = EVENT_ALLOC,
                          .time_ns = i,
                          .address = i * 16,
                          .size_bytes = 100,
                          .process_id = 1 + i % 2,
                          .thread_id = 1,
                          .stack_id = i % 3};
        account_events(r.account, &e, 1);
    }
    for (unsigned i = 2; i; i--) {
        struct event e = {.op = EVENT_PROCESS_END, .time_ns = 100 - i, .process_id = (uint16_t)i, .thread_id = 1};
        account_events(r.account, &e, 1);
    }
    account_finish(r.account, 100);
    assert_int_equal(account_query("SELECT count(*) FROM keyframe WHERE reason='end'"), 1);
    assert_int_equal(account_query("SELECT time_ns FROM keyframe WHERE reason='end'"), 99); /* the last process's */
    assert_int_equal(account_query("SELECT sum(end_bytes) FROM site"), 1000);
    assert_int_equal(account_query("SELECT end_count FROM total WHERE kind='all'"), 10);
    account_run_close(&r);
}

/* Ten blocks are live where the interpreter begins to take itself down, which frees four of them and makes two, one of
 * which it leaves. Another process goes on meanwhile. */
static void test_teardown(void **state)
{
    (void)state;
    struct account_run r;
    account_run_open(&r, &(struct account_options){0});
    struct event e[20];
    unsigned n = 0;
    for (unsigned i = 1; i <= 10; i++)
        e[n++] = (struct event){.op = EVENT_ALLOC,
                                .time_ns = i,
                                .address = i * 16,
                                .size_bytes = 100 + i,
                                .process_id = 1,
                                .thread_id = 1,
                                .stack_id = i % 2};
    e[n++] = (struct event){.op = EVENT_TEARDOWN, .time_ns = 50, .process_id = 1, .thread_id = 1};
    for (unsigned i = 1; i <= 4; i++)
        e[n++] =
            (struct event){.op = EVENT_FREE, .time_ns = 50 + i, .address = i * 16, .process_id = 1, .thread_id = 1};
    for (unsigned i = 11; i <= 12; i++)
        e[n++] = (struct event){.op = EVENT_ALLOC,
                                .time_ns = 50 + i,
                                .address = i * 16,
                                .size_bytes = 1000,
                                .process_id = 1,
                                .thread_id = 1,
                                .stack_id = 1};
    e[n++] = (struct event){.op = EVENT_FREE, .time_ns = 63, .address = 11 * 16, .process_id = 1, .thread_id = 1};
    e[n++] = (struct event){.op = EVENT_PROCESS_END, .time_ns = 64, .process_id = 1, .thread_id = 1};
    account_events(r.account, e, n);
    account_finish(r.account, 100);
    assert_int_equal(account_query("SELECT end_count FROM total WHERE kind='all'"), 11);
    assert_int_equal(account_query("SELECT end_active_bytes FROM total WHERE kind='all'"), 1055 + 1000);
    assert_int_equal(account_query("SELECT free_count FROM total WHERE kind='all'"), 5);
    assert_int_equal(account_query("SELECT sum(end_bytes) FROM site WHERE stack_id=0"), 102 + 104 + 106 + 108 + 110);
    assert_int_equal(account_query("SELECT sum(end_count) FROM account WHERE scope='thread' AND kind='all'"), 11);
    assert_int_equal(account_query("SELECT sum(freed_count) FROM site_teardown"), 4);
    assert_int_equal(account_query("SELECT freed_bytes FROM site_teardown JOIN site USING(site_id) WHERE stack_id=0"),
                     102 + 104);
    assert_int_equal(account_query("SELECT time_ns FROM teardown WHERE process_id=1"), 50);
    assert_int_equal(account_query("SELECT time_ns FROM keyframe WHERE reason='teardown'"), 50);
    assert_int_equal(account_query("SELECT time_ns FROM keyframe WHERE reason='end'"), 50);
    account_run_close(&r);
}

#define MS 1000000ull

/* Two blocks of a pool whose frees wait: allocated falls at the request, active at the end of the wait. */
static void test_free_requested(void **state)
{
    (void)state;
    struct account_run r;
    struct event e[] = {
        {.op = EVENT_ALLOC, .time_ns = 1 * MS, .address = 0x1000, .size_bytes = 700, .stack_id = 1},
        {.op = EVENT_ALLOC, .time_ns = 2 * MS, .address = 0x2000, .size_bytes = 300, .stack_id = 2},
        {.op = EVENT_FREE_REQUESTED, .time_ns = 3 * MS, .address = 0x2000}, /* a temporary: asked for before the next */
        {.op = EVENT_FREE_REQUESTED, .time_ns = 4 * MS, .address = 0x1000},
        {.op = EVENT_FREE_REQUESTED, .time_ns = 4 * MS, .address = 0x1000}, /* again: nothing */
        {.op = EVENT_FREE_REQUESTED, .time_ns = 4 * MS, .address = 0x9000}, /* of nothing */
        {.op = EVENT_ALLOC, .time_ns = 5 * MS, .address = 0x3000, .size_bytes = 50, .stack_id = 1},
        {.op = EVENT_FREE, .time_ns = 6 * MS, .address = 0x2000},
        {.op = EVENT_FREE, .time_ns = 7 * MS, .address = 0x1000},
        {.op = EVENT_FREE_REQUESTED, .time_ns = 8 * MS, .address = 0x3000},
        {.op = EVENT_PROCESS_END, .time_ns = 9 * MS},
    };
    account_run_open(&r, &(struct account_options){0});
    account_feed(&r, e, sizeof e / sizeof *e, 1);
    account_finish(r.account, 12 * MS);
    /* active and allocated when so many milliseconds have passed */
    static const int64_t expected[][2] = {{0, 0},     {700, 700}, {1000, 1000}, {1000, 700}, {1000, 0},
                                          {1050, 50}, {750, 50},  {50, 50},     {50, 0},     {0, 0}};
    for (int i = 0; i < 10; i++) {
        static const char sql[] = "SELECT %s FROM timeline WHERE device_id=1 AND level=0 AND time_ns + width_ns <= %ld "
                                  "ORDER BY time_ns DESC LIMIT 1";
        if (i) {
            assert_int_equal(account_query(sql, "active_last_bytes", i * 1000000l + 500000), expected[i][0]);
            assert_int_equal(account_query(sql, "allocated_last_bytes", i * 1000000l + 500000), expected[i][1]);
        }
    }
    for (int64_t level = account_query("SELECT max(level) FROM timeline"); level >= 0; level--) {
        assert_int_equal(account_query("SELECT max(active_max_bytes) FROM timeline WHERE level=%d", (int)level), 1050);
        assert_int_equal(account_query("SELECT max(allocated_max_bytes) FROM timeline WHERE level=%d", (int)level),
                         1000);
    }
    assert_int_equal(account_query("SELECT peak_active_bytes FROM total WHERE device_id=1 AND kind='all'"), 1050);
    assert_int_equal(account_query("SELECT free_count FROM total WHERE device_id=1 AND kind='all'"), 2);
    assert_int_equal(account_query("SELECT temporary_count FROM site WHERE stack_id=2"), 1);
    assert_int_equal(account_query("SELECT temporary_count FROM site WHERE stack_id=1"), 0);
    assert_int_equal(account_query("SELECT lifetime_ns FROM site WHERE stack_id=2"), 4 * (int64_t)MS);
    assert_int_equal(account_query("SELECT end_bytes FROM site WHERE stack_id=1"), 50);
    /* 3 births, 3 requests, 2 frees, 1 end */
    assert_int_equal(account_query("SELECT sum(event_count) FROM event_chunk"), 9);
    account_run_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_max_events),
        cmocka_unit_test(test_many_tuples),
        cmocka_unit_test(test_aggregate_keyframes_are_bounded),
        cmocka_unit_test(test_first_of_equal_peaks),
        cmocka_unit_test(test_failures_made_good),
        cmocka_unit_test(test_largest),
        cmocka_unit_test(test_levels_after_each_flush),
        cmocka_unit_test(test_fine_level_at_end),
        cmocka_unit_test(test_end_keyframe),
        cmocka_unit_test(test_teardown),
        cmocka_unit_test(test_quiet_timeline),
        cmocka_unit_test(test_free_requested),
    };
    return cmocka_run_group_tests(tests, scratch_begin, scratch_end);
}
