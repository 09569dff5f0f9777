/* Moving views by a plan: every item arrives, and what was shared still is, over random sets of views. */
#include "../../include/memprof_plan.h"
#include "random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { VIEWS = 8, MEMORY = 1 << 16 };

static unsigned char memory[MEMORY], moved[2 * MEMORY];

static int64_t between(int64_t low, int64_t high)
{
    return low + (int64_t)rnd((uint64_t)(high - low + 1));
}

/* In the middle of the memory, so that strides of either sign stay inside: 6 * 20 items of 8 bytes each way, three
 * times. */
static struct memprof_view any_view(void)
{
    struct memprof_view v = {.item_bytes = (size_t)1 << between(0, 3), .rank = (uint32_t)between(0, 3)};
    v.data = memory + MEMORY / 2 + 4096 * between(-2, 2) + between(0, 500);
    for (uint32_t d = 0; d < v.rank; d++) {
        v.size[d] = between(0, 11) ? between(1, 7) : 0;
        v.stride[d] = between(-20, 20);
    }
    return v;
}

/* The next index; 0 after the last one. */
static int step(const struct memprof_view *v, int64_t index[])
{
    for (uint32_t d = 0; d < v->rank; d++) {
        if (++index[d] < v->size[d])
            return 1;
        index[d] = 0;
    }
    return 0;
}

static ptrdiff_t offset(const struct memprof_view *v, const int64_t index[])
{
    int64_t items = 0;
    for (uint32_t d = 0; d < v->rank; d++)
        items += index[d] * v->stride[d];
    return (ptrdiff_t)(items * (int64_t)v->item_bytes);
}

static size_t check_items(const struct memprof_view *v, size_t place)
{
    int64_t index[MEMPROF_RANK] = {0};
    size_t items = 0;
    for (uint32_t d = 0; d < v->rank; d++)
        if (!v->size[d])
            return 0;
    do {
        const ptrdiff_t at = offset(v, index);
        assert_memory_equal(moved + (ptrdiff_t)place + at, (const unsigned char *)v->data + at, v->item_bytes);
        items++;
    } while (step(v, index));
    return items * v->item_bytes;
}

/* Items that were one are one, and no others: the distance of two views that share a range stays. */
static void check_shared(const struct memprof_view views[], const size_t place[], size_t count)
{
    for (size_t a = 0; a < count; a++)
        for (size_t b = 0; b < a; b++)
            if (memprof_same(&views[a], &views[b]))
                assert_int_equal((intptr_t)place[a] - (intptr_t)place[b],
                                 (const char *)views[a].data - (const char *)views[b].data);
}

static void check_set(void)
{
    struct memprof_view views[VIEWS];
    struct memprof_range ranges[VIEWS];
    size_t place[VIEWS], count = (size_t)between(1, VIEWS), align = (size_t)1 << between(0, 9), naive = 0;
    for (size_t i = 0; i < count; i++)
        views[i] = any_view();
    for (size_t i = 0; i < MEMORY; i++)
        memory[i] = (unsigned char)rnd(256);
    memset(moved, 0xee, sizeof moved);
    struct memprof_plan plan = memprof_plan(views, count, ranges, place, align);
    assert_true(plan.bytes <= sizeof moved);
    for (size_t i = 0; i < plan.range_count; i++) {
        const struct memprof_range *r = &ranges[i], *before = i ? r - 1 : NULL;
        assert_true(!before || (r->from > before->from + before->bytes && r->to >= before->to + before->bytes));
        assert_int_equal((r->from - r->to) % align, 0);
        memcpy(moved + r->to, (const void *)r->from, r->bytes);
    }
    for (size_t i = 0; i < count; i++)
        naive += check_items(&views[i], place[i]);
    check_shared(views, place, count);
    assert_int_equal(plan.naive_bytes, naive);
}

static void test_random_sets(void **unused)
{
    (void)unused;
    random_seed = 20261123;
    for (unsigned i = 0; i < random_volume(2000, 300); i++)
        check_set();
}

/* Views of other items in one buffer, one that overlaps in part, one apart, one empty, and what is no view. */
static void test_by_hand(void **unused)
{
    (void)unused;
    struct memprof_range ranges[6];
    size_t place[6];
    const struct memprof_view views[6] = {
        {memory, 4, 1, {100}, {1}},        /* bytes 0 to 399 */
        {memory + 200, 1, 1, {400}, {1}},  /* 200 to 599: half in the first */
        {memory + 1000, 8, 1, {10}, {-1}}, /* 928 to 1007 */
        {memory + 5000, 8, 1, {0}, {1}},   /* nothing */
        {memory, 4, 2, {1, 1}, {1, 1}},    /* the first item */
        {memory, 0, 0, {0}, {0}},          /* no view */
    };
    const struct memprof_plan plan = memprof_plan(views, 6, ranges, place, 1);
    assert_int_equal(plan.range_count, 2);
    assert_int_equal(plan.bytes, 600 + 80);
    assert_int_equal(plan.naive_bytes, 400 + 400 + 80 + 4);
    assert_int_equal(place[0], 0);
    assert_int_equal(place[1], 200);
    assert_int_equal(place[2], 600 + 72);
    assert_int_equal(place[4], 0);
    assert_true(memprof_same(&views[0], &views[1]));
    assert_false(memprof_same(&views[1], &views[2]));
    assert_false(memprof_same(&views[0], &views[3]));
    const struct memprof_plan none = memprof_plan(NULL, 0, NULL, NULL, 1);
    assert_int_equal(none.range_count + none.bytes + none.naive_bytes, 0);
}

/* The widest ones that fit: 2^63 bytes below their item. */
static void test_widest(void **unused)
{
    (void)unused;
    for (int64_t item_bytes = 1; item_bytes <= 2; item_bytes++) {
        const struct memprof_view v = {
            (const void *)(UINTPTR_MAX - 100), (size_t)item_bytes, 1, {2}, {INT64_MIN / item_bytes}};
        uintptr_t low, high;
        assert_int_equal(memprof_span(&v, &low, &high), 0);
        assert_int_equal(high - low, (1ull << 63) + (uint64_t)item_bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_sets), cmocka_unit_test(test_by_hand),
                                       cmocka_unit_test(test_widest)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
