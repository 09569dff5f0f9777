/* A sampled recording's parts: the gaps, the addresses of what was chosen, and the estimates with their errors. */
#include "../../common/sample_weight.h"
#include "../../profiler/account/sampled.h"
#include "../../profiler/preload/chosen.h"
#include "../../profiler/preload/sampler.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static void logarithm(void **arg)
{
    (void)arg;
    uint64_t state = 1;
    for (int i = 0; i < 100000; i++) {
        uint64_t x = sampler_random(&state) >> (i % 60) | 1;
        double expected = -log2((double)x / 0x1p64), found = (double)sampler_minus_log2(x) / 0x1p32;
        assert_true(fabs(expected - found) < 1e-8);
    }
    assert_int_equal(sampler_minus_log2(1), (uint64_t)64 << 32);
    assert_int_equal(sampler_minus_log2(1ull << 63), (uint64_t)1 << 32);
}

/* The part of the gaps that a block of some size meets, and their mean. */
static void gaps(void **arg)
{
    (void)arg;
    enum { COUNT = 400000 };
    static const uint64_t sizes[] = {1, 16, 64, 500, 4096};
    uint64_t state = 7, met[5] = {0};
    double sum = 0;
    for (int i = 0; i < COUNT; i++) {
        uint64_t gap = sampler_gap(&state, 512);
        sum += (double)gap;
        for (int k = 0; k < 5; k++)
            met[k] += gap <= sizes[k];
    }
    assert_true(fabs(sum / COUNT - 512.5) < 4); /* rounded up; five times the error of such a mean */
    for (int k = 0; k < 5; k++) {
        double p = 1 - exp(-(double)sizes[k] / 512), error = 5 * sqrt(p * (1 - p) / COUNT) + 1e-9;
        assert_true(fabs((double)met[k] / COUNT - p) <= error);
    }
}

/* --- the addresses --- */

static struct chosen chosen_open(void)
{
    void *memory = calloc(1, CHOSEN_BYTES);
    struct chosen c;
    assert_non_null(memory);
    chosen_init(&c, memory);
    return c;
}

static void *address(uint64_t number)
{
    return (void *)(uintptr_t)(0x7f0000000000ull + 16 * number);
}

static void addresses(void **arg)
{
    (void)arg;
    enum { COUNT = 300000 };
    struct chosen c = chosen_open();
    for (uint64_t i = 0; i < COUNT; i++)
        assert_true(chosen_add(&c, address(3 * i)));
    assert_true(chosen_add(&c, address(0))); /* its free was not seen: it is there once */
    for (uint64_t i = 0; i < COUNT; i++) {
        assert_false(chosen_take(&c, address(3 * i + 1)));
        assert_true(chosen_take(&c, address(3 * i)));
        assert_false(chosen_take(&c, address(3 * i)));
    }
    for (size_t i = 0; i < CHOSEN_SLOTS; i++)
        if (c.slots[i] || c.homes[i])
            fail_msg("%zu is not empty", i);
    for (size_t i = 0; i < CHOSEN_QUARTERS; i++)
        assert_int_equal(c.quarters[i], 0);
    free(c.slots);
}

/* Those that have no room: each free at their home counts as theirs, for ever, and none is missed. */
static void without_room(void **arg)
{
    (void)arg;
    enum { COUNT = CHOSEN_PROBE + 10 };
    struct chosen c = chosen_open();
    void *same[COUNT];
    size_t home = chosen_home(address(1));
    int count = 0, added = 0;
    for (uint64_t i = 1; count < COUNT; i++)
        if (chosen_home(address(i)) == home)
            same[count++] = address(i);
    for (int i = 0; i < COUNT; i++)
        added += chosen_add(&c, same[i]);
    assert_int_equal(added, CHOSEN_PROBE);
    assert_int_equal(chosen_at_home(&c, home), CHOSEN_ALL);
    assert_true(chosen_maybe(&c, same[0]));
    for (int i = COUNT; i-- > 0;)
        assert_true(chosen_take(&c, same[i]));
    assert_true(chosen_take(&c, same[0])); /* not there, but nobody knows */
    free(c.slots);
}

/* --- the estimates --- */

struct sum {
    double truth, estimate, variance;
};

static int is_within(const struct sum *s)
{
    return fabs(s->estimate - s->truth) <= SAMPLE_ERRORS * sqrt(s->variance);
}

/* A program's blocks as the hooks choose them and the accounts weigh them. */
static void program(uint64_t seed, uint64_t mean_bytes, struct sum *bytes, struct sum *count)
{
    uint64_t sizes = 99, random = seed, left = sampler_gap(&random, mean_bytes);
    for (int i = 0; i < 4000; i++) {
        uint64_t r = sampler_random(&sizes), size = i % 8 ? 32 + r % 1000 : 1 + r % (12 * mean_bytes);
        int is_chosen = size >= SAMPLE_SURE * mean_bytes || size >= left;
        bytes->truth += (double)size;
        count->truth++;
        if (size < SAMPLE_SURE * mean_bytes)
            left = is_chosen ? sampler_gap(&random, mean_bytes) : left - size;
        if (!is_chosen)
            continue;
        double weight = sample_weight(size, mean_bytes);
        struct sample sample = {.whole = (uint64_t)weight, .fraction = sample_fraction(weight)};
        uint64_t blocks = sample_count(&sample, 16 * r, (uint64_t)i);
        bytes->estimate += (double)sample_bytes(size, mean_bytes);
        bytes->variance += (double)sample_bytes(size, mean_bytes) * sample_excess(size, mean_bytes);
        count->estimate += (double)blocks;
        count->variance += (double)blocks * sample_count_spread(weight);
    }
}

static void estimates(void **arg)
{
    (void)arg;
    enum { RUNS = 1000 };
    int within[2] = {0};
    double off[2] = {0};
    for (uint64_t seed = 1; seed <= RUNS; seed++) {
        struct sum bytes = {0}, count = {0};
        program(seed, 4096, &bytes, &count);
        within[0] += is_within(&bytes);
        within[1] += is_within(&count);
        off[0] += (bytes.estimate - bytes.truth) / bytes.truth / RUNS;
        off[1] += (count.estimate - count.truth) / count.truth / RUNS;
    }
    for (int i = 0; i < 2; i++) {
        if (within[i] < 930)
            fail_msg("figure %d: %d of %d are within", i, within[i], RUNS);
        assert_true(fabs(off[i]) < 0.01); /* no bias */
    }
}

/* From 8 means on a block is recorded always and stands for itself; the error is 0 then. */
static void weights(void **arg)
{
    (void)arg;
    assert_true(sample_weight(8 * 4096, 4096) == 1);
    assert_int_equal(sample_bytes(40000, 4096), 40000);
    assert_true(sample_excess(40000, 4096) == 0);
    assert_true(sample_count_spread(1) == 0);
    assert_true(fabs(sample_weight(4096, 4096) - 1 / (1 - exp(-1))) < 1e-12);
    assert_int_equal(sample_bytes(1, 1000), 1001); /* 1 / (1 - exp(-0.001)) = 1000.50008 */
    for (uint64_t size = 1; size < 100000; size += 7)
        assert_true(sample_excess(size, 4096) <= 4096); /* which the bound of estimate.h stands on */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logarithm),    cmocka_unit_test(gaps),      cmocka_unit_test(addresses),
        cmocka_unit_test(without_room), cmocka_unit_test(estimates), cmocka_unit_test(weights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
