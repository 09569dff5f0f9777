/* A list of recordings: what names and patterns become, and what a damaged file leaves. */
#include "../../report/query/recordings.h"

#include "../../common/buf.h"
#include "../../common/db.h"
#include "scratch.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void write_empty(const char *path)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fclose(file);
}

/* rank -1: none is said */
static void write_recording(const char *path, int64_t rank)
{
    struct error err;
    sqlite3 *db;
    assert_int_equal(db_create(path, &db, &err), 0);
    assert_int_equal(db_meta_set_text(db, "format", "memprof"), 0);
    assert_int_equal(db_meta_set_int(db, "duration_ns", 5000), 0);
    if (rank >= 0)
        assert_int_equal(db_meta_set_int(db, "rank", rank), 0);
    sqlite3_close(db);
}

static void names_are(const struct recordings *list, const char *expected)
{
    struct buf text = BUF(4096);
    for (int i = 0; i < list->count; i++)
        buf_printf(&text, "%s%s", i ? " " : "", list->recording[i].path);
    assert_string_equal(buf_text(&text), expected);
    buf_free(&text);
}

static void test_names(void **state)
{
    (void)state;
    static const char *const made[] = {"run.0.db", "run.2.db", "run.10.db", "run.1.db", "a[1].db", "*.db"};
    struct recordings list;
    struct error err;
    for (size_t i = 0; i < sizeof made / sizeof *made; i++)
        write_empty(made[i]);
    assert_int_equal(recordings_is_pattern("run.?.db"), 1);
    assert_int_equal(recordings_is_pattern("run.2.db"), 0);
    assert_int_equal(recordings_is_pattern("a[1].db"), 0); /* a file has that name */
    assert_int_equal(recordings_is_pattern("*.db"), 0);
    assert_int_equal(recordings_is_pattern("missing.db"), 0);

    assert_int_equal(recordings_find((const char *[]){"run.*.db"}, 1, &list, &err), 0);
    names_are(&list, "run.0.db run.1.db run.2.db run.10.db");
    recordings_free(&list);
    assert_int_equal(
        recordings_find((const char *[]){"run.10.db", "a[1].db", "missing.db", "run.2.db"}, 4, &list, &err), 0);
    names_are(&list, "a[1].db missing.db run.2.db run.10.db");
    assert_int_equal(list.repeated_count, 0);
    recordings_free(&list);
    /* by its name, by another one, by a pattern */
    assert_int_equal(recordings_find((const char *[]){"./run.2.db", "run.?.db", "run.2.db"}, 3, &list, &err), 0);
    assert_int_equal(list.count, 3);
    assert_int_equal(list.repeated_count, 2);
    recordings_free(&list);
    assert_int_equal(recordings_find((const char *[]){"run.0.db", "none.*"}, 2, &list, &err), 0);
    assert_int_equal(list.count, 2);
    assert_string_equal(list.recording[0].problem, "none.*: no such file, and none that matches");
    assert_null(list.recording[1].problem);
    recordings_free(&list);
    for (size_t i = 0; i < sizeof made / sizeof *made; i++)
        unlink(made[i]);
}

/* Fails on the one that it is told to fail on, after it counted it. */
struct taker {
    const char *fails_on;
    int count;
};

static int take(void *arg, struct recording *r, int index, sqlite3 *db, struct error *err)
{
    struct taker *t = arg;
    t->count++;
    assert_true(index >= 0);
    assert_int_equal(db_meta_int(db, "duration_ns", 0), r->duration_ns);
    return strcmp(r->path, t->fails_on) == 0 ? error_set(err, EIO, "its lines are damaged") : 0;
}

static void test_each(void **state)
{
    (void)state;
    struct recordings list;
    struct error err;
    struct taker t = {.fails_on = "b.db"};
    write_recording("a.db", 10);
    write_recording("b.db", 9);
    write_recording("c.db", -1);
    write_empty("d.db");
    assert_int_equal(recordings_find((const char *[]){"d.db", "c.db", "gone.db", "b.db", "a.db"}, 5, &list, &err), 0);
    assert_int_equal(recordings_each(&list, db_open_read, take, &t), 3);
    assert_int_equal(t.count, 3);
    recordings_sort(&list);
    names_are(&list, "b.db a.db c.db d.db gone.db");
    assert_string_equal(list.recording[0].problem, "its lines are damaged");
    char *problem = recordings_problem(&list.recording[0]);
    assert_string_equal(problem, "b.db: its lines are damaged");
    free(problem);
    assert_null(list.recording[1].problem);
    assert_int_equal(list.recording[1].rank, 10);
    assert_int_equal(list.recording[1].duration_ns, 5000);
    assert_int_equal(list.recording[2].rank, -1);
    assert_false(list.recording[3].is_read);
    problem = recordings_problem(&list.recording[3]);
    assert_string_equal(problem, "d.db: empty file; expected what 'memprof run' writes"); /* named once */
    free(problem);
    problem = recordings_problem(&(struct recording){.path = "its", .problem = "its lines are damaged"});
    assert_string_equal(problem, "its: its lines are damaged");
    free(problem);
    /* again: what could not be opened is not tried again, what failed later is */
    assert_int_equal(recordings_each(&list, db_open_read, take, &t), 3);
    assert_int_equal(t.count, 6);
    recordings_free(&list);
    unlink("a.db");
    unlink("b.db");
    unlink("c.db");
    unlink("d.db");
}

/* As cli opens what was cut off. */
static int open_some(const char *path, sqlite3 **db, struct error *err)
{
    int rc = db_open_read(path, db, err);
    error_set(err, EIO, "%s: a part of it", path);
    return rc ? rc : 1;
}

static void test_some(void **state)
{
    (void)state;
    struct recordings list;
    struct error err;
    struct taker t = {.fails_on = "a.db"};
    write_recording("a.db", 4);
    assert_int_equal(recordings_find((const char *[]){"a.db"}, 1, &list, &err), 0);
    assert_int_equal(recordings_each(&list, open_some, take, &t), 1);
    assert_int_equal(t.count, 1); /* what is there is taken */
    assert_int_equal(list.recording[0].rank, 4);
    assert_string_equal(list.recording[0].problem, "a.db: a part of it"); /* the first reason stays */
    recordings_free(&list);
    unlink("a.db");
}

static int begin(void **state)
{
    return scratch_begin(state) || chdir(scratch_directory());
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_names), cmocka_unit_test(test_each),
                                       cmocka_unit_test(test_some)};
    return cmocka_run_group_tests(tests, begin, scratch_end);
}
