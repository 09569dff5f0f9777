/* Stacks and modules: one tree for all processes, epochs of modules. */
#include "random.h"
#include "recorder.h"
#include "scratch.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

static struct stack_module module(uint32_t id, uint64_t start, uint64_t end_address, const char *path)
{
    return (struct stack_module){id, start, end_address, start, path, (const uint8_t *)path, 4};
}

static void test_shared_tree(void **state)
{
    (void)state;
    struct stack_map *a = stack_map_open(rec.stacks, 1, NULL), *b = stack_map_open(rec.stacks, 2, NULL);
    struct stack_module m = module(1, 0x1000, 0x2000, "/lib/a.so");
    stack_map_load(a, &m, 1);
    m = module(9, 0x7000, 0x8000, "/lib/a.so"); /* the same file, elsewhere */
    stack_map_load(b, &m, 2);
    const uint64_t in_a[] = {0x1010, 0x1020, 0x1030}, in_b[] = {0x7010, 0x7020, 0x7030},
                   other[] = {0x7018, 0x7020, 0x7030};
    assert_int_equal(stack_map_define(a, NULL, 1, 0, 0, in_a, 3), 0);
    assert_int_equal(stack_map_define(b, NULL, 5, 0, 0, in_b, 3), 0);
    assert_int_equal(stack_map_define(b, NULL, 6, 0, 0, other, 3), 0);
    assert_int_not_equal(stack_map_find(a, 1), 0);
    assert_int_equal(stack_map_find(a, 1), stack_map_find(b, 5));
    assert_int_not_equal(stack_map_find(b, 5), stack_map_find(b, 6));
    assert_int_equal(stack_map_find(a, 5), 0);
    assert_int_equal(stack_map_find(a, UINT32_MAX), 0);
    assert_int_equal(rec_value("SELECT count(*) FROM stack"), 4);
    assert_int_equal(rec_value("SELECT count(*) FROM address"), 4);
    assert_int_equal(rec_value("SELECT count(*) FROM module"), 2);
    assert_int_equal(rec_value("SELECT count(DISTINCT module_id) FROM address"), 1);
    /* the same frames, but cut: an outermost frame of its own */
    assert_int_equal(stack_map_define(a, NULL, 2, 1, 0, in_a, 3), 0);
    assert_int_not_equal(stack_map_find(a, 1), stack_map_find(a, 2));
    assert_int_equal(rec_value("SELECT sum(flags) FROM stack"), 1);
    stack_map_close(a);
    stack_map_close(b);
}

static void test_epochs(void **state)
{
    (void)state;
    struct stack_map *a = stack_map_open(rec.stacks, 1, NULL);
    const uint64_t address[] = {0x1010}, end_of_module[] = {0x2000}, beyond[] = {0x2001};
    struct stack_module m = module(1, 0x1000, 0x2000, "/lib/one.so");
    stack_map_load(a, &m, 10);
    stack_map_define(a, NULL, 1, 0, 0, address, 1);
    stack_map_unload(a, 1, 20);
    m = module(2, 0x1000, 0x2000, "/lib/two.so");
    stack_map_load(a, &m, 30);
    stack_map_define(a, NULL, 2, 0, 0, address, 1);
    assert_int_not_equal(stack_map_find(a, 1), stack_map_find(a, 2));
    assert_int_equal(rec_value("SELECT unload_ns FROM module WHERE path = '/lib/one.so'"), 20);
    assert_int_equal(rec_value("SELECT count(*) FROM address JOIN module USING(module_id) WHERE path = '/lib/two.so'"),
                     1);
    /* a call that does not return may be a module's last instruction */
    stack_map_define(a, NULL, 3, 0, 0, end_of_module, 1);
    stack_map_define(a, NULL, 4, 0, 0, beyond, 1);
    assert_int_equal(rec_value("SELECT count(*) FROM address WHERE module_id = 2 AND offset = 0x1000"), 1);
    assert_int_equal(rec_value("SELECT count(*) FROM address WHERE module_id IS NULL AND offset = 0x2001"), 1);
    /* one that is mapped over another ends it */
    m = module(3, 0x1800, 0x3000, "/lib/three.so");
    stack_map_load(a, &m, 40);
    assert_int_equal(rec_value("SELECT unload_ns FROM module WHERE path = '/lib/two.so'"), 40);
    /* ... and is what the unknown address was */
    assert_int_equal(rec_value("SELECT count(*) FROM address WHERE module_id IS NULL"), 0);
    stack_map_close(a);
}

static void test_hostile(void **state)
{
    (void)state;
    struct stack_map *a = stack_map_open(rec.stacks, 1, NULL);
    const uint64_t address[] = {0x10};
    assert_int_equal(stack_map_define(a, NULL, 0, 0, 0, address, 1), -EINVAL);
    assert_int_equal(stack_map_define(a, NULL, 4000000000u, 0, 0, address, 1), -EINVAL);
    assert_int_equal(stack_map_define(a, NULL, 3, 0, 0, address, 0), 0);
    assert_int_equal(stack_map_find(a, 3), 0);
    static const uint64_t many[1025];
    struct stack_path *path = stack_path_open();
    assert_int_equal(stack_map_define(a, path, 4, 0, 1, address, 1), -EINVAL); /* shares what is not there */
    assert_int_equal(stack_map_define(a, path, 4, 0, 0, many, 1025), -EINVAL);
    assert_int_equal(stack_map_define(a, path, 4, 0, 0, address, 1), 0);
    assert_int_equal(stack_map_define(a, path, 5, 0, 2, address, 1), -EINVAL);
    assert_int_equal(stack_map_define(a, path, 5, 0, 1, many, 1024), -EINVAL);
    assert_int_equal(stack_map_define(a, path, 5, 0, 1, many, 0), 0); /* its caller's stack: the same one */
    assert_int_equal(stack_map_find(a, 5), stack_map_find(a, 4));
    assert_int_equal(stack_map_define(a, path, 0, 0, 0, many, 2), -EINVAL); /* the path is the stack's all the same */
    assert_int_equal(stack_map_define(a, path, 6, 0, 2, NULL, 0), 0);
    assert_int_not_equal(stack_map_find(a, 6), 0);
    stack_path_close(path);
    struct stack_module m = module(1, 0x2000, 0x1000, "/backwards");
    stack_map_load(a, &m, 0);
    stack_map_unload(a, 77, 0);
    assert_int_equal(rec_value("SELECT count(*) FROM module"), 0);
    stack_map_close(a);
}

/* Many, against the rows that a recursive query walks. */
static void test_many(void **state)
{
    (void)state;
    struct stack_map *a = stack_map_open(rec.stacks, 1, NULL);
    uint64_t addresses[20];
    uint32_t seed = 1;
    for (uint32_t id = 1; id <= 20000; id++) {
        for (int i = 0; i < 20; i++) {
            seed = seed * 1664525 + 1013904223;
            addresses[i] = 0x1000 + (i < 4 ? seed >> 28 : 3); /* the outer frames are the same */
        }
        assert_int_equal(stack_map_define(a, NULL, id, 0, 0, addresses, 20), 0);
        assert_int_not_equal(stack_map_find(a, id), 0);
    }
    assert_int_equal(rec_value("SELECT count(*) FROM address"), 16);
    assert_true(rec_value("SELECT count(*) FROM stack") <= 16 + 16 + 256 + 4096 + 65536);
    assert_int_equal(rec_value("SELECT count(*) FROM stack WHERE depth = 17"), 16);
    assert_int_equal(
        rec_value("SELECT count(*) FROM stack c JOIN stack p ON p.stack_id = c.parent_id WHERE c.depth <> p.depth + 1"),
        0);
    assert_int_equal(
        rec_value("SELECT count(*) FROM (SELECT 1 FROM stack GROUP BY parent_id, address_id HAVING count(*) > 1)"), 0);
    stack_map_close(a);
}

/* What the shared frames are is asked anew when another module lies there. */
static void test_shared_and_modules(void **state)
{
    (void)state;
    struct stack_map *a = stack_map_open(rec.stacks, 1, NULL);
    struct stack_path *path = stack_path_open();
    struct stack_module one = module(1, 0x1000, 0x2000, "/one"), two = module(2, 0x1000, 0x2000, "/two");
    const uint64_t inner[] = {0x1300, 0x1200}, outer[] = {0x1100};
    stack_map_load(a, &one, 0);
    assert_int_equal(stack_map_define(a, path, 1, 0, 0, outer, 1), 0);
    assert_int_equal(stack_map_define(a, path, 2, 0, 1, inner, 2), 0);
    stack_map_load(a, &two, 1);
    assert_int_equal(stack_map_define(a, path, 3, 0, 1, inner, 2), 0);
    assert_int_equal(stack_map_define(a, path, 4, 1, 1, inner, 2), 0); /* other flags: another root */
    assert_int_not_equal(stack_map_find(a, 2), stack_map_find(a, 3));
    assert_int_not_equal(stack_map_find(a, 3), stack_map_find(a, 4));
    stacks_write(rec.stacks);
    assert_int_equal(rec_value("SELECT count(*) FROM stack JOIN address USING(address_id) JOIN module USING(module_id) "
                               "WHERE path = '/one'"),
                     3);
    assert_int_equal(rec_value("SELECT count(*) FROM stack JOIN address USING(address_id) JOIN module USING(module_id) "
                               "WHERE path = '/two'"),
                     6);
    stack_path_close(path);
    stack_map_close(a);
}

/* What path and addresses share, as a thread tells it. */
static uint32_t shared_with(const uint64_t *last, uint32_t last_count, const uint64_t *addresses, uint32_t count)
{
    uint32_t shared = 0;
    while (shared < last_count && shared < count && last[last_count - 1 - shared] == addresses[count - 1 - shared])
        shared++;
    return shared;
}

/* Stacks that leave one another at any depth: each leads back, by the rows, to the addresses that it was made of. */
#define PATHS 6000u
static void test_paths(void **state)
{
    (void)state;
    static uint64_t paths[PATHS + 1][12];
    static struct row {
        uint32_t parent, depth;
        uint64_t address;
    } rows[PATHS * 12 + 1];
    struct stack_map *a = stack_map_open(rec.stacks, 1, NULL);
    struct stack_path *threads[] = {stack_path_open(), stack_path_open()};
    uint32_t counts[PATHS + 1] = {0}, last[3] = {0};
    random_seed = 7;
    for (uint32_t id = 1; id <= PATHS; id++) { /* innermost first: the beginning of another one's outer frames stays */
        uint32_t from = id > 1 ? 1 + (uint32_t)rnd(id - 1) : 0, shared = from ? (uint32_t)rnd(counts[from] + 1) : 0;
        uint32_t count = counts[id] = shared + (uint32_t)rnd(13 - shared) + (shared == 0 ? 1 : 0);
        count = counts[id] = count > 12 ? 12 : count;
        for (uint32_t k = 0; k < count; k++)
            paths[id][count - 1 - k] = k < shared ? paths[from][counts[from] - 1 - k] : 0x1000 + rnd(9);
        uint32_t thread = id % 3; /* the third one tells whole stacks */
        uint32_t same = thread < 2 ? shared_with(paths[last[thread]], counts[last[thread]], paths[id], count) : 0;
        assert_int_equal(stack_map_define(a, thread < 2 ? threads[thread] : NULL, id, 0, same, paths[id], count - same),
                         0);
        last[thread] = id;
    }
    stack_path_close(threads[0]);
    stack_path_close(threads[1]);
    int64_t row_count = rec_value("SELECT count(*) FROM stack");
    assert_true(row_count > 8192 && (uint64_t)row_count < sizeof rows / sizeof *rows);
    assert_int_equal(rec_value("SELECT min(stack_id) FROM stack"), 1);
    assert_int_equal(rec_value("SELECT max(stack_id) FROM stack"), row_count);
    assert_int_equal(
        rec_value("SELECT count(*) FROM (SELECT 1 FROM stack GROUP BY parent_id, address_id HAVING count(*) > 1)"), 0);
    sqlite3_stmt *q = NULL;
    assert_int_equal(sqlite3_prepare_v2(store_db(rec.store),
                                        "SELECT stack_id, parent_id, depth, offset FROM stack JOIN address "
                                        "USING(address_id)",
                                        -1, &q, NULL),
                     SQLITE_OK);
    while (sqlite3_step(q) == SQLITE_ROW)
        rows[sqlite3_column_int(q, 0)] =
            (struct row){(uint32_t)sqlite3_column_int(q, 1), (uint32_t)sqlite3_column_int(q, 2),
                         (uint64_t)sqlite3_column_int64(q, 3)};
    sqlite3_finalize(q);
    for (uint32_t id = 1; id <= PATHS; id++) {
        uint32_t node = stack_map_find(a, id);
        for (uint32_t i = 0; i < counts[id]; i++, node = rows[node].parent) {
            assert_int_equal(rows[node].address, paths[id][i]);
            assert_int_equal(rows[node].depth, counts[id] - i);
        }
        assert_int_equal(node, 0);
    }
    stack_map_close(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_shared_tree, recorder_begin, recorder_end),
        cmocka_unit_test_setup_teardown(test_epochs, recorder_begin, recorder_end),
        cmocka_unit_test_setup_teardown(test_hostile, recorder_begin, recorder_end),
        cmocka_unit_test_setup_teardown(test_many, recorder_begin, recorder_end),
        cmocka_unit_test_setup_teardown(test_paths, recorder_begin, recorder_end),
        cmocka_unit_test_setup_teardown(test_shared_and_modules, recorder_begin, recorder_end),
    };
    return cmocka_run_group_tests(tests, scratch_begin, scratch_end);
}
