/* The peak with some bytes less, against a walk through all events; and what a pass tells of blocks. */
#include "../../common/array.h"
#include "../../common/chunk.h"
#include "../../report/query/saving.h"
#include "random.h"
#include "random_run.h"
#include "scratch.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { DEVICES = 2, ROUNDS = 12 };

struct lived { /* a block, by the numbers of its first and last event */
    int64_t from, until, bytes;
    int device;
};

static struct chunk_event *events;
static struct lived *lived;
static size_t event_count, event_capacity, lived_count, lived_capacity;

static int is_birth(const struct chunk_event *e)
{
    return e->op == CHUNK_alloc || e->op == CHUNK_realloc_alloc;
}

static void see(void *arg, const struct pass_event *e)
{
    (void)arg;
    assert_int_equal(e->number, event_count);
    *ARRAY_ADD(events, event_count, event_capacity) = *e->event;
    if (!e->block)
        return;
    assert_true(chunk_op_is_loss(e->event->op));
    const struct chunk_event *birth = &events[e->block->time_ns];
    assert_true(is_birth(birth));
    assert_int_equal(birth->site_id, e->block->site_id);
    *ARRAY_ADD(lived, lived_count, lived_capacity) =
        (struct lived){(int64_t)e->block->time_ns, e->number, (int64_t)e->event->size_bytes, e->event->device};
}

static int64_t naive(int device, const int64_t *less)
{
    int64_t active = 0, saved = 0, peak = 0;
    for (size_t i = 0; i < event_count; i++) {
        const struct chunk_event *e = &events[i];
        saved += less[i];
        if (e->device == device)
            active += is_birth(e) ? (int64_t)e->size_bytes : chunk_op_is_loss(e->op) ? -(int64_t)e->size_bytes : 0;
        peak = active - saved > peak ? active - saved : peak;
    }
    return peak;
}

/* Blocks that are gone, come late, go early, or are of another size. */
static void choose(struct saving *saving, int device, int64_t *less, uint64_t one_of)
{
    memset(less, 0, (event_count + 1) * sizeof *less);
    for (size_t i = 0; i < lived_count; i++) {
        struct lived l = lived[i];
        if (l.device != device || rnd(one_of))
            continue;
        int64_t middle = l.from + (int64_t)rnd((uint64_t)(l.until - l.from));
        switch (rnd(4)) {
        case 0:
            l.from = middle;
            break;
        case 1:
            l.until = middle;
            break;
        case 2:
            l.bytes = (int64_t)rnd((uint64_t)(2 * l.bytes + 1)) - l.bytes;
            break;
        default:
            break;
        }
        if (l.from >= l.until)
            continue;
        saving_add(saving, l.from, l.until, l.bytes);
        less[l.from] += l.bytes;
        less[l.until] -= l.bytes;
    }
}

static void say_kept(const char *events)
{
    char sql[128];
    snprintf(sql, sizeof sql, "INSERT OR REPLACE INTO meta VALUES('events_kept', '%s')", events);
    assert_int_equal(sqlite3_exec(account_db, sql, NULL, NULL, NULL), SQLITE_OK);
}

static void load(struct pass *pass)
{
    say_kept("all");
    struct error err = {""};
    struct pass_reader reader = {see, NULL};
    event_count = lived_count = 0;
    assert_int_equal(pass_load(account_db, &reader, 1, NULL, NULL, pass, &err), 0);
    assert_int_equal(pass->event_count, event_count);
}

static void test_saved(void **state)
{
    (void)state;
    int saved_something = 0;
    for (uint64_t round = 0; round < random_volume(ROUNDS, 3); round++) {
        struct account_run r;
        struct pass pass;
        struct error err = {""};
        random_run(&r, 4711 + round, &(struct account_options){0});
        load(&pass);
        int64_t *less = calloc(event_count + 1, sizeof *less);
        for (int device = 0; device < DEVICES; device++) {
            int64_t peak = naive(device, less);
            assert_int_equal(peak, account_query("SELECT peak_active_bytes FROM total WHERE kind = 'all' AND "
                                                 "device_id = %d",
                                                 device));
            for (uint64_t one_of = 1; one_of < 200; one_of *= 5) {
                struct saving saving = {.changes = NULL};
                struct saving_result result;
                choose(&saving, device, less, one_of);
                assert_int_equal(saving_measure(&saving, &pass, device, &result, &err), 0);
                assert_true(result.is_exact);
                assert_int_equal(result.peak_bytes, peak);
                assert_int_equal(result.least_bytes, peak - naive(device, less));
                assert_int_equal(result.most_bytes, result.least_bytes);
                saved_something += result.least_bytes > 0;
                saving_close(&saving);
                memset(less, 0, (event_count + 1) * sizeof *less);
            }
        }
        free(less);
        pass_close(&pass);
        account_run_close(&r);
    }
    assert_true(saved_something > ROUNDS / 4);
}

/* What is live when its process ends goes with it: none of it is left but that of processes that have not ended. */
static void test_gone(void **state)
{
    (void)state;
    struct account_run r;
    struct pass pass;
    random_run(&r, 99, &(struct account_options){0});
    load(&pass);
    int64_t *less = calloc(event_count + 1, sizeof *less);
    int ended = 0;
    for (size_t i = 0; i < pass.gone_count; i++) {
        const struct pass_gone *g = &pass.gone[i];
        const struct chunk_event *birth = &events[g->block.time_ns];
        assert_true(is_birth(birth));
        if (g->end_event != PASS_END) {
            assert_int_equal(events[g->end_event].op, CHUNK_end);
            assert_int_equal(events[g->end_event].process_id, birth->process_id);
            ended++;
        }
    }
    assert_true(ended > 10);
    free(less);
    pass_close(&pass);
    account_run_close(&r);
}

/* Without all events nothing is replayed. */
static void test_not_kept(void **state)
{
    (void)state;
    static const struct account_options options[] = {{.max_events = 1}, {.aggregate = 1}};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        struct account_run r;
        struct pass pass;
        struct error err = {""};
        random_run(&r, 5, &options[i]);
        say_kept(i ? "none" : "last");
        assert_int_equal(pass_load(account_db, NULL, 0, NULL, NULL, &pass, &err), -ENODATA);
        pass_close(&pass);
        account_run_close(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_saved),
        cmocka_unit_test(test_gone),
        cmocka_unit_test(test_not_kept),
    };
    int failed = cmocka_run_group_tests(tests, scratch_begin, scratch_end);
    free(events);
    free(lived);
    return failed;
}
