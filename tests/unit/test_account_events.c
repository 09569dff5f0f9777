/* The accounts of events one by one: limits, peaks, segments, the timeline, frees that wait, what turns out to be a
 * segment. */
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
    struct chunk_codec *codec = chunk_codec_open();
    uint64_t read = 0;
    sqlite3_stmt *q;
    assert_int_equal(
        sqlite3_prepare_v2(store_db(r.store), "SELECT data FROM event_chunk ORDER BY chunk_id", -1, &q, NULL),
        SQLITE_OK);
    while (sqlite3_step(q) == SQLITE_ROW) {
        const struct chunk_event *e;
        long n = chunk_decode_events(codec, sqlite3_column_blob(q, 0), (size_t)sqlite3_column_bytes(q, 0), &e);
        assert_true(n > 0);
        for (long i = 0; i < n; i++)
            read += e[i].op != CHUNK_alloc || e[i].hook == e[i].time_ns / 2 % 251;
    }
    sqlite3_finalize(q);
    chunk_codec_close(codec);
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

/* A process's heap is first asked after its first blocks; another one's says nothing of them. */
static void test_reserved_before_the_first_sample(void **state)
{
    (void)state;
    struct account_run r;
    struct event e[] = {
        {.op = EVENT_ALLOC, .time_ns = 10, .address = 0x1000, .size_bytes = 100, .stack_id = 1},
        {.op = EVENT_ALLOC, .time_ns = 20, .address = 0x2000, .size_bytes = 30, .stack_id = 2, .process_id = 2},
        {.op = EVENT_RESERVED, .time_ns = 30, .size_bytes = 500, .kind = KIND_heap},
        {.op = EVENT_ALLOC, .time_ns = 40, .address = 0x3000, .size_bytes = 7, .stack_id = 3},
    };
    static const int expected[] = {100, 0, 500};
    account_run_open(&r, &(struct account_options){0});
    for (size_t i = 0; i < sizeof e / sizeof *e; i++) {
        e[i].process_id = e[i].process_id ? e[i].process_id : 1;
        e[i].thread_id = e[i].process_id;
        account_events(r.account, &e[i], 1);
        account_flush(r.account, e[i].time_ns); /* rows that are written already, too */
    }
    account_finish(r.account, 100);
    for (int i = 0; i < 3; i++)
        assert_int_equal(account_query("SELECT reserved_peak_bytes FROM site WHERE stack_id = %d", i + 1), expected[i]);
    account_run_close(&r);
}

#define PAGES(n) ((n)*4096ull)

/* glibc is asked seldom: blocks with a mapping of their own count from their event on, and no more in its next answer.
 * A block of n pages but 24 bytes fills its mapping. */
static void test_mapped_since_glibc_was_asked(void **state)
{
    (void)state;
    const uint64_t main_start = 0x5500000000, arena = 0x7f0000000000, mapping = 0x7f1000000010;
    struct account_run r;
    struct {
        struct event e;
        uint64_t reserved; /* after it */
    } steps[] = {
        {{.op = EVENT_HEAP_AT, .address = main_start}, 0},
        {{.op = EVENT_HEAP_AT, .address = arena, .size_bytes = arena}, 0},
        {{.op = EVENT_ALLOC, .address = main_start + 0x10, .size_bytes = PAGES(100)}, 0},
        {{.op = EVENT_RESERVED, .size_bytes = PAGES(400), .stack_id = HEAP_ASKED}, PAGES(400)},
        {{.op = EVENT_ALLOC, .address = mapping, .size_bytes = PAGES(50) - 24}, PAGES(450)},
        {{.op = EVENT_ALLOC, .address = mapping + PAGES(900), .size_bytes = PAGES(40) - 23}, PAGES(491)},
        /* of arenas: where a page begins, too */
        {{.op = EVENT_ALLOC, .address = main_start + 0x1000010, .size_bytes = PAGES(60)}, PAGES(491)},
        {{.op = EVENT_ALLOC, .address = arena + 0x10010, .size_bytes = PAGES(60)}, PAGES(491)},
        {{.op = EVENT_RESERVED, .size_bytes = PAGES(380)}, PAGES(471)}, /* not asked: what it said before */
        {{.op = EVENT_FREE, .address = mapping}, PAGES(421)},
        {{.op = EVENT_RESERVED, .size_bytes = PAGES(381)}, PAGES(422)},
        {{.op = EVENT_RESERVED, .size_bytes = PAGES(390), .address = PAGES(50)}, PAGES(381)}, /* a late answer */
        {{.op = EVENT_RESERVED, .size_bytes = PAGES(421), .address = PAGES(41), .stack_id = HEAP_ASKED}, PAGES(421)},
        {{.op = EVENT_RESERVED, .size_bytes = PAGES(490), .address = PAGES(100), .stack_id = HEAP_ASKED}, PAGES(490)},
        /* it was mapped before glibc was asked, and its event comes later */
        {{.op = EVENT_ALLOC, .address = mapping, .size_bytes = PAGES(59) - 24}, PAGES(490)},
        {{.op = EVENT_FREE, .address = mapping}, PAGES(431)},
        {{.op = EVENT_PROCESS_END}, 0},
    };
    account_run_open(&r, &(struct account_options){0});
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        struct event e = steps[i].e;
        e.time_ns = 10 * (i + 1);
        e.process_id = e.thread_id = 1;
        e.kind = KIND_heap;
        e.stack_id = e.op == EVENT_ALLOC ? 1 : e.stack_id;
        account_events(r.account, &e, 1);
        account_flush(r.account, e.time_ns + 1);
        if (account_query("SELECT count(*) FROM timeline"))
            assert_int_equal(account_query("SELECT reserved_last_bytes FROM timeline WHERE level = 0 ORDER BY time_ns "
                                           "DESC LIMIT 1"),
                             steps[i].reserved);
    }
    account_finish(r.account, 1000);
    assert_int_equal(account_query("SELECT peak_reserved_bytes FROM total WHERE kind = 'heap'"), PAGES(491));
    account_run_close(&r);
}

static void test_segments_and_reserved(void **state)
{
    (void)state;
    struct account_run r;
    struct event e[] = {
        {.op = EVENT_SEGMENT_ALLOC,
         .time_ns = 10,
         .address = 0x10000,
         .size_bytes = 0x4000,
         .stack_id = 7,
         .kind = KIND_heap},
        {.op = EVENT_ALLOC, .time_ns = 20, .address = 0x90000, .size_bytes = 0x1000, .kind = KIND_map, .stack_id = 1},
        {.op = EVENT_RESERVED, .time_ns = 30, .size_bytes = 500, .kind = KIND_heap},
        {.op = EVENT_SEGMENT_FREE, .time_ns = 40, .address = 0x11000, .size_bytes = 0x1000, .kind = KIND_heap},
        {.op = EVENT_FREE, .time_ns = 50, .address = 0x90000, .kind = KIND_map},
        {.op = EVENT_RESERVED, .time_ns = 60, .size_bytes = 300, .kind = KIND_heap},
        {.op = EVENT_RSS, .time_ns = 70, .size_bytes = 12345},
        {.op = EVENT_OOM, .time_ns = 80, .size_bytes = 1ull << 40, .address = 12, .stack_id = 9},
        {.op = EVENT_PROCESS_END, .time_ns = 90},
    };
    size_t n = sizeof e / sizeof *e;
    account_run_open(&r, &(struct account_options){0});
    for (size_t i = 0; i < n; i++)
        e[i].process_id = 1, e[i].thread_id = 1;
    account_events(r.account, e, n - 1);
    account_flush(r.account, 85);
    assert_int_equal(account_query("SELECT peak_reserved_bytes FROM total WHERE kind='all'"), 0x4000 + 0x1000 + 500);
    assert_int_equal(account_query("SELECT peak_reserved_ns FROM total WHERE kind='all'"), 30);
    assert_int_equal(account_query("SELECT peak_reserved_bytes FROM total WHERE kind='map'"), 0x1000);
    assert_int_equal(account_query("SELECT reserved_last_bytes FROM timeline ORDER BY time_ns DESC LIMIT 1"),
                     0x3000 + 300);
    assert_int_equal(account_query("SELECT rss_last_bytes FROM timeline ORDER BY time_ns DESC LIMIT 1"), 12345);
    assert_int_equal(account_query("SELECT count(*) FROM segment"), 3); /* the whole, and the two pieces that remain */
    assert_int_equal(account_query("SELECT sum(size_bytes) FROM segment WHERE free_ns IS NULL"), 0x3000);
    assert_int_equal(account_query("SELECT free_ns FROM segment WHERE size_bytes=%d", 0x4000), 40);
    assert_int_equal(account_query("SELECT size_bytes FROM oom"), 1ull << 40);
    assert_int_equal(account_query("SELECT count(*) FROM keyframe WHERE reason='oom'"), 1);
    account_events(r.account, &e[n - 1], 1);
    account_finish(r.account, 100000);
    assert_int_equal(
        account_query("SELECT reserved_last_bytes FROM timeline WHERE level=0 ORDER BY time_ns DESC LIMIT 1"), 0);
    assert_int_equal(account_query("SELECT rss_last_bytes FROM timeline WHERE level=0 ORDER BY time_ns DESC LIMIT 1"),
                     0);
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
/* So many arenas that some get no row take none from a device's segments. */
static void test_segment_rows(void **state)
{
    (void)state;
    enum { MORE = 1000 };
    struct account_run r;
    struct account_counts counts;
    account_run_open(&r, &(struct account_options){.aggregate = 1});
    for (uint64_t i = 0; i < SEGMENT_ROWS_MAX + MORE; i++) {
        struct event e = {.op = EVENT_SEGMENT_ALLOC,
                          .time_ns = i + 1,
                          .address = (i + 1) << 20,
                          .size_bytes = 1 << 20,
                          .kind = KIND_arena};
        account_feed(&r, &e, 1, 0);
    }
    for (uint64_t i = 0; i < 3; i++) {
        struct event e = {.op = EVENT_SEGMENT_ALLOC,
                          .time_ns = 100000 + i,
                          .address = (i + 1) << 21,
                          .size_bytes = 1 << 21,
                          .kind = KIND_device};
        account_feed(&r, &e, 1, 1);
    }
    /* the middle of the first one: the two pieces that remain are segments too */
    struct event part = {.op = EVENT_SEGMENT_FREE,
                         .time_ns = 100010,
                         .address = (1 << 21) + 4096,
                         .size_bytes = 4096,
                         .kind = KIND_device};
    account_feed(&r, &part, 1, 1);
    account_finish(r.account, 200000);
    account_counts(r.account, &counts);
    assert_int_equal(account_query("SELECT count(*) FROM segment WHERE kind='arena'"), SEGMENT_ROWS_MAX);
    assert_int_equal(account_query("SELECT count(*) FROM segment WHERE device_id=1"), 5);
    assert_int_equal(account_query("SELECT count(*) FROM segment WHERE free_ns=100010"), 1);
    assert_int_equal(account_query("SELECT max(segment_id) FROM segment"), SEGMENT_ROWS_MAX + 5);
    assert_int_equal(counts.missing_segments, MORE);
    assert_int_equal(account_query("SELECT peak_reserved_bytes FROM total WHERE kind='arena'"),
                     (SEGMENT_ROWS_MAX + (int64_t)MORE) << 20);
    account_run_close(&r);
}

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

/* What turns out to be an allocator's memory: counts as if it had never been a block, stays reserved, leaves active. */
static void test_to_segment(void **state)
{
    (void)state;
    struct account_run r;
    struct account_counts counts;
    struct event device[] = {
        {.op = EVENT_SEGMENT_ALLOC, .time_ns = 10, .address = 0x100000, .size_bytes = 4096, .kind = KIND_device},
        {.op = EVENT_ALLOC, .time_ns = 10, .address = 0x100000, .size_bytes = 4096, .kind = KIND_device, .stack_id = 1},
        {.op = EVENT_TO_SEGMENT, .time_ns = 20, .address = 0x100000, .kind = KIND_device},
        {.op = EVENT_TO_SEGMENT, .time_ns = 20, .address = 0x500000, .kind = KIND_device}, /* nothing there */
        {.op = EVENT_ALLOC, .time_ns = 30, .address = 0x100000, .size_bytes = 1000, .kind = KIND_sub, .stack_id = 2},
        {.op = EVENT_FREE, .time_ns = 40, .address = 0x100000, .kind = KIND_sub},
    };
    struct event snapshot[] = {
        /* without a segment of its own */
        {.op = EVENT_ALLOC, .time_ns = 50, .address = 0x200000, .size_bytes = 512, .stack_id = 3, .kind = KIND_device},
        {.op = EVENT_TO_SEGMENT, .time_ns = 60, .address = 0x200000, .kind = KIND_device}};
    struct event host[] = {
        {.op = EVENT_ALLOC, .time_ns = 100, .address = 0x7000010, .size_bytes = 10000, .stack_id = 4},
        {.op = EVENT_ALLOC, .time_ns = 100, .address = 0x8000000, .size_bytes = 65536, .kind = KIND_map, .stack_id = 5},
        {.op = EVENT_ALLOC, .time_ns = 100, .address = 0x9000000, .size_bytes = 9999, .stack_id = 6},
        {.op = EVENT_RESERVED, .time_ns = 100, .size_bytes = 20480},
        {.op = EVENT_TO_SEGMENT, .time_ns = 110, .address = 0x7000080},        /* behind a header */
        {.op = EVENT_TO_SEGMENT, .time_ns = 110, .address = 0x8009000},        /* deep within */
        {.op = EVENT_TO_SEGMENT, .time_ns = 110, .address = 0x9000000 + 9999}, /* just behind it */
        {.op = EVENT_FREE, .time_ns = 120, .address = 0x8000000, .kind = KIND_map},
        {.op = EVENT_FREE, .time_ns = 120, .address = 0x7000010},
        {.op = EVENT_FREE, .time_ns = 130, .address = 0x7000010}, /* a second time */
    };
    account_run_open(&r, &(struct account_options){0});
    account_feed(&r, device, sizeof device / sizeof *device, 1);
    account_flush(r.account, 41);
    assert_int_equal(account_query("SELECT reserved_last_bytes FROM timeline WHERE device_id=1 AND level=0"), 4096);
    assert_int_equal(account_query("SELECT active_last_bytes FROM timeline WHERE device_id=1 AND level=0"), 0);
    assert_int_equal(account_query("SELECT alloc_count FROM total WHERE device_id=1 AND kind='all'"), 1);
    assert_int_equal(account_query("SELECT alloc_bytes FROM total WHERE device_id=1 AND kind='all'"), 1000);
    assert_int_equal(account_query("SELECT free_count FROM total WHERE device_id=1 AND kind='all'"), 1);
    assert_int_equal(account_query("SELECT alloc_count + free_count + end_count FROM site WHERE stack_id=1"), 0);
    assert_int_equal(account_query("SELECT alloc_bytes + free_bytes FROM site WHERE stack_id=1"), 0);
    /* until the event its bytes were active */
    assert_int_equal(account_query("SELECT peak_active_bytes FROM total WHERE device_id=1 AND kind='all'"), 4096);
    assert_int_equal(account_query("SELECT at_peak_bytes FROM site WHERE stack_id=1"), 4096);
    account_feed(&r, snapshot, 2, 1);
    account_flush(r.account, 61);
    assert_int_equal(account_query("SELECT reserved_last_bytes FROM timeline WHERE device_id=1 AND level=0"),
                     4096 + 512);
    assert_int_equal(account_query("SELECT size_bytes FROM segment WHERE address=%d", 0x200000), 512);
    account_feed(&r, host, 7, 0);
    account_flush(r.account, 111);
    assert_int_equal(account_query("SELECT active_last_bytes FROM timeline WHERE device_id=0 AND level=0"), 9999);
    assert_int_equal(account_query("SELECT reserved_last_bytes FROM timeline WHERE device_id=0 AND level=0"),
                     20480 + 65536);
    assert_int_equal(account_query("SELECT peak_reserved_bytes FROM total WHERE device_id=0 AND kind='all'"),
                     20480 + 65536);
    account_feed(&r, host + 7, 3, 0);
    account_finish(r.account, 5000);
    account_counts(r.account, &counts);
    assert_int_equal(counts.unmatched_frees, 1);
    assert_int_equal(counts.live_blocks, 1);
    assert_int_equal(
        account_query("SELECT reserved_last_bytes FROM timeline WHERE device_id=0 AND level=0 ORDER BY time_ns DESC"),
        20480);
    assert_int_equal(account_query("SELECT free_ns FROM segment WHERE address=%d", 0x8000000), 120);
    assert_int_equal(account_query("SELECT free_ns FROM segment WHERE address=%d", 0x7000010), 120);
    assert_int_equal(account_query("SELECT sum(alloc_count) FROM size_class WHERE device_id=0"), 1);
    /* replayed from the events, the same remains */
    struct account_held held[32] = {0};
    assert_true(account_query("SELECT max(site_id) FROM site") < 32);
    account_rebuild((uint64_t)account_query("SELECT sum(event_count) FROM event_chunk"), held);
    for (int64_t id = 1; id <= account_query("SELECT max(site_id) FROM site"); id++)
        assert_int_equal(held[id].bytes,
                         account_query("SELECT stack_id FROM site WHERE site_id=%d", (int)id) == 6 ? 9999 : 0);
    account_run_close(&r);
}

/* The driver's figures: a row for each change, with ours at that instant; the device's resident series. */
static void test_device_used(void **state)
{
    (void)state;
    struct account_run r;
    struct event e[] = {
        {.op = EVENT_SEGMENT_ALLOC, .time_ns = 10, .address = 0x1000, .size_bytes = 4096},
        {.op = EVENT_ALLOC, .time_ns = 10, .address = 0x1000, .size_bytes = 4000, .stack_id = 1},
        {.op = EVENT_FREE_REQUESTED, .time_ns = 20, .address = 0x1000},
        {.op = EVENT_DEVICE_USED, .time_ns = 30, .size_bytes = 9000, .address = 1ull << 34},
        {.op = EVENT_DEVICE_USED, .time_ns = 40, .size_bytes = 9000, .address = 1ull << 34},
        {.op = EVENT_DEVICE_USED, .time_ns = 50, .size_bytes = 8000, .address = 1ull << 34},
        {.op = EVENT_DEVICE_USED, .time_ns = 60, .size_bytes = UINT64_MAX, .address = UINT64_MAX},
    };
    account_run_open(&r, &(struct account_options){0});
    account_feed(&r, e, sizeof e / sizeof *e, 1);
    account_finish(r.account, 5000);
    assert_int_equal(account_query("SELECT count(*) FROM device_sample"), 3);
    assert_int_equal(account_query("SELECT used_bytes - reserved_bytes FROM device_sample WHERE time_ns=30"),
                     9000 - 4096);
    assert_int_equal(account_query("SELECT reserved_bytes - active_bytes FROM device_sample WHERE time_ns=30"), 96);
    assert_int_equal(account_query("SELECT allocated_bytes FROM device_sample WHERE time_ns=30"), 0);
    assert_int_equal(account_query("SELECT total_bytes FROM device_sample WHERE time_ns=50"), 1ull << 34);
    assert_int_equal(account_query("SELECT rss_max_bytes > 9000 FROM timeline WHERE device_id=1 AND level=0"), 1);
    account_run_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_max_events),
        cmocka_unit_test(test_many_tuples),
        cmocka_unit_test(test_aggregate_keyframes_are_bounded),
        cmocka_unit_test(test_first_of_equal_peaks),
        cmocka_unit_test(test_reserved_before_the_first_sample),
        cmocka_unit_test(test_mapped_since_glibc_was_asked),
        cmocka_unit_test(test_segments_and_reserved),
        cmocka_unit_test(test_segment_rows),
        cmocka_unit_test(test_failures_made_good),
        cmocka_unit_test(test_largest),
        cmocka_unit_test(test_levels_after_each_flush),
        cmocka_unit_test(test_fine_level_at_end),
        cmocka_unit_test(test_end_keyframe),
        cmocka_unit_test(test_teardown),
        cmocka_unit_test(test_quiet_timeline),
        cmocka_unit_test(test_free_requested),
        cmocka_unit_test(test_to_segment),
        cmocka_unit_test(test_device_used),
    };
    return cmocka_run_group_tests(tests, scratch_begin, scratch_end);
}
