/* v_event: columns, bounds that choose chunks, damaged chunks, several cursors; and what `memprof sql` refuses. */
#include "../../common/chunk.h"
#include "../../common/db.h"
#include "../../common/kind.h"
#include "../../common/schema.h"
#include "../../report/query/vtab_event.h"
#include "../../report/text/sql.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { CHUNKS = 5, PART = 10 };
static sqlite3 *db;

/* Chunk c has PART events at times 1000 c + 10 i; device 1 has the events of the last chunk. */
static void make_event(int c, int i, struct chunk_event *e)
{
    static const uint8_t ops[PART] = {CHUNK_alloc,         CHUNK_free,         CHUNK_realloc_free, CHUNK_realloc_alloc,
                                      CHUNK_segment_alloc, CHUNK_segment_free, CHUNK_oom,          CHUNK_alloc,
                                      CHUNK_alloc,         CHUNK_end};
    *e = (struct chunk_event){.time_ns = 1000 * (uint64_t)c + 10 * (uint64_t)i,
                              .address = 0x7f0000000000 + 16 * (uint64_t)i,
                              .size_bytes = 100 + (uint64_t)i,
                              .site_id = i == 6 ? 0 : 7,
                              .thread_id = 3,
                              .process_id = 2,
                              .op = ops[i],
                              .hook = 1,
                              .device = c == CHUNKS,
                              .kind = KIND_heap};
}

static int setup(void **state)
{
    struct chunk_codec *codec = chunk_codec_open();
    (void)state;
    if (sqlite3_open(":memory:", &db) != SQLITE_OK ||
        sqlite3_exec(db, common_schema_sql, NULL, NULL, NULL) != SQLITE_OK)
        return -1;
    sqlite3_exec(db,
                 "INSERT INTO device(device_id, name, total_bytes) VALUES(0, 'host', NULL), (1, 'cuda:0', NULL); "
                 "INSERT INTO hook VALUES(1, 'malloc', 'heap');"
                 "INSERT INTO site SELECT 7, 70, 1, 0, 'heap', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0",
                 NULL, NULL, NULL);
    for (int c = 1; c <= CHUNKS; c++) {
        struct chunk_event events[PART];
        struct buf data = BUF(1 << 20);
        sqlite3_stmt *s;
        for (int i = 0; i < PART; i++)
            make_event(c, i, &events[i]);
        if (chunk_encode_events(codec, events, PART, &data))
            return -1;
        sqlite3_prepare_v2(
            db, "INSERT INTO event_chunk VALUES(?1, 1000 * ?1, 1000 * ?1 + 90, 10, 10 * (?1 - 1), ?2, NULL, ?3)", -1,
            &s, NULL);
        sqlite3_bind_int(s, 1, c);
        sqlite3_bind_int(s, 2, c == CHUNKS ? 2 : 1);
        sqlite3_bind_blob(s, 3, data.data, (int)data.length, SQLITE_TRANSIENT);
        if (sqlite3_step(s) != SQLITE_DONE)
            return -1;
        sqlite3_finalize(s);
        buf_free(&data);
    }
    chunk_codec_close(codec);
    return vtab_event_register(db) == SQLITE_OK ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    return sqlite3_close(db) == SQLITE_OK ? 0 : -1;
}

/* All rows of a query: values separated by '|', rows by a space. */
static void query_is(const char *sql, const char *expected)
{
    sqlite3_stmt *s;
    struct buf text = BUF(1 << 20);
    if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) != SQLITE_OK)
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    while (sqlite3_step(s) == SQLITE_ROW) {
        buf_puts(&text, text.length ? " " : "");
        for (int c = 0; c < sqlite3_column_count(s); c++)
            buf_printf(&text, "%s%s", c ? "|" : "", sqlite3_column_type(s, c) == SQLITE_NULL ? "NULL" : db_text(s, c));
    }
    assert_int_equal(sqlite3_finalize(s), SQLITE_OK);
    if (strcmp(text.data ? text.data : "", expected) != 0)
        fail_msg("%s:\nexpected %s\ngot      %s", sql, expected, text.data ? text.data : "");
    buf_free(&text);
}

static void test_columns(void **state)
{
    (void)state;
    query_is("SELECT * FROM v_event LIMIT 2",
             "1000|alloc|host|139637976727552|100|3|70 1010|free|host|139637976727568|101|3|70");
    query_is("SELECT group_concat(op) FROM v_event WHERE time_ns < 2000",
             "alloc,free,free,realloc,segment_alloc,segment_free,oom,alloc,alloc,end");
    query_is(
        "SELECT kind, hook, process_id, site_id, event_number, is_realloc, rowid FROM v_event WHERE time_ns = 2020",
        "heap|malloc|2|7|12|1|12");
    query_is("SELECT stack_id, site_id FROM v_event WHERE op = 'oom' AND time_ns < 2000",
             "NULL|0"); /* of no known site */
    query_is("SELECT count(*), sum(size_bytes) FROM v_event", "50|5225");
}

static void test_bounds(void **state)
{
    (void)state;
    query_is("SELECT count(*) FROM v_event WHERE time_ns >= 2000 AND time_ns <= 2050", "6");
    query_is("SELECT count(*) FROM v_event WHERE time_ns > 2000 AND time_ns < 2050", "4");
    query_is("SELECT count(*) FROM v_event WHERE time_ns BETWEEN 1090 AND 3000", "12");
    query_is("SELECT count(*) FROM v_event WHERE time_ns = 3030", "1");
    query_is("SELECT count(*) FROM v_event WHERE time_ns = 3031", "0");
    query_is("SELECT count(*) FROM v_event WHERE time_ns > 1e9", "0");
    query_is("SELECT count(*) FROM v_event WHERE time_ns > 4089.5", "11");
    query_is("SELECT count(*) FROM v_event WHERE time_ns <= 'x'", "50"); /* text is larger than every number */
    query_is("SELECT count(*) FROM v_event WHERE time_ns > NULL", "0");
    query_is("SELECT count(*) FROM v_event WHERE device = 'cuda:0'", "10");
    query_is("SELECT count(*) FROM v_event WHERE device = 'none'", "0");
    query_is("SELECT count(*) FROM v_event WHERE 'host' = device AND time_ns > 4000 AND time_ns < 9000", "9");
    query_is(
        "SELECT min(time_ns), max(time_ns) FROM v_event WHERE time_ns > 2000 AND time_ns > 3000 AND time_ns < 4000",
        "3010|3090");
    query_is("SELECT time_ns FROM v_event WHERE time_ns > 1000 ORDER BY time_ns LIMIT 1", "1010");
    query_is("SELECT time_ns FROM v_event ORDER BY time_ns DESC LIMIT 1", "5090");
    query_is("SELECT count(*) FROM v_event a JOIN v_event b ON b.time_ns = a.time_ns + 1000 WHERE a.op = 'oom'", "4");
}

/* A chunk outside of the bounds is not even decoded: its damage goes unnoticed. */
static void test_damage(void **state)
{
    (void)state;
    sqlite3_exec(db, "SAVEPOINT a; UPDATE event_chunk SET data = zeroblob(length(data)) WHERE chunk_id IN (2, 3)", NULL,
                 NULL, NULL);
    query_is("SELECT count(*) FROM v_event WHERE time_ns >= 4000", "20");
    query_is("SELECT count(*) FROM v_event", "30");
    sqlite3_exec(db, "UPDATE event_chunk SET data = x''", NULL, NULL, NULL);
    query_is("SELECT count(*) FROM v_event", "0");
    sqlite3_exec(db, "ROLLBACK TO a; RELEASE a", NULL, NULL, NULL);
    query_is("SELECT count(*) FROM v_event", "50");
}

static void run(const char *query, int works, const char *part)
{
    char *text = NULL;
    size_t length = 0;
    struct report_out out = {.file = open_memstream(&text, &length)};
    struct error err = {""};
    int rc = sql_run(db, query, &out, &err);
    fclose(out.file);
    if ((rc == 0) != works || !strstr(rc ? err.text : text, part))
        fail_msg("%s: %d, '%s' expected '%s'", query, rc, rc ? err.text : text, part);
    free(text);
}

static void test_sql(void **state)
{
    (void)state;
    run("SELECT 1 AS a; SELECT count(*) AS n FROM v_event", 1, "a\n1\n\n n\n50\n");
    run("WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r WHERE x < 9) SELECT max(x) AS m FROM r", 1,
        "m\n9\n");
    run("PRAGMA table_info(meta)", 1, "key");
    run("-- nothing", 0, "no query");
    run("SELECT 'a' || char(27) || '[31m' AS \"t\nx\"", 1, "t\\x0ax\na\\x1b[31m\n");
    static const char *const refused[] = {"DELETE FROM site",
                                          "INSERT INTO meta VALUES('a', 'b')",
                                          "ATTACH ':memory:' AS x",
                                          "DROP TABLE site",
                                          "CREATE TEMP TABLE t(a)",
                                          "PRAGMA journal_mode = WAL",
                                          "BEGIN",
                                          "VACUUM INTO '/tmp/x'",
                                          "PRAGMA writable_schema = 1"};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        run(refused[i], 0, "only SELECT");
    run("SELECT load_extension('x')", 0, "not authorized");
    run("SELECT nonsense", 0, "no such column: nonsense");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_columns),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_sql),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
