/* The chunk codec: what goes in comes out, and what was damaged is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "../../common/chunk.h"
#include "../../common/kind.h"
#include "random.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static uint64_t wide(void) /* any magnitude */
{
    return (rnd(UINT64_MAX) << 11 ^ rnd(UINT64_MAX)) >> rnd(64);
}

static struct chunk_codec *codec;
static struct chunk_event events[CHUNK_EVENTS];
static int64_t site_of[CHUNK_EVENTS + 1]; /* by number in the chunk; -1: none yet */
static uint32_t numbers[CHUNK_EVENTS];    /* the reverse, of small ids; 0: none yet */

/* Times 1000 events a chunk or so; like: how much of them is what an allocator does, in percent. */
static void make_events(size_t count, unsigned like)
{
    uint64_t time_ns = wide() >> 2;
    for (size_t i = 0; i < count; i++) {
        struct chunk_event *e = &events[i];
        time_ns += rnd(10) ? rnd(1000) : wide() >> 20;
        *e = (struct chunk_event){
            .time_ns = time_ns,
            .address = wide(),
            .size_bytes = wide() >> 1,
            .site_id = (uint32_t)wide(),
            .thread_id = (uint32_t)(rnd(50) ? rnd(4) : wide()),
            .process_id = (uint16_t)rnd(3),
            .op = (uint8_t)rnd(CHUNK_OP_COUNT),
            .hook = (uint8_t)rnd(3),
            .device = (uint8_t)rnd(2),
            .kind = (uint8_t)rnd(2),
            .match = (uint16_t)(rnd(3) ? wide() : 0), /* any: a hint */
        };
        if (rnd(100) >= like)
            continue;
        e->thread_id = (uint32_t)rnd(3);
        e->site_id = 1 + (uint32_t)rnd(100);
        e->size_bytes = rnd(200);
        e->address = 0x5555000000 + rnd(5000) * 16;
        if (i && rnd(2)) {
            const struct chunk_event *born = &events[i - 1 - rnd(i < 300 ? i : 300)];
            e->op = (uint8_t)(rnd(5) ? CHUNK_free : CHUNK_realloc_free);
            e->address = born->address;
            e->size_bytes = born->size_bytes;
            e->site_id = born->site_id;
            e->match = (uint16_t)(born - events);
        } else {
            e->op = (uint8_t)(rnd(5) ? CHUNK_alloc : CHUNK_realloc_alloc);
            if (i && rnd(3)) /* a freed address again */
                e->address = events[i - 1 - rnd(i < 20 ? i : 20)].address;
        }
    }
}

/* One site a number of the chunk, and one number a site. */
static void check_number(const struct chunk_change *change)
{
    uint32_t number = change->site_number;
    assert_true(number >= 1 && number <= CHUNK_EVENTS);
    assert_true(site_of[number] < 0 || site_of[number] == change->site_id);
    site_of[number] = change->site_id;
    if (change->site_id < CHUNK_EVENTS) {
        uint32_t *number_of = &numbers[change->site_id];
        assert_true(!*number_of || *number_of == number);
        *number_of = number;
    }
}

static void round_trip(size_t count)
{
    memset(numbers, 0, sizeof numbers);
    memset(site_of, 0xff, sizeof site_of);
    struct buf out = BUF(1 << 26);
    const struct chunk_event *back;
    buf_puts(&out, "prefix"); /* encoding appends */
    assert_int_equal(chunk_encode_events(codec, events, count, &out), 0);
    assert_memory_equal(out.data, "prefix", 6);
    long got = chunk_decode_events(codec, out.data + 6, out.length - 6, &back);
    assert_int_equal(got, count);
    for (size_t i = 0; i < count; i++) {
        struct chunk_event expected = events[i], e = back[i];
        if (e.match) {
            const struct chunk_event *born = &back[e.match];
            assert_true(e.match < i);
            assert_true(born->address == e.address && born->size_bytes == e.size_bytes && born->site_id == e.site_id);
        }
        expected.match = e.match = 0;
        assert_memory_equal(&e, &expected, sizeof e);
    }
    const struct chunk_change *change;
    got = chunk_decode_changes(codec, out.data + 6, out.length - 6, &change);
    assert_true(got >= 0);
    const struct chunk_change *end = change + got;
    for (size_t i = 0; i < count; i++) {
        const struct chunk_event *e = &events[i];
        int is_birth = e->op == CHUNK_alloc || e->op == CHUNK_realloc_alloc;
        if (!is_birth && e->op != CHUNK_free && e->op != CHUNK_realloc_free && e->op != CHUNK_to_segment &&
            e->op != CHUNK_end && e->op != CHUNK_cut)
            continue;
        assert_true(change < end && change->site_id == e->site_id);
        assert_true(change->bytes == (is_birth ? (int64_t)e->size_bytes : -(int64_t)e->size_bytes));
        check_number(change);
        change++;
    }
    assert_ptr_equal(change, end);
    buf_free(&out);
}

static void test_events(void **state)
{
    (void)state;
    round_trip(0);
    for (unsigned round = 0; round < 60; round++) {
        size_t count = 1 + rnd(round % 10 ? 3000 : CHUNK_EVENTS);
        make_events(count, round % 5 * 25);
        round_trip(count);
    }
    make_events(CHUNK_EVENTS, 90);
    round_trip(CHUNK_EVENTS);
}

/* As many threads, processes and sites as there are events. */
static void test_all_different(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < CHUNK_EVENTS; i++)
        events[i] = (struct chunk_event){.time_ns = i,
                                         .address = ~0ull - i * 7,
                                         .size_bytes = INT64_MAX - i,
                                         .site_id = UINT32_MAX - i * 3,
                                         .thread_id = i * 77777,
                                         .process_id = (uint16_t)i,
                                         .kind = KIND_sub,
                                         .hook = 255,
                                         .device = 255};
    round_trip(CHUNK_EVENTS);
}

static void test_limits(void **state)
{
    (void)state;
    struct buf out = BUF(1 << 20), small = BUF(64);
    make_events(2, 100);
    events[1].time_ns = events[0].time_ns - 1;
    assert_int_equal(chunk_encode_events(codec, events, 2, &out), -EFBIG);
    make_events(2, 100);
    events[1].size_bytes = 1ull << 63;
    assert_int_equal(chunk_encode_events(codec, events, 2, &out), -EFBIG);
    assert_int_equal(chunk_encode_events(codec, events, CHUNK_EVENTS + 1, &out), -EFBIG);
    make_events(2, 100);
    assert_int_equal(chunk_encode_events(codec, events, 2, &small), -EFBIG);
    assert_int_equal(out.length, 0);
    buf_free(&out);
    buf_free(&small);
}

static void test_deltas_and_live(void **state)
{
    (void)state;
    static struct chunk_delta deltas[5000];
    static struct chunk_live live[5000];
    for (unsigned round = 0; round < 30; round++) {
        size_t count = round ? rnd(5000) : 0;
        struct buf out = BUF(1 << 24);
        const struct chunk_delta *d;
        const struct chunk_live *l;
        for (size_t i = 0; i < count; i++) {
            deltas[i] = (struct chunk_delta){
                (uint32_t)wide(), (uint32_t)wide(), (uint32_t)wide(), (uint32_t)wide(), wide(), wide(), wide()};
            live[i] = (struct chunk_live){(uint32_t)wide(), 0, wide(), wide()};
        }
        assert_int_equal(chunk_encode_deltas(codec, deltas, count, &out), 0);
        assert_int_equal(chunk_decode_deltas(codec, out.data, out.length, &d), count);
        assert_memory_equal(d, deltas, count * sizeof *d);
        assert_true(chunk_decode_live(codec, out.data, out.length, &l) < 0); /* another thing */
        buf_reset(&out);
        assert_int_equal(chunk_encode_live(codec, live, count, &out), 0);
        assert_int_equal(chunk_decode_live(codec, out.data, out.length, &l), count);
        assert_memory_equal(l, live, count * sizeof *l);
        buf_free(&out);
    }
}

/* Every byte of a chunk counts: a changed one is noticed (or does not change what is read: the dictionary id of a zstd
 * frame that has none, and the like); a shorter or longer chunk is refused. */
static void test_damage(void **state)
{
    (void)state;
    enum { DAMAGED = 700 };
    struct buf out = BUF(1 << 24);
    make_events(DAMAGED, 80);
    assert_int_equal(chunk_encode_events(codec, events, DAMAGED, &out), 0);
    const struct chunk_event *back;
    unsigned refused = 0, changes_refused = 0, tried = 0;
    for (size_t i = 0; i < out.length; i += 1 + rnd(3)) {
        char before = out.data[i];
        const struct chunk_change *changes;
        out.data[i] ^= (char)(1 << rnd(8));
        changes_refused += chunk_decode_changes(codec, out.data, out.length, &changes) < 0;
        long got = chunk_decode_events(codec, out.data, out.length, &back);
        tried++;
        if (got < 0) {
            assert_int_equal(got, -EBADMSG);
            refused++;
        } else {
            assert_int_equal(got, DAMAGED);
            for (size_t j = 0; j < DAMAGED; j++)
                assert_true(back[j].address == events[j].address && back[j].size_bytes == events[j].size_bytes &&
                            back[j].time_ns == events[j].time_ns && back[j].site_id == events[j].site_id);
        }
        out.data[i] = before;
    }
    assert_true(refused > tried * 99 / 100);
    assert_true(changes_refused > tried / 20); /* the rest is in times and addresses */
    for (size_t length = 0; length < out.length; length += 1 + rnd(50))
        assert_int_equal(chunk_decode_events(codec, out.data, length, &back), -EBADMSG);
    buf_putc(&out, 0);
    assert_int_equal(chunk_decode_events(codec, out.data, out.length, &back), -EBADMSG);
    assert_int_equal(chunk_decode_events(codec, NULL, 0, &back), -EBADMSG);
    buf_free(&out);
}

static void same_sums(const struct chunk_sums *a, const struct chunk_sums *b)
{
    assert_true(a->thread_count == b->thread_count && a->size_count == b->size_count &&
                a->owner_count == b->owner_count);
    for (uint32_t i = 0; i < a->thread_count; i++)
        assert_memory_equal(&a->threads[i], &b->threads[i], sizeof *a->threads);
    for (uint32_t i = 0; i < a->size_count; i++)
        assert_memory_equal(&a->sizes[i], &b->sizes[i], sizeof *a->sizes);
    for (uint32_t i = 0; i < a->owner_count; i++)
        assert_memory_equal(&a->owners[i], &b->owners[i], sizeof *a->owners);
}

enum { SUMS_MAX = 200 };
static struct chunk_thread sum_threads[SUMS_MAX];
static struct chunk_size sum_sizes[SUMS_MAX];
static struct chunk_owner sum_owners[SUMS_MAX];

static void random_sums(struct chunk_sums *sums)
{
    *sums = (struct chunk_sums){
        sum_threads, sum_sizes, sum_owners, (uint32_t)rnd(SUMS_MAX), (uint32_t)rnd(SUMS_MAX), (uint32_t)rnd(SUMS_MAX)};
    memset(sum_threads, 0, sizeof sum_threads); /* what lies between their fields is compared, too */
    memset(sum_sizes, 0, sizeof sum_sizes);
    for (uint32_t i = 0; i < SUMS_MAX; i++) {
        struct chunk_thread *t = &sum_threads[i];
        struct chunk_size *c = &sum_sizes[i];
        t->thread_id = (uint32_t)(rnd(UINT32_MAX) >> rnd(32));
        t->device = (uint8_t)rnd(256);
        t->kind = (uint8_t)rnd(KIND_COUNT + 1);
        t->alloc_count = rnd(UINT64_MAX) >> rnd(64);
        t->alloc_bytes = rnd(UINT64_MAX) >> rnd(64);
        t->left_count = rnd(UINT64_MAX) >> rnd(64);
        t->left_bytes = rnd(UINT64_MAX) >> rnd(64);
        t->temporary_count = rnd(UINT64_MAX) >> rnd(64);
        t->rise_bytes = rnd(UINT64_MAX) >> rnd(64);
        c->device = (uint8_t)rnd(256);
        c->kind = (uint8_t)rnd(KIND_COUNT);
        c->class = (uint8_t)rnd(CHUNK_SIZE_CLASSES);
        c->alloc_count = rnd(UINT64_MAX) >> rnd(64);
        c->alloc_bytes = rnd(2) ? (uint64_t)-4096 : rnd(UINT64_MAX);
        c->free_count = rnd(UINT64_MAX) >> rnd(64);
        c->temporary_count = rnd(UINT64_MAX) >> rnd(64);
        sum_owners[i] = (struct chunk_owner){i * (CHUNK_EVENTS / SUMS_MAX) + (uint32_t)rnd(100),
                                             (uint32_t)(rnd(UINT32_MAX) >> rnd(32))};
    }
}

static void test_sums(void **state)
{
    (void)state;
    struct buf out = BUF(1 << 24);
    struct chunk_sums sums, back;
    for (int round = 0; round < 200; round++) {
        random_sums(&sums);
        buf_reset(&out);
        assert_int_equal(chunk_encode_sums(codec, &sums, &out), 0);
        assert_int_equal(chunk_decode_sums(codec, out.data, out.length, &back), 0);
        same_sums(&sums, &back);
    }
    sums.threads[3].kind = KIND_COUNT + 1; /* which none is */
    sums.thread_count = 10;
    buf_reset(&out);
    assert_int_equal(chunk_encode_sums(codec, &sums, &out), 0);
    assert_int_equal(chunk_decode_sums(codec, out.data, out.length, &back), -EBADMSG);
    sums.threads[3].kind = 0;
    sums.owner_count = 2;
    sums.owners[1].index = sums.owners[0].index; /* twice the same event */
    buf_reset(&out);
    assert_int_equal(chunk_encode_sums(codec, &sums, &out), 0);
    assert_int_equal(chunk_decode_sums(codec, out.data, out.length, &back), -EBADMSG);
    sums.owners[1].index = sums.owners[0].index + 1;
    buf_reset(&out);
    assert_int_equal(chunk_encode_sums(codec, &sums, &out), 0);
    assert_int_equal(chunk_decode_sums(codec, out.data, out.length, &back), 0);
    for (size_t length = 0; length < out.length; length += 1 + rnd(5))
        assert_int_equal(chunk_decode_sums(codec, out.data, length, &back), -EBADMSG);
    buf_putc(&out, 0);
    assert_int_equal(chunk_decode_sums(codec, out.data, out.length, &back), -EBADMSG);
    buf_free(&out);
}

/* An allocator's usual work must stay small: what the format is for. */
static void test_size(void **state)
{
    (void)state;
    struct buf out = BUF(1 << 24);
    for (uint32_t i = 0; i < CHUNK_EVENTS; i += 2) {
        struct chunk_event *e = &events[i];
        e[0] = (struct chunk_event){.time_ns = i * 100 + rnd(60),
                                    .address = 0x55550000 + rnd(3) * 48,
                                    .size_bytes = 40,
                                    .site_id = 1 + i / 2 % 5,
                                    .thread_id = 1,
                                    .process_id = 1,
                                    .hook = 1};
        e[1] = e[0];
        e[1].op = CHUNK_free;
        e[1].time_ns += 20;
        e[1].match = (uint16_t)i;
    }
    assert_int_equal(chunk_encode_events(codec, events, CHUNK_EVENTS, &out), 0);
    assert_true(out.length < CHUNK_EVENTS); /* below a byte an event; the times alone are half of one */
    buf_free(&out);
}

static int open_codec(void **state)
{
    (void)state;
    codec = chunk_codec_open();
    return codec ? 0 : -1;
}

static int close_codec(void **state)
{
    (void)state;
    chunk_codec_close(codec);
    chunk_codec_close(NULL);
    return 0;
}

/* Times between events are noise, and cost what they hold: 6 bits each here. Everything else is as expected. */
static void test_noise(void **state)
{
    (void)state;
    struct buf out = BUF(1 << 24);
    uint64_t time_ns = 0;
    for (uint32_t i = 0; i < CHUNK_EVENTS; i++) {
        time_ns += rnd(64);
        events[i] = (struct chunk_event){.time_ns = time_ns,
                                         .address = 0x5555000000,
                                         .size_bytes = 24,
                                         .site_id = 1,
                                         .op = i % 2 ? CHUNK_free : CHUNK_alloc,
                                         .match = (uint16_t)(i % 2 ? i - 1 : 0)};
    }
    assert_int_equal(chunk_encode_events(codec, events, CHUNK_EVENTS, &out), 0);
    assert_in_range(out.length, CHUNK_EVENTS * 6 / 8, CHUNK_EVENTS * 6 / 8 + 2000);
    buf_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_events),          cmocka_unit_test(test_all_different), cmocka_unit_test(test_limits),
        cmocka_unit_test(test_deltas_and_live), cmocka_unit_test(test_damage),        cmocka_unit_test(test_size),
        cmocka_unit_test(test_noise),           cmocka_unit_test(test_sums),
    };
    random_seed = 1234567;
    return cmocka_run_group_tests(tests, open_codec, close_codec);
}
