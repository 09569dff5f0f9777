/* Sizes for people. */
#include "../../common/units.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void is(int64_t size_bytes, const char *text, const char *narrow)
{
    char got[UNITS_TEXT];
    assert_string_equal(units_bytes(got, size_bytes), text);
    assert_string_equal(units_bytes_short(got, size_bytes), narrow);
}

static void test_bytes(void **state)
{
    (void)state;
    is(0, "0 B", "0");
    is(1023, "1023 B", "1023");
    is(1024, "1.00 KiB", "1.00K");
    is(-1023, "-1023 B", "-1023");
    is(1023994, "999.99 KiB", "999.99K");
    is(1023995, "0.98 MiB", "0.98M");
    is(1044562, "1.00 MiB", "1.00M"); /* not 1020.08 KiB, beside 1.02 MiB */
    is(1048576, "1.00 MiB", "1.00M");
    is(-1048575, "-1.00 MiB", "-1.00M");
    is(1047527424, "999.00 MiB", "999.00M");
    is(1048576000, "0.98 GiB", "0.98G");
    is(INT64_MAX, "8.00 EiB", "8.00E");
    is(INT64_MIN, "-8.00 EiB", "-8.00E");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bytes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
