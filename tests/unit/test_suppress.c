/* LeakSanitizer's suppression files. */
#include "../../report/query/suppress.h"
#include "scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static void test_patterns(void **state)
{
    (void)state;
    static const struct {
        const char *pattern, *name;
        int matches;
    } rows[] = {
        {"foo", "foo", 1},
        {"foo", "a_foo_b", 1},
        {"foo", "fo", 0},
        {"^foo", "foobar", 1},
        {"^foo", "a_foo", 0},
        {"foo$", "a_foo", 1},
        {"foo$", "foobar", 0},
        {"^foo$", "foo", 1},
        {"^foo$", "foofoo", 0},
        {"f*o", "xf--oy", 1},
        {"^f*o$", "f--o", 1},
        {"^f*o$", "f--ox", 0},
        {"^f*o$", "foo-o", 1},
        {"*", "anything", 1},
        {"*", "", 1},
        {"a*b*c", "a-b-c", 1},
        {"a*b*c", "a-c-b", 0},
        {"^a*a$", "a", 0},
        {"^*x$", "yx", 1},
        {"libfoo.so", "/usr/lib/libfoo.so.1", 1},
        {"a$b", "xa$by", 1},
        {"^", "x", 1},
        {"$", "x", 1},
        {"^$", "", 1},
        {"^$", "x", 0},
        {"**a**", "bab", 1},
        {"std::vector<*>::push_back", "std::vector<int>::push_back(int)", 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (suppress_matches(rows[i].pattern, rows[i].name) != rows[i].matches)
            fail_msg("'%s' on '%s': expected %d", rows[i].pattern, rows[i].name, rows[i].matches);
}

/* Stars must not cost exponential time. */
static void test_hostile_pattern(void **state)
{
    (void)state;
    char pattern[4001], name[200001];
    for (int i = 0; i < 4000; i += 2)
        memcpy(pattern + i, "a*", 2);
    strcpy(pattern + 3998, "b");
    memset(name, 'a', sizeof name - 1);
    name[sizeof name - 1] = 0;
    clock_t start = clock();
    assert_int_equal(suppress_matches(pattern, name), 0);
    assert_true(clock() - start < CLOCKS_PER_SEC);
}

static int load(struct suppressions *s, const void *text, size_t length, struct error *err)
{
    const char *path = scratch_path("suppressions");
    FILE *file = fopen(path, "w");
    fwrite(text, 1, length, file);
    fclose(file);
    return suppressions_load(s, path, err);
}

static void test_file(void **state)
{
    (void)state;
    struct suppressions s = {0};
    struct error err = {""};
    static const char text[] = "# comment\n\nleak:foo\n  leak:^bar$  \r\nleak:*::cache";
    assert_int_equal(load(&s, text, strlen(text), &err), 0);
    assert_int_equal(s.count, 3);
    assert_string_equal(s.item[0].pattern, "foo");
    assert_string_equal(s.item[1].pattern, "^bar$");
    assert_string_equal(s.item[2].pattern, "*::cache");
    suppressions_free(&s);
    assert_int_equal(s.count, 0);
}

static void test_bad_files(void **state)
{
    (void)state;
    struct suppressions s = {0};
    struct error err = {""};
    assert_true(load(&s, "race:foo\n", 9, &err) < 0);
    assert_non_null(strstr(err.text, ":1: 'race:foo': expected leak:PATTERN"));
    assert_true(load(&s, "leak:\n", 6, &err) < 0);
    assert_true(load(&s, "leak:a\0b\nleak:c\n", 16, &err) < 0 || s.count > 0);
    char *line = malloc(3 * SUPPRESS_LINE_MAX);
    memset(line, 'x', 3 * SUPPRESS_LINE_MAX);
    memcpy(line, "leak:", 5);
    assert_true(load(&s, line, 3 * SUPPRESS_LINE_MAX, &err) < 0);
    assert_non_null(strstr(err.text, "a line of more than"));
    free(line);
    assert_true(suppressions_load(&s, "/nonexistent/file", &err) < 0);
    assert_true(suppressions_load(&s, "/tmp", &err) < 0);
    suppressions_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_patterns),
        cmocka_unit_test(test_hostile_pattern),
        cmocka_unit_test(test_file),
        cmocka_unit_test(test_bad_files),
    };
    return cmocka_run_group_tests(tests, scratch_begin, scratch_end);
}
