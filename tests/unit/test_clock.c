/* Stamps to nanoseconds: close to CLOCK_MONOTONIC, and never backwards when the rate is measured anew. */
#include "../../profiler/collect/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

static void check(int tsc)
{
    struct clock c;
    clock_open(&c, tsc);
    clock_calibrate(&c);
    uint64_t before_start = clock_stamp(&c);
    usleep(1000);
    clock_restart(&c);
    assert_true(clock_ns(&c, before_start) < -900000); /* time 0 is later by what passed */
    assert_true(clock_ns(&c, clock_stamp(&c)) >= 0);
    int64_t last_ns = -1, worst_ns = 0;
    for (int i = 0; i < 200; i++) {
        usleep(1000);
        uint64_t before_ns = clock_monotonic_ns();
        uint64_t stamp = clock_stamp(&c);
        uint64_t after_ns = clock_monotonic_ns();
        int64_t ns = clock_ns(&c, stamp);
        int64_t early_ns = (int64_t)(before_ns - c.start_monotonic_ns) - ns,
                late_ns = ns - (int64_t)(after_ns - c.start_monotonic_ns);
        if (early_ns > worst_ns)
            worst_ns = early_ns;
        if (late_ns > worst_ns)
            worst_ns = late_ns;
        assert_true(ns > last_ns);
        last_ns = ns;
        if (i % 10 == 9) {
            clock_refine(&c, stamp);
            assert_true(clock_ns(&c, stamp) >= ns - 1);
            assert_true(clock_ns(&c, stamp + clock_ticks(&c, 1000)) > ns);
        }
    }
    /* 0.2 s by a rate measured over 2 ms at first: within 200 ppm */
    assert_true(worst_ns < 40000);
    assert_in_range(clock_ticks(&c, 1000000000), c.use_tsc ? 100000000 : 1000000000,
                    c.use_tsc ? 10000000000 : 1000000000);
}

static void test_tsc(void **state)
{
    (void)state;
    check(1);
}

static void test_monotonic(void **state)
{
    (void)state;
    check(0);
}

/* A first rate that is wrong by 1000 ppm is worked off without a step back. */
static void test_correction(void **state)
{
    (void)state;
    struct clock c;
    clock_open(&c, 1);
    if (!c.use_tsc)
        skip();
    clock_calibrate(&c);
    c.rate += c.rate / 1000;
    int64_t first_error = 0, error = 0;
    for (int i = 0; i < 100; i++) {
        usleep(5000);
        uint64_t stamp = clock_stamp(&c);
        uint64_t truth_ns = clock_monotonic_ns() - c.start_monotonic_ns;
        int64_t ns = clock_ns(&c, stamp);
        clock_refine(&c, stamp);
        assert_int_equal(clock_ns(&c, stamp), ns);
        error = ns - (int64_t)truth_ns;
        if (i == 20)
            first_error = error;
    }
    assert_true(llabs(error) < 5000 + llabs(first_error));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tsc),
        cmocka_unit_test(test_monotonic),
        cmocka_unit_test(test_correction),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
