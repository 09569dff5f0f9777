/* The text of code in no file (SOURCE records): joined of its parts in any mixture, bounded, and of whatever is sent.
 */
#include "recorder.h"
#include "scratch.h"

#include "../../profiler/store/sources.h"
#include "../../profiler/wire.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct sources *sources;

static int begin(void **state)
{
    int rc = recorder_begin(state);
    sources = sources_open(rec.named);
    return rc;
}

static int end(void **state)
{
    sources_close(sources);
    return recorder_end(state);
}

/* The stream's words; to free. */
static uint64_t *stream(const char *name, const char *text, size_t bytes, uint32_t *total)
{
    size_t name_words = (strlen(name) + 7) / 8, text_words = (bytes + 7) / 8;
    uint64_t *words = calloc(1 + name_words + text_words, 8);
    words[0] = (uint64_t)strlen(name) << 32 | bytes;
    memcpy(words + 1, name, strlen(name));
    memcpy(words + 1 + name_words, text, bytes);
    *total = (uint32_t)(1 + name_words + text_words);
    return words;
}

static int say(uint32_t number, const char *name, const char *text, size_t bytes)
{
    uint32_t total;
    uint64_t *words = stream(name, text, bytes, &total);
    int rc = sources_add(sources, number, 0, total, words, total);
    free(words);
    return rc;
}

static void test_parts(void **state)
{
    (void)state;
    uint32_t totals[2];
    uint64_t *words[] = {stream("<cell 1>", "a = 1\nb = 2\n", 12, &totals[0]),
                         stream("/tmp/no/file.py", "c = 3\n", 6, &totals[1])};
    for (uint32_t i = 0; i < totals[0] || i < totals[1]; i++) /* of two threads, by turns */
        for (uint32_t k = 0; k < 2; k++)
            if (i < totals[k])
                assert_int_equal(sources_add(sources, k + 1, i, totals[k], words[k] + i, 1), 0);
    assert_int_equal(rec_value("SELECT count(*) FROM file WHERE path = '<cell 1>' AND source = 'a = 1' || char(10) || "
                               "'b = 2' || char(10)"),
                     1);
    assert_int_equal(rec_value("SELECT count(*) FROM file WHERE path = '/tmp/no/file.py' AND length(source) = 6"), 1);
    /* the first text of a name stays; that of a file that frames have has its row already */
    assert_int_equal(say(3, "<cell 1>", "other", 5), 0);
    python_address(rec.python, WIRE_PYTHON_WORD(9, 0));
    assert_int_equal(rec_value("SELECT count(*) FROM file WHERE source = 'other'"), 0);
    free(words[0]);
    free(words[1]);
}

static void test_bounds(void **state)
{
    (void)state;
    static char most[WIRE_SOURCE_BYTES_MAX / 4 * 3];
    memset(most, 'x', sizeof most);
    assert_int_equal(say(1, "<1>", most, sizeof most), 0);
    assert_int_equal(say(2, "<2>", most, sizeof most), 0); /* beyond what a process may say: left out */
    assert_int_equal(rec_value("SELECT count(*) FROM file WHERE source IS NOT NULL"), 1);
    assert_int_equal(rec_value("SELECT length(source) FROM file WHERE path = '<1>'"), sizeof most);
    /* beginnings of which no end comes take no more than that together, either */
    for (uint32_t i = 10; i < 1000; i++) {
        uint64_t word = 1ull << 32;
        assert_int_equal(sources_add(sources, i, 0, 60000, &word, 1), 0);
    }
}

static void test_hostile(void **state)
{
    (void)state;
    static const uint64_t values[] = {0, 1, UINT64_MAX, 8ull << 32, 0xffffffff, 1ull << 44};
    uint64_t words[4] = {0};
    assert_int_equal(sources_add(sources, 1, 0, 0, words, 1), -EINVAL);
    assert_int_equal(sources_add(sources, 1, 0, UINT32_MAX, words, 1), -EINVAL);
    assert_int_equal(sources_add(sources, 1, 2, 1, words, 1), -EINVAL);
    assert_int_equal(sources_add(sources, 1, 0, 1, words, 2), -EINVAL);
    assert_int_equal(sources_add(sources, 1, 0, 2, words, 0), -EINVAL);
    assert_int_equal(sources_add(sources, 1, 1, 2, words, 1), 0); /* its beginning is lost */
    assert_int_equal(sources_add(sources, 2, 0, 3, words, 1), 0); /* a part of it is */
    assert_int_equal(sources_add(sources, 2, 2, 3, words, 1), -EINVAL);
    assert_int_equal(sources_add(sources, 3, 0, 3, words, 1), 0); /* and of another length */
    assert_int_equal(sources_add(sources, 3, 1, 4, words, 1), -EINVAL);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        words[0] = values[i];
        assert_int_equal(sources_add(sources, 10 + (uint32_t)i, 0, 4, words, 4), -EINVAL);
    }
    assert_int_equal(say(20, "<nul>", "a\0b", 3), -EINVAL);
    assert_int_equal(rec_value("SELECT count(*) FROM file"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_parts, begin, end),
        cmocka_unit_test_setup_teardown(test_bounds, begin, end),
        cmocka_unit_test_setup_teardown(test_hostile, begin, end),
    };
    return cmocka_run_group_tests(tests, scratch_begin, scratch_end);
}
