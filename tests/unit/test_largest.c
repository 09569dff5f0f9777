/* The largest blocks, offered in one order and in the other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "../../profiler/account/largest.h"

#define OFFERED (LARGEST_COUNT + 1000)

/* One block is larger than the others, one of these lives longer, and the rest are alike. */
static struct largest_block block(uint64_t number)
{
    return (struct largest_block){.size_bytes = number == OFFERED - 1 ? 500 : 100,
                                  .lifetime_ns = number == OFFERED - 2 ? 60 : 50,
                                  .alloc_ns = number};
}

static void check(const struct largest *l)
{
    unsigned char seen[OFFERED] = {0};
    assert_int_equal(l->count, LARGEST_COUNT);
    for (unsigned i = 0; i < l->count; i++)
        seen[l->blocks[i].alloc_ns]++;
    for (unsigned i = 0; i < OFFERED; i++)
        assert_int_equal(seen[i], i < LARGEST_COUNT - 2 || i >= OFFERED - 2);
}

static void test_order(void **state)
{
    (void)state;
    for (int backwards = 0; backwards < 2; backwards++) {
        struct largest l;
        largest_open(&l);
        for (uint64_t i = 0; i < OFFERED; i++) {
            struct largest_block b = block(backwards ? OFFERED - 1 - i : i);
            if (largest_wants(&l, b.size_bytes))
                largest_add(&l, &b);
        }
        check(&l);
        largest_close(&l);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_order)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
