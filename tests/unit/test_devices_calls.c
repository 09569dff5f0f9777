/* Calls of devices one by one: nested sub-allocators, transfers, retries after a failure, names; memory that nobody
 * saw; words that make no sense. */
#include "device_calls.h"
#include "random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void test_nested_sub_allocators(void **state)
{
    (void)state;
    device_begin();
    uint64_t at = device_address(1);
    CALL(ALLOC, 0, device, 3, at, W(0x100000), W(7));
    CALL(SUB_SEGMENT, 0, device, 3, W(1), at, W(0x100000));
    CALL(SUB_ALLOC, 0, sub, 3, W(1), at, W(0x10000));
    CALL(SUB_ALLOC, 0, sub, 3, W(1), at + 0x10000, W(0x500));
    assert_int_equal(shown.block_count, 2);
    CALL(SUB_SEGMENT, 0, device, 3, W(2), at, W(0x10000)); /* the first block feeds another one */
    assert_int_equal(shown.block_count, 1);
    CALL(SUB_ALLOC, 0, sub, 3, W(2), at, W(0x20));
    CALL(SUB_ALLOC, 0, sub, 3, W(2), at + 0x20, W(0x20));
    assert_int_equal(shown.block_count, 3);
    CALL(SUB_FREE, 0, sub, 2, W(2), at);
    assert_int_equal(shown.block_count, 2);
    CALL(FREE, 0, device, 1, at); /* with all that lies in it */
    assert_int_equal(shown.block_count, 0);
    assert_int_equal(shown.segment_count, 0);
    assert_int_equal(shown.unmatched, 0);
    devices_close(devices);
}

static void test_transfers(void **state)
{
    (void)state;
    device_begin();
    uint64_t gpu0 = device_address(1), gpu1 = device_address(2), pinned = device_address(3),
             managed = device_address(4), host = 0x1000;
    CALL(ALLOC, 0, device, 3, gpu0, W(4096), W(1));
    CALL(ALLOC, 1, device, 3, gpu1, W(4096), W(2));
    CALL(ALLOC, 0, pinned, 3, pinned, W(4096), W(1));
    CALL(ALLOC, 0, managed, 3, managed, W(4096), W(1));
    const struct {
        uint64_t to, from;
        unsigned direction, device;
    } cases[] = {
        {gpu0 + 100, host, WIRE_HTOD, 1}, {pinned, gpu1 + 4095, WIRE_DTOH, 2}, {gpu0, gpu0 + 1, WIRE_DTOD, 1},
        {gpu1, gpu0, WIRE_PEER, 2},       {host, pinned, WIRE_HTOH, 1},        {managed, host, WIRE_UNIFIED, 1},
        {gpu1, managed, WIRE_UNIFIED, 2}, {gpu0 + 4096, host, WIRE_HTOH, 1},
    };
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t before = shown.transfers[cases[i].direction];
        CALL(TRANSFER, 0, device, 4, W(10), W(WIRE_UNIFIED), cases[i].to, cases[i].from);
        assert_int_equal(shown.transfers[cases[i].direction], before + 1);
        assert_int_equal(shown.transfer_device, cases[i].device);
    }
    CALL(TRANSFER, 1, device, 4, W(77), W(WIRE_FILL), gpu0, W(0));
    assert_int_equal(shown.transfer_bytes[WIRE_FILL], 77);
    assert_int_equal(
        device_apply(WIRE_CALL_TRANSFER, 0, KIND_device, WIRE_CALL_CAPTURED, 0, 4, W(1), W(WIRE_FILL), gpu0, W(0)), 0);
    assert_int_equal(shown.transfer_bytes[WIRE_FILL], 77);
    assert_int_not_equal(CALL(TRANSFER, 0, device, 4, W(1), W(99), gpu0, W(0)), 0);
    devices_close(devices);
}

/* The n-th newest touch, from 1. */
static void touched(unsigned n, uint64_t address, uint64_t bytes, unsigned what)
{
    unsigned i = (shown.touch_count - n) % 64;
    assert_int_equal(shown.touches[i].address, address);
    assert_int_equal(shown.touches[i].size, bytes);
    assert_int_equal(shown.touches[i].what, what);
}

/* Each copy touches the innermost block under each of its ends; host memory is none, and its own ends are told. */
static void test_touches(void **state)
{
    (void)state;
    device_begin();
    uint64_t gpu0 = device_address(1), gpu1 = device_address(2), pinned = device_address(3),
             managed = device_address(4), arena = device_address(5), host = 0x1000;
    CALL(ALLOC, 0, device, 3, gpu0, W(4096), W(1));
    CALL(ALLOC, 1, device, 3, gpu1, W(4096), W(2));
    CALL(ALLOC, 0, pinned, 3, pinned, W(4096), W(1));
    CALL(ALLOC, 0, managed, 3, managed, W(4096), W(1));
    CALL(ALLOC, 0, device, 3, arena, W(0x100000), W(1));
    CALL(TRANSFER, 0, device, 4, W(10), W(WIRE_UNIFIED), gpu0 + 100, host);
    touched(1, gpu0, 10, TOUCH_WRITE);
    assert_int_equal(shown.uploads, 0); /* a small part */
    CALL(TRANSFER, 0, device, 4, W(4000), W(WIRE_UNIFIED), gpu0, pinned);
    touched(1, gpu0, 4000, TOUCH_UPLOAD);
    assert_int_equal(shown.uploads, 1);
    assert_int_equal(shown.uploaded_from, pinned);
    CALL(TRANSFER, 0, device, 4, W(4096), W(WIRE_HTOD), gpu0, host);
    assert_int_equal(shown.uploads, 2);
    CALL(TRANSFER, 0, device, 4, W(20), W(WIRE_UNIFIED), gpu1, gpu0);
    touched(2, gpu0, 20, TOUCH_READ);
    touched(1, gpu1, 20, TOUCH_WRITE);
    CALL(TRANSFER, 0, device, 4, W(30), W(WIRE_DTOH), host, gpu1 + 4095);
    touched(1, gpu1, 30, TOUCH_READ);
    CALL(TRANSFER, 0, device, 4, W(40), W(WIRE_FILL), gpu1, gpu0); /* a fill has no source */
    touched(1, gpu1, 40, TOUCH_WRITE);
    assert_int_equal(shown.touch_count, 7);
    CALL(TRANSFER, 0, device, 4, W(50), W(WIRE_UNIFIED), managed, host); /* the host reaches these by itself */
    CALL(TRANSFER, 0, device, 4, W(50), W(WIRE_UNIFIED), pinned, host);
    CALL(TRANSFER, 0, device, 4, W(50), W(WIRE_UNIFIED), gpu0 + 4096, host); /* behind the block */
    assert_int_equal(shown.touch_count, 7);
    /* memory that a sub-allocator takes over was no block */
    CALL(TRANSFER, 0, device, 4, W(60), W(WIRE_FILL), arena, W(0));
    CALL(SUB_SEGMENT, 0, device, 3, W(1), arena, W(0x100000));
    assert_int_equal(shown.moved, 1);
    CALL(SUB_ALLOC, 0, sub, 3, W(1), arena, W(0x1000));
    CALL(SUB_ALLOC, 0, sub, 3, W(1), arena + 0x1000, W(0x1000));
    CALL(TRANSFER, 0, device, 4, W(70), W(WIRE_FILL), arena + 0x1fff, W(0));
    touched(1, arena + 0x1000, 70, TOUCH_WRITE);
    assert_int_equal(shown.touches[(shown.touch_count - 1) % 64].kind, KIND_sub);
    unsigned count = shown.touch_count;
    CALL(TRANSFER, 0, device, 4, W(80), W(WIRE_FILL), arena + 0x2000, W(0)); /* in no block of the segment */
    assert_int_equal(shown.touch_count, count);
    CALL(SUB_SEGMENT, 0, device, 3, W(2), arena, W(0x1000)); /* the first one feeds another allocator */
    CALL(SUB_ALLOC, 0, sub, 3, W(2), arena + 0x20, W(0x20));
    CALL(TRANSFER, 0, device, 4, W(85), W(WIRE_FILL), arena + 0x25, W(0));
    touched(1, arena + 0x20, 85, TOUCH_WRITE);
    CALL(SUB_FREE, 0, sub, 2, W(2), arena + 0x20);
    assert_int_equal(shown.touch_ends, 2);
    count = shown.touch_count;
    CALL(SUB_RESIZE, 0, sub, 3, W(1), arena + 0x1000, W(0x2000)); /* ends it, and another begins */
    assert_int_equal(shown.touch_ends, 3);
    CALL(TRANSFER, 0, device, 4, W(90), W(WIRE_FILL), arena + 0x2000, W(0));
    touched(1, arena + 0x1000, 90, TOUCH_WRITE);
    CALL(FREE, 0, device, 1, arena); /* with all that lies in it */
    CALL(FREE, 0, device, 1, gpu0);
    CALL(FREE, 0, device, 1, gpu1);
    assert_int_equal(shown.touch_ends, 6);
    assert_int_equal(shown.touched_gone, 6);
    CALL(TRANSFER, 0, device, 4, W(10), W(WIRE_FILL), gpu0, W(0)); /* nothing is there any more */
    assert_int_equal(shown.touch_count, count + 1);
    devices_close(devices);
}

static void captured(uint64_t graph, uint64_t bytes, unsigned direction, uint64_t to, uint64_t from)
{
    assert_int_equal(device_apply(WIRE_CALL_TRANSFER, 0, KIND_device, WIRE_CALL_CAPTURED, 0, 5, bytes, W(direction), to,
                                  from, graph),
                     0);
}

/* Copies of graphs are done at the launches; where their addresses lie is asked then. */
static void test_graph_transfers(void **state)
{
    (void)state;
    const uint64_t graph = 0x9000, other = 0x9100, parent = 0x9200, exec = 0x9300, exec2 = 0x9400, host = 0x1000;
    uint64_t gpu0 = device_address(1), node = device_address(2);
    device_begin();
    CALL(ALLOC, 0, device, 3, gpu0, W(4096), W(1));
    CALL(GRAPH_ALLOC_NODE, 0, pool, 3, graph, node, W(4096));
    device_stack = 7;
    captured(graph, 10, WIRE_UNIFIED, node, host);
    captured(graph, 20, WIRE_FILL, gpu0, 0);
    CALL(GRAPH_FREE_NODE, 0, pool, 2, graph, node);
    captured(other, 3, WIRE_DTOH, host, gpu0);
    CALL(GRAPH_CHILD, 0, device, 2, parent, other);
    CALL(GRAPH_CHILD, 0, device, 2, parent, other);
    captured(other, 100, WIRE_DTOH, host, gpu0); /* after it was copied */
    captured(0, 1000, WIRE_DTOH, host, gpu0);    /* of a graph that is not known */
    CALL(GRAPH_INSTANTIATE, 0, device, 2, graph, exec);
    CALL(GRAPH_INSTANTIATE, 0, device, 2, parent, exec2);
    CALL(GRAPH_END, 0, device, 1, graph);
    device_stack = 1;
    assert_int_equal(shown.transfers[WIRE_HTOD] + shown.transfers[WIRE_FILL] + shown.transfers[WIRE_DTOH], 0);
    for (unsigned i = 0; i < 3; i++)
        CALL(GRAPH_LAUNCH, 0, pool, 2, exec, W(1));
    touched(2, node, 10, TOUCH_WRITE); /* in memory of the graph, then */
    touched(1, gpu0, 20, TOUCH_WRITE);
    CALL(GRAPH_LAUNCH, 0, pool, 2, exec2, W(1));
    touched(1, gpu0, 3, TOUCH_READ); /* at the launch, once, whoever copies it twice */
    assert_int_equal(shown.touch_count, 3 * 2 + 1);
    assert_int_equal(shown.transfer_stack, 7); /* of what made the node */
    assert_int_equal(shown.transfer_bytes[WIRE_HTOD], 3 * 10);
    assert_int_equal(shown.transfer_bytes[WIRE_FILL], 3 * 20);
    assert_int_equal(shown.transfer_bytes[WIRE_DTOH], 2 * 3);
    /* an update: other nodes, and none */
    CALL(GRAPH_INSTANTIATE, 0, device, 2, other, exec);
    CALL(GRAPH_INSTANTIATE, 0, device, 2, W(0x9999), exec2);
    CALL(GRAPH_LAUNCH, 0, pool, 2, exec, W(1));
    CALL(GRAPH_LAUNCH, 0, pool, 2, exec2, W(1));
    assert_int_equal(shown.transfer_bytes[WIRE_DTOH], 2 * 3 + 103);
    assert_int_equal(shown.transfers[WIRE_FILL], 3);
    assert_int_not_equal(CALL(GRAPH_CHILD, 0, device, 2, parent, parent), 0);
    assert_int_equal(CALL(GRAPH_CHILD, 0, device, 2, W(0), parent), 0); /* in a graph that is not known */
    assert_int_not_equal(CALL(GRAPH_CHILD, 0, device, 2, parent, W(0)), 0);
    devices_close(devices);
}

/* Those of one line are told at once, each direction and size counted; sums that nobody can believe stay sums. */
static void test_graph_sums(void **state)
{
    (void)state;
    const uint64_t graph = 0x9000, exec = 0x9100, host = 0x1000;
    uint64_t gpu0 = device_address(1);
    device_begin();
    CALL(ALLOC, 0, device, 3, gpu0, W(4096), W(1));
    for (unsigned i = 0; i < 1000; i++) {
        device_stack = 7 + i % 2;
        captured(graph, i, WIRE_HTOD, gpu0, host);
        captured(graph, 5, WIRE_FILL, gpu0, 0);
    }
    CALL(GRAPH_INSTANTIATE, 0, device, 2, graph, exec);
    for (unsigned i = 0; i < 9; i++)
        CALL(GRAPH_LAUNCH, 0, pool, 2, exec, W(1));
    assert_int_equal(shown.transfers[WIRE_HTOD], 9 * 1000);
    assert_int_equal(shown.transfer_bytes[WIRE_HTOD], 9 * 999 * 1000 / 2);
    assert_int_equal(shown.transfers[WIRE_FILL], 9 * 1000);
    assert_int_equal(shown.transfer_bytes[WIRE_FILL], 9 * 5000);
    assert_int_equal(shown.transfer_calls, 9 * 4); /* two stacks, two directions */
    for (unsigned i = 0; i < 100; i++) {           /* each into the other: doubled 100 times */
        CALL(GRAPH_CHILD, 0, device, 2, graph, exec);
        CALL(GRAPH_CHILD, 0, device, 2, exec, graph);
    }
    shown.transfers[WIRE_FILL] = shown.transfer_calls = shown.touch_count = 0;
    CALL(GRAPH_LAUNCH, 0, pool, 2, exec, W(1));
    assert_int_equal(shown.transfer_calls, 4);
    assert_int_equal(shown.touch_count, 1); /* a place once, whoever copies to it */
    assert_true(shown.transfers[WIRE_FILL] == 2ull * INT64_MAX);
    devices_close(devices);
}

/* What is known to have been refused changes nothing; what turns out so is born again. */
static void test_refused(void **state)
{
    (void)state;
    struct devices_counts counts;
    uint64_t gpu0 = device_address(1);
    device_begin();
    CALL(ALLOC, 0, device, 3, gpu0, W(4096), W(1));
    CALL(ALLOC, 0, device, 3, device_address(2), W(4096), W(1));
    CALL(FREE, 0, device, 1, device_address(2));
    for (unsigned i = 0; i < 2; i++) {
        device_refused = 1;
        assert_int_equal(CALL(FREE, 0, device, 1, i ? gpu0 : W(12345)), 0);
        device_refused = 0;
        assert_int_equal(CALL(UNDO, 0, device, 0, W(0)), 0);
        assert_int_equal(shown.block_count, 1);
        assert_int_equal(shown.unmatched, 0);
    }
    devices_counts(devices, &counts);
    assert_int_equal(counts.refused, 2);
    CALL(FREE, 0, device, 1, gpu0);
    assert_int_equal(shown.block_count, 0);
    CALL(UNDO, 0, device, 0, W(0));
    assert_int_equal(shown.block_count, 1);
    devices_counts(devices, &counts);
    assert_int_equal(counts.refused, 3);
    devices_close(devices);
}

/* A pool's own highest value, where it is above all that was read. */
static void test_pool_high(void **state)
{
    (void)state;
    device_begin();
    CALL(POOL, 0, pool, 2, W(0x8000), W(0));
    CALL(POOL_STATE, 0, pool, 5, W(0x8000), W(100), W(0), W(0), W(100));
    unsigned before = shown.reserved_events;
    CALL(POOL_STATE, 0, pool, 5, W(0x8000), W(100), W(0), W(0), W(100));
    assert_int_equal(shown.reserved_events, before); /* nothing new */
    CALL(POOL_STATE, 0, pool, 5, W(0x8000), W(80), W(0), W(0), W(300));
    assert_int_equal(shown.most_reserved, 300);
    assert_int_equal(shown.sampled[1][KIND_pool], 80);
    before = shown.reserved_events;
    CALL(POOL_STATE, 0, pool, 5, W(0x8000), W(80), W(0), W(0), W(300)); /* told once */
    CALL(POOL_STATE, 0, pool, 5, W(0x8000), W(80), W(0), W(0), W(0));
    CALL(POOL_STATE, 0, pool, 4, W(0x8000), W(80), W(0), W(0));
    CALL(POOL_STATE, 0, pool, 5, W(0x8000), W(80), W(0), W(0), ~W(0));
    assert_int_equal(shown.reserved_events, before);
    devices_close(devices);
}

static uint64_t retries(void)
{
    struct devices_counts counts;
    devices_counts(devices, &counts);
    return counts.alloc_retries;
}

static void test_oom_and_retries(void **state)
{
    (void)state;
    device_begin();
    CALL(ALLOC, 0, device, 3, device_address(1), W(3000), W(1));
    CALL(OOM, 0, device, 4, W(9000), W(1000), W(4000), W(2));
    assert_int_equal(shown.oom, 1);
    assert_int_equal(shown.used, 3000);
    assert_int_equal(shown.total, 4000);
    CALL(ALLOC, 0, device, 3, device_address(2), W(9000), W(1)); /* nothing was freed between */
    assert_int_equal(retries(), 0);
    CALL(OOM, 0, device, 4, W(9000), W(1000), W(4000), W(2));
    CALL(FREE, 0, device, 1, device_address(1));
    CALL(ALLOC, 0, device, 3, device_address(3), W(10), W(1)); /* another size */
    device_thread = 2;
    CALL(ALLOC, 0, device, 3, device_address(4), W(9000), W(1)); /* another thread */
    device_thread = 1;
    assert_int_equal(retries(), 0);
    CALL(ALLOC, 0, device, 3, device_address(5), W(9000), W(1));
    CALL(ALLOC, 0, device, 3, device_address(6), W(9000), W(1));
    assert_int_equal(retries(), 1);
    devices_close(devices);
}

/* A mapping that another process's memory, or host memory, backs; memory that nobody saw. */
static void test_unknown(void **state)
{
    (void)state;
    device_begin();
    CALL(FREE, 0, device, 1, W(0x1234));
    CALL(POOL_FREE, 0, pool, 2, W(0x1234), W(0));
    CALL(SUB_FREE, 0, sub, 2, W(0), W(0x1234));
    assert_int_equal(shown.unmatched, 3);
    CALL(VMM_RELEASE, 0, vmm, 1, W(5));
    CALL(VMM_UNMAP, 0, vmm, 2, W(0x1000), W(0x1000));
    CALL(UNDO, 0, device, 0, 0);
    CALL(POOL_END, 0, pool, 1, W(5));
    CALL(GRAPH_LAUNCH, 0, pool, 2, W(5), W(5));
    CALL(SUB_POOL_END, 0, sub, 1, W(5));
    CALL(SUB_SEGMENT_END, 0, sub, 2, W(5), W(5));
    CALL(FOREIGN_CLOSE, 0, device, 1, W(5));
    assert_int_equal(shown.unmatched, 3);
    CALL(VMM_MAP, 0, vmm, 4, device_address(1), W(100), W(0), W(99)); /* of a handle that nobody saw made */
    assert_int_equal(shown.block_count, 1);
    CALL(POOL_ALLOC, 0, pool, 4, device_address(2), W(50), W(98), W(0)); /* of such a pool */
    assert_int_equal(shown.sampled[1][KIND_pool], 50);
    CALL(ALLOC, 0, device, 3, device_address(2) + 10, W(10), W(0)); /* its free was not seen */
    assert_int_equal(shown.block_count, 2);
    devices_close(devices);
}

static void test_names(void **state)
{
    (void)state;
    device_begin();
    uint64_t text, at = device_address(1);
    memcpy(&text, "weights!", 8);
    CALL(SUB_POOL, 0, sub, 3, W(7), W(7), text); /* 7 bytes of the 8 */
    CALL(SUB_SEGMENT, 0, sub, 3, W(7), at, W(4096));
    assert_string_equal(device_newest_name, "weights");
    assert_int_equal(device_newest_address, at);
    CALL(NAME, 0, sub, 3, W(7), W(1000), text); /* a length beyond the words */
    CALL(SUB_SEGMENT, 0, sub, 3, W(7), at + 4096, W(4096));
    assert_string_equal(device_newest_name, "weights!");
    CALL(NAME, 0, sub, 3, at + 10, W(3), text);
    assert_string_equal(device_newest_name, "wei");
    assert_int_equal(device_newest_address, at + 10);
    CALL(NAME, 0, sub, 1, at);
    CALL(NAME, 0, sub, 2, at, W(5));
    assert_string_equal(device_newest_name, "wei");
    devices_close(devices);
}

static uint64_t hostile_word(void)
{
    static const uint64_t words[] = {0,
                                     1,
                                     2,
                                     3,
                                     0x1000,
                                     0x1fff,
                                     0x2000,
                                     0x7000000000,
                                     0xffffffffffffffff,
                                     0x8000000000000000,
                                     1ull << 57,
                                     (1ull << 57) - 1,
                                     1ull << 61,
                                     0xffffffffffff0001};
    uint64_t n = rnd(24);
    return n < 14 ? words[n] : n < 22 ? 0x1000 + rnd(6) * 0x800 : random_seed;
}

static void take_anything(void *arg, const struct event *e)
{
    (void)arg;
    assert_true(e->kind < KIND_COUNT);
    shown.used += e->size_bytes;
}

static void test_hostile(void **state)
{
    (void)state;
    static const struct devices_sink sink = {NULL,          take_anything,  device_of,      device_foreign_of,
                                             device_map_of, device_name_of, device_transfer};
    for (unsigned round = 0; round < 40; round++) {
        random_seed = 1000 + round;
        device_begin();
        for (unsigned i = 0; i < 5000; i++) {
            uint64_t *words = malloc(10 * sizeof *words); /* so that a read past its end is seen */
            size_t count = rnd(4) ? 4 + rnd(3) : rnd(10);
            words = realloc(words, (count ? count : 1) * sizeof *words);
            for (size_t k = 0; k < count; k++)
                words[k] = hostile_word();
            struct devices_call c = {.call = (unsigned)rnd(WIRE_CALL_COUNT + 1),
                                     .device = (unsigned)(rnd(3) ? rnd(2) : rnd(257)),
                                     .flags = (unsigned)rnd(40) == 0,
                                     .kind = (unsigned)rnd(KIND_COUNT),
                                     .stack_id = (uint32_t)rnd(3),
                                     .thread_id = (uint32_t)rnd(3),
                                     .words = words,
                                     .word_count = count,
                                     .is_segment = rnd(5) == 0};
            devices_apply(devices, &c, &sink);
            free(words);
        }
        devices_close(devices);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nested_sub_allocators),
        cmocka_unit_test(test_transfers),
        cmocka_unit_test(test_touches),
        cmocka_unit_test(test_graph_transfers),
        cmocka_unit_test(test_graph_sums),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_pool_high),
        cmocka_unit_test(test_oom_and_retries),
        cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_hostile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
