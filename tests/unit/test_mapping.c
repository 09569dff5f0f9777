/* Mappings against a model with one entry a page. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "../../profiler/devices/mapping.h"

#include "../../common/kind.h"
#include "../../profiler/wire.h"
#include "random.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PAGES 4000u
#define BASE  0x7f0000000000ull

/* The events of the last call. */
static struct event log_events[10000];
static unsigned log_count;

/* What is live by the events: parts of blocks by their start, how many each block has, segment pages. */
struct live {
    uint64_t size;
    uint32_t stack, block;
} blocks[PAGES];
static unsigned part_counts[200000], born, died;
static char was_split[200000];
enum { NOTHING, BLOCK, RESERVED, SEGMENT, ARENA };
static char segment_pages[PAGES]; /* NOTHING, SEGMENT or ARENA */
static uint64_t block_bytes;

static unsigned page(uint64_t address)
{
    assert_true(address >= BASE && address < BASE + PAGES * 4096ull);
    return (unsigned)((address - BASE) / 4096);
}

static void emit(void *arg, const struct event *e)
{
    assert_ptr_equal(arg, blocks);
    /* what an allocator maps for itself counts with the blocks that it hands out */
    int is_segment = e->op == EVENT_SEGMENT_ALLOC || e->op == EVENT_SEGMENT_FREE;
    assert_true(is_segment ? e->kind == KIND_heap || e->kind == KIND_arena : e->kind == KIND_map);
    char what = e->kind == KIND_arena ? ARENA : SEGMENT;
    assert_true(log_count < sizeof log_events / sizeof *log_events);
    log_events[log_count++] = *e;
    unsigned p = page(e->address);
    switch (e->op) {
    case EVENT_ALLOC:
    case EVENT_REALLOC_ALLOC:
        assert_int_equal(blocks[p].size, 0); /* the old one went first */
        assert_true(e->size_bytes > 0 && e->size_bytes % 4096 == 0);
        assert_true(++born < sizeof part_counts / sizeof *part_counts);
        blocks[p] = (struct live){e->size_bytes, e->stack_id, born};
        part_counts[born] = 1;
        block_bytes += e->size_bytes;
        break;
    case EVENT_SPLIT: {
        unsigned second = page(e->address + e->size_bytes);
        assert_true(e->size_bytes > 0 && e->size_bytes < blocks[p].size);
        assert_int_equal(blocks[second].size, 0);
        blocks[second] = (struct live){blocks[p].size - e->size_bytes, blocks[p].stack, blocks[p].block};
        blocks[p].size = e->size_bytes;
        part_counts[blocks[p].block]++;
        was_split[blocks[p].block] = 1;
        break;
    }
    case EVENT_FREE: /* of whole blocks alone, so that those cost nothing more */
    case EVENT_REALLOC_FREE:
    case EVENT_PART_FREE:
        assert_int_equal(was_split[blocks[p].block], e->op == EVENT_PART_FREE);
        assert_int_equal(blocks[p].size, e->size_bytes);
        block_bytes -= e->size_bytes;
        blocks[p].size = 0;
        died += --part_counts[blocks[p].block] == 0;
        break;
    case EVENT_SEGMENT_ALLOC:
    case EVENT_SEGMENT_FREE:
        for (unsigned i = 0; i < e->size_bytes / 4096; i++) {
            assert_int_equal(segment_pages[p + i], e->op == EVENT_SEGMENT_FREE ? what : NOTHING);
            segment_pages[p + i] = e->op == EVENT_SEGMENT_ALLOC ? what : NOTHING;
        }
        break;
    default:
        fail();
    }
}

static int apply(struct mapping *m, struct mapping_op op)
{
    log_count = 0;
    return mapping_apply(m, &op, emit, blocks);
}

static void begin(void)
{
    memset(blocks, 0, sizeof blocks);
    memset(segment_pages, 0, sizeof segment_pages);
    block_bytes = 0;
    born = died = 0;
    memset(was_split, 0, sizeof was_split);
}

/* --- the model: what a page is, and whose --- */

static struct {
    unsigned type;
    uint32_t stack;
} model[PAGES];

static unsigned type_of(uint32_t flags)
{
    return flags & WIRE_MAP_RESERVE   ? RESERVED
           : flags & WIRE_MAP_SEGMENT ? SEGMENT
           : flags & WIRE_MAP_ARENA   ? ARENA
                                      : BLOCK;
}

static void set(uint64_t start, uint64_t pages, unsigned type, uint32_t stack)
{
    for (uint64_t i = 0; i < pages; i++) {
        model[start + i].type = type;
        model[start + i].stack = stack;
    }
}

static void compare(void)
{
    static uint32_t owner[PAGES];
    static char is_seen[sizeof part_counts / sizeof *part_counts];
    uint64_t expected = 0;
    unsigned live = 0;
    memset(owner, 0, sizeof owner);
    memset(is_seen, 0, sizeof is_seen);
    for (unsigned p = 0; p < PAGES; p++) {
        live += blocks[p].size && !is_seen[blocks[p].block];
        is_seen[blocks[p].block] |= blocks[p].size > 0;
    }
    assert_int_equal(born - died, live);
    for (unsigned p = 0; p < PAGES; p++)
        for (unsigned i = 0; i < blocks[p].size / 4096; i++) {
            assert_int_equal(owner[p + i], 0); /* blocks do not overlap */
            owner[p + i] = blocks[p].stack;
        }
    for (unsigned p = 0; p < PAGES; p++) {
        expected += model[p].type == BLOCK ? 4096 : 0;
        assert_int_equal(owner[p], model[p].type == BLOCK ? model[p].stack : 0);
        assert_int_equal(segment_pages[p],
                         model[p].type == SEGMENT || model[p].type == ARENA ? model[p].type : NOTHING);
    }
    assert_int_equal(block_bytes, expected);
}

static void random_move(struct mapping *m, uint64_t start, uint64_t pages, uint32_t stack)
{
    uint64_t to_pages = 1 + rnd(60), to = rnd(PAGES - 60);
    uint32_t flags = rnd(4) ? 0 : WIRE_MAP_KEEP_OLD;
    if (to < start + pages && start < to + to_pages) /* the kernel refuses that */
        return;
    unsigned strongest = NOTHING;
    for (uint64_t i = start; i < start + pages; i++) {
        unsigned type = model[i].type;
        int is_segment = type == SEGMENT || type == ARENA;
        if (type == BLOCK || (is_segment && (strongest == NOTHING || strongest == RESERVED)) ||
            (type == RESERVED && strongest == NOTHING))
            strongest = type;
    }
    assert_int_equal(apply(m, (struct mapping_op){.op = WIRE_REMAP,
                                                  .address = BASE + start * 4096,
                                                  .length = pages * 4096,
                                                  .new_address = BASE + to * 4096,
                                                  .new_length = to_pages * 4096 - rnd(4096),
                                                  .stack_id = stack,
                                                  .flags = flags}),
                     0);
    if (!flags)
        set(start, pages, NOTHING, 0);
    set(to, to_pages, strongest, stack);
}

static void test_random(void **state)
{
    (void)state;
    struct mapping *m = mapping_open();
    begin();
    memset(model, 0, sizeof model);
    for (uint32_t i = 1; i < random_volume(60000, 15000); i++) {
        uint64_t start = rnd(PAGES - 60), pages = 1 + (rnd(5) ? rnd(8) : rnd(60));
        struct mapping_op op = {.address = BASE + start * 4096, .length = pages * 4096 - rnd(4096), .stack_id = i};
        switch (rnd(8)) {
        case 0:
        case 1:
        case 2: {
            static const uint32_t flags[] = {0,
                                             WIRE_MAP_ARENA,
                                             WIRE_MAP_SEGMENT,
                                             WIRE_MAP_RESERVE,
                                             WIRE_MAP_RESERVE | WIRE_MAP_SEGMENT,
                                             WIRE_MAP_FILE,
                                             WIRE_MAP_FILE | WIRE_MAP_SEGMENT,
                                             WIRE_MAP_SHARED};
            op.op = WIRE_MAP;
            op.flags = flags[rnd(8)];
            set(start, pages, op.flags & WIRE_MAP_FILE ? NOTHING : type_of(op.flags), i);
            break;
        }
        case 3:
        case 4:
            op.op = WIRE_UNMAP;
            set(start, pages, NOTHING, 0);
            break;
        case 5:
            random_move(m, start, pages, i);
            compare();
            continue;
        default:
            op.op = WIRE_PROTECT;
            op.flags = (uint32_t[]){0, WIRE_MAP_SEGMENT, WIRE_MAP_RESERVE}[rnd(3)];
            for (uint64_t p = start; p < start + pages; p++) {
                int none = (op.flags & WIRE_MAP_RESERVE) != 0;
                if (model[p].type != NOTHING && (model[p].type == RESERVED) != none)
                    set(p, 1, type_of(op.flags), i);
            }
        }
        assert_int_equal(apply(m, op), 0);
        if (i % 16 == 0)
            compare();
    }
    compare();
    mapping_close(m);
    mapping_close(NULL);
}

static void assert_logged(unsigned i, unsigned op, uint64_t page_start, uint64_t pages, uint32_t stack)
{
    assert_true(i < log_count);
    assert_int_equal(log_events[i].op, op);
    assert_int_equal(log_events[i].address, BASE + page_start * 4096);
    assert_int_equal(log_events[i].size_bytes, pages * 4096);
    assert_int_equal(log_events[i].stack_id, stack);
}

static struct mapping_op op(unsigned what, uint64_t start, uint64_t pages, uint32_t flags, uint32_t stack)
{
    return (struct mapping_op){
        .op = what, .address = BASE + start * 4096, .length = pages * 4096, .flags = flags, .stack_id = stack};
}

static void test_partial_unmap(void **state)
{
    (void)state;
    struct mapping *m = mapping_open();
    begin();
    apply(m, op(WIRE_MAP, 10, 10, 0, 5));
    assert_int_equal(log_count, 1);
    assert_logged(0, EVENT_ALLOC, 10, 10, 5);
    apply(m, op(WIRE_UNMAP, 13, 2, 0, 21));
    assert_int_equal(log_count, 3);
    assert_logged(0, EVENT_SPLIT, 10, 3, 0);
    assert_logged(1, EVENT_SPLIT, 13, 2, 0);
    assert_logged(2, EVENT_PART_FREE, 13, 2, 21);
    apply(m, op(WIRE_UNMAP, 0, 11, 0, 0)); /* the front of the first part */
    assert_int_equal(log_count, 2);
    assert_logged(0, EVENT_SPLIT, 10, 1, 0);
    assert_logged(1, EVENT_PART_FREE, 10, 1, 0);
    apply(m, op(WIRE_UNMAP, 0, 100, 0, 0));
    assert_int_equal(log_count, 2);
    assert_logged(0, EVENT_PART_FREE, 11, 2, 0);
    assert_logged(1, EVENT_PART_FREE, 15, 5, 0);
    apply(m, op(WIRE_UNMAP, 0, 100, 0, 0));
    assert_int_equal(log_count, 0);
    mapping_close(m);
}

static void test_protect_and_remap(void **state)
{
    (void)state;
    struct mapping *m = mapping_open();
    begin();
    apply(m, op(WIRE_MAP, 0, 100, WIRE_MAP_RESERVE, 1));
    assert_int_equal(log_count, 0);
    apply(m, op(WIRE_PROTECT, 10, 5, 0, 2));
    assert_int_equal(log_count, 1);
    assert_logged(0, EVENT_ALLOC, 10, 5, 2);
    apply(m, op(WIRE_PROTECT, 10, 5, 0, 3)); /* read-only and back: nothing */
    assert_int_equal(log_count, 0);
    apply(m, op(WIRE_PROTECT, 12, 1, WIRE_MAP_RESERVE, 3));
    assert_int_equal(log_count, 3);
    apply(m, op(WIRE_MAP, 200, 4, 0, 7));
    struct mapping_op move = op(WIRE_REMAP, 200, 4, 0, 8);
    move.new_address = BASE + 300 * 4096;
    move.new_length = 8 * 4096;
    apply(m, move);
    assert_int_equal(log_count, 2);
    assert_logged(0, EVENT_REALLOC_FREE, 200, 4, 8);
    assert_logged(1, EVENT_REALLOC_ALLOC, 300, 8, 8);
    move = op(WIRE_REMAP, 300, 8, 0, 9); /* grows in place */
    move.new_address = BASE + 300 * 4096;
    move.new_length = 9 * 4096;
    apply(m, move);
    assert_int_equal(log_count, 2);
    assert_logged(1, EVENT_REALLOC_ALLOC, 300, 9, 9);
    move = op(WIRE_REMAP, 900, 8, 0, 9); /* of what is not known, over what is */
    move.new_address = BASE + 302 * 4096;
    move.new_length = 4096;
    apply(m, move);
    assert_int_equal(log_count, 3);
    mapping_close(m);
}

static void test_break(void **state)
{
    (void)state;
    struct mapping *m = mapping_open();
    begin();
    struct mapping_op b = {.op = WIRE_BREAK, .length = BASE, .address = BASE + 8192, .stack_id = 4};
    apply(m, b);
    assert_logged(0, EVENT_ALLOC, 0, 2, 4);
    b = (struct mapping_op){.op = WIRE_BREAK, .length = BASE + 8192, .address = BASE + 16384, .stack_id = 5};
    apply(m, b);
    assert_logged(0, EVENT_ALLOC, 2, 2, 5);
    b = (struct mapping_op){.op = WIRE_BREAK, .length = BASE + 16384, .address = BASE + 4096};
    apply(m, b);
    assert_int_equal(log_count, 3);
    assert_logged(0, EVENT_SPLIT, 0, 1, 0);
    assert_logged(1, EVENT_PART_FREE, 1, 1, 0);
    assert_logged(2, EVENT_FREE, 2, 2, 0);
    mapping_close(m);
}

/* shmdt says where, and not how much. */
static void test_attached(void **state)
{
    (void)state;
    struct mapping *m = mapping_open();
    begin();
    apply(m, op(WIRE_MAP, 10, 6, WIRE_MAP_ATTACH | WIRE_MAP_SHARED, 5));
    assert_int_equal(log_count, 1);
    assert_logged(0, EVENT_ALLOC, 10, 6, 5);
    apply(m, op(WIRE_UNMAP, 11, 0, WIRE_MAP_ATTACH, 0)); /* the kernel refuses it */
    assert_int_equal(log_count, 0);
    apply(m, op(WIRE_UNMAP, 12, 2, 0, 0));
    apply(m, op(WIRE_UNMAP, 10, 0, WIRE_MAP_ATTACH, 0)); /* what is left */
    assert_int_equal(log_count, 2);
    assert_logged(0, EVENT_PART_FREE, 10, 2, 0);
    assert_logged(1, EVENT_PART_FREE, 14, 2, 0);
    apply(m, op(WIRE_MAP, 20, 2, WIRE_MAP_ATTACH | WIRE_MAP_SHARED, 5));
    apply(m, op(WIRE_UNMAP, 20, 2, 0, 0));
    apply(m, op(WIRE_MAP, 20, 2, 0, 6));
    apply(m, op(WIRE_UNMAP, 20, 0, WIRE_MAP_ATTACH, 0)); /* nothing is attached there any more */
    assert_int_equal(log_count, 0);
    mapping_close(m);
}

/* Numbers from shared memory may be anything. */
static void test_hostile(void **state)
{
    (void)state;
    struct mapping *m = mapping_open();
    begin();
    const uint64_t odd[] = {0, 1, 4095, 1ull << 57, (1ull << 57) - 1, 1ull << 63, UINT64_MAX, UINT64_MAX - 4095};
    for (unsigned what = 0; what < WIRE_OP_COUNT + 3; what++)
        for (unsigned i = 1; i < 8; i++)
            for (unsigned j = 0; j < 8; j++) {
                struct mapping_op o = {.op = what,
                                       .address = odd[i],
                                       .length = odd[j],
                                       .new_address = odd[j],
                                       .new_length = odd[i],
                                       .flags = WIRE_MAP_RESERVE | (j % 2 ? WIRE_MAP_ATTACH : 0)};
                log_count = 0;
                int rc = mapping_apply(m, &o, emit, blocks);
                assert_true(rc == 0 || rc == -EINVAL);
            }
    mapping_close(m);
}

/* Programs with 10^5 maps are ordinary: this must take well under a second. */
static void count_only(void *arg, const struct event *e)
{
    (void)e;
    ++*(uint64_t *)arg;
}

static void test_many(void **state)
{
    (void)state;
    struct mapping *m = mapping_open();
    uint64_t events = 0;
    const uint64_t count = 100000;
    for (uint64_t i = 0; i < count; i++) {
        struct mapping_op o = {
            .op = WIRE_MAP, .address = BASE + i * 7919 % count * 8192, .length = 4096, .stack_id = 1};
        assert_int_equal(mapping_apply(m, &o, count_only, &events), 0);
    }
    assert_int_equal(events, count);
    struct mapping_op o = {.op = WIRE_UNMAP, .address = BASE, .length = count * 4096};
    assert_int_equal(mapping_apply(m, &o, count_only, &events), 0);
    assert_int_equal(events, count + count / 2);
    mapping_close(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random), cmocka_unit_test(test_partial_unmap), cmocka_unit_test(test_protect_and_remap),
        cmocka_unit_test(test_break),  cmocka_unit_test(test_attached),      cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_many),
    };
    random_seed = 99;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
