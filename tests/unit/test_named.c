/* Frames that bring their own names: rows of function, file, frame, address; equal ones are one; stacks share a tree.
 */
#include "recorder.h"
#include "scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const struct named_frame line_7 = {.function = "Net.forward",
                                          .plain_name = "forward",
                                          .file = "/src/net.py",
                                          .line = 7,
                                          .column = 3,
                                          .first_line = 5,
                                          .language = "python"};

static void test_rows(void **state)
{
    (void)state;
    struct named_frame other = line_7;
    uint32_t a = named_address(rec.named, &line_7);
    assert_int_not_equal(a, 0);
    char copy[] = "Net.forward";
    other.function = copy; /* equal text elsewhere, and gone afterwards */
    assert_int_equal(named_address(rec.named, &other), a);
    memset(copy, 'x', sizeof copy - 1);
    other = line_7;
    other.line = 8;
    assert_int_not_equal(named_address(rec.named, &other), a);
    assert_int_equal(rec_value("SELECT count(*) FROM function"), 1);
    assert_int_equal(rec_value("SELECT count(*) FROM file"), 1);
    assert_int_equal(rec_value("SELECT count(*) FROM address WHERE module_id IS NULL AND offset < 0"), 2);
    assert_int_equal(
        rec_value("SELECT count(*) FROM frame f JOIN function n USING(function_id) JOIN file s ON s.file_id = "
                  "f.file_id WHERE n.name = 'Net.forward' AND n.plain_name = 'forward' AND n.file_id = "
                  "s.file_id AND n.line = 5 AND s.path = '/src/net.py' AND f.line = 7 AND f.column = 3 AND "
                  "f.language = 'python' AND NOT is_inline AND NOT is_allocator"),
        1);
    other = line_7; /* another function of that name */
    other.first_line = 50;
    other.line = 51;
    named_address(rec.named, &other);
    assert_int_equal(rec_value("SELECT count(*) FROM function"), 2);
    assert_int_equal(rec_value("SELECT count(*) FROM file"), 1);
}

static void test_parts_missing(void **state)
{
    (void)state;
    struct named_frame nameless = {.file = "<string>", .line = 1, .language = "python"};
    struct named_frame no_file = {.function = "at::empty", .line = 4, .column = 2, .language = "native"};
    struct named_frame none = {.function = "", .file = "", .language = "native"};
    struct named_frame allocator = {.function = "malloc", .language = "native"};
    uint32_t ids[] = {named_address(rec.named, &nameless), named_address(rec.named, &no_file),
                      named_address(rec.named, &none), named_address(rec.named, &allocator)};
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < i; k++)
            assert_int_not_equal(ids[i], ids[k]);
    assert_int_equal(rec_value("SELECT count(*) FROM frame WHERE function_id IS NULL"), 2);
    assert_int_equal(rec_value("SELECT count(*) FROM frame WHERE file_id IS NULL AND line IS NULL AND column IS NULL"),
                     3);
    assert_int_equal(rec_value("SELECT count(*) FROM function WHERE name = 'at::empty' AND plain_name = 'at::empty'"),
                     1);
    assert_int_equal(rec_value("SELECT count(*) FROM function WHERE is_allocator"), 1);
    assert_int_equal(rec_value("SELECT count(*) FROM file WHERE path = '<string>'"), 1);
}

static void test_stacks(void **state)
{
    (void)state;
    struct named_frame outer = {.function = "main", .file = "/src/net.py", .line = 90, .language = "python"};
    uint32_t f = named_address(rec.named, &line_7), m = named_address(rec.named, &outer);
    uint32_t deep = named_stack(rec.named, (uint32_t[]){f, m}, 2), flat = named_stack(rec.named, (uint32_t[]){m}, 1);
    assert_int_not_equal(deep, flat);
    assert_int_equal(named_stack(rec.named, (uint32_t[]){f, m}, 2), deep);
    assert_int_equal(named_stack(rec.named, (uint32_t[]){f, 0, m}, 3), deep); /* a frame that could not be had */
    assert_int_equal(named_stack(rec.named, NULL, 0), 0);
    assert_int_equal(rec_value("SELECT count(*) FROM stack"), 2);
    assert_int_equal(
        rec_value("SELECT count(*) FROM stack c JOIN stack p ON p.stack_id = c.parent_id WHERE c.depth = 2 "
                  "AND p.parent_id IS NULL"),
        1);
    assert_int_equal(rec_value("SELECT address_id FROM stack WHERE depth = 1"), m);
}

/* Native addresses of a process and named ones stand in the same tree and never meet. */
static void test_beside_native(void **state)
{
    (void)state;
    struct stack_map *map = stack_map_open(rec.stacks, 1, NULL);
    uint32_t f = named_address(rec.named, &line_7);
    assert_int_equal(stack_map_define(map, NULL, 1, 0, 0, (uint64_t[]){1, 2}, 2), 0);
    assert_int_not_equal(stack_map_find(map, 1), named_stack(rec.named, &f, 1));
    assert_int_equal(rec_value("SELECT count(*) FROM address"), 3);
    assert_int_equal(rec_value("SELECT count(*) FROM address WHERE offset >= 0"), 2);
    stack_map_close(map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_rows, recorder_begin, recorder_end),
        cmocka_unit_test_setup_teardown(test_parts_missing, recorder_begin, recorder_end),
        cmocka_unit_test_setup_teardown(test_stacks, recorder_begin, recorder_end),
        cmocka_unit_test_setup_teardown(test_beside_native, recorder_begin, recorder_end),
    };
    return cmocka_run_group_tests(tests, scratch_begin, scratch_end);
}
