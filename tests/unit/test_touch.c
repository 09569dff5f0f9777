/* What copies say of the blocks of GPUs: idle bytes at the peak by site, the largest blocks, uploads again. The
 * expected numbers are sums over the few events of each test. */
#include "../../common/kind.h"
#include "account_run.h"
#include "scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define KIB 1024ull

static struct account_run r;
static uint64_t now_ns;

static void feed(unsigned op, unsigned device, uint64_t address, uint64_t size, uint32_t stack_or_what)
{
    struct event e = {
        .op = (uint8_t)op, .time_ns = now_ns += 10, .address = address, .size_bytes = size, .stack_id = stack_or_what};
    account_feed(&r, &e, 1, device);
}

static void born(uint32_t stack, uint64_t address, uint64_t size)
{
    feed(EVENT_ALLOC, 1, address, size, stack);
}

static void touch(unsigned what, uint64_t address, uint64_t size)
{
    feed(EVENT_TOUCH, 1, address, size, what);
}

static void upload(uint64_t address, uint64_t size, uint64_t source)
{
    touch(TOUCH_UPLOAD, address, size);
    feed(EVENT_UPLOAD, 1, address, source, 0);
}

static void gone(uint64_t address)
{
    feed(EVENT_FREE, 1, address, 0, 0);
    feed(EVENT_TOUCH_END, 1, address, 0, 0);
}

static void open_run(void)
{
    now_ns = 0;
    account_run_open(&r, &(struct account_options){0});
}

static void finish(void)
{
    feed(EVENT_PROCESS_END, 0, 0, 0, 0);
    account_finish(r.account, now_ns + 10);
}

static int64_t of_stack(uint32_t stack, const char *column)
{
    return account_query("SELECT %s FROM site_touch t JOIN site s USING(site_id) WHERE stack_id = %u", column, stack);
}

/* Stack 1: written before the peak and read after it. 2: written after it. 3: read before it, and not again. 4: read
 * after it, but never written: kernels wrote it at some time. 5: written before it, and not again: kernels may read it.
 * 6: never copied. */
static void test_idle_at_the_peak(void **state)
{
    (void)state;
    open_run();
    born(1, 0x10000, 1 * KIB);        /* at 10 */
    born(2, 0x20000, 2 * KIB);        /* 20 */
    born(3, 0x30000, 4 * KIB);        /* 30 */
    born(4, 0x40000, 8 * KIB);        /* 40 */
    born(5, 0x50000, 16 * KIB);       /* 50 */
    touch(TOUCH_WRITE, 0x10000, 100); /* 60 */
    touch(TOUCH_WRITE, 0x30000, 100); /* 70 */
    touch(TOUCH_READ, 0x30000, 100);  /* 80 */
    touch(TOUCH_WRITE, 0x50000, 100); /* 90 */
    born(6, 0x60000, 32 * KIB);       /* 100: the peak, 63 KiB */
    feed(EVENT_FREE, 1, 0x60000, 0, 0);
    touch(TOUCH_WRITE, 0x20000, 100); /* 120 */
    touch(TOUCH_READ, 0x10000, 100);  /* 130 */
    touch(TOUCH_READ, 0x40000, 100);  /* 140 */
    gone(0x10000);                    /* 150, and told at 160 */
    gone(0x30000);                    /* 170, 180 */
    born(2, 0x10000, 1 * KIB);        /* 190: no new peak; written 200, gone 210 */
    touch(TOUCH_WRITE, 0x10000, 1 * KIB);
    gone(0x10000);
    finish(); /* 230 */
    assert_int_equal(account_query("SELECT peak_active_bytes FROM total WHERE device_id = 1 AND kind = 'all'"),
                     63 * KIB);
    const int64_t expected[7][4] = {{0}, {0, 0}, {2 * KIB, 0}, {0, 4 * KIB}, {0, 0}, {0, 0}};
    for (uint32_t i = 1; i <= 5; i++) {
        assert_int_equal(of_stack(i, "early_peak_bytes"), expected[i][0]);
        assert_int_equal(of_stack(i, "late_peak_bytes"), expected[i][1]);
        assert_int_equal(of_stack(i, "block_count"), i == 2 ? 2 : 1);
    }
    assert_int_equal(of_stack(6, "count(*)"), 0);
    assert_int_equal(of_stack(2, "early_peak_count"), 1);
    assert_int_equal(of_stack(1, "block_bytes"), 1 * KIB);
    assert_int_equal(of_stack(1, "before_ns"), 60 - 10);
    assert_int_equal(of_stack(1, "after_ns"), 160 - 130);
    assert_int_equal(of_stack(1, "t.lifetime_ns"), 160 - 10);
    assert_int_equal(of_stack(2, "before_ns"), 120 - 20 + 200 - 190);
    /* the largest blocks have them, too */
    assert_int_equal(account_query("SELECT count(*) FROM block WHERE device_id = 1"), 7);
    assert_int_equal(account_query("SELECT count(*) FROM block_touch"), 6);
    assert_int_equal(account_query("SELECT first_ns * 1000 + last_ns FROM block JOIN block_touch USING(block_id) WHERE "
                                   "address = %u AND size_bytes = 1024 AND alloc_ns = 10",
                                   0x10000),
                     60 * 1000 + 130);
    assert_int_equal(account_query("SELECT touch_count FROM block JOIN block_touch USING(block_id) WHERE first_what = "
                                   "'write' AND last_what = 'read' AND address = %u",
                                   0x30000),
                     2);
    account_run_close(&r);
}

/* What makes the peak and is written at once is not idle in it; what is written when something else is gone is. */
static void test_written_at_once(void **state)
{
    (void)state;
    open_run();
    born(1, 0x10000, 1 * KIB);
    born(2, 0x20000, 2 * KIB);
    born(3, 0x30000, 4 * KIB); /* the peak */
    account_flush(r.account, now_ns + 1);
    touch(TOUCH_WRITE, 0x30000, 10);
    gone(0x10000);
    touch(TOUCH_WRITE, 0x20000, 10);
    finish();
    assert_int_equal(of_stack(3, "early_peak_bytes"), 0);
    assert_int_equal(of_stack(2, "early_peak_bytes"), 2 * KIB);
    account_run_close(&r);
}

/* What was idle at a peak says nothing once a higher one came. */
static void test_higher_peak(void **state)
{
    (void)state;
    open_run();
    born(1, 0x10000, 4 * KIB);
    touch(TOUCH_READ, 0x10000, 10);
    born(2, 0x20000, 4 * KIB); /* a peak; stack 1 is idle in it */
    gone(0x10000);
    born(3, 0x30000, 2 * KIB);
    born(3, 0x40000, 4 * KIB);
    touch(TOUCH_READ, 0x40000, 10);
    born(2, 0x50000, 1 * KIB); /* the highest: 11 KiB */
    finish();
    assert_int_equal(of_stack(1, "late_peak_bytes"), 0);
    assert_int_equal(of_stack(3, "late_peak_bytes"), 4 * KIB);
    assert_int_equal(of_stack(3, "block_count"), 1);
    account_run_close(&r);
}

/* A block that a sub-allocator took over was none; one at its address is another one. */
static void test_moved_and_replaced(void **state)
{
    (void)state;
    open_run();
    born(1, 0x10000, 4 * KIB);
    touch(TOUCH_READ, 0x10000, 10);
    feed(EVENT_TOUCH_END, 1, 0x10000, 0, TOUCH_MOVED);
    touch(TOUCH_WRITE, 0x20000, 10); /* of no block */
    born(2, 0x30000, 1 * KIB);       /* 40; its free is not seen */
    touch(TOUCH_WRITE, 0x30000, 10); /* 50 */
    born(3, 0x30000, 2 * KIB);       /* 60 */
    touch(TOUCH_WRITE, 0x30000, 10); /* 70 */
    touch(TOUCH_WRITE, 0x30000, 10); /* 80 */
    finish();                        /* 90 */
    assert_int_equal(account_query("SELECT count(*) FROM site_touch"), 2);
    assert_int_equal(of_stack(2, "block_count"), 1);
    assert_int_equal(of_stack(3, "before_ns"), 10);
    assert_int_equal(of_stack(3, "after_ns"), 10);
    account_run_close(&r);
}

static int64_t again(const char *column)
{
    return account_query("SELECT %s FROM upload_again", column);
}

static void test_uploads(void **state)
{
    (void)state;
    open_run();
    uint64_t source = 0x7000;
    feed(EVENT_ALLOC, 0, source, 8 * KIB, 9);
    for (uint32_t i = 1; i <= 4; i++) {
        born(i, i * 0x10000, 4 * KIB);
        upload(i * 0x10000, 4 * KIB, source);
    }
    upload(0x10000, 4 * KIB, source);     /* the same again: no news */
    upload(0x40000, 4 * KIB, source + 8); /* something else in its place */
    born(5, 0x50000, 3 * KIB);            /* not of that size */
    upload(0x50000, 3 * KIB, source);
    born(6, 0x60000, 4 * KIB); /* the peak, 23 KiB: blocks 1 to 3 have the same, and this one will */
    gone(0x50000);
    born(7, 0x70000, 1 * KIB);        /* no higher: 21 KiB */
    upload(0x60000, 4 * KIB, source); /* which it was for */
    touch(TOUCH_WRITE, 0x40000, 10);
    upload(0x40000, 4 * KIB, source); /* which it was not */
    gone(0x10000);
    touch(TOUCH_WRITE, 0x20000, 1); /* was the same up to here */
    finish();
    assert_int_equal(again("count(*)"), 1);
    assert_int_equal(again("at_peak_count"), 4);
    assert_int_equal(again("size_bytes"), 4 * KIB);
    assert_int_equal(again("upload_bytes"), 4 * KIB);
    assert_int_equal(again("source_address"), source);
    assert_int_equal(again("(SELECT stack_id FROM site WHERE site_id = upload_again.site_id)"), 6);
    account_run_close(&r);
}

/* A buffer that is given out anew at its old address holds something else; so does a block that was filled. */
static void test_other_contents(void **state)
{
    (void)state;
    open_run();
    uint64_t source = 0x7000;
    for (uint32_t i = 1; i <= 3; i++) {
        feed(EVENT_ALLOC, 0, source, 8 * KIB, 9);
        born(1, i * 0x10000, 4 * KIB);
        upload(i * 0x10000, 4 * KIB, source);
        feed(EVENT_FREE, 0, source, 0, 0);
    }
    for (uint32_t i = 4; i <= 6; i++) {
        born(1, i * 0x10000, 4 * KIB);
        upload(i * 0x10000, 4 * KIB, 0x9000); /* of no block that is known */
        if (i > 4)
            touch(TOUCH_WRITE, i * 0x10000, 4 * KIB);
    }
    born(2, 0x80000, 64 * KIB); /* the peak */
    finish();
    assert_int_equal(again("count(*)"), 0);
    account_run_close(&r);
}

/* Each one goes where the next one's place is; they are many, and hardly any lives. */
static void test_many_uploads(void **state)
{
    (void)state;
    open_run();
    for (uint64_t i = 1; i <= 20000; i++) {
        born(1, 0x10000 + i % 3 * 0x10000, 4 * KIB);
        upload(0x10000 + i % 3 * 0x10000, 4 * KIB, i << 16);
        if (i >= 3)
            gone(0x10000 + (i + 1) % 3 * 0x10000);
    }
    born(2, 0x50000, 64 * KIB); /* the peak, with two of stack 1 */
    upload(0x50000, 64 * KIB, 0x10);
    finish();
    assert_int_equal(of_stack(1, "block_count"), 20000);
    assert_int_equal(again("count(*)"), 0);
    account_run_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_idle_at_the_peak), cmocka_unit_test(test_written_at_once),
        cmocka_unit_test(test_higher_peak),      cmocka_unit_test(test_moved_and_replaced),
        cmocka_unit_test(test_uploads),          cmocka_unit_test(test_other_contents),
        cmocka_unit_test(test_many_uploads),
    };
    return cmocka_run_group_tests(tests, scratch_begin, scratch_end);
}
