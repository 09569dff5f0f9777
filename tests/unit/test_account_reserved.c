/* The accounts of what is reserved: samples of glibc's heaps, segments, what turns out to be one, and what a device
 * says that it has. */
#include "../../common/kind.h"
#include "account_run.h"
#include "scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

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

struct step {
    struct event e;
    uint64_t reserved; /* after it */
};

/* Of the heap of a process. */
static void take_steps(struct account_run *r, const struct step *steps, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct event e = steps[i].e;
        e.time_ns = 10 * (i + 1);
        e.process_id = e.thread_id = 1;
        e.kind = KIND_heap;
        e.stack_id = e.op == EVENT_ALLOC ? 1 : e.stack_id;
        account_events(r->account, &e, 1);
        account_flush(r->account, e.time_ns + 1);
        if (account_query("SELECT count(*) FROM timeline"))
            assert_int_equal(account_query("SELECT reserved_last_bytes FROM timeline WHERE level = 0 ORDER BY time_ns "
                                           "DESC LIMIT 1"),
                             steps[i].reserved);
    }
}

/* glibc is asked seldom: blocks with a mapping of their own count from their event on, and no more in its next answer.
 * A block of n pages but 24 bytes fills its mapping. */
static void test_mapped_since_glibc_was_asked(void **state)
{
    (void)state;
    const uint64_t main_start = 0x5500000000, arena = 0x7f0000000000, mapping = 0x7f1000000010;
    struct account_run r;
    const struct step steps[] = {
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
        /* glibc maps what is 128 KiB with a size before it, and rounded up to 16: 33 pages with its whole header */
        {{.op = EVENT_ALLOC, .address = mapping, .size_bytes = 131049}, PAGES(464)},
        {{.op = EVENT_ALLOC, .address = mapping + PAGES(2000), .size_bytes = 131048}, PAGES(464)},
        {{.op = EVENT_FREE, .address = mapping}, PAGES(431)},
        {{.op = EVENT_PROCESS_END}, 0},
    };
    account_run_open(&r, &(struct account_options){0});
    take_steps(&r, steps, sizeof steps / sizeof *steps);
    account_finish(r.account, 1000);
    assert_int_equal(account_query("SELECT peak_reserved_bytes FROM total WHERE kind = 'heap'"), PAGES(491));
    account_run_close(&r);
}

/* What is active proves that as much is reserved; an arena keeps what a large block of it was, until glibc says how
 * much that is. */
static void test_large_blocks_of_an_arena(void **state)
{
    (void)state;
    const uint64_t main_start = 0x5500000000;
    struct account_run r;
    const struct step steps[] = {
        {{.op = EVENT_HEAP_AT, .address = main_start}, 0},
        {{.op = EVENT_RESERVED, .size_bytes = PAGES(40), .stack_id = HEAP_ASKED}, PAGES(40)},
        {{.op = EVENT_ALLOC, .address = main_start + 0x10, .size_bytes = PAGES(50)}, PAGES(50)},
        {{.op = EVENT_ALLOC, .address = main_start + 0x1000010, .size_bytes = PAGES(60)}, PAGES(110)},
        {{.op = EVENT_FREE, .address = main_start + 0x10}, PAGES(110)},
        {{.op = EVENT_RESERVED, .size_bytes = PAGES(70), .stack_id = HEAP_ASKED}, PAGES(70)},
    };
    account_run_open(&r, &(struct account_options){0});
    take_steps(&r, steps, sizeof steps / sizeof *steps);
    account_finish(r.account, 1000);
    account_run_close(&r);
}

/* What two answers of glibc in a row say is in use beside all blocks: less what these may take, 32 bytes and a 16th.
 * Mappings of its own, which may be twice as large as their blocks, are not in that. */
static void test_in_use_beside_all_blocks(void **state)
{
    (void)state;
    struct account_run r;
    struct account_counts counts;
    const uint64_t known = PAGES(160) + PAGES(10) + 32;
    const struct step steps[] = {
        {{.op = EVENT_ALLOC, .address = 0x5500000010, .size_bytes = PAGES(160)}, 0},
        {{.op = EVENT_RESERVED, .size_bytes = PAGES(900), .stack_id = heap_asked(PAGES(800))}, PAGES(900)},
        {{.op = EVENT_RESERVED, .size_bytes = PAGES(900)}, PAGES(900)}, /* not asked */
        {{.op = EVENT_RESERVED,
          .size_bytes = PAGES(900),
          .address = PAGES(100),
          .stack_id = heap_asked(PAGES(400) + 4095)},
         PAGES(900)},
        {{.op = EVENT_RESERVED, .size_bytes = PAGES(900), .stack_id = heap_asked(PAGES(160))}, PAGES(900)},
        {{.op = EVENT_RESERVED, .size_bytes = PAGES(900), .stack_id = heap_asked(PAGES(700))}, PAGES(900)},
        {{.op = EVENT_RESERVED, .size_bytes = PAGES(900), .stack_id = heap_asked(0)}, PAGES(900)},
    };
    account_run_open(&r, &(struct account_options){0});
    take_steps(&r, steps, sizeof steps / sizeof *steps);
    account_counts(r.account, &counts);
    assert_int_equal(counts.unseen_bytes, PAGES(400) - known);
    account_finish(r.account, 1000);
    account_run_close(&r);
}

/* What is live and not in use, by glibc's answers, was freed past us. What is allocated while it looks may come behind
 * it, and what is freed then may have been in use: an answer that says nothing changes nothing. 'used' is rounded up to
 * a page, and one with a mapping of its own is in use, too. */
static void test_freed_past_us(void **state)
{
    (void)state;
    const struct step steps[] = {
        {{.op = EVENT_ALLOC, .address = 0x5500000010, .size_bytes = PAGES(160)}, 0},
        {{.op = EVENT_RESERVED, .size_bytes = PAGES(900), .stack_id = heap_asked(PAGES(19))}, PAGES(900)}, /* a trim */
        {{.op = EVENT_HEAP_ASKS}, 0},
        {{.op = EVENT_ALLOC, .address = 0x5600000010, .size_bytes = PAGES(10)}, 0},
        {{.op = EVENT_RESERVED, .size_bytes = PAGES(900), .address = PAGES(30), .stack_id = heap_asked(PAGES(19) + 1)},
         PAGES(900)}, /* 110 */
        {{.op = EVENT_HEAP_ASKS}, 0},
        {{.op = EVENT_FREE, .address = 0x5600000010}, 0},
        {{.op = EVENT_RESERVED, .size_bytes = PAGES(900), .stack_id = heap_asked(PAGES(54))},
         PAGES(900)}, /* 105 to 115 */
        {{.op = EVENT_HEAP_ASKS}, 0},
        {{.op = EVENT_RESERVED, .size_bytes = PAGES(900), .stack_id = heap_asked(PAGES(59))}, PAGES(900)}, /* 100 */
    };
    static const uint64_t expected[] = {0,          0,          0,          0,          PAGES(110),
                                        PAGES(110), PAGES(110), PAGES(110), PAGES(110), PAGES(100)};
    for (int is_sampled = 0; is_sampled < 2; is_sampled++) { /* then what is live is an estimate */
        struct account_run r;
        account_run_open(&r, &(struct account_options){.sample_bytes = is_sampled ? 4096 : 0});
        for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
            struct account_counts counts;
            struct event e = steps[i].e;
            e.time_ns = 10 * (i + 1);
            e.process_id = e.thread_id = 1;
            e.kind = KIND_heap;
            e.stack_id = e.op == EVENT_ALLOC ? 1 : e.stack_id;
            account_events(r.account, &e, 1);
            account_counts(r.account, &counts);
            assert_int_equal(counts.unfreed_bytes, is_sampled ? 0 : expected[i]);
        }
        account_finish(r.account, 1000);
        account_run_close(&r);
    }
}

/* Of one of several processes what is live is asked for as it ends: what came after glibc was asked says nothing. */
static void test_freed_past_us_of_two(void **state)
{
    (void)state;
    struct account_run r;
    struct account_counts counts;
    struct event e[] = {
        {.op = EVENT_ALLOC, .address = 0x5500000010, .size_bytes = PAGES(160), .process_id = 1},
        {.op = EVENT_ALLOC, .address = 0x5500000010, .size_bytes = PAGES(500), .process_id = 2},
        {.op = EVENT_HEAP_ASKS, .process_id = 1},
        {.op = EVENT_ALLOC, .address = 0x5600000010, .size_bytes = PAGES(10), .process_id = 1},
        {.op = EVENT_RESERVED, .size_bytes = PAGES(900), .stack_id = heap_asked(PAGES(99)), .process_id = 1},
        {.op = EVENT_PROCESS_END, .process_id = 1},
        {.op = EVENT_HEAP_ASKS, .process_id = 2},
        {.op = EVENT_RESERVED, .size_bytes = PAGES(900), .stack_id = heap_asked(PAGES(499)), .process_id = 2},
        {.op = EVENT_PROCESS_END, .process_id = 2},
    };
    static const uint64_t expected[] = {0, 0, 0, 0, 0, 60, 60, 60, 60};
    account_run_open(&r, &(struct account_options){0});
    for (size_t i = 0; i < sizeof e / sizeof *e; i++) {
        e[i].time_ns = 10 * (i + 1);
        e[i].thread_id = e[i].process_id;
        e[i].kind = KIND_heap;
        e[i].stack_id = e[i].op == EVENT_ALLOC ? 1 : e[i].stack_id;
        account_events(r.account, &e[i], 1);
        account_counts(r.account, &counts);
        assert_int_equal(counts.unfreed_bytes, PAGES(expected[i]));
    }
    account_finish(r.account, 1000);
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
        cmocka_unit_test(test_reserved_before_the_first_sample),
        cmocka_unit_test(test_mapped_since_glibc_was_asked),
        cmocka_unit_test(test_large_blocks_of_an_arena),
        cmocka_unit_test(test_in_use_beside_all_blocks),
        cmocka_unit_test(test_freed_past_us),
        cmocka_unit_test(test_freed_past_us_of_two),
        cmocka_unit_test(test_segments_and_reserved),
        cmocka_unit_test(test_segment_rows),
        cmocka_unit_test(test_to_segment),
        cmocka_unit_test(test_device_used),
    };
    return cmocka_run_group_tests(tests, scratch_begin, scratch_end);
}
