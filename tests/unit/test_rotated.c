/* The running file of a rotated recording: what leaves it with a part, and what a killed collector did not get done. */
#include "../../common/db.h"
#include "../../common/rotated.h"
#include "scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

/* Part 2 began at 100 ns with event 10, in chunk 3. */
static sqlite3 *running(const char *name)
{
    sqlite3 *db = scratch_db(name);
    scratch_sql(
        db,
        "INSERT INTO meta VALUES('part_start_ns', 100), ('part_first_event', 10), ('part_chunk', 3), ('rotating', "
        "'%.*s.20261124-190312.347.db');"
        "INSERT INTO event_chunk VALUES(1, 1, 9, 5, 0, 1, x'00', x'00'), (2, 9, 99, 5, 5, 1, x'00', x'00'), "
        "(3, 100, 120, 5, 10, 1, x'00', x'00');"
        "INSERT INTO chunk_sum VALUES(2, x'00'), (3, x'00');"
        "INSERT INTO chunk_free VALUES(2, x'00'), (3, x'00');"
        "INSERT INTO keyframe VALUES(0, 0, 1, 'periodic', NULL, x'00'), (99, 10, 3, 'periodic', NULL, x'00');"
        "INSERT INTO process(process_id, pid, start_kind, exe, command_line, start_ns, end_ns) VALUES"
        " (1, 7, 'exec', '/a', 'a', 0, NULL), (2, 8, 'fork', '/a', 'a', 5, 50);"
        "INSERT INTO mark(mark_id, name, start_ns, end_ns, is_range) VALUES(1, 'gone', 5, 50, 1), (2, 'open', 5, NULL, "
        "1), (3, 'instant', 5, NULL, 0), (4, 'over', 5, 110, 1), (5, 'new', 101, NULL, 0);"
        "INSERT INTO segment(segment_id, device_id, kind, process_id, address, size_bytes, alloc_ns, free_ns) VALUES"
        " (1, 0, 'pool', 1, 1, 1, 1, 99), (2, 0, 'pool', 1, 1, 1, 1, NULL), (3, 0, 'pool', 1, 1, 1, 1, 100);"
        /* 1: replaced by 2; 3: gone; 5: of a process that ended; 6: new */
        "INSERT INTO heap_range VALUES(1, 1, 10, 4096, 100, 0), (2, 1, 20, 4096, 200, 0), (3, 1, 30, 8192, 0, 0), "
        "(5, 2, 30, 4096, 100, 0), (6, 1, 130, 4096, 300, 0);",
        (int)db_stem(name), name);
    return db;
}

static void assert_dropped(sqlite3 *db)
{
    assert_int_equal(db_int(db, "SELECT group_concat(chunk_id) = '3' FROM event_chunk", 0), 1);
    assert_int_equal(db_int(db, "SELECT group_concat(chunk_id) = '3' FROM chunk_sum", 0), 1);
    assert_int_equal(db_int(db, "SELECT group_concat(chunk_id) = '3' FROM chunk_free", 0), 1);
    assert_int_equal(db_int(db, "SELECT group_concat(time_ns) = '99' FROM keyframe", 0), 1);
    assert_int_equal(db_int(db, "SELECT group_concat(mark_id) = '2,4,5' FROM (SELECT * FROM mark ORDER BY mark_id)", 0),
                     1);
    assert_int_equal(
        db_int(db, "SELECT group_concat(segment_id) = '2,3' FROM (SELECT * FROM segment ORDER BY segment_id)", 0), 1);
    assert_int_equal(
        db_int(db, "SELECT group_concat(range_id) = '2,6' FROM (SELECT * FROM heap_range ORDER BY range_id)", 0), 1);
    assert_int_equal(db_int(db, "SELECT count(*) FROM meta WHERE key = 'rotating'", -1), 0);
}

static void test_drop(void **state)
{
    (void)state;
    sqlite3 *db = running("drop.db");
    struct error err;
    assert_int_equal(rotated_drop(db, &err), 0);
    assert_dropped(db);
    sqlite3_close(db);
}

static void test_killed_after_the_copy(void **state)
{
    (void)state;
    sqlite3 *db = running("after.db");
    struct error err;
    sqlite3_close(scratch_db("after.20261124-190312.347.db"));
    assert_int_equal(rotated_recover(db, &err), 0);
    assert_dropped(db);
    sqlite3_close(db);
}

static void test_killed_before(void **state)
{
    (void)state;
    sqlite3 *db = running("before.db");
    struct error err;
    FILE *half = fopen(scratch_path("before.20261124-190312.347.db.part"), "w");
    assert_non_null(half);
    fclose(half);
    assert_int_equal(rotated_recover(db, &err), 0);
    assert_int_equal(db_int(db, "SELECT count(*) FROM event_chunk", 0), 3); /* they are nowhere else */
    assert_int_equal(db_int(db, "SELECT count(*) FROM meta WHERE key = 'rotating'", -1), 0);
    assert_null(fopen(scratch_path("before.20261124-190312.347.db.part"), "r"));
    sqlite3_close(db);
}

static void test_hostile(void **state)
{
    (void)state;
    static const char *const names[] = {"../hostile.20261124-190312.347.db", "", "/etc/passwd", "other.db",
                                        "hostile.20261124-190312.347.db.part"};
    struct error err;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        sqlite3 *db = running("hostile.db");
        sqlite3_close(scratch_db("other.db"));
        scratch_sql(db, "UPDATE meta SET value = %Q WHERE key = 'rotating'", names[i]);
        assert_int_equal(rotated_recover(db, &err), 0);
        assert_int_equal(db_int(db, "SELECT count(*) FROM event_chunk", 0), 3);
        sqlite3_close(db);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_drop),
        cmocka_unit_test(test_killed_after_the_copy),
        cmocka_unit_test(test_killed_before),
        cmocka_unit_test(test_hostile),
    };
    return cmocka_run_group_tests(tests, scratch_begin, scratch_end);
}
