/* The table of live blocks against an array indexed by address. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "../../profiler/account/live.h"
#include "random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static void sum(void *context, const struct live_block *b)
{
    uint64_t *sums = context;
    sums[0]++;
    sums[1] += b->size;
    sums[2] ^= b->key;
}

static void test_random(void **state)
{
    enum { ADDRESSES = 50000 };
    (void)state;
    struct live_table *t = live_open(NULL);
    uint32_t *model = calloc(ADDRESSES, sizeof *model); /* size + 1; 0: none */
    uint64_t count = 0, bytes = 0, keys = 0;
    for (unsigned i = 0; i < random_volume(2000000, 900000); i++) {
        /* growing, shrinking, growing: */
        uint64_t n = rnd(ADDRESSES), key = live_key(0x7f0000001000 + n * 16, n % 2), hash = live_hash(key);
        int grows = i / 300000 % 2 == 0;
        struct live_block *b = live_find(t, key, hash);
        assert_int_equal(b != NULL, model[n] != 0);
        if (b)
            assert_int_equal(b->size, model[n] - 1);
        if (b && (!grows || rnd(3) == 0)) {
            bytes -= b->size;
            count--;
            keys ^= key;
            live_remove(t, b);
            model[n] = 0;
        } else if (!b && (grows || rnd(3) == 0)) {
            b = live_place(t, key, hash);
            assert_int_equal(b->site, 0);
            b->site = 1;
            b->size = rnd(1000);
            model[n] = (uint32_t)b->size + 1;
            count++;
            bytes += b->size;
            keys ^= key;
        } else if (b) {
            assert_ptr_equal(live_place(t, key, hash)->key, key);
            assert_int_equal(live_find(t, key, hash)->site, 1);
        }
    }
    uint64_t sums[3] = {0};
    live_each(t, sum, sums);
    assert_int_equal(t->count, count);
    assert_int_equal(sums[0], count);
    assert_int_equal(sums[1], bytes);
    assert_int_equal(sums[2], keys);
    live_close(t);
    live_close(NULL);
    free(model);
}

/* The goal: at most 64 bytes a live block at any size. */
static void bytes_per_block(struct worker *worker)
{
    struct live_table *t = live_open(worker);
    const uint64_t count = random_volume(1000000, 300000);
    for (uint64_t i = 1; i <= count; i++) {
        uint64_t key = live_key(i * 48, 0);
        live_place(t, key, live_hash(key))->site = 1;
        if (i > 20000 && i % 1000 == 0 && live_bytes(t) > i * 64)
            fail_msg("%lu bytes for %lu blocks", (unsigned long)live_bytes(t), (unsigned long)i);
    }
    for (uint64_t i = 1; i <= count; i++) {
        uint64_t key = live_key(i * 48, 0);
        const struct live_block *b = live_find(t, key, live_hash(key));
        if (!b || b->key != key || b->site != 1)
            fail_msg("block %lu is not found", (unsigned long)i);
    }
    live_close(t);
}

static void test_bytes_per_block(void **state)
{
    (void)state;
    bytes_per_block(NULL);
}

/* Memory that the worker touches ahead counts. */
static void test_memory_ahead(void **state)
{
    (void)state;
    struct worker *worker = worker_open();
    bytes_per_block(worker);
    worker_close(worker);
}

static uint64_t address_space(void)
{
    unsigned long pages = 0;
    FILE *f = fopen("/proc/self/statm", "re");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%lu", &pages), 1);
    fclose(f);
    return pages * 4096ul;
}

/* Where there is no room for two tables the next one is mapped in its turn, when the one before is gone. */
static void test_no_room_ahead(void **state)
{
    enum { BUCKETS = 1u << 17, MOST = BUCKETS * 9, TABLE = BUCKETS * sizeof(struct live_bucket) };
    struct worker *worker = worker_open();
    struct live_table *t = live_open(worker);
    struct rlimit before, limit;
    int asked = 0;
    (void)state;
    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    for (uint64_t i = 1; i <= MOST + LIVE_RECENT + 1000; i++) {
        uint64_t key = live_key(i * 48, 0);
        if (t->most == MOST && t->full < MOST && t->stored == t->full) {
            /* the next table takes 2 of TABLE, or 1 more than the old one did; slabs until then: a quarter of one */
            limit = before;
            limit.rlim_cur = address_space() + TABLE / 2 * 3;
            assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
            asked = 1;
        }
        live_place(t, key, live_hash(key))->site = (uint32_t)i;
        if (t->most == MOST && asked)
            assert_null(t->next_buckets.memory);
    }
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
    assert_true(asked);
    assert_int_equal(t->bucket_mask, BUCKETS * 2 - 1);
    for (uint64_t i = 1; i <= MOST + LIVE_RECENT + 1000; i++) {
        uint64_t key = live_key(i * 48, 0);
        const struct live_block *b = live_find(t, key, live_hash(key));
        if (!b || b->site != i)
            fail_msg("block %lu is not found", (unsigned long)i);
    }
    live_close(t);
    worker_close(worker);
}

static void place_and_remove(struct live_table *t, unsigned times)
{
    for (unsigned i = 0; i < times; i++) {
        uint64_t key = live_key(0x7f0000000000 + i % 100 * 16, 0);
        live_place(t, key, 0)->site = 2;
        struct live_block *b = live_find(t, key, 0);
        assert_int_equal(b->site, 2);
        live_remove(t, b);
        assert_null(live_find(t, key, 0));
    }
}

static void check_kept(struct live_table *t, unsigned count)
{
    for (uint64_t i = 1; i <= count; i++) {
        const struct live_block *b = live_find(t, live_key(i * 48, 0), 0);
        if (!b || b->site != i)
            fail_msg("block %lu is not found", (unsigned long)i);
    }
    assert_int_equal(t->count, count);
    assert_null(live_find(t, live_key(24, 0), 0));
}

/* Blocks that die at once are never stored; of a program that keeps its blocks all are, until it does otherwise. */
static void test_recent(void **state)
{
    (void)state;
    struct live_table *t = live_open(NULL);
    place_and_remove(t, 100000);
    assert_int_equal(t->stored, 0);
    assert_int_equal(t->used, 0);
    for (uint64_t i = 1; i <= 50000; i++)
        live_place(t, live_key(i * 48, 0), 0)->site = (uint32_t)i;
    assert_int_equal(t->has_recent, 0);
    assert_int_equal(t->stored, 50000);
    check_kept(t, 50000);
    uint64_t before = t->used;
    place_and_remove(t, 200000);
    assert_int_equal(t->has_recent, 1);
    assert_true(t->used <= before + 1);
    check_kept(t, 50000);
    uint64_t sums[3] = {0};
    live_each(t, sum, sums);
    assert_int_equal(sums[0], 50000);
    live_close(t);
}

static long huge_kib(void)
{
    char line[256];
    long kib = -1;
    FILE *f = fopen("/proc/self/smaps_rollup", "r");
    while (f && fgets(line, sizeof line, f))
        sscanf(line, "AnonHugePages: %ld", &kib);
    if (f)
        fclose(f);
    return kib;
}

/* Where taking one was slow no other is taken. */
static void test_slow_huge_pages(void **state)
{
    (void)state;
    struct worker *worker = worker_open();
    struct live_table *t = live_open(worker);
    long before_kib = huge_kib();
    t->huge_is_slow = 1;
    for (uint64_t i = 1; i <= 1500000; i++) {
        uint64_t key = live_key(i * 48, 0);
        live_place(t, key, live_hash(key))->site = 1;
    }
    assert_int_equal(huge_kib(), before_kib);
    assert_int_equal(t->huge_is_slow, 1);
    live_close(t);
    worker_close(worker);
}

static void test_limits(void **state)
{
    (void)state;
    struct live_table *t = live_open(NULL);
    uint64_t key = live_key(LIVE_ADDRESS_MASK, 6), hash = live_hash(key);
    struct live_block *b = live_place(t, key, hash);
    b->site = UINT32_MAX;
    b->size = LIVE_SIZE_MAX;
    b->match = 65535;
    b = live_find(t, key, hash);
    assert_int_equal(b->size, LIVE_SIZE_MAX);
    assert_int_equal(b->match, 65535);
    assert_int_equal(b->key & LIVE_ADDRESS_MASK, LIVE_ADDRESS_MASK);
    assert_null(live_find(t, live_key(LIVE_ADDRESS_MASK, 5), live_hash(live_key(LIVE_ADDRESS_MASK, 5))));
    assert_int_equal(sizeof *b, 32);
    live_close(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),       cmocka_unit_test(test_bytes_per_block),
        cmocka_unit_test(test_memory_ahead), cmocka_unit_test(test_no_room_ahead),
        cmocka_unit_test(test_recent),       cmocka_unit_test(test_slow_huge_pages),
        cmocka_unit_test(test_limits),
    };
    random_seed = 4711;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
