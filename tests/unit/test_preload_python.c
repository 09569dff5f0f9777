/* Joining native frames with Python's: groups by where their evaluation lies on the C stack, cuts, frames left over. */
#include "../../profiler/preload/python/python_join.h"
#include "../../profiler/preload/unwind/modules.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static const uint64_t pcs[] = {11, 12, 13, 14, 15}, sps[] = {1000, 1100, 1200, 1300, 1400};
static uint64_t out[16];
static int is_cut;

static unsigned join(const struct python_frame *frames, unsigned count, unsigned most)
{
    is_cut = 0;
    return python_join(&(struct python_parts){pcs, sps, 5, frames, count}, out, most, &is_cut);
}

#define FRAME(id_, anchor_)                                                                                            \
    {                                                                                                                  \
        .anchor = (anchor_), .offset = 4, .id = (id_)                                                                  \
    }
#define WORD(id) WIRE_PYTHON_WORD(id, 4)
#define EXPECT(count, ...)                                                                                             \
    do {                                                                                                               \
        const uint64_t expected[] = {__VA_ARGS__};                                                                     \
        assert_int_equal(count, sizeof expected / sizeof *expected);                                                   \
        assert_memory_equal(out, expected, sizeof expected);                                                           \
    } while (0)

static void test_groups(void **state)
{
    (void)state;
    const struct python_frame frames[] = {FRAME(1, 0), FRAME(2, 1150), FRAME(3, 1300)};
    EXPECT(join(frames, 3, 16), 11, WORD(1), WORD(2), 13, WORD(3), 15);
    assert_false(is_cut);
}

static void test_bounds(void **state)
{
    (void)state;
    const struct python_frame first[] = {FRAME(1, 1000)}, last[] = {FRAME(1, 1199)}, outermost[] = {FRAME(1, 99999)};
    EXPECT(join(first, 1, 16), WORD(1), 12, 13, 14, 15);
    EXPECT(join(last, 1, 16), 11, WORD(1), 13, 14, 15);
    EXPECT(join(outermost, 1, 16), 11, 12, 13, 14, WORD(1));
    EXPECT(join(NULL, 0, 16), 11, 12, 13, 14, 15);
}

/* An evaluation that the native walk did not see: its frames stand before the next that it did, or at the end. */
static void test_unseen(void **state)
{
    (void)state;
    const struct python_frame between[] = {FRAME(1, 5), FRAME(2, 1250)},
                              end[] = {FRAME(1, 1250), FRAME(2, 7), FRAME(3, 0)};
    EXPECT(join(between, 2, 16), 11, 12, WORD(1), WORD(2), 14, 15);
    EXPECT(join(end, 3, 16), 11, 12, WORD(1), 14, 15, WORD(2), WORD(3));
}

static void test_not_shown(void **state)
{
    (void)state;
    const struct python_frame frames[] = {FRAME(1, 0), FRAME(PYTHON_NO_CODE, 0), FRAME(2, 1100)};
    EXPECT(join(frames, 3, 16), 11, WORD(1), WORD(2), 13, 14, 15);
}

static void test_cut(void **state)
{
    (void)state;
    const struct python_frame frames[] = {FRAME(1, 0), FRAME(2, 0), FRAME(3, 1100)};
    EXPECT(join(frames, 3, 7), 11, WORD(1), WORD(2), WORD(3), 13, 14, 15);
    assert_false(is_cut);
    EXPECT(join(frames, 3, 3), 11, WORD(1), WORD(2));
    assert_true(is_cut);
}

/* What the words say, done without thought: each C frame takes what is left up to the first anchor within it. */
static unsigned join_plainly(const uint64_t *low, const struct python_frame *frames, unsigned count, uint64_t *words)
{
    unsigned next = 0, filled = 0;
    for (unsigned i = 0; i < 5; i++) {
        unsigned end = next;
        while (end < count &&
               !(frames[end].anchor && frames[end].anchor >= low[i] && (i == 4 || frames[end].anchor < low[i + 1])))
            end++;
        if (end == count)
            words[filled++] = pcs[i];
        else
            for (; next <= end; next++)
                words[filled++] = WORD(frames[next].id);
    }
    while (next < count)
        words[filled++] = WORD(frames[next++].id);
    return filled;
}

static unsigned seed = 3;
static uint64_t rnd(unsigned below)
{
    return (unsigned)rand_r(&seed) / 8 % below;
}

static void test_any_order(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 100000; round++) {
        struct python_frame frames[8] = {{0}};
        uint64_t low[5], expected[16], anchor = 0;
        unsigned count = (unsigned)rnd(9), ordered = (unsigned)rnd(4);
        for (unsigned i = 0; i < 5; i++)
            low[i] = ordered ? sps[i] : 900 + rnd(600) * (rnd(8) != 0);
        for (unsigned i = 0; i < count; i++) {
            anchor = ordered > 1 ? anchor + rnd(300) + (anchor ? 0 : 900) : 900 + rnd(700);
            frames[i] = (struct python_frame)FRAME(i + 1, rnd(3) ? anchor : 0);
        }
        unsigned expected_count = join_plainly(low, frames, count, expected);
        int has_anchors = 0;
        for (unsigned i = 0; i < count; i++)
            has_anchors |= frames[i].anchor != 0;
        if (count && !has_anchors)
            continue; /* joined by function */
        const struct python_parts parts = {pcs, low, 5, frames, count};
        assert_int_equal(python_join(&parts, out, 16, &is_cut), expected_count);
        assert_memory_equal(out, expected, expected_count * sizeof *out);
    }
}

/* --- stack after stack --- */

#define DEEPEST 12
struct walker { /* a thread: what it has on its stack, innermost last */
    uint64_t pcs[DEEPEST], sps[DEEPEST];
    struct python_frame frames[DEEPEST];
    unsigned callers[DEEPEST]; /* the number of the C frame that runs it */
    unsigned native_count, count;
};

/* Calls and returns of a few frames, as a program would: Python's frames lie in the C frames that there are. Now and
 * then one lies elsewhere, has no evaluation, or is not to be shown. */
static void walker_goes_on(struct walker *w)
{
    unsigned most = w->native_count < 4 ? w->native_count : 4, is_first = 1;
    w->native_count -= (unsigned)rnd(most + 1);
    uint64_t lowest = w->native_count ? w->sps[w->native_count - 1] : 10000;
    while (w->count && w->callers[w->count - 1] >= w->native_count)
        w->count--;
    w->count -= w->count ? rnd(4) == 0 : 0;
    for (unsigned calls = (unsigned)rnd(5); calls && w->native_count < DEEPEST; calls--) {
        lowest -= 50 + rnd(3) * 50;
        w->pcs[w->native_count] = 11 + rnd(3);
        w->sps[w->native_count++] = rnd(200) ? lowest : UINT64_MAX;
        is_first = 1;
        for (unsigned frames = (unsigned)rnd(4); frames && w->count < DEEPEST; frames--) {
            struct python_frame *f = &w->frames[w->count];
            *f = (struct python_frame)FRAME(1 + rnd(3), is_first == (rnd(20) != 0) ? lowest + rnd(50) : 0);
            is_first = 0;
            f->id = rnd(20) ? f->id : PYTHON_NO_CODE;
            w->callers[w->count++] = w->native_count - 1;
        }
    }
    if (w->count && rnd(8) == 0)
        w->frames[w->count - 1].offset += 2;
}

/* A stack joined to the one before is what it is when it is joined whole. */
static void test_next(void **state)
{
    static struct python_seam seam;
    static uint64_t told[2 * DEEPEST];
    struct walker w = {.native_count = 0};
    unsigned shared = 0, cut = 0;
    (void)state;
    for (unsigned round = 0; round < 300000; round++) {
        uint64_t own_pcs[DEEPEST], own_sps[DEEPEST], whole[2 * DEEPEST], next[2 * DEEPEST];
        struct python_frame frames[DEEPEST];
        int whole_is_cut = 0, next_is_cut = 0;
        unsigned known, most = rnd(50) ? 2 * DEEPEST : 6;
        walker_goes_on(&w);
        for (unsigned i = 0; i < w.native_count; i++) {
            own_pcs[i] = w.pcs[w.native_count - 1 - i];
            own_sps[i] = w.sps[w.native_count - 1 - i];
        }
        for (unsigned i = 0; i < w.count; i++)
            frames[i] = w.frames[w.count - 1 - i];
        const struct python_parts parts = {own_pcs, own_sps, w.native_count, frames, w.count};
        unsigned words = python_join(&parts, whole, most, &whole_is_cut);
        assert_int_equal(python_join_next(&seam, &parts, next, most, &known, &next_is_cut), words);
        assert_int_equal(next_is_cut, whole_is_cut);
        assert_true(known <= words);
        for (unsigned i = 0; i < known; i++) /* outermost first */
            next[words - 1 - i] = told[i];
        assert_memory_equal(next, whole, words * sizeof *next);
        for (unsigned i = 0; i < words; i++)
            told[i] = whole[words - 1 - i];
        shared += known != 0;
        cut += (unsigned)whole_is_cut;
    }
    assert_true(shared > 100000);
    assert_true(cut > 1000);
}

/* No interpreter in this process. */
static void test_none(void **state)
{
    (void)state;
    struct python_code code;
    assert_int_equal(python_loaded, 0);
    assert_int_equal(python_before_dlclose(), 0);
    modules_watch_gone(12345);
    assert_false(python_code_read(0, &code));
    assert_false(python_code_read(1, &code));
    assert_false(python_code_read(1ull << 46, &code)); /* not mapped */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_groups),    cmocka_unit_test(test_bounds),    cmocka_unit_test(test_unseen),
        cmocka_unit_test(test_cut),       cmocka_unit_test(test_not_shown), cmocka_unit_test(test_none),
        cmocka_unit_test(test_any_order), cmocka_unit_test(test_next),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
