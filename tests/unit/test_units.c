/* Sizes for people. */
#include "../../common/units.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

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

static void test_parsed_bytes(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t size_bytes; /* -1: it is none */
    } rows[] = {
        {"0", 0},
        {"963072", 963072},
        {"9007199254740993", 9007199254740993}, /* more than a double has */
        {"64M", 67108864},
        {"64k", 65536},
        {"64 KiB", 65536},
        {"64KB", 65536},
        {"7B", 7},
        {"7 B", 7},
        {"1.5G", 1610612736},
        {"0.5K", 512},
        {"940.50 KiB", 963072},
        {"8191P", 9222246136947933184},
        {"8192P", -1},
        {"9223372036854775808", -1},
        {"99999.9P", -1},
        {"", -1},
        {"-1", -1},
        {" 1", -1},
        {"1e3", -1},
        {"0x10", -1},
        {"1KX", -1},
        {"1iB", -1},
        {"1KiBx", -1},
        {"inf", -1},
        {".5K", -1},
        {"1,5K", -1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t size_bytes = -1;
        int rc = units_parse_bytes(rows[i].text, &size_bytes);
        if ((rc == 0) != (rows[i].size_bytes >= 0) || (rc == 0 && size_bytes != rows[i].size_bytes))
            fail_msg("'%s': %d, %lld", rows[i].text, rc, (long long)size_bytes);
    }
}

/* Three digits, as far as they say something; never 1e+03. */
static void test_times(void **state)
{
    (void)state;
    static const struct {
        int64_t time_ns;
        const char *text;
    } rows[] = {
        {999, "999 ns"},
        {12250, "12.2 us"},
        {999499, "999 us"},
        {999500, "1 ms"},
        {564680000, "565 ms"},
        {999499999, "999 ms"},
        {999600000, "1.000 s"},
        {3931000000, "3.931 s"},
        {119000000000, "119.000 s"},
        {125900000000, "2 m 05 s"},
    };
    char text[UNITS_TEXT];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_string_equal(units_ns(text, rows[i].time_ns), rows[i].text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_times), cmocka_unit_test(test_bytes),
                                       cmocka_unit_test(test_parsed_bytes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
