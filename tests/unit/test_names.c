/* To which block a name belongs, and until when. */
#include "../../common/kind.h"
#include "../../profiler/account/names.h"
#include "account_run.h"
#include "scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <time.h>

#include <cmocka.h>

static uint64_t now_ns;

static void feed(struct account_run *r, unsigned op, uint64_t address, uint64_t size_bytes, unsigned kind)
{
    const struct event e = {.time_ns = ++now_ns,
                            .address = address,
                            .size_bytes = size_bytes,
                            .stack_id = 1,
                            .thread_id = 1,
                            .process_id = 1,
                            .op = (uint8_t)op,
                            .kind = (uint8_t)kind};
    account_events(r->account, &e, 1);
}

static int say(struct account_run *r, uint64_t address, const char *text)
{
    return account_name(r->account, 1, ++now_ns, &(struct name_said){.block = address, .text = text});
}

static int sort(struct account_run *r, uint64_t address, const char *category)
{
    return account_name(r->account, 1, ++now_ns,
                        &(struct name_said){.block = address, .text = category, .is_category = 1});
}

static void finish(struct account_run *r)
{
    account_finish(r->account, ++now_ns);
}

#define COUNT(where) account_query("SELECT count(*) FROM block_name WHERE " where)

static void test_used_again(void **state)
{
    (void)state;
    struct account_run r;
    account_run_open(&r, &(struct account_options){0});
    feed(&r, EVENT_ALLOC, 0x1000, 100, KIND_heap);
    assert_int_equal(say(&r, 0x1000, "first"), 1);
    feed(&r, EVENT_FREE, 0x1000, 0, KIND_heap);
    assert_int_equal(say(&r, 0x1000, "nobody"), 0);
    feed(&r, EVENT_ALLOC, 0x1000, 200, KIND_heap);
    finish(&r);
    assert_int_equal(account_query("SELECT count(*) FROM block_name"), 1);
    assert_int_equal(COUNT("name = 'first' AND block_bytes = 100 AND free_ns > time_ns AND time_ns > alloc_ns"), 1);
    account_run_close(&r);
}

/* A realloc ends a name, where the block stays as it is, too. */
static void test_resized(void **state)
{
    (void)state;
    struct account_run r;
    account_run_open(&r, &(struct account_options){0});
    feed(&r, EVENT_ALLOC, 0x1000, 100, KIND_heap);
    say(&r, 0x1000, "small");
    feed(&r, EVENT_REALLOC_FREE, 0x1000, 0, KIND_heap);
    feed(&r, EVENT_REALLOC_ALLOC, 0x1000, 300, KIND_heap);
    say(&r, 0x1000, "large");
    finish(&r);
    assert_int_equal(COUNT("name = 'small' AND block_bytes = 100 AND free_ns IS NOT NULL"), 1);
    assert_int_equal(COUNT("name = 'large' AND block_bytes = 300 AND free_ns IS NULL"), 1);
    account_run_close(&r);
}

/* An allocation where a block is whose free nobody saw. */
static void test_replaced(void **state)
{
    (void)state;
    struct account_run r;
    account_run_open(&r, &(struct account_options){0});
    feed(&r, EVENT_ALLOC, 0x1000, 100, KIND_heap);
    say(&r, 0x1000, "lost");
    feed(&r, EVENT_ALLOC, 0x1000, 50, KIND_heap);
    finish(&r);
    assert_int_equal(COUNT("name = 'lost' AND block_bytes = 100 AND free_ns IS NOT NULL"), 1);
    account_run_close(&r);
}

/* One row a name of a block, however often it is said; a category is of all names, those said later too. */
static void test_again_and_category(void **state)
{
    (void)state;
    struct account_run r;
    account_run_open(&r, &(struct account_options){0});
    feed(&r, EVENT_ALLOC, 0x1000, 100, KIND_heap);
    for (int i = 0; i < 100; i++) {
        say(&r, 0x1000, "a");
        sort(&r, 0x1000, i < 99 ? "buffer" : "parameter");
        account_flush(r.account, now_ns);
    }
    say(&r, 0x1000, "b");
    feed(&r, EVENT_ALLOC, 0x2000, 10, KIND_heap);
    assert_int_equal(sort(&r, 0x2000, "gradient"), 1);
    assert_int_equal(sort(&r, 0x3000, "gradient"), 0);
    finish(&r);
    assert_int_equal(account_query("SELECT count(*) FROM block_name"), 3);
    assert_int_equal(COUNT("name IN ('a', 'b') AND category = 'parameter'"), 2);
    assert_int_equal(COUNT("name = '' AND category = 'gradient' AND block_bytes = 10"), 1);
    account_run_close(&r);
}

/* Of 1,000 blocks with one name the first 16 and the last; a name of its own keeps its row. */
static void test_many_blocks(void **state)
{
    (void)state;
    struct account_run r;
    struct account_counts counts;
    account_run_open(&r, &(struct account_options){0});
    feed(&r, EVENT_ALLOC, 0x1000, 7, KIND_heap);
    say(&r, 0x1000, "own");
    for (uint64_t i = 0; i < 1000; i++) {
        feed(&r, EVENT_ALLOC, 0x10000 + i * 16, i + 1, KIND_heap);
        say(&r, 0x10000 + i * 16, "step");
        if (i % 3) /* others stay, and lose their row while they live */
            feed(&r, EVENT_FREE, 0x10000 + i * 16, 0, KIND_heap);
        if (i % 100 == 0)
            account_flush(r.account, now_ns);
    }
    finish(&r);
    account_counts(r.account, &counts);
    assert_int_equal(COUNT("name = 'step' AND block_bytes <= 16"), 16);
    assert_int_equal(COUNT("name = 'step' AND block_bytes = 1000 AND free_ns IS NULL"), 1);
    assert_int_equal(COUNT("name = 'step'"), 17);
    assert_int_equal(COUNT("name = 'own'"), 1);
    assert_int_equal(counts.names_left_out, 1000 - 17);
    account_run_close(&r);
}

static void test_most_rows(void **state)
{
    (void)state;
    struct account_run r;
    struct account_counts counts;
    char name[16];
    account_run_open(&r, &(struct account_options){0});
    for (uint64_t i = 0; i < NAMES_MAX + 10; i++) {
        snprintf(name, sizeof name, "n%u", (unsigned)i);
        feed(&r, EVENT_ALLOC, 0x10000 + i * 16, 8, KIND_heap);
        assert_int_equal(say(&r, 0x10000 + i * 16, name), 1);
    }
    say(&r, 0x10000, "n0"); /* has its row */
    finish(&r);
    account_counts(r.account, &counts);
    assert_int_equal(account_query("SELECT count(*) FROM block_name"), NAMES_MAX);
    assert_int_equal(counts.names_left_out, 10);
    account_run_close(&r);
}

/* Categories of blocks that come and go leave room for names. */
static void test_most_categories(void **state)
{
    (void)state;
    struct account_run r;
    struct account_counts counts;
    account_run_open(&r, &(struct account_options){0});
    for (uint64_t i = 0; i < NAMES_MAX; i++) {
        feed(&r, EVENT_ALLOC, 0x10000, 8, KIND_heap);
        sort(&r, 0x10000, "activation");
        if (i == 0) /* which makes a row with a name of it */
            say(&r, 0x10000, "named");
        feed(&r, EVENT_FREE, 0x10000, 0, KIND_heap);
    }
    feed(&r, EVENT_ALLOC, 0x20000, 8, KIND_heap);
    say(&r, 0x20000, "late");
    sort(&r, 0x20000, "weight");
    finish(&r);
    account_counts(r.account, &counts);
    assert_int_equal(COUNT("name = 'late' AND category = 'weight'"), 1);
    assert_int_equal(COUNT("name = ''"), NAMELESS_MAX);
    assert_int_equal(counts.names_left_out, NAMES_MAX - 1 - NAMELESS_MAX);
    account_run_close(&r);
}

/* What a pool handed out is meant before the memory below it; a block that becomes a segment hands its name on. */
static void test_segment(void **state)
{
    (void)state;
    struct account_run r;
    account_run_open(&r, &(struct account_options){0});
    feed(&r, EVENT_ALLOC, 0x1000, 4096, KIND_heap);
    say(&r, 0x1000, "slab");
    feed(&r, EVENT_TO_SEGMENT, 0x1000, 4096, KIND_heap);
    assert_int_equal(say(&r, 0x1000, "segment"), 0);
    feed(&r, EVENT_ALLOC, 0x1000, 64, KIND_sub);
    assert_int_equal(say(&r, 0x1000, "part"), 1);
    finish(&r);
    assert_int_equal(account_query("SELECT count(*) FROM memory_name WHERE name = 'slab' AND address = 4096"), 1);
    assert_int_equal(COUNT("name = 'slab' AND free_ns IS NOT NULL"), 1);
    assert_int_equal(COUNT("name = 'part' AND block_bytes = 64 AND free_ns IS NULL"), 1);
    account_run_close(&r);
}

static void test_process_end(void **state)
{
    (void)state;
    struct account_run r;
    account_run_open(&r, &(struct account_options){0});
    feed(&r, EVENT_ALLOC, 0x1000, 100, KIND_heap);
    say(&r, 0x1000, "left");
    feed(&r, EVENT_PROCESS_END, 0, 0, KIND_heap);
    assert_int_equal(say(&r, 0x1000, "after"), 0);
    finish(&r);
    assert_int_equal(COUNT("name = 'left' AND free_ns IS NULL"), 1);
    assert_int_equal(account_query("SELECT count(*) FROM block_name"), 1);
    account_run_close(&r);
}

/* A mapping of which parts go: the names stay until the last one, and are not of what is mapped where one was. */
static void test_parts(void **state)
{
    (void)state;
    struct account_run r;
    account_run_open(&r, &(struct account_options){0});
    feed(&r, EVENT_ALLOC, 0x1000, 0x4000, KIND_map);
    say(&r, 0x1000, "parted");
    sort(&r, 0x1000, "old");
    feed(&r, EVENT_SPLIT, 0x1000, 0x1000, KIND_map);
    feed(&r, EVENT_PART_FREE, 0x1000, 0x1000, KIND_map);
    feed(&r, EVENT_ALLOC, 0x1000, 0x1000, KIND_map);
    sort(&r, 0x1000, "new");
    say(&r, 0x1000, "second");
    feed(&r, EVENT_FREE, 0x1000, 0, KIND_map);
    say(&r, 0x2000, "rest"); /* of the first block, which lives still */
    const uint64_t before_ns = now_ns;
    feed(&r, EVENT_PART_FREE, 0x2000, 0x3000, KIND_map);
    feed(&r, EVENT_ALLOC, 0x8000, 0x2000, KIND_map);
    say(&r, 0x8000, "stays");
    feed(&r, EVENT_SPLIT, 0x8000, 0x1000, KIND_map);
    feed(&r, EVENT_PART_FREE, 0x9000, 0x1000, KIND_map);
    finish(&r);
    char rest[200];
    snprintf(rest, sizeof rest, "SELECT count(*) FROM block_name WHERE name IN ('parted', 'rest') AND free_ns > %u",
             (unsigned)before_ns);
    assert_int_equal(account_query(rest), 2);
    assert_int_equal(account_query("SELECT count(*) FROM block_name"), 4);
    assert_int_equal(account_query("SELECT count(*) FROM block_name WHERE category = 'old'"), 2);
    assert_int_equal(COUNT("name = 'second' AND category = 'new' AND block_bytes = 4096 AND free_ns IS NOT NULL"), 1);
    assert_int_equal(COUNT("name = 'stays' AND block_bytes = 8192 AND free_ns IS NULL"), 1);
    account_run_close(&r);
}

/* What lies beside the block is no part of it; what repeats itself may have more bytes than there are. */
static void test_views(void **state)
{
    (void)state;
    struct account_run r;
    const struct memprof_view views[] = {
        {(const void *)0x1000, 4, 1, {25}, {1}},          {(const void *)0x1060, 4, 1, {2}, {1}},
        {(const void *)0x1000, 4, 1, {2}, {-1}},          {(const void *)0x1000, 4, 17, {1}, {1}},
        {(const void *)0x1000, 4, 1, {INT64_MAX}, {0}},   {(const void *)0x1000, 8, 1, {INT64_MAX / 4 + 1}, {0}},
        {(const void *)0x1000, 1, 2, {1ll << 62, 4}, {0}}};
    account_run_open(&r, &(struct account_options){0});
    feed(&r, EVENT_ALLOC, 0x1000, 100, KIND_heap);
    for (unsigned i = 0; i < sizeof views / sizeof *views; i++) {
        const char text[] = {(char)('a' + i), 0};
        account_name(r.account, 1, ++now_ns, &(struct name_said){.block = 0x1000, .text = text, .view = &views[i]});
    }
    finish(&r);
    assert_int_equal(COUNT("name = 'a' AND view_bytes = 100 AND span_bytes = 100 AND shape = '25'"), 1);
    assert_int_equal(COUNT("name IN ('b', 'c', 'd') AND view_bytes = 100 AND shape IS NULL AND address = 0x1000"), 3);
    assert_int_equal(COUNT("name = 'e' AND span_bytes = 4 AND view_bytes = 0x7fffffffffffffff"), 1);
    assert_int_equal(COUNT("name = 'f' AND span_bytes = 8 AND view_bytes = 0x7fffffffffffffff"), 1);
    assert_int_equal(COUNT("name = 'g' AND span_bytes = 1 AND view_bytes = 0x7fffffffffffffff"), 1);
    account_run_close(&r);
}

/* The row that has it gets the name: no nameless one is before it. */
static void test_category_first(void **state)
{
    (void)state;
    struct account_run r;
    account_run_open(&r, &(struct account_options){0});
    for (uint64_t i = 0; i < 20; i++) {
        feed(&r, EVENT_ALLOC, 0x1000 + i * 16, 16, KIND_heap);
        sort(&r, 0x1000 + i * 16, "state");
        say(&r, 0x1000 + i * 16, "step");
        say(&r, 0x1000 + i * 16, "step");
    }
    feed(&r, EVENT_FREE, 0x1000, 0, KIND_heap);
    finish(&r);
    assert_int_equal(COUNT("name = 'step' AND category = 'state'"), 17);
    assert_int_equal(COUNT("name = '' AND category = 'state'"), 3); /* whose name has had its part */
    assert_int_equal(COUNT("name_id <= 17 AND name = ''"), 0);
    assert_int_equal(COUNT("free_ns IS NOT NULL"), 1);
    account_run_close(&r);
}

static void say_new(struct account_run *r, uint64_t *blocks, const char *prefix, unsigned number)
{
    const uint64_t address = 0x10000 + (*blocks)++ * 16;
    char name[16];
    snprintf(name, sizeof name, "%s%u", prefix, number);
    feed(r, EVENT_ALLOC, address, 8, KIND_heap);
    say(r, address, name);
}

/* Where a text's last row is taken from a block that lives, the names of all others stay, and end with their blocks. */
static void test_taken_rows(void **state)
{
    (void)state;
    enum { TEXTS = 100, OTHERS = 1500 };
    struct account_run r;
    uint64_t blocks = 0;
    account_run_open(&r, &(struct account_options){0});
    for (unsigned i = 0; i < TEXTS * (NAMES_OF_TEXT + 1); i++)
        say_new(&r, &blocks, "step", i % TEXTS);
    for (unsigned i = 0; i < OTHERS; i++)
        say_new(&r, &blocks, "other", i);
    for (unsigned i = 0; i < TEXTS; i++)
        say_new(&r, &blocks, "step", i);
    for (uint64_t i = 0; i < blocks; i++)
        feed(&r, EVENT_FREE, 0x10000 + i * 16, 0, KIND_heap);
    finish(&r);
    assert_int_equal(account_query("SELECT count(*) FROM block_name"), TEXTS * (NAMES_OF_TEXT + 1) + OTHERS);
    assert_int_equal(COUNT("free_ns IS NULL"), 0);
    account_run_close(&r);
}

static double processor_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int say_view(struct account_run *r, uint64_t number)
{
    char name[24];
    snprintf(name, sizeof name, "t%u", (unsigned)number);
    const struct memprof_view view = {(const void *)(uintptr_t)(0x100000 + number * 64), 4, 1, {16}, {1}};
    return account_name(r->account, 1, ++now_ns, &(struct name_said){.block = 0x100000, .text = name, .view = &view});
}

/* Views of one block, as of an arena that has all tensors: what a name costs does not grow with those before. */
static void test_many_views(void **state)
{
    (void)state;
    enum { FEW = 100, MANY = 50000, TIMES = 5000 };
    struct account_run r;
    double seconds[2];
    uint64_t count = 0;
    account_run_open(&r, &(struct account_options){0});
    feed(&r, EVENT_ALLOC, 0x100000, MANY * 64, KIND_heap);
    for (int i = 0; i < 2; i++) {
        while (count < (i ? MANY : FEW))
            assert_int_equal(say_view(&r, count++), 1);
        const double begin_s = processor_s();
        for (unsigned k = 0; k < TIMES; k++) {
            say_view(&r, k % FEW);
            sort(&r, 0x100000, "tensor");
        }
        seconds[i] = processor_s() - begin_s;
    }
    assert_true(seconds[1] < 20 * seconds[0] + 0.05);
    feed(&r, EVENT_FREE, 0x100000, 0, KIND_heap);
    feed(&r, EVENT_ALLOC, 0x100000, 128, KIND_heap);
    say_view(&r, 0);
    say_view(&r, 0);
    finish(&r);
    assert_int_equal(COUNT("free_ns IS NOT NULL AND category = 'tensor'"), MANY);
    assert_int_equal(COUNT("free_ns IS NULL AND name = 't0' AND block_bytes = 128"), 1);
    assert_int_equal(account_query("SELECT count(*) FROM block_name"), MANY + 1);
    account_run_close(&r);
}

/* Spans by arithmetic, and what is no view. */
static void test_span(void **state)
{
    (void)state;
    uintptr_t low, high;
    const void *data = (const void *)0x10000;
    const struct memprof_view backwards = {data, 4, 2, {3, 5}, {-5, 1}}, none = {data, 4, 2, {3, 0}, {5, 1}},
                              item = {data, 8, 0, {0}, {0}}, wide = {data, 4, 1, {INT64_MAX}, {2}},
                              below = {(const void *)16, 4, 1, {100}, {-1}}, still = {data, 4, 1, {1000}, {0}};
    assert_int_equal(memprof_span(&backwards, &low, &high), 0);
    assert_int_equal(low, 0x10000 - 2 * 5 * 4);
    assert_int_equal(high, 0x10000 + 5 * 4);
    assert_int_equal(memprof_view_items(&backwards), 15);
    assert_int_equal(memprof_span(&none, &low, &high), 0);
    assert_int_equal(low, high);
    assert_int_equal(memprof_span(&item, &low, &high), 0);
    assert_int_equal(high - low, 8);
    assert_int_equal(memprof_span(&still, &low, &high), 0);
    assert_int_equal(high - low, 4);
    assert_int_equal(memprof_view_items(&still), 1000);
    assert_int_equal(memprof_span(&wide, &low, &high), -1);
    assert_int_equal(memprof_span(&below, &low, &high), -1);
    assert_int_equal(memprof_span(&(struct memprof_view){data, 4, 17, {0}, {0}}, &low, &high), -1);
    assert_int_equal(memprof_span(&(struct memprof_view){data, 0, 0, {0}, {0}}, &low, &high), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_used_again),
        cmocka_unit_test(test_resized),
        cmocka_unit_test(test_replaced),
        cmocka_unit_test(test_again_and_category),
        cmocka_unit_test(test_many_blocks),
        cmocka_unit_test(test_most_rows),
        cmocka_unit_test(test_segment),
        cmocka_unit_test(test_process_end),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_taken_rows),
        cmocka_unit_test(test_most_categories),
        cmocka_unit_test(test_views),
        cmocka_unit_test(test_category_first),
        cmocka_unit_test(test_many_views),
        cmocka_unit_test(test_span),
    };
    return cmocka_run_group_tests(tests, scratch_begin, scratch_end);
}
