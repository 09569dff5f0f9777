/*
 * A unit test with cmocka that bounds memory. Alone it tests what words_split returns, and skips the rest; with memprof
 * ("memprof run ./test_words", or ctest here) the figures are known, and exact.
 */
#include "words.h"

#include <memprof.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void splits(void **state)
{
    char **words = words_split(" ab  cde ");
    assert_string_equal(words[0], "ab");
    assert_string_equal(words[1], "cde");
    assert_null(words[2]);
    words_free(words);
    (void)state;
}

static void leaves_nothing(void **state)
{
    struct memprof_figures f;
    int is_known;
    (void)state;
    { /* asserts are outside: a failed one leaves its function by longjmp, and the scope would stay open */
        MEMPROF_SCOPE_FIGURES("split and free");
        words_free(words_split("ab cde"));
        is_known = memprof_scope_figures(&f);
    }
    if (!is_known)
        skip();
    assert_int_equal(f.alloc_count, 3);                         /* a list and two words */
    assert_int_equal(f.peak_bytes, 5 * sizeof(char *) + 3 + 4); /* room for as many words as six letters may have */
    assert_int_equal(f.live_bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(splits), cmocka_unit_test(leaves_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
