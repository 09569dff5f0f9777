/*
 * Definitions of code objects and line tables, by the examples of CPython's own notes on each format
 * (Objects/lnotab_notes.txt of 3.9 and 3.10, Objects/locations.md), and what no interpreter would send.
 */
#include "recorder.h"
#include "scratch.h"

#include "../../profiler/wire.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* --- line tables --- */

static void expect_line(unsigned minor, uint32_t first, const char *table, size_t bytes, uint32_t offset, uint32_t line,
                        uint32_t column)
{
    struct python_position p = python_position(minor, first, (const uint8_t *)table, bytes, offset);
    if (p.line != line || p.column != column)
        fail_msg("3.%u, offset %u: %u:%u, expected %u:%u", minor, offset, p.line, p.column, line, column);
}

static void test_3_9(void **state)
{
    (void)state;
    /* the notes' example: offsets 0, 6, 50, 350, 361 are lines 1, 2, 7, 207, 208 */
    static const char table[] = {0, 1, 6, 1, 44, 5, (char)255, 0, 45, 127, 0, 73, 11, 1};
    const uint32_t expected[][2] = {{0, 1},   {5, 1},     {6, 2},     {49, 2},    {50, 7},
                                    {349, 7}, {350, 207}, {361, 208}, {9999, 208}};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        expect_line(9, 0, table, sizeof table, expected[i][0], expected[i][1], 0);
    expect_line(9, 30, table, sizeof table, UINT32_MAX, 30, 0); /* lasti -1: not begun */
    static const char backwards[] = {2, 10, 4, -8};
    expect_line(9, 100, backwards, 4, 3, 110, 0);
    expect_line(9, 100, backwards, 4, 6, 102, 0);
    expect_line(9, 7, NULL, 0, 4, 7, 0);
}

static void test_3_10(void **state)
{
    (void)state;
    /* the notes' example: 0-6 line 1, 6-50 line 2, 50-350 line 7, 350-360 none, 360-376 line 8, 376-380 line 208 */
    static const char table[] = {6, 1, 44, 1, (char)254, 5, 46, 0, 10, -128, 0, 1, 16, 0, 0, 127, 4, 73};
    const uint32_t expected[][2] = {{0, 1},   {4, 1},   {6, 2},   {48, 2},  {50, 7},
                                    {348, 7}, {350, 0}, {358, 0}, {360, 8}, {376, 208}};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        expect_line(10, 0, table, sizeof table, expected[i][0] / 2, expected[i][1], 0); /* counted in instructions */
    expect_line(10, 30, table, sizeof table, UINT32_MAX, 30, 0);
}

static void test_3_11(void **state)
{
    (void)state;
    static const char table[] = {
        /* short, 2 units, columns 3 to 7: 8 * 0 + 3, + 4 */
        (char)(0x80 | 0 << 3 | 1), 0x34,
        /* the same line, 1 unit, column 8 * 9 + 7 = 79 */
        (char)(0x80 | 9 << 3 | 0), 0x70,
        /* one line, + 2, 8 units, columns 200 to 210 */
        (char)(0x80 | 12 << 3 | 7), (char)200, (char)210,
        /* none, 1 unit */
        (char)(0x80 | 15 << 3 | 0),
        /* without columns, line - 3: svarint 3 << 1 | 1 */
        (char)(0x80 | 13 << 3 | 0), 7,
        /* long, line + 100 (svarint 200: 8 | 64, 3), end line + 1, column 70 + 1 (71: 7 | 64, 1), end column 5 + 1 */
        (char)(0x80 | 14 << 3 | 0), 8 | 64, 3, 1, 7 | 64, 1, 6};
    const uint32_t expected[][3] = {{0, 50, 4}, {2, 50, 4},  {4, 50, 80},   {6, 52, 201}, {20, 52, 201},
                                    {22, 0, 0}, {24, 49, 0}, {26, 149, 71}, {28, 149, 71}};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        expect_line(11, 50, table, sizeof table, expected[i][0], expected[i][1], expected[i][2]);
    expect_line(13, 50, table, sizeof table, (uint32_t)-2, 50, 0); /* before the first instruction */
    /* cut anywhere: nothing is read beyond it */
    for (size_t bytes = 0; bytes < sizeof table; bytes++) {
        char *copy = malloc(bytes + 1);
        memcpy(copy, table, bytes);
        python_position(12, 50, (const uint8_t *)copy, bytes, 1000);
        free(copy);
    }
}

static void test_any_bytes(void **state)
{
    (void)state;
    uint8_t table[64];
    uint32_t seed = 1;
    for (int round = 0; round < 20000; round++) {
        for (size_t i = 0; i < sizeof table; i++)
            table[i] = (uint8_t)((seed = seed * 1664525u + 1013904223u) >> 24);
        python_position(9 + (unsigned)round % 6, seed, table, (seed >> 8) % sizeof table, seed >> 20);
    }
}

/* --- definitions --- */

static size_t put(uint64_t *words, size_t at, const void *data, size_t bytes)
{
    memcpy(words + at, data, bytes);
    return at + (bytes + 7) / 8;
}

static size_t definition(uint64_t *words, const char *qualified_name)
{
    static const uint16_t name[] = {'f', 0xe9, 0x4e2d};                   /* f, e acute, a Chinese character */
    static const uint32_t file[] = {'/', 0x1f600, 0xdcff, '.', 'p', 'y'}; /* an emoji, a byte that was no UTF-8 */
    static const uint8_t table[] = {0x80 | 13 << 3 | 3, 2};               /* 4 units, line + 1 */
    struct wire_code head = {.minor = 11, .first_line = 9, .name = {2, 3}, .file = {4, 6}, .table = {1, sizeof table}};
    head.qualified_name.character_bytes = 1;
    head.qualified_name.count = (uint32_t)strlen(qualified_name);
    memset(words, 0, 64 * 8);
    size_t at = put(words, 0, &head, sizeof head);
    at = put(words, at, name, sizeof name);
    at = put(words, at, qualified_name, strlen(qualified_name));
    at = put(words, at, file, sizeof file);
    return put(words, at, table, sizeof table);
}

static void test_define(void **state)
{
    (void)state;
    uint64_t words[64];
    uint32_t total = (uint32_t)definition(words, "C.<locals>.f");
    /* word by word, with the last part of another attempt between */
    for (uint32_t i = 0; i < total; i++) {
        assert_int_equal(python_define(rec.python, 3, i, total, words + i, 1), 0);
        assert_int_equal(python_define(rec.python, 3, 0, total, words + 1, 1), 0); /* another attempt */
    }
    uint32_t address = python_address(rec.python, WIRE_PYTHON_WORD(3, 6));
    assert_int_not_equal(address, 0);
    assert_int_equal(python_address(rec.python, WIRE_PYTHON_WORD(3, 4)), address); /* the same line */
    assert_int_equal(
        rec_value("SELECT count(*) FROM frame r JOIN function n USING(function_id) JOIN file f ON f.file_id = "
                  "r.file_id WHERE n.name = 'C.<locals>.f' AND n.plain_name = 'f' || char(0xe9, 0x4e2d) AND "
                  "n.line = 9 AND r.line = 10 AND r.language = 'python' AND hex(f.path) = '2FF09F9880FF2E7079'"),
        1);
    /* defined again as something else: nothing changes */
    total = (uint32_t)definition(words, "other");
    assert_int_equal(python_define(rec.python, 3, 0, total, words, total), 0);
    python_address(rec.python, WIRE_PYTHON_WORD(3, 0));
    assert_int_equal(rec_value("SELECT count(*) FROM function"), 1);
}

static void test_unknown(void **state)
{
    (void)state;
    assert_int_not_equal(python_address(rec.python, WIRE_PYTHON_WORD(77, 6)), 0);
    assert_int_not_equal(python_address(rec.python, ~0ull), 0);
    assert_int_equal(
        rec_value("SELECT count(*) FROM frame r JOIN function n USING(function_id) WHERE n.name = '?' || '?' "
                  "AND r.file_id IS NULL"),
        rec_value("SELECT count(*) FROM frame"));
}

static void test_hostile(void **state)
{
    (void)state;
    uint64_t words[64];
    uint32_t total = (uint32_t)definition(words, "f");
    assert_int_equal(python_define(rec.python, 0, 0, total, words, total), -EINVAL);
    assert_int_equal(python_define(rec.python, 0x7fffffff, 0, total, words, total), -EINVAL);
    assert_int_equal(python_define(rec.python, 1, 0, 0, words, 1), -EINVAL);
    assert_int_equal(python_define(rec.python, 1, 0, UINT32_MAX, words, 1), -EINVAL);
    assert_int_equal(python_define(rec.python, 1, 2, 1, words, 1), -EINVAL);
    assert_int_equal(python_define(rec.python, 1, 0, 1, words, 2), -EINVAL);
    assert_int_equal(python_define(rec.python, 1, 0, 1, words, 1), -EINVAL); /* shorter than its own beginning */
    /* every length of every part, and every size of a character */
    for (uint32_t id = 2, word = 0; word < sizeof(struct wire_code) / 8; word++)
        for (int k = 0; k < 4; k++, id++) {
            static const uint64_t values[] = {0, 1, UINT64_MAX, 0x7fffffff00000004};
            definition(words, "f");
            words[word] = values[k];
            int rc = python_define(rec.python, id, 0, total, words, total);
            assert_true(rc == 0 || rc == -EINVAL);
            python_address(rec.python, WIRE_PYTHON_WORD(id, 2));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_3_9),
        cmocka_unit_test(test_3_10),
        cmocka_unit_test(test_3_11),
        cmocka_unit_test(test_any_bytes),
        cmocka_unit_test_setup_teardown(test_define, recorder_begin, recorder_end),
        cmocka_unit_test_setup_teardown(test_unknown, recorder_begin, recorder_end),
        cmocka_unit_test_setup_teardown(test_hostile, recorder_begin, recorder_end),
    };
    return cmocka_run_group_tests(tests, scratch_begin, scratch_end);
}
