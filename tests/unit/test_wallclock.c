/* Times of day against numbers of date(1): date -ud 2026-11-23T14:03:10Z +%s is 1795442590. */
#include "../../common/wallclock.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#define S 1000000000ll

static int64_t at(const char *text, int64_t since_ns)
{
    int64_t ns = -1;
    int rc = wallclock_parse(text, since_ns, &ns);
    return rc ? rc : ns;
}

static void zone(const char *name)
{
    setenv("TZ", name, 1);
    tzset();
}

static void test_dates(void **state)
{
    (void)state;
    zone("UTC0");
    assert_int_equal(at("2026-11-23T14:03:10", 0), 1795442590 * S);
    assert_int_equal(at("2026-11-23 14:03:10", 0), 1795442590 * S);
    assert_int_equal(at("2026-11-23T14:03", 0), 1795442580 * S);
    assert_int_equal(at("2026-11-23T14:03:10.25", 0), 1795442590 * S + S / 4);
    assert_int_equal(at("2026-11-23T14:03:10.1234567899", 0), 1795442590 * S + 123456789);
    zone("CET-1CEST,M3.5.0,M10.5.0/3"); /* Berlin's */
    assert_int_equal(at("2026-11-23T15:03:10", 0), 1795442590 * S);
    assert_int_equal(at("2026-11-23T14:03:10Z", 0), 1795442590 * S);
    assert_int_equal(at("2026-11-23T19:33:10+05:30", 0), 1795442590 * S);
    assert_int_equal(at("2026-11-23T06:03:10-0800", 0), 1795442590 * S);
    assert_int_equal(at("2026-07-01T12:00:00", 0), 1782900000 * S); /* date -ud 2026-07-01T10:00:00Z +%s */
    assert_int_equal(at("2026-03-29T02:30:00", 0), -ERANGE);        /* clocks went from 2 to 3 */
    assert_int_equal(at("2026-02-30T12:00:00", 0), -ERANGE);
}

static void test_times_of_day(void **state)
{
    (void)state;
    const int64_t since = 1795442590 * S + S / 2; /* 14:03:10.5 UTC */
    zone("UTC0");
    assert_int_equal(at("14:05", since), 1795442700 * S);
    assert_int_equal(at("14:03:10", since), 1795442590 * S); /* of the same second */
    assert_int_equal(at("14:03:09", since), (1795442589 + 86400) * S);
    assert_int_equal(at("0:10", since), (1795442590 - 10 - 14 * 3600 - 3 * 60 + 86400 + 600) * S);
    assert_int_equal(at("15:05+01:00", since), 1795442700 * S);
    zone("EST5");
    assert_int_equal(at("09:05", since), 1795442700 * S);
    assert_int_equal(at("23:59:59", since), 1795496399 * S); /* date -ud 2026-11-24T04:59:59Z +%s */
}

static void test_what_is_none(void **state)
{
    (void)state;
    static const char *const none[] = {"",
                                       "14",
                                       "14:",
                                       "14:3",
                                       ":03",
                                       "24:00",
                                       "14:60",
                                       "14:03:60",
                                       "14:03:1",
                                       "14:03:10.",
                                       "14:03:10.x",
                                       "14:03:10 ",
                                       "14:03:10ZZ",
                                       "14:03:10+1",
                                       "14:03:10+24:00",
                                       "14:03:10+00:60",
                                       "-1:00",
                                       "2026-11-23",
                                       "2026-11-23T",
                                       "2026-11-23T14",
                                       "2026-13-01T00:00",
                                       "2026-00-01T00:00",
                                       "2026-01-00T00:00",
                                       "1969-01-01T00:00",
                                       "9999-01-01T00:00",
                                       "99999999999999999999:00",
                                       "26-11-23T14:03:10"};
    zone("UTC0");
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        if (at(none[i], 1795442590 * S) != -EINVAL)
            fail_msg("'%s' is taken as a time", none[i]);
    assert_int_equal(at("14:03", -1), -EINVAL);
    assert_int_equal(at("14:03", INT64_MIN), -EINVAL);
    assert_int_equal(at("00:00", INT64_MAX), -ERANGE); /* the day after the last one */
    assert_true(wallclock_is("14:03") && wallclock_is("2026-11-23T14:03") && wallclock_is("14:"));
    assert_false(wallclock_is("1.5s") || wallclock_is("peak") || wallclock_is("") || wallclock_is("-5") ||
                 wallclock_is("mark:a"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_dates), cmocka_unit_test(test_times_of_day),
                                       cmocka_unit_test(test_what_is_none)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
