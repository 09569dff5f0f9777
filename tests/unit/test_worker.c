/* Works: each done once, in order, by one thread or the other; none after it was cancelled. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "../../profiler/account/worker.h"
#include "random.h"

#include <time.h>

#define WORKS 64

static struct item {
    struct work work;
    int runs, place;
    int steps; /* 0: one */
} items[WORKS];
static int places; /* counts runs; one at a time, so no two get the same */
static long pause_ns;

static int run(void *arg)
{
    struct item *item = arg;
    if (pause_ns)
        nanosleep(&(struct timespec){0, pause_ns}, NULL);
    item->runs++;
    item->place = __atomic_fetch_add(&places, 1, __ATOMIC_RELAXED);
    return item->runs < item->steps;
}

static void begin(long ns)
{
    places = 0;
    pause_ns = ns;
    for (int i = 0; i < WORKS; i++)
        items[i] = (struct item){.work = {.run = run, .arg = &items[i]}};
}

static void test_order(void **state)
{
    (void)state;
    struct worker *w = worker_open();
    begin(10000);
    for (int i = 0; i < WORKS; i++)
        worker_post(w, &items[i].work);
    worker_close(w);
    for (int i = 0; i < WORKS; i++) {
        assert_int_equal(items[i].runs, 1);
        assert_int_equal(items[i].place, i);
        assert_true(work_is_done(&items[i].work));
    }
}

/* Whatever is waited for was done when the wait is over, and what was cancelled before it began never is. */
static void test_wait_and_cancel(void **state)
{
    (void)state;
    for (int round = 0; round < 200; round++) {
        struct worker *w = worker_open();
        int expected[WORKS] = {0}, done = 0;
        begin(round % 4 ? 0 : 20000);
        for (int i = 0; i < WORKS; i++) {
            worker_post(w, &items[i].work);
            expected[i] = 1;
            int k = (int)rnd((uint64_t)i + 1);
            if (rnd(3) == 0) {
                worker_wait(w, &items[k].work);
                assert_int_equal(items[k].runs, expected[k]);
                assert_int_equal(items[k].work.state, WORK_IDLE);
            } else if (rnd(3) == 0) {
                worker_cancel(w, &items[k].work);
                expected[k] = items[k].runs;
            }
            worker_wait(w, &items[k].work); /* of an idle one: nothing */
            assert_int_equal(items[k].runs, expected[k]);
        }
        worker_close(w);
        for (int i = 0; i < WORKS; i++) {
            assert_int_equal(items[i].runs, expected[i]);
            done += expected[i];
        }
        assert_int_equal(places, done);
    }
}

/* A work of many steps lets the others go first; waited for it is done. */
static void test_steps(void **state)
{
    (void)state;
    for (int round = 0; round < 50; round++) {
        struct worker *w = worker_open();
        begin(round % 2 ? 1000 : 0);
        items[0].steps = 500;
        for (int i = 0; i < 4; i++)
            worker_post(w, &items[i].work);
        worker_wait(w, &items[round % 4].work);
        worker_wait(w, &items[0].work);
        assert_int_equal(items[0].runs, 500);
        assert_int_equal(items[0].work.state, WORK_IDLE);
        worker_close(w);
        assert_int_equal(items[1].runs + items[2].runs + items[3].runs, 3);
    }
}

/* Cancelled it takes no more than the step that runs. All its steps would take 2 s and more. */
static void test_steps_cancelled(void **state)
{
    enum { STEPS = 20000 };
    (void)state;
    struct worker *w = worker_open();
    begin(100000);
    items[0].steps = STEPS;
    for (int i = 0; i < 4; i++)
        worker_post(w, &items[i].work);
    while (!work_is_done(&items[3].work) && !work_is_done(&items[0].work))
        nanosleep(&(struct timespec){0, 100000}, NULL);
    assert_false(work_is_done(&items[0].work));
    worker_cancel(w, &items[0].work);
    int runs = items[0].runs;
    assert_in_range(runs, 1, STEPS - 1);
    assert_int_equal(items[0].work.state, WORK_IDLE);
    worker_close(w);
    assert_int_equal(items[0].runs, runs);
    assert_int_equal(items[3].runs, 1);
}

static void test_unused(void **state)
{
    (void)state;
    worker_close(worker_open());
    worker_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),           cmocka_unit_test(test_wait_and_cancel), cmocka_unit_test(test_steps),
        cmocka_unit_test(test_steps_cancelled), cmocka_unit_test(test_unused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
