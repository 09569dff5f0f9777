/* The ordering stage and calls of devices: what becomes an allocator's memory, hostile words, the rows of devices. */
#include "drain_setup.h"
#include "ring_writer.h"
#include "scratch.h"

#include "../../common/db.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void put_call(struct writer *w, unsigned call, unsigned device, unsigned count, const uint64_t *arguments)
{
    uint64_t words[16] = {0, (uint64_t)WIRE_CALL << 56 | (uint64_t)WIRE_HOOK_malloc << 48 | (uint64_t)(3 + count) << 32,
                          WIRE_CALL_WORD(call, device, 0)};
    memcpy(words + 3, arguments, count * sizeof *arguments);
    writer_put(w, words, 3 + count);
}

static size_t count_ops(const struct setup *s, unsigned op)
{
    size_t count = 0;
    for (size_t i = 0; i < s->count; i++)
        count += s->events[i].op == op;
    return count;
}

/* Memory that a thread hands to a sub-allocator right after it got it is no block at any time, however the rounds fall;
 * what it keeps is one after a while. */
static void test_segment_from_birth(void **state)
{
    (void)state;
    struct setup *s = setup_begin(1);
    struct writer w;
    uint32_t slot = writer_claim_slot(s->session.control, getpid(), getppid(), WIRE_START_EXEC, 0);
    assert_int_equal(writer_open(&w, s->session.control, slot, getpid(), getpid()), 0);
    uint64_t device[] = {1ull << 33, 5, 6, 0}, segment[] = {1, 0x70000000, 4096}, taken[] = {0x70000000, 4096, 9};
    uint64_t kept[] = {0x900000, 4096, 9};
    put_call(&w, WIRE_CALL_DEVICE, 0, 4, device);
    for (int tries = 0;; tries++) { /* a machine that stands still longer than the wait proves nothing */
        assert_true(tries < 200);
        uint64_t begin_ns = clock_monotonic_ns();
        size_t before = s->count, births = count_ops(s, EVENT_ALLOC), moved = count_ops(s, EVENT_TO_SEGMENT);
        put_call(&w, WIRE_CALL_ALLOC, 0, 3, taken);
        setup_rounds(s, 5);
        writer_alloc(&w, 0xa000 + 16 * (uint64_t)tries, 10, 0); /* what an allocator does to remember it */
        setup_rounds(s, 5);
        size_t held = s->count;
        put_call(&w, WIRE_CALL_SUB_SEGMENT, 0, 3, segment);
        taken[0] += 0x10000;
        segment[1] += 0x10000;
        setup_rounds(s, 3);
        if (clock_monotonic_ns() - begin_ns > 15000000)
            continue;
        assert_int_equal(held, before);
        assert_int_equal(count_ops(s, EVENT_ALLOC), births + 1); /* the host's */
        assert_int_equal(count_ops(s, EVENT_TO_SEGMENT), moved);
        break;
    }
    size_t births = count_ops(s, EVENT_ALLOC), moved = count_ops(s, EVENT_TO_SEGMENT);
    put_call(&w, WIRE_CALL_ALLOC, 0, 3, kept);
    usleep(25000);
    setup_rounds(s, 2);
    assert_int_equal(count_ops(s, EVENT_ALLOC), births + 1);
    segment[1] = 0x900000;
    put_call(&w, WIRE_CALL_SUB_SEGMENT, 0, 3, segment); /* too late: it was a block until now */
    setup_rounds(s, 3);
    assert_int_equal(count_ops(s, EVENT_TO_SEGMENT), moved + 1);
    assert_int_equal(s->disorder, 0);
    kept[0] = 0xb00000;
    put_call(&w, WIRE_CALL_ALLOC, 0, 3, kept);
    drain_finish(s->drain); /* waits for nothing */
    assert_int_equal(count_ops(s, EVENT_ALLOC), births + 2);
    sqlite3_stmt *q;
    assert_int_equal(
        sqlite3_prepare_v2(store_db(s->store), "SELECT total_bytes FROM device WHERE name='cuda:0'", -1, &q, NULL),
        SQLITE_OK);
    assert_int_equal(sqlite3_step(q), SQLITE_ROW);
    assert_int_equal(sqlite3_column_int64(q, 0), 1ll << 33);
    sqlite3_finalize(q);
    setup_end(s);
}

/* Calls of any length with any words: counted where they make no sense, and nothing else. */
static void test_hostile_calls(void **state)
{
    (void)state;
    struct setup *s = setup_begin(1);
    struct writer w;
    uint32_t slot = writer_claim_slot(s->session.control, getpid(), getppid(), WIRE_START_EXEC, 0);
    assert_int_equal(writer_open(&w, s->session.control, slot, getpid(), getpid()), 0);
    uint64_t x = 88172645463325252ull;
    for (unsigned i = 0; i < 20000; i++) {
        uint64_t words[16];
        unsigned count = 2 + (unsigned)(x >> 40) % 14;
        for (unsigned k = 0; k < 16; k++) {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            words[k] = k < 3 || x % 3 ? x >> x % 64 : 0x1000 * (x >> 8 & 15);
        }
        words[1] = (uint64_t)WIRE_CALL << 56 | (words[1] & 0xffull << 48) | (uint64_t)count << 32 | (words[1] & 3);
        words[2] = WIRE_CALL_WORD(words[2] % (WIRE_CALL_COUNT + 1), x % 4 ? x % 3 : x & 0xff, x >> 60 == 0);
        writer_put(&w, words, count);
        if (i % 500 == 0)
            drain_round(s->drain);
    }
    drain_finish(s->drain);
    assert_int_equal(s->drain->bad_rings, 0);
    assert_true(s->drain->bad_records > 100);
    assert_true(s->count > 1000);
    assert_int_equal(s->disorder, 0);
    for (size_t i = 0; i < s->count; i++)
        assert_true(s->events[i].device < s->drain->device_rows.count);
    setup_end(s);
}

/* The same GPU under two ordinals is one device; another GPU of the same ordinal is another. */
static void test_device_rows(void **state)
{
    (void)state;
    struct setup *s = setup_begin(1);
    struct device_rows *rows = &s->drain->device_rows;
    const uint64_t a[] = {1, 2}, b[] = {3, 4};
    unsigned first = device_rows_find(rows, "cuda", 0, a, 100, "A");
    assert_int_equal(device_rows_find(rows, "cuda", 3, a, 100, "A"), first);
    unsigned second = device_rows_find(rows, "cuda", 0, b, 200, NULL);
    assert_int_not_equal(second, first);
    assert_int_equal(rows->rows[second].ordinal, 1);
    assert_int_equal(device_rows_find(rows, "cuda", 1, NULL, 0, NULL), second);
    assert_int_not_equal(device_rows_find(rows, "foreign", 0, a, 0, NULL), first);
    for (unsigned i = 0; i < 1000; i++)
        assert_true(device_rows_find(rows, "cuda", i, (uint64_t[]){i + 10, 1}, 1, NULL) < DEVICE_ROWS);
    assert_int_equal(rows->refused, 1000 - (DEVICE_ROWS - 4));
    setup_end(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_segment_from_birth),
        cmocka_unit_test(test_device_rows),
        cmocka_unit_test(test_hostile_calls),
    };
    return cmocka_run_group_tests(tests, scratch_begin, scratch_end);
}
