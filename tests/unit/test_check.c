/* Rules of `memprof check`: what their text means; places; the settings of growth. */
#include "../../report/check/rules.h"
#include "scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void test_places(void **state)
{
    (void)state;
    static const struct {
        const char *text, *file, *function;
        int64_t line;
        int is_bad;
    } rows[] = {
        {"net.c:forward", "net.c", "forward", 0, 0},
        {"forward", NULL, "forward", 0, 0},
        {"net.c:42", "net.c", NULL, 42, 0},
        {"net.c:", "net.c", NULL, 0, 0},
        {"src/net.c:f*", "src/net.c", "f*", 0, 0},
        {"a.cpp:ns::T::f(int)", "a.cpp", "ns::T::f(int)", 0, 0},
        {"std::vector<int>::push_back", NULL, "std::vector<int>::push_back", 0, 0},
        {"ops.cpp:operator==", "ops.cpp", "operator==", 0, 0},
        {"f::{lambda()#1}", NULL, "f::{lambda()#1}", 0, 0},
        {"pyleak.py:Repo.__init__", "pyleak.py", "Repo.__init__", 0, 0},
        {"42", NULL, "42", 0, 0}, /* without a file no line */
        {"::f", NULL, "::f", 0, 0},
        {"", NULL, NULL, 0, 1},
        {":f", NULL, NULL, 0, 1},
        {"net.c:0", NULL, NULL, 0, 1},
        {"net.c:99999999999", NULL, NULL, 0, 1},
        {"net.c:99999999999999999999", NULL, NULL, 0, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct check_place place;
        int rc = check_place_parse(rows[i].text, &place);
        if (!!rc != rows[i].is_bad)
            fail_msg("'%s': %d", rows[i].text, rc);
        if (rc)
            continue;
        if (place.line != rows[i].line || !place.file != !rows[i].file || !place.function != !rows[i].function ||
            (place.file && strcmp(place.file, rows[i].file) != 0) ||
            (place.function && strcmp(place.function, rows[i].function) != 0))
            fail_msg("'%s': '%s', '%s', %lld", rows[i].text, place.file ? place.file : "-",
                     place.function ? place.function : "-", (long long)place.line);
        check_place_free(&place);
    }
}

static void test_text(void **state)
{
    (void)state;
    static const char text[] = "# a comment\n"
                               "\n"
                               "max-peak 2G\n"
                               "  max-peak\tcuda:0=1.5K   # a comment\r\n"
                               "max-line a.cpp:operator===64M\n"
                               "max-line f()::{lambda()#1}=7 #8\n"
                               "max-growth-per a=b=0\n"
                               "max-allocs 5\n"
                               "warmup 7\nmax-growth 2.5%\nmax-growth 1K\ngrowth-floor 3";
    static const struct {
        enum check_id id;
        const char *subject;
        int64_t limit;
        const char *origin;
    } rows[] = {
        {CHECK_max_peak, NULL, 2147483648, "b.txt:3"},
        {CHECK_max_peak, "cuda:0", 1536, "b.txt:4"},
        {CHECK_max_line, "a.cpp:operator==", 67108864, "b.txt:5"},
        {CHECK_max_line, "f()::{lambda()#1}", 7, "b.txt:6"},
        {CHECK_max_growth_per, "a=b", 0, "b.txt:7"},
        {CHECK_max_allocs, NULL, 5, "b.txt:8"},
    };
    struct check_rules rules = {0};
    struct error err = {""};
    assert_int_equal(check_rules_parse(&rules, "b.txt", text, sizeof text - 1, &err), 0);
    assert_int_equal(rules.count, sizeof rows / sizeof *rows);
    for (int i = 0; i < rules.count; i++) {
        assert_int_equal(rules.rule[i].id, rows[i].id);
        assert_int_equal(rules.rule[i].limit, rows[i].limit);
        assert_string_equal(rules.rule[i].origin, rows[i].origin);
        assert_string_equal(rules.rule[i].subject ? rules.rule[i].subject : "-",
                            rows[i].subject ? rows[i].subject : "-");
    }
    assert_true(rules.has_warmup && rules.warmup == 7);
    assert_true(rules.has_percent && rules.percent == 2.5);
    assert_true(rules.has_growth_bytes && rules.growth_bytes == 1024);
    assert_true(rules.has_floor && rules.floor_bytes == 3);
    check_rules_free(&rules);
    assert_int_equal(rules.count, 0);
}

static void test_bad_text(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "nothing 5",          "max-peak",          "max-peak 5 5",
        "max-peak host:=5",   "max-peak host=",    "max-allocs 1.5",
        "max-line =5",        "max-growth -5%",    "max-growth %",
        "warmup 1.5",         "max-growth-per =5", "max-peak=5",
        "max-leak five",      "growth-floor 5%",   "max-growth 99999999999999999999",
        "max-growth 1e9999%", "max-line f=5\v",    "max-peak \x80=5x",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct check_rules rules = {0};
        struct error err = {""};
        char text[200];
        int length = snprintf(text, sizeof text, "max-leak 0\n%s\n", texts[i]);
        if (!check_rules_parse(&rules, "b.txt", text, (size_t)length, &err))
            fail_msg("'%s' is taken", texts[i]);
        if (strncmp(err.text, "b.txt:2: ", 9) != 0 || strchr(err.text, '\n'))
            fail_msg("'%s': %s", texts[i], err.text);
        check_rules_free(&rules);
    }
}

static void test_names(void **state)
{
    (void)state;
    assert_true(check_is_setting("max-peak") && check_is_setting("warmup"));
    assert_false(check_is_setting("json"));
    for (int i = 0; i < CHECK_ID_COUNT; i++)
        assert_true(check_is_setting(check_infos[i].name));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_bad_text),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, scratch_begin, scratch_end);
}
