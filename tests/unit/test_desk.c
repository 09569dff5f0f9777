/* The desk against a program that writes to a ring as the library does: what is answered, when, and the rows. */
#include "drain_setup.h"
#include "ring_writer.h"
#include "scratch.h"

#include "../../include/memprof.h"
#include "../../profiler/account/account_figures.h"
#include "../../profiler/collect/desk.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* the library copies one into the other, word by word */
#define X(name, text)                                                                                                  \
    _Static_assert(offsetof(struct wire_figures, name) == offsetof(struct memprof_device_figures, name), #name);
#include "../../profiler/wire_figures.def"
#undef X
_Static_assert(sizeof(struct wire_figures) == sizeof(struct memprof_device_figures), "all of them");

struct bench {
    struct setup *s;
    struct account *account;
    struct desk *desk;
    struct writer w;
    struct wire_desk *wire;
    struct wire_answer *answers;
    uint32_t ring;
};

static void take(void *arg, const struct event *events, size_t count)
{
    const struct bench *b = arg;
    desk_devices(b->desk);
    account_events(b->account, events, count);
}

static void take_sync(void *arg, const struct drain_sync *sync)
{
    const struct bench *b = arg;
    desk_sync(b->desk, sync);
}

static void take_epoch(void *arg, uint64_t time_ns)
{
    const struct bench *b = arg;
    account_epoch(b->account, time_ns);
}

static void bench_begin(struct bench *b)
{
    const uint64_t addresses[] = {0x1100};
    b->s = setup_begin(1);
    b->account = account_open(b->s->store, &(struct account_options){0});
    b->desk = desk_open(&b->s->session, b->account, drain_state(b->s->drain).devices);
    b->s->drain->sink = (struct drain_sink){.events = take, .arg = b, .sync = take_sync, .epoch = take_epoch};
    uint32_t slot = writer_claim_slot(b->s->session.control, getpid(), getppid(), WIRE_START_EXEC, 0);
    assert_int_equal(writer_open(&b->w, b->s->session.control, slot, getpid(), getpid()), 0);
    writer_stack(&b->w, 7, 0, addresses, 1);
    b->wire = (struct wire_desk *)((char *)b->s->session.control + WIRE_DESK_OFFSET);
    b->answers = (struct wire_answer *)((char *)b->s->session.control + WIRE_ANSWERS_OFFSET);
    b->ring = (uint32_t)(b->w.ring - b->s->session.rings);
}

static void bench_end(struct bench *b)
{
    desk_close(b->desk);
    account_close(b->account);
    setup_end(b->s);
}

static void ask(struct bench *b, uint32_t number, unsigned flags, const char *device)
{
    uint64_t words[4] = {0, WIRE_WORD1(WIRE_SYNC, 0, (uint64_t)flags << 32 | number), 0, 0};
    memcpy(words + 2, device, strlen(device));
    __atomic_fetch_add(&b->wire->asked, 1, __ATOMIC_SEQ_CST);
    writer_put(&b->w, words, 4);
}

static void begin_epoch(struct bench *b)
{
    uint64_t words[3] = {0, (uint64_t)WIRE_MARK << 56 | (uint64_t)WIRE_MARK_EPOCH << 48 | 3ull << 32 | 3, 0};
    memcpy(words + 2, "one", 3);
    writer_put(&b->w, words, 3);
}

static void call(struct bench *b, unsigned call, unsigned hook, unsigned device, const uint64_t *arguments, unsigned n)
{
    uint64_t words[16] = {0, (uint64_t)WIRE_CALL << 56 | (uint64_t)hook << 48 | (uint64_t)(3 + n) << 32 | 7,
                          WIRE_CALL_WORD(call, device, 0)};
    memcpy(words + 3, arguments, n * sizeof *arguments);
    writer_put(&b->w, words, 3 + n);
}

/* Exact at its place, though more is read in the same round. */
static void test_in_order(void **state)
{
    struct bench b;
    (void)state;
    bench_begin(&b);
    writer_alloc(&b.w, 0xa000, 100, 7);
    writer_alloc(&b.w, 0xb000, 50, 7);
    writer_free(&b.w, 0xa000);
    ask(&b, 1, 0, "host");
    writer_alloc(&b.w, 0xc000, 1000, 7);
    setup_rounds(b.s, 3);
    const struct wire_answer *a = &b.answers[b.ring];
    assert_int_equal(a->answered, 1);
    assert_int_equal(a->is_known, 1);
    assert_int_equal(a->figures.active_bytes, 50);
    assert_int_equal(a->figures.active_count, 1);
    assert_int_equal(a->figures.peak_active_bytes, 150);
    assert_int_equal(a->figures.alloc_count, 2);
    assert_int_equal(a->figures.free_bytes, 100);
    assert_int_equal(a->figures.thread_active_bytes, 50);
    assert_int_equal(a->figures.thread_free_count, 1);
    begin_epoch(&b);
    writer_free(&b.w, 0xc000);
    ask(&b, 2, 0, "");
    setup_rounds(b.s, 3);
    assert_int_equal(a->answered, 2);
    assert_int_equal(a->figures.epoch, 1);
    assert_int_equal(a->figures.active_bytes, 50);
    assert_int_equal(a->figures.peak_active_bytes, 1050);
    assert_int_equal(a->figures.alloc_count, 0);
    assert_int_equal(a->figures.free_count, 1);
    ask(&b, 3, 0, "cuda:0");
    setup_rounds(b.s, 3);
    assert_int_equal(a->answered, 3);
    assert_int_equal(a->is_known, 0);
    assert_int_equal(b.wire->asked, 3);
    assert_int_equal(b.wire->answered, 3);
    bench_end(&b);
}

/* Rows in their places, and the peak of a sum that no device had at its own peak. */
static void test_rows(void **state)
{
    static const char *const names[] = {"", "host", "cuda", "cuda:0", "cuda:1"};
    static const uint64_t peaks[] = {190, 0, 190, 100, 150};
    static const struct {
        unsigned device;
        uint64_t address, size_bytes; /* 0: a free */
    } calls[] = {{0, 0x10000, 100}, {1, 0x20000, 90}, {0, 0x10000, 0}, {1, 0x30000, 60}, {1, 0x20000, 0}};
    struct bench b;
    (void)state;
    bench_begin(&b);
    desk_publish(b.desk, clock_monotonic_ns());
    assert_int_equal(b.wire->row_count, 2);
    for (unsigned device = 0; device < 2; device++)
        call(&b, WIRE_CALL_DEVICE, 0, device, (uint64_t[]){1 << 30, device + 1, 9, 0}, 4);
    for (unsigned i = 0; i < sizeof calls / sizeof *calls; i++)
        if (calls[i].size_bytes)
            call(&b, WIRE_CALL_ALLOC, WIRE_HOOK_cuMemAlloc, calls[i].device,
                 (uint64_t[]){calls[i].address, calls[i].size_bytes, 1}, 3);
        else
            call(&b, WIRE_CALL_FREE, WIRE_HOOK_cuMemFree, calls[i].device, (uint64_t[]){calls[i].address, 1}, 2);
    ask(&b, 1, 0, "cuda");
    setup_rounds(b.s, 3);
    desk_publish(b.desk, clock_monotonic_ns() + 1000000000);
    assert_int_equal(b.answers[b.ring].figures.active_bytes, 60);
    assert_int_equal(b.answers[b.ring].figures.alloc_bytes, 250);
    assert_int_equal(b.wire->row_count, 5);
    for (unsigned i = 0; i < 5; i++) {
        const struct wire_row *row = &b.wire->rows[i];
        assert_string_equal(row->name, names[i]);
        assert_int_equal(row->figures[row->version & 1].peak_active_bytes, peaks[i]);
    }
    bench_end(&b);
}

static void test_commit(void **state)
{
    struct bench b;
    (void)state;
    bench_begin(&b);
    ask(&b, 1, WIRE_SYNC_COMMIT, "");
    setup_rounds(b.s, 3);
    assert_int_equal(b.answers[b.ring].answered, 0);
    assert_int_equal(b.wire->answered, 0);
    assert_true(desk_wants_commit(b.desk));
    desk_committed(b.desk);
    assert_int_equal(b.answers[b.ring].answered, 1);
    assert_int_equal(b.wire->answered, 1);
    assert_false(desk_wants_commit(b.desk));
    bench_end(&b);
}

/* Who announces and never writes keeps the collector awake for a moment only. */
static void test_announced(void **state)
{
    struct bench b;
    (void)state;
    bench_begin(&b);
    assert_false(desk_is_asked(b.desk, 1));
    b.wire->asked++;
    assert_true(desk_is_asked(b.desk, 2));
    assert_true(desk_is_asked(b.desk, 1000000));
    assert_int_equal(b.wire->answered, 0);
    assert_false(desk_is_asked(b.desk, 1000000000));
    assert_int_equal(b.wire->answered, 1); /* nobody gives way to us any more */
    assert_false(desk_is_asked(b.desk, 1000000001));
    ask(&b, 1, 0, "");
    assert_true(desk_is_asked(b.desk, 1000000002));
    setup_rounds(b.s, 3);
    assert_false(desk_is_asked(b.desk, 1000000003));
    bench_end(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_in_order), cmocka_unit_test(test_rows),
                                       cmocka_unit_test(test_commit), cmocka_unit_test(test_announced)};
    return cmocka_run_group_tests(tests, scratch_begin, scratch_end);
}
