/* Cells of a notebook's JSON: as Jupyter writes it, in other orders and escapes, and damaged at every byte. */
#include "../../profiler/finish/notebook.h"
#include "random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char notebook[] =
    "{\n"
    " \"cells\": [\n"
    "  {\"cell_type\": \"markdown\", \"metadata\": {}, \"source\": [\"# code\"]},\n"
    "  {\"cell_type\": \"code\", \"execution_count\": null, \"metadata\": {\"a\": [1, {\"b\": "
    "-2.5e3}]},\n"
    "   \"outputs\": [{\"text\": [\"}]\\\"\\n\"], \"cell_type\": \"x\"}],\n"
    "   \"source\": [\"x = 1\\n\", \"y = \\\"\\u00e4\\ud83d\\ude00\\\"\"]},\n"
    "  {\"source\": \"\\tz\\\\ = 'q'\", \"cell_type\": \"code\"},\n"
    "  {\"cell_type\": \"code\", \"source\": []},\n"
    "  {\"cell_type\": \"code\"}\n"
    " ],\n"
    " \"metadata\": {\"cells\": [1]}, \"nbformat\": 4\n"
    "}\n";

static sqlite3 *db;
static char got[8][256];
static int count;

static void cell(void *arg, const char *source, size_t bytes)
{
    assert_ptr_equal(arg, got);
    assert_int_equal(strlen(source), bytes);
    if (count < 8)
        snprintf(got[count], sizeof got[0], "%s", source);
    count++;
}

static int read_cells(const char *text, size_t length)
{
    char *copy = malloc(length ? length : 1); /* so that a sanitizer sees what is read behind it */
    memcpy(copy, text, length);
    count = 0;
    int n = notebook_cells(db, copy, length, cell, got);
    free(copy);
    assert_int_equal(count, n < 0 ? 0 : n);
    return n;
}

static void test_cells(void **state)
{
    (void)state;
    assert_int_equal(read_cells(notebook, sizeof notebook - 1), 2);
    assert_string_equal(got[0], "x = 1\ny = \"\xc3\xa4\xf0\x9f\x98\x80\"");
    assert_string_equal(got[1], "\tz\\ = 'q'");
}

static void test_damaged(void **state)
{
    (void)state;
    const unsigned step = random_volume(1, 7);
    char text[sizeof notebook];
    for (size_t n = 0; n + 2 < sizeof notebook; n++)
        assert_true(read_cells(notebook, n) < 0);
    for (size_t i = 0; i < sizeof notebook - 1; i++)
        for (unsigned c = i % step; c < 256; c += c < 128 ? step : 37) {
            memcpy(text, notebook, sizeof text);
            text[i] = (char)c;
            assert_true(read_cells(text, sizeof text - 1) <= 4);
        }
    static const char *const odd[] = {"",
                                      "[]",
                                      "{",
                                      "{\"cells\"",
                                      "{\"cells\":[",
                                      "{\"cells\":[1]}",
                                      "{\"cells\":[{\"source\":[1]}]}",
                                      "{\"cells\":[{\"source\":\"\\u12",
                                      "{\"cells\":[{\"source\":\"\\ud800\\u0041\"}]}"};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
        assert_true(read_cells(odd[i], strlen(odd[i])) <= 0);
    size_t deep = 1 << 20;
    char *nested = malloc(deep);
    memset(nested, '[', deep);
    memcpy(nested, "{\"a\":", 5);
    assert_true(read_cells(nested, deep) < 0);
    free(nested);
}

/* MurmurHash2 with ipykernel's seed: what its murmur2_x86 says of these texts. */
static void test_names(void **state)
{
    (void)state;
    uint32_t hash;
    assert_int_equal(notebook_hash("", 0), 3990065800u);
    assert_int_equal(notebook_hash("a", 1), 2167009006u);
    assert_int_equal(notebook_hash("ab", 2), 2805137849u);
    assert_int_equal(notebook_hash("abc", 3), 3350977461u);
    assert_int_equal(notebook_hash("abcd", 4), 804720481u);
    assert_int_equal(notebook_hash("print(1)\n", 9), 3089598676u);
    assert_int_equal(notebook_hash("x = '\xc3"
                                   "\xa4"
                                   "'",
                                   8),
                     3817722448u);
    assert_true(notebook_name("/tmp/ipykernel_12/3962116526.py", &hash));
    assert_int_equal(hash, 3962116526u);
    assert_true(notebook_name("ipykernel_12/0.py", &hash));
    static const char *const other[] = {"/tmp/ipykernel_12/396211652600.py",
                                        "/tmp/ipykernel_12/12.pyc",
                                        "/tmp/ipykernel_12/.py",
                                        "/tmp/kernel_12/12.py",
                                        "12.py",
                                        "",
                                        "/ipykernel_1/-1.py",
                                        "/tmp/ipykernel_12"};
    for (size_t i = 0; i < sizeof other / sizeof *other; i++)
        assert_false(notebook_name(other[i], &hash));
}

static int open_db(void **state)
{
    (void)state;
    return sqlite3_open(":memory:", &db);
}

static int close_db(void **state)
{
    (void)state;
    return sqlite3_close(db);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cells), cmocka_unit_test(test_damaged),
                                       cmocka_unit_test(test_names)};
    return cmocka_run_group_tests(tests, open_db, close_db);
}
