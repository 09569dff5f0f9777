/* The trail of a thread's stacks (record_trail.h) against a plain list of what was added. */
#include "../../profiler/preload/record_trail.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct unwind_thread *unwound;

static uint64_t mixed(uint64_t x)
{
    x = (x + 1) * 0x9e3779b97f4a7c15ull;
    x ^= x >> 29;
    return x * 0xbf58476d1ce4e5b9ull;
}

static int begin(void **state)
{
    *state = calloc(1, sizeof(struct trail));
    unwound = calloc(1, unwind_thread_bytes());
    return *state && unwound ? 0 : -1;
}

static int end(void **state)
{
    free(*state);
    free(unwound);
    return 0;
}

/* A loop that meets the same stacks in the same order finds each in the next place. */
static void test_same_order(void **state)
{
    struct trail *r = *state;
    for (uint32_t id = 1; id <= 5000; id++) {
        assert_int_equal(trail_find(r, mixed(id)), 0);
        trail_add(r, mixed(id), id, unwound);
    }
    memset(r->places, 0xff, sizeof r->places); /* nothing is found by those */
    r->at = TRAIL_STACKS - 1;
    for (uint32_t id = 1; id <= 5000; id++)
        assert_int_equal(trail_find(r, mixed(id)), id);
}

/* Out of order: what is found has the id that it was added with; the last of equal places is found, and so is what
 * comes after something found. */
static void test_any_order(void **state)
{
    struct trail *r = *state;
    uint32_t found = 0;
    srand(1);
    for (uint32_t id = 1; id <= 3 * TRAIL_STACKS; id++)
        trail_add(r, mixed(id), id, unwound);
    for (unsigned i = 0; i < 100000; i++) {
        uint32_t wanted = 1 + (uint32_t)rand() % (3 * TRAIL_STACKS), id = trail_find(r, mixed(wanted));
        assert_true(id == 0 || id == wanted);
        assert_true(id == 0 || wanted > 2 * TRAIL_STACKS); /* older ones gave their places away */
        found += id != 0;
        if (id && wanted < 3 * TRAIL_STACKS)
            assert_int_equal(trail_find(r, mixed(wanted + 1)), wanted + 1);
    }
    /* a third is on it, of which as many places are found as are not taken by a later one: 1 - 1/e */
    assert_in_range(found, 100000 / 3 * 60 / 100, 100000 / 3 * 67 / 100);
    assert_int_equal(trail_find(r, mixed(0)), 0);
}

/* The rules that are asked for are those of the innermost frames. */
static void test_ahead(void **state)
{
    struct trail *r = *state;
    for (uint32_t i = 0; i < 4; i++)
        unwound->walk.pcs[i] = 0x7f0012340000 + 0x1111 * (i + 1);
    unwound->walk_depth = 3;
    trail_add(r, mixed(7), 7, unwound);
    const uint16_t *rules = r->stacks[0].ahead.rules;
    assert_int_equal(rules[0], 0x1111);
    assert_int_equal(rules[2], 0x3333);
    assert_int_equal(rules[3], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_same_order, begin, end),
        cmocka_unit_test_setup_teardown(test_any_order, begin, end),
        cmocka_unit_test_setup_teardown(test_ahead, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
