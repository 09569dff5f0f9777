/* The database while it is written: statements, commits, and a disk that is full. */
#include "../../profiler/store/store.h"

#include "../../common/db.h"
#include "scratch.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void put(struct store *s, const char *key, int64_t value)
{
    sqlite3_stmt *q = store_statement(s, "INSERT INTO meta VALUES(?, ?)");
    sqlite3_bind_text(q, 1, key, -1, SQLITE_TRANSIENT);
    sqlite3_bind_int64(q, 2, value);
    store_step(s, q);
}

static void test_rows(void **state)
{
    (void)state;
    struct store *s;
    struct error err = {""};
    struct stat st;
    const char *path = scratch_path("rows.db");
    assert_int_equal(store_create(path, &s, &err), 0);
    put(s, "format", 1);
    put(s, "a", 2);
    store_commit(s);
    put(s, "b", 3);
    assert_int_equal(store_failed(s, &err), 0);
    assert_int_equal(store_close(s, &err), 0);
    /* one plain file */
    assert_int_not_equal(stat(scratch_path("rows.db-wal"), &st), 0);
    sqlite3 *db;
    assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    assert_int_equal(db_int(db, "SELECT count(*) FROM meta", -1), 3);
    sqlite3_close(db);
    /* an existing file is never written over */
    assert_true(store_create(path, &s, &err) < 0);
    assert_non_null(strstr(err.text, path));
}

/* What was committed is there when the writer is killed; what was not is not. */
static void test_killed(void **state)
{
    (void)state;
    const char *path = scratch_path("killed.db");
    pid_t pid = fork();
    if (pid == 0) {
        struct store *s;
        if (store_create(path, &s, NULL))
            _exit(1);
        put(s, "a", 1);
        store_commit(s);
        put(s, "b", 2);
        kill(getpid(), SIGKILL);
    }
    waitpid(pid, NULL, 0);
    sqlite3 *db;
    assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    assert_int_equal(db_int(db, "SELECT count(*) FROM meta", -1), 1);
    sqlite3_close(db);
}

static void test_full_disk(void **state)
{
    (void)state;
    const char *directory = scratch_path("small");
    mkdir(directory, 0700);
    if (mount("tmpfs", directory, "tmpfs", 0, "size=1m")) {
        rmdir(directory);
        skip(); /* needs root */
    }
    char path[128], text[4096];
    struct store *s;
    struct error err = {""};
    snprintf(path, sizeof path, "%s/x.db", directory);
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = 0;
    assert_int_equal(store_create(path, &s, &err), 0);
    put(s, "format", 1);
    store_commit(s);
    for (int i = 0; i < 1000 && !store_failed(s, NULL); i++) {
        snprintf(text, 16, "%d", i);
        text[strlen(text)] = 'x';
        put(s, text, i);
        store_commit(s);
    }
    assert_int_equal(store_failed(s, &err), -ENOSPC);
    assert_non_null(strstr(err.text, "disk full"));
    assert_null(store_statement(s, "INSERT INTO meta VALUES('never', 1)"));
    store_step(s, NULL);
    store_commit(s);
    assert_int_equal(store_close(s, &err), -ENOSPC);
    sqlite3 *db;
    assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    assert_true(db_int(db, "SELECT count(*) FROM meta", -1) > 10);
    assert_int_equal(db_int(db, "SELECT count(*) FROM meta WHERE key = 'partial'", -1), 1);
    sqlite3_close(db);
    umount(directory);
    rmdir(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_killed),
        cmocka_unit_test(test_full_disk),
    };
    return cmocka_run_group_tests(tests, scratch_begin, scratch_end);
}
