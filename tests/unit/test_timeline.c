/* The timeline against a list of all changes: every bucket, at widths from the first to hours. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "../../profiler/account/timeline.h"
#include "random.h"

#include <stdlib.h>
#include <string.h>

struct change {
    uint64_t time_ns, active, reserved;
};

static void compare(const struct timeline *t, const struct change *changes, size_t count)
{
    size_t next = 0;
    uint64_t active = 0, reserved = 0;
    for (uint32_t i = 0; i <= t->index; i++) {
        const struct timeline_bucket *b = i < t->index ? &t->buckets[i] : &t->now;
        uint64_t end = (i + 1) * t->width_ns, min = active, max = active, max_ns = i * t->width_ns;
        uint64_t reserved_max = reserved, reserved_max_ns = max_ns, changed = 0;
        for (; next < count && changes[next].time_ns < end; next++) {
            const struct change *c = &changes[next];
            changed++;
            if (c->active > max) {
                max = c->active;
                max_ns = c->time_ns;
            }
            if (c->reserved > reserved_max) {
                reserved_max = c->reserved;
                reserved_max_ns = c->time_ns;
            }
            min = c->active < min ? c->active : min;
            active = c->active;
            reserved = c->reserved;
        }
        assert_int_equal(b->active_min_bytes, min);
        assert_int_equal(b->active_max_bytes, max);
        assert_int_equal(b->active_max_ns, max_ns);
        assert_int_equal(b->reserved_max_bytes, reserved_max);
        assert_int_equal(b->reserved_max_ns, reserved_max_ns);
        if (i < t->index)
            assert_int_equal(b->active_last_bytes, active);
        (void)changed;
    }
    assert_int_equal(next, count);
}

static void test_random(void **state)
{
    enum { CHANGES = 50000 };
    (void)state;
    struct change *changes = malloc(CHANGES * sizeof *changes);
    for (unsigned round = 0; round < 12; round++) {
        struct timeline *t = timeline_open();
        uint64_t time_ns = rnd(1ull << (round * 3)), active = 0, reserved = 0, last_ns = 0;
        for (unsigned i = 0; i < CHANGES; i++) {
            time_ns += rnd(10) ? rnd(1ull << (round * 2)) : rnd(1ull << (round * 3));
            timeline_step(t, time_ns, 0, 0);
            if (rnd(2)) {
                active += rnd(1000);
                timeline_rise(t, time_ns, active);
            } else {
                active -= rnd(active + 1);
                timeline_fall(t, active);
            }
            if (rnd(50) == 0)
                timeline_reserved(t, time_ns, reserved = rnd(1 << 20));
            changes[i] = (struct change){time_ns, active, reserved};
            last_ns = time_ns;
        }
        assert_int_equal(t->index, last_ns / t->width_ns);
        assert_true(t->index < TIMELINE_BUCKETS);
        assert_true(t->width_ns == TIMELINE_FIRST_WIDTH_NS || t->index >= TIMELINE_BUCKETS / 2);
        compare(t, changes, CHANGES);
        timeline_close(t);
    }
    free(changes);
    timeline_close(NULL);
}

/* Allocations are counted in the bucket in which they were. */
static void test_counts(void **state)
{
    (void)state;
    struct timeline *t = timeline_open();
    uint64_t count = 0, bytes = 0, expected = 0, sum = 0;
    for (uint64_t i = 0; i < 100000; i++) {
        timeline_step(t, i * 1000, count, bytes);
        count++;
        bytes += i;
    }
    timeline_advance(t, 100000 * 1000ull, count, bytes);
    for (uint32_t i = 0; i < t->index; i++) {
        for (expected = 0; sum + expected < 100000 && (sum + expected) * 1000 < (i + 1) * t->width_ns;)
            expected++;
        sum += expected;
        assert_int_equal(t->buckets[i].alloc_count, expected);
    }
    assert_int_equal(sum + t->now.alloc_count, 100000);
    timeline_close(t);
}

/* Up and down the slopes of given heights, in small steps. */
static void slope(struct timeline *t, uint64_t *time_ns, uint64_t *active, uint64_t to)
{
    while (*active != to) {
        *time_ns += 100;
        timeline_step(t, *time_ns, 0, 0);
        if (*active < to)
            timeline_rise(t, *time_ns, *active += to - *active < 10 ? to - *active : 10);
        else
            timeline_fall(t, *active -= *active - to < 10 ? *active - to : 10);
    }
}

static void test_peaks(void **state)
{
    (void)state;
    struct timeline *t = timeline_open();
    struct timeline_peak peaks[3];
    /* 8000 after a dip of more than an eighth; 7900 is not a peak of its own; 4000 is one; 500 is too many for three */
    const uint64_t heights[] = {5000, 1000, 8000, 7500, 7900, 100, 4000, 0, 10000, 2000, 3000, 100, 500, 0};
    uint64_t time_ns = 0, active = 0;
    for (unsigned i = 0; i < sizeof heights / sizeof *heights; i++)
        slope(t, &time_ns, &active, heights[i]);
    assert_int_equal(timeline_peaks(t, peaks, 3), 3);
    assert_int_equal(peaks[0].value_bytes, 8000);
    assert_int_equal(peaks[1].value_bytes, 5000);
    assert_int_equal(peaks[2].value_bytes, 4000);
    assert_true(peaks[1].time_ns < peaks[0].time_ns && peaks[0].time_ns < peaks[2].time_ns);
    timeline_close(t);
    t = timeline_open();
    assert_int_equal(timeline_peaks(t, peaks, 3), 0);
    timeline_close(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_peaks),
    };
    random_seed = 31337;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
