/* A zip file with one stored member, whole and with every byte of it changed. */
#include "../../common/zip.h"
#include "scratch.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static size_t put(uint8_t *to, size_t at, const char *bytes, size_t count)
{
    memcpy(to + at, bytes, count);
    return at + count;
}

/* By the format's specification (APPNOTE 4.3): local header, name, data; central entry, name; end. */
static size_t build(uint8_t *zip)
{
    size_t n = put(zip, 0, "PK\3\4\24\0\0\0\0\0\0\0\0\0\0\0\0\0\5\0\0\0\5\0\0\0\3\0\0\0", 30);
    n = put(zip, n, "a/bhello", 8);
    n = put(zip, n, "PK\1\2\24\0\24\0\0\0\0\0\0\0\0\0\0\0\0\0\5\0\0\0\5\0\0\0\3\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 46);
    n = put(zip, n, "a/b", 3);
    return put(zip, n, "PK\5\6\0\0\0\0\1\0\1\0\61\0\0\0\46\0\0\0\0\0", 22);
}

static char *read_member(const uint8_t *zip, size_t bytes, const char *name, size_t most, size_t *length)
{
    struct stat st;
    FILE *f = fopen(scratch_path("a.zip"), "w");
    fwrite(zip, 1, bytes, f);
    fclose(f);
    char member[PATH_MAX];
    snprintf(member, sizeof member, "%s/%s", scratch_path("a.zip"), name);
    return zip_read(member, most, length, &st);
}

static void test_member(void **state)
{
    (void)state;
    uint8_t zip[256];
    size_t bytes = build(zip), length = 0;
    char *text = read_member(zip, bytes, "a/b", 100, &length);
    assert_non_null(text);
    assert_int_equal(length, 5);
    assert_string_equal(text, "hello");
    free(text);
    assert_null(read_member(zip, bytes, "a/c", 100, &length));
    assert_null(read_member(zip, bytes, "a", 100, &length));
    assert_null(read_member(zip, bytes, "a/b", 4, &length)); /* more than asked for */
    struct stat st;
    assert_null(zip_read("relative/a", 100, &length, &st));
    assert_null(zip_read("/nowhere/a", 100, &length, &st));
    assert_null(zip_read("/dev/null/a", 100, &length, &st));
}

static void test_any_bytes(void **state)
{
    (void)state;
    uint8_t zip[256], changed[256];
    size_t bytes = build(zip), length;
    static const uint8_t values[] = {0, 1, 8, 0x7f, 0x80, 0xff};
    for (size_t at = 0; at < bytes; at++) {
        free(read_member(zip, at, "a/b", 100, &length));
        for (size_t k = 0; k < sizeof values; k++) {
            memcpy(changed, zip, bytes);
            changed[at] = values[k];
            free(read_member(changed, bytes, "a/b", 100, &length));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_member), cmocka_unit_test(test_any_bytes)};
    return cmocka_run_group_tests(tests, scratch_begin, scratch_end);
}
