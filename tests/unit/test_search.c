/* A place in what is sorted, against a look at each. */
#include "../../common/search.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void test_each_place(void **state)
{
    (void)state;
    for (uint32_t count = 0; count < 40; count++)
        for (uint32_t place = 0; place <= count; place++)
            assert_int_equal(SEARCH_FIRST(count, i, i < place), place);
}

/* Nothing but what is there is looked at. */
static void test_bounds(void **state)
{
    (void)state;
    for (size_t count = 0; count < 40; count++) {
        size_t looks = 0, beyond = 0;
        assert_int_equal(SEARCH_FIRST(count, i, (looks++, beyond += i >= count, 1)), count);
        assert_int_equal(beyond, 0);
        assert_true(looks <= 6);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_each_place), cmocka_unit_test(test_bounds)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
