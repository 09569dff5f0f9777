/* schema.h against what SQLite makes of the same text. */
#include "../../common/schema.h"

#include "../../common/buf.h"
#include "scratch.h"

#include <fcntl.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void each_is_what_sqlite_says(void **state)
{
    (void)state;
    sqlite3 *db;
    sqlite3_stmt *s;
    size_t count, rows = 0;
    const struct schema_item *items = schema_items(&count);
    assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, common_schema_sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_prepare_v2(db, "SELECT type, name, sql FROM sqlite_schema WHERE type IN ('table', 'view') ORDER BY rowid",
                       -1, &s, NULL);
    while (sqlite3_step(s) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(s, 1), *sql = (const char *)sqlite3_column_text(s, 2);
        char text[1 << 16];
        const struct schema_item *item = &items[rows++];
        assert_true(rows <= count);
        snprintf(text, sizeof text, "CREATE %s %.*s", item->is_view ? "VIEW" : "TABLE", item->text_bytes, item->text);
        assert_string_equal(text, sql);
        assert_int_equal(item->is_view, strcmp((const char *)sqlite3_column_text(s, 0), "view") == 0);
        assert_int_equal(item->name_bytes, strlen(name));
        assert_ptr_equal(schema_find(name), item);
    }
    assert_true(rows > 50);
    assert_int_equal(rows, count);
    sqlite3_finalize(s);
    sqlite3_close(db);
}

/* The rows of a statement, as text. */
static void add_rows(sqlite3 *db, const char *sql, struct buf *out)
{
    sqlite3_stmt *s;
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &s, NULL), SQLITE_OK);
    while (sqlite3_step(s) == SQLITE_ROW)
        for (int i = 0; i < sqlite3_column_count(s); i++)
            buf_printf(out, "%s|", (const char *)sqlite3_column_text(s, i));
    sqlite3_finalize(s);
}

static void the_empty_database_is_what_sqlite_makes(void **state)
{
    (void)state;
    static const char all[] = "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY rowid";
    const char *path = scratch_path("new.db");
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
    assert_int_equal(schema_write(fd), 0);
    close(fd);
    sqlite3 *made, *written;
    assert_int_equal(sqlite3_open(":memory:", &made), SQLITE_OK);
    assert_int_equal(sqlite3_exec(made, common_schema_sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_open(path, &written), SQLITE_OK);
    struct buf ours = BUF(1 << 20), theirs = BUF(1 << 20), facts = BUF(1 << 10);
    add_rows(written, all, &ours);
    add_rows(made, all, &theirs);
    assert_string_equal(buf_text(&ours), buf_text(&theirs));
    for (int i = 0; i < 4; i++)
        add_rows(written,
                 (const char *[]){"PRAGMA integrity_check", "PRAGMA page_size", "PRAGMA user_version",
                                  "PRAGMA application_id"}[i],
                 &facts);
    assert_string_equal(buf_text(&facts), "ok|4096|1|1297109574|"); /* 0x4D505246: MPRF */
    buf_free(&ours);
    buf_free(&theirs);
    buf_free(&facts);
    sqlite3_close(made);
    sqlite3_close(written);
}

static void names_are_found_as_sqlite_finds_them(void **state)
{
    (void)state;
    assert_non_null(schema_find("SITE"));
    assert_true(schema_find("V_line")->is_view);
    assert_null(schema_find("sit"));
    assert_null(schema_find("site("));
    assert_null(schema_find(""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_is_what_sqlite_says),
        cmocka_unit_test(the_empty_database_is_what_sqlite_makes),
        cmocka_unit_test(names_are_found_as_sqlite_finds_them),
    };
    return cmocka_run_group_tests(tests, scratch_begin, scratch_end);
}
