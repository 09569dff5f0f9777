/* Accounts and own peaks of random recordings, against a naive way (finish_recording.h); what finish_database must
 * survive. */
#include "../../common/db.h"
#include "../../profiler/finish/finish.h"
#include "finish_recording.h"
#include "random.h"
#include "scratch.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void test_random_recordings(void **state)
{
    (void)state;
    static const size_t chunk_sizes[] = {50, 400, 3000, 20000};
    for (uint32_t i = 0; i < random_volume(12, 4); i++) {
        sqlite3 *db = finish_random("random.db", 100 + i, 20000, chunk_sizes[i % 4]);
        finish_all(db, 0);
        finish_check_accounts(db);
        assert_true(finish_check_own_peaks(db) > 100);
        finish_none(db, "SELECT 1 FROM meta WHERE key = 'own_peak_incomplete'");
        sqlite3_close(db);
    }
}

/* It only saves time: one that is not of these events, or not whole, changes nothing. */
static void test_any_timeline(void **state)
{
    (void)state;
    static const char *const damages[] = {
        "DELETE FROM timeline",
        "DELETE FROM timeline WHERE time_ns % 3 = 0",
        "DELETE FROM timeline WHERE time_ns < 1000 OR time_ns > 9000",
        "UPDATE timeline SET active_max_bytes = 0",
        "UPDATE timeline SET active_max_bytes = active_max_bytes / 2 WHERE device_id = 0",
        "UPDATE timeline SET width_ns = 9223372036854775807",
        "UPDATE timeline SET width_ns = -width_ns",
    };
    for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
        sqlite3 *db = finish_random("timeline.db", 40, 10000, 500);
        scratch_sql(db, "%s", damages[i]);
        finish_all(db, 0);
        finish_check_accounts(db);
        assert_true(finish_check_own_peaks(db) > 100);
        sqlite3_close(db);
    }
}

static void test_finishing_twice_changes_nothing(void **state)
{
    (void)state;
    sqlite3 *db = finish_random("twice.db", 7, 5000, 500);
    scratch_sql(db,
                "INSERT INTO account SELECT 'thread', 1, 0, 0, 'heap', 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1");
    finish_all(db, 0);
    scratch_sql(db, "CREATE TEMP TABLE first AS SELECT * FROM account");
    finish_all(db, 0);
    finish_none(db, "SELECT * FROM account EXCEPT SELECT * FROM first");
    finish_none(db, "SELECT * FROM first EXCEPT SELECT * FROM account");
    assert_int_equal(db_int(db, "SELECT count(*) FROM account WHERE scope = 'thread'", 0), 1);
    /* nothing can be looked up again here: what is known stays */
    scratch_sql(
        db, "CREATE TEMP TABLE frames AS SELECT * FROM frame WHERE address_id IN (SELECT address_id FROM address WHERE "
            "module_id NOT NULL)");
    finish_all(db, 1);
    finish_none(db, "SELECT * FROM frames EXCEPT SELECT * FROM frame");
    sqlite3_close(db);
}

static void expect_unknown(const char *name, const char *damage)
{
    sqlite3 *db = finish_random(name, 9, 5000, 500);
    scratch_sql(db, "%s", damage);
    finish_all(db, 0);
    scratch_sql(db, "%s", finish_naive_keys);
    scratch_sql(db, "%s", finish_naive_accounts);
    finish_none(db, "SELECT * FROM naive EXCEPT SELECT * FROM ours");
    assert_int_equal(db_int(db, "SELECT count(*) FROM meta WHERE key = 'own_peak_incomplete'", 0), 1);
    assert_true(db_int(db, "SELECT count(*) FROM account WHERE own_peak_bytes IS NULL", 0) > 50);
    assert_true(db_int(db, "SELECT count(*) FROM account WHERE own_peak_bytes IS NOT NULL", 0) > 50);
    /* what one site makes is known all the same */
    finish_none(db, "SELECT * FROM v_line l WHERE own_peak_bytes IS NULL AND kind <> 'all' AND (SELECT count(*) FROM "
                    "site_line sl JOIN site s "
                    "USING(site_id) JOIN device d USING(device_id) WHERE sl.line_id = l.line_id AND s.kind = l.kind "
                    "AND d.name = l.device) = 1");
    sqlite3_close(db);
}

static void test_missing_or_damaged_events(void **state)
{
    (void)state;
    expect_unknown("a.db", "UPDATE meta SET value = 'last' WHERE key = 'events_kept'");
    expect_unknown("b.db", "DELETE FROM event_chunk WHERE chunk_id = 3");
    expect_unknown("c.db", "DELETE FROM event_chunk WHERE chunk_id = 10");
    expect_unknown("d.db", "DELETE FROM event_chunk; UPDATE meta SET value = 'none' WHERE key = 'events_kept'");
    expect_unknown("e.db", "UPDATE event_chunk SET site_delta = x'00112233' WHERE chunk_id = 5");
    expect_unknown("f.db", "UPDATE event_chunk SET site_delta = NULL WHERE chunk_id = 5");
    expect_unknown("g.db", "UPDATE site SET alloc_bytes = alloc_bytes + 1 WHERE site_id = 5");
    expect_unknown("h.db", "DELETE FROM event_chunk");
    /* the deltas are whole but the events are not */
    sqlite3 *db = finish_random("i.db", 9, 5000, 500);
    scratch_sql(db, "UPDATE event_chunk SET data = zeroblob(length(data))");
    finish_all(db, 0);
    assert_int_equal(db_int(db, "SELECT count(*) FROM meta WHERE key = 'own_peak_incomplete'", 0), 1);
    sqlite3_close(db);
    /* one chunk of events: whatever is said all the same is right */
    sqlite3 *whole = finish_random("whole.db", 9, 5000, 500);
    finish_all(whole, 0);
    sqlite3_close(whole);
    for (int chunk = 1; chunk <= 10; chunk++) {
        db = finish_random("j.db", 9, 5000, 500);
        scratch_sql(db, "UPDATE event_chunk SET data = zeroblob(length(data)) WHERE chunk_id = %d", chunk);
        finish_all(db, 0);
        scratch_sql(db, "CREATE TEMP TABLE damaged AS SELECT * FROM account");
        scratch_sql(db, "DELETE FROM event_chunk");
        scratch_sql(db, "ATTACH %Q AS whole", scratch_path("whole.db"));
        finish_none(db, "SELECT * FROM damaged WHERE own_peak_bytes NOT NULL EXCEPT SELECT * FROM whole.account");
        assert_true(db_int(db, "SELECT count(*) FROM damaged WHERE own_peak_bytes NOT NULL", 0) > 200);
        sqlite3_close(db);
    }
}

static void test_hostile_rows(void **state)
{
    (void)state;
    static const char *const damages[] = {
        "UPDATE stack SET parent_id = stack_id WHERE stack_id = 10",
        "UPDATE stack SET parent_id = 600 WHERE stack_id = 2; UPDATE stack SET parent_id = 2 WHERE stack_id > 2",
        "UPDATE stack SET parent_id = stack_id + 2 WHERE stack_id < 600; UPDATE stack SET parent_id = 2 WHERE stack_id "
        "= 600",
        "UPDATE stack SET parent_id = 999999, address_id = -5",
        "UPDATE stack SET address_id = 9223372036854775807",
        "DELETE FROM stack",
        "DELETE FROM address",
        "DELETE FROM module",
        "DELETE FROM function",
        "DELETE FROM file",
        "UPDATE frame SET line = -3, function_id = 77777777777, file_id = -1",
        "UPDATE frame SET line = 9223372036854775807, inline_depth = -inline_depth",
        "UPDATE site SET alloc_bytes = 9223372036854775807, at_peak_bytes = -9223372036854775807, lifetime_ns = "
        "9223372036854775807",
        "UPDATE site SET kind = 'a kind with a name that is far longer than any kind has', device_id = site_id * "
        "1000000000000",
        "UPDATE site SET kind = site_id",
        "UPDATE site SET site_id = site_id * 100000000000, stack_id = -stack_id",
        "UPDATE site SET site_id = -site_id",
        "UPDATE event_chunk SET event_count = 9223372036854775807, first_event = 0",
        "UPDATE total SET peak_active_bytes = -1",
        "UPDATE account SET scope = 'thread'; UPDATE meta SET value = NULL WHERE key = 'events_kept'",
        "UPDATE module SET path = '/nonexistent/' || path, build_id = ''; DELETE FROM frame",
        "UPDATE module SET path = char(0), bias = -9223372036854775807; DELETE FROM frame; UPDATE address SET offset = "
        "-9223372036854775808",
    };
    for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
        sqlite3 *db = finish_random("hostile.db", 11, 3000, 300);
        scratch_sql(db, "PRAGMA foreign_keys = OFF; %s", damages[i]);
        finish_all(db, 0);
        sqlite3_close(db);
    }
}

static void test_empty_recording(void **state)
{
    (void)state;
    sqlite3 *db = finish_empty("empty.db");
    finish_all(db, 0);
    assert_int_equal(db_int(db, "SELECT count(*) FROM account", -1), 0);
    sqlite3_close(db);
}

static void test_interruption(void **state)
{
    (void)state;
    sqlite3 *db = finish_random("stop.db", 5, 3000, 300);
    struct finish_options options = {0};
    struct error err = {""};
    scratch_sql(db, "CREATE TEMP TABLE before AS SELECT count(*) AS n FROM account");
    finish_interrupted = 1;
    assert_int_equal(finish_database(db, &options, &err), -EINTR);
    finish_interrupted = 0;
    assert_int_equal(db_int(db, "SELECT value = 'recorded' FROM meta WHERE key = 'state'", 0), 1);
    assert_int_equal(db_int(db, "SELECT (SELECT n FROM before) = count(*) FROM account", 0), 1);
    finish_all(db, 0);
    finish_check_accounts(db);
    sqlite3_close(db);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_recordings),
        cmocka_unit_test(test_any_timeline),
        cmocka_unit_test(test_finishing_twice_changes_nothing),
        cmocka_unit_test(test_missing_or_damaged_events),
        cmocka_unit_test(test_hostile_rows),
        cmocka_unit_test(test_empty_recording),
        cmocka_unit_test(test_interruption),
    };
    return cmocka_run_group_tests(tests, scratch_begin, scratch_end);
}
