/* The accounts against a naive model (account_model.h) over random events; everything is read back from the database.
 */
#include "../../profiler/account/timeline.h"
#include "account_model.h"
#include "random.h"
#include "scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void set_kind(struct event *e)
{
    static const uint8_t kinds[MODEL_DEVICES][4] = {{KIND_heap, KIND_heap, KIND_map, KIND_sub},
                                                    {KIND_device, KIND_device, KIND_pool, KIND_sub}};
    e->device = rnd(6) == 0;
    e->kind = kinds[e->device][rnd(4)];
}

static size_t make_event(const struct model *m, struct event *out, uint64_t *time_ns, unsigned process)
{
    unsigned what = (unsigned)rnd(1000);
    *time_ns += rnd(20) ? rnd(300) : rnd(3) * 100000;
    out[0] = (struct event){.time_ns = *time_ns,
                            .process_id = (uint16_t)process,
                            .thread_id = process * 2 + (uint32_t)rnd(2), /* a thread is of one process */
                            .hook = (uint8_t)(1 + rnd(8)),
                            .inherited = process == 3};
    struct event *e = &out[0];
    set_kind(e);
    if (what < 3) {
        e->op = EVENT_RESERVED;
        e->device = 0;
        e->kind = KIND_heap;
        e->size_bytes = rnd(1 << 20);
    } else if (what < 8) {
        e->op = EVENT_FREE; /* of nothing */
        e->address = 0xdead0000 + rnd(100) * 16;
    } else if (m->block_count && what < 430 + (m->block_count > 600) * 300) {
        size_t i = rnd(3) ? m->block_count - 1 : rnd(m->block_count);
        const struct block *b = &m->blocks[i];
        e->op = EVENT_FREE;
        e->address = b->address;
        e->process_id = (uint16_t)b->process;
        e->device = (uint8_t)b->device;
        e->kind = (uint8_t)b->kind;
        if (b->kind == KIND_map && (b->is_part || rnd(3) == 0)) { /* or it loses a part */
            e->op = rnd(3) ? EVENT_SPLIT : EVENT_PART_FREE;
            e->size_bytes = e->op == EVENT_SPLIT ? rnd(b->size / 16 + 2) * 16 : b->size;
            return 1;
        }
        if (rnd(8) == 0) {
            e->op = EVENT_REALLOC_FREE;
            out[1] = *e;
            out[1].op = EVENT_REALLOC_ALLOC;
            out[1].size_bytes = rnd(4000);
            out[1].stack_id = (uint32_t)rnd(MODEL_STACKS);
            if (rnd(2))
                out[1].address += 0x100000;
            return 2;
        }
    } else {
        e->op = EVENT_ALLOC;
        /* few addresses, so that some are taken */
        e->address = 0x10000 + rnd(20000) * 16;
        e->size_bytes = rnd(50) ? rnd(1000) : rnd(3) * 20000;
        e->stack_id = (uint32_t)rnd(MODEL_STACKS);
    }
    return 1;
}

/* Random events in batches of random size, some processes that end, flushes in between. */
static void run_random(struct account_run *r, struct model *m, size_t events, unsigned flush_every)
{
    struct event batch[600];
    size_t fill = 0;
    uint64_t time_ns = 1000;
    unsigned processes = 3;
    for (size_t i = 0; i < events;) {
        size_t n = make_event(m, batch + fill, &time_ns, 1 + (unsigned)rnd(processes));
        if (rnd(20000) == 0) {
            batch[fill] = (struct event){.time_ns = time_ns,
                                         .op = EVENT_PROCESS_END,
                                         .process_id = (uint16_t)(1 + rnd(processes)),
                                         .thread_id = 1};
            n = 1;
            processes += processes < 40;
        }
        for (size_t j = 0; j < n; j++)
            model_event(m, &batch[fill + j]);
        fill += n;
        i += n;
        if (fill + 2 > sizeof batch / sizeof *batch || rnd(200) == 0) {
            account_events(r->account, batch, fill);
            fill = 0;
            if (flush_every && rnd(flush_every) == 0)
                account_flush(r->account, time_ns);
        }
    }
    account_events(r->account, batch, fill);
}

static void test_random(void **state)
{
    (void)state;
    for (unsigned round = 0; round < random_volume(3, 1); round++) {
        struct account_run r;
        random_seed = 77 + round * 1000003;
        account_run_open(&r, &(struct account_options){0});
        struct model *m = model_open(180000);
        run_random(&r, m, 180000, round == 1 ? 3 : 100);
        account_finish(r.account, m->now_ns + 5);
        model_compare_rows(m, &r);
        assert_true(account_query("SELECT count(*) FROM (SELECT 1 FROM site WHERE kind = 'map' AND free_bytes > 0)") >
                    10);
        assert_true(m->replaced > 10 && m->unmatched > 100 && m->inherited > 100);
        assert_int_equal(account_query("SELECT sum(event_count) FROM event_chunk"), m->events);
        assert_int_equal(account_query("SELECT max(first_event + event_count) FROM event_chunk"), m->events);
        model_compare_timeline(m, TIMELINE_BUCKETS);
        assert_true(m->snapshot_count > 10);
        model_compare_snapshots(m);
        model_compare_peak_frame(m);
        account_run_close(&r);
        model_close(m);
    }
}

/* What a collector that is killed after a flush leaves is as consistent as the end. */
static void test_flush_is_consistent(void **state)
{
    (void)state;
    for (unsigned round = 0; round < random_volume(4, 2); round++) {
        struct account_run r;
        random_seed = 25 + round;
        account_run_open(&r, &(struct account_options){0});
        struct model *m = model_open(40000);
        run_random(&r, m, 30000, round % 2 ? 3 : 20);
        account_flush(r.account, m->now_ns);
        model_compare_rows(m, &r);
        assert_int_equal(account_query("SELECT sum(event_count) FROM event_chunk"), m->events);
        model_compare_timeline(m, 1024);
        model_compare_snapshots(m);
        account_run_close(&r);
        model_close(m);
    }
}

static void test_aggregate(void **state)
{
    (void)state;
    struct account_run r;
    random_seed = 99;
    account_run_open(&r, &(struct account_options){.aggregate = 1});
    struct model *m = model_open(70000);
    run_random(&r, m, 70000, 50);
    account_finish(r.account, m->now_ns);
    model_compare_rows(m, &r);
    model_compare_timeline(m, TIMELINE_BUCKETS);
    model_compare_peak_frame(m);
    assert_int_equal(account_query("SELECT count(*) FROM event_chunk"), 0);
    assert_int_equal(account_query("SELECT count(chunk_id) FROM keyframe"), 0);
    account_run_close(&r);
    model_close(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_flush_is_consistent),
        cmocka_unit_test(test_aggregate),
    };
    return cmocka_run_group_tests(tests, scratch_begin, scratch_end);
}
