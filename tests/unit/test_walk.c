/* Frames of stacks: one by one, all at once, and from another walk; what they say of blocks; sites by column. */
#include "../../common/db.h"
#include "../../common/kind.h"
#include "../../report/query/noise.h"
#include "../../report/query/site_rows.h"
#include "../../report/query/views.h"
#include "../../report/query/walk.h"
#include "scratch.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define ADDRESSES 3000 /* more than are read one by one */

/* Address i has i % 4 frames more than one, the outermost of which comes first in the table; of 5 none has any. Each is
 * a stack of its own. */
static void make_frames(sqlite3 *db)
{
    scratch_sql(db, "BEGIN; INSERT INTO module VALUES(1, 1, '/lib/libc.so.6', NULL, 0, 9, 0, 0, NULL, 'symtab'),"
                    " (7, 1, '/usr/bin/python3.11', NULL, 0, 9, 0, 0, NULL, 'symtab')");
    for (int i = 1; i <= ADDRESSES; i++) {
        scratch_sql(
            db, "INSERT INTO address VALUES(%d, nullif(%d, 0), %d); INSERT INTO stack VALUES(%d, NULL, %d, 1, 0)", i,
            i % 3 == 0   ? 0
            : i % 3 == 1 ? 1
                         : 7,
            i * 16, i, i);
        scratch_sql(db, "INSERT INTO function VALUES(%d, 'f%d()', 'f%d', 'f%d', NULL, NULL, %d)", i, i, i, i,
                    i % 7 == 0);
    }
    scratch_sql(db, "INSERT INTO file VALUES(1, '/w/a.c', NULL), (2, '/w/b.py', NULL)");
    for (int i = 1; i <= ADDRESSES; i++)
        for (int depth = i % 4; depth >= 0 && i % 5; depth--)
            scratch_sql(db,
                        "INSERT INTO frame(address_id, inline_depth, function_id, file_id, line, language, is_inline) "
                        "VALUES(%d, %d, %d, %d, %d, '%s', %d)",
                        i, depth, i + depth, 1 + i % 2, i + depth, i % 2 ? "python" : "native", depth < i % 4);
    scratch_sql(db, "COMMIT");
}

static void compare_frames(struct walk *walk, int i)
{
    struct walk_stack stack;
    struct error err;
    char name[2][32];
    assert_int_equal(walk_stack(walk, i, &stack, &err), 0);
    assert_int_equal(stack.count, i % 5 ? 1 + i % 4 : 1);
    for (int depth = 0; depth < stack.count; depth++) {
        const struct walk_frame *f = stack.frames[depth];
        int function = i % 5 && i + depth <= ADDRESSES ? i + depth : 0; /* the last ones' are not in the table */
        snprintf(name[0], sizeof name[0], "f%d()", function);
        snprintf(name[1], sizeof name[1], "f%d", function);
        assert_int_equal(f->address_id, i);
        assert_int_equal(f->offset, i * 16);
        assert_int_equal(f->function != NULL, function != 0);
        if (function) {
            assert_string_equal(f->function, name[0]);
            assert_string_equal(f->plain_name, name[1]);
        }
        assert_int_equal(f->is_allocator, function && function % 7 == 0);
        assert_int_equal(f->function_id, i % 5 ? i + depth : 0);
        assert_int_equal(f->line, i % 5 ? i + depth : 0);
        assert_int_equal(f->is_inline, i % 5 && depth < i % 4);
        assert_int_equal(f->is_python, i % 5 && i % 2);
        assert_int_equal(f->file != NULL, i % 5 != 0);
        if (f->file)
            assert_string_equal(f->file, i % 2 ? "/w/b.py" : "/w/a.c");
        assert_int_equal(f->module != NULL, i % 3 != 0);
        assert_int_equal(f->is_runtime, i % 3 == 1);
        assert_int_equal(f->is_interpreter, i % 3 == 2);
    }
}

static void test_frames(void **state)
{
    (void)state;
    struct error err;
    struct walk *walk[2];
    sqlite3 *db = scratch_db("frames.db");
    make_frames(db);
    scratch_sql(db, "VACUUM INTO %Q", scratch_path("again.db"));
    assert_int_equal(walk_open(db, TREE_BOTH, &walk[0], &err), 0);
    for (int i = ADDRESSES; i >= 1; i--) /* the first by statement, then the others at once */
        compare_frames(walk[0], i);
    assert_int_equal(walk_open(db, TREE_NATIVE, &walk[1], &err), 0);
    walk_close(walk[0]);
    compare_frames(walk[1], 2);                         /* hides Python's alone */
    scratch_sql(db, "UPDATE frame SET line = 1000000"); /* the connection knows them already */
    for (int i = 2; i <= ADDRESSES; i += 2)
        compare_frames(walk[1], i);
    walk_close(walk[1]);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    /* one by one: few are asked for at a time */
    for (int first = 1; first <= ADDRESSES; first += ADDRESSES / 4) {
        assert_int_equal(sqlite3_open(scratch_path("again.db"), &db), SQLITE_OK);
        assert_int_equal(walk_open(db, TREE_BOTH, &walk[0], &err), 0);
        for (int i = first; i < first + ADDRESSES / 4; i++)
            compare_frames(walk[0], i);
        walk_close(walk[0]);
        assert_int_equal(sqlite3_close(db), SQLITE_OK);
    }
}

/* --- noise --- */

/* Frames 1 malloc, 2 setlocale of libc, 3 the program, 4 Python's interpreter, 5 Py_InitializeFromConfig, 6 an import's
 * own, 7 a module of the standard library, 8 one of the user's, 9 the start, 10 an installed package, 11 its native
 * code, 12 a module of the standard library that is frozen. */
static const struct {
    int stack, parent, address, noise;
} nodes[] = {
    {1, 0, 9, NOISE_LIBRARY},      /* nothing but the C library */
    {2, 1, 3, NOISE_NONE},         /* the program */
    {3, 2, 2, NOISE_LIBRARY},      /* setlocale below it */
    {4, 3, 1, NOISE_LIBRARY},      /* its malloc */
    {5, 1, 4, NOISE_INTERPRETER},  /* the interpreter alone */
    {6, 5, 6, NOISE_INTERPRETER},  /* in which an import runs */
    {7, 6, 7, NOISE_INTERPRETER},  /* a module of the standard library */
    {8, 7, 4, NOISE_INTERPRETER},  /* for which the interpreter allocates */
    {9, 6, 8, NOISE_NONE},         /* a module of the user's, */
    {10, 9, 7, NOISE_NONE},        /* which calls the standard library */
    {11, 10, 4, NOISE_NONE},       /* and that the interpreter */
    {12, 8, 3, NOISE_NONE},        /* native code, not the interpreter's, below an import */
    {13, 1, 5, NOISE_INTERPRETER}, /* its start-up */
    {14, 13, 3, NOISE_INTERPRETER},  {15, 14, 8, NOISE_INTERPRETER},
    {16, 7, 7, NOISE_INTERPRETER},   /* the standard library in itself */ {17, 16, 4, NOISE_INTERPRETER},
    {18, 6, 10, NOISE_INTERPRETER}, /* a package that is imported, */
    {19, 18, 11, NOISE_INTERPRETER}, {20, 19, 4, NOISE_INTERPRETER},
    {21, 20, 10, NOISE_INTERPRETER},                          /* and calls itself through its native code, */
    {22, 18, 3, NOISE_NONE},                                  /* or the user's */
    {23, 22, 10, NOISE_NONE},        {24, 9, 10, NOISE_NONE}, /* a package that the user's module calls */
    {25, 24, 11, NOISE_NONE},        {26, 9, 12, NOISE_NONE}, /* and a frozen one, */
    {27, 6, 12, NOISE_INTERPRETER},                           /* which an import calls too */
    {28, 5, 12, NOISE_NONE},                                  /* and which is run as the program */
    {29, 5, 11, NOISE_NONE},                                  /* native code of a package that no Python code called */
};
#define NODES (sizeof nodes / sizeof *nodes)

static void make_noise(sqlite3 *db)
{
    scratch_sql(
        db, "INSERT INTO module VALUES(1, 1, '/lib/libc.so.6', NULL, 0, 9, 0, 0, NULL, 'symtab'), (2, 1, '/w/app', "
            "NULL, 0, 9, 0, 0, NULL, 'symtab'), (3, 1, '/usr/bin/python3.11', NULL, 0, 9, 0, 0, NULL, 'symtab'), "
            "(4, 1, '/w/lib/site-packages/data/core.so', NULL, 0, 9, 0, 0, NULL, 'symtab');"
            "INSERT INTO address VALUES(1, 1, 1), (2, 1, 2), (3, 2, 3), (4, 3, 4), (5, 3, 5), (6, NULL, -1), (7, "
            "NULL, -2), (8, NULL, -3), (9, 1, 9), (10, NULL, -4), (11, 4, 11), (12, NULL, -5);"
            "INSERT INTO file VALUES(1, '<frozen importlib._bootstrap>', NULL), (2, '/usr/lib/python3.11/json.py', "
            "NULL), (3, '/w/mine.py', NULL), (4, '/w/lib/site-packages/data/frame.py', NULL), (5, '<frozen codecs>', "
            "NULL);"
            "INSERT INTO function VALUES(1, 'malloc', 'malloc', 'malloc', NULL, NULL, 1), (2, 'setlocale', "
            "'setlocale', 'setlocale', NULL, NULL, 0), (3, 'work', 'work', 'work', NULL, NULL, 0), (4, 'eval', 'eval', "
            "'eval', NULL, NULL, 0), (5, 'Py_InitializeFromConfig', 'p', 'p', NULL, NULL, 0), (9, '_start', '_start', "
            "'_start', NULL, NULL, 0);"
            "INSERT INTO frame(address_id, inline_depth, function_id, file_id, language) VALUES(1, 0, 1, NULL, "
            "'native'), (2, 0, 2, NULL, 'native'), (3, 0, 3, NULL, 'native'), (4, 0, 4, NULL, 'native'), (5, 0, 5, "
            "NULL, 'native'), (6, 0, 3, 1, 'python'), (7, 0, 3, 2, 'python'), (8, 0, 3, 3, 'python'), (9, 0, 9, NULL, "
            "'native'), (10, 0, 3, 4, 'python'), (11, 0, 3, NULL, 'native'), (12, 0, 3, 5, 'python')");
    for (size_t i = 0; i < NODES; i++)
        scratch_sql(db, "INSERT INTO stack VALUES(%d, nullif(%d, 0), %d, 1, 0)", nodes[i].stack, nodes[i].parent,
                    nodes[i].address);
}

/* In both orders: what is known of callers says nothing of who they call, nor the other way round. */
static void test_noise(void **state)
{
    (void)state;
    struct error err;
    struct walk *walk;
    sqlite3 *db = scratch_db("noise.db");
    make_noise(db);
    for (int order = 0; order < 2; order++) {
        assert_int_equal(walk_open(db, TREE_PYTHON, &walk, &err), 0);
        struct noise *noise = noise_open(walk);
        for (size_t i = 0; i < 2 * NODES; i++) { /* twice */
            size_t at = order ? (2 * NODES - 1 - i) % NODES : i % NODES;
            if (noise_of(noise, nodes[at].stack, 0, &err) != nodes[at].noise)
                fail_msg("stack %d, order %d", nodes[at].stack, order);
        }
        noise_close(noise);
        walk_close(walk);
    }
    scratch_sql(db,
                "UPDATE stack SET flags = 1 WHERE stack_id = 1; UPDATE stack SET parent_id = 15 WHERE stack_id = 13");
    assert_int_equal(walk_open(db, TREE_BOTH, &walk, &err), 0);
    struct noise *noise = noise_open(walk);
    assert_int_equal(noise_of(noise, 1, 0, &err), NOISE_NONE);         /* cut: what called it is not known */
    assert_int_equal(noise_of(noise, 15, 0, &err), NOISE_INTERPRETER); /* its own caller */
    assert_int_equal(noise_of(noise, 99, 0, &err), NOISE_NONE);        /* not there */
    noise_close(noise);
    walk_close(walk);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* --- sites --- */

#define SITES 70000u /* more than one chunk */

static uint64_t value_of(enum packed_column column, uint64_t id)
{
    return column == PACKED_site_stack_id     ? id
           : column == PACKED_site_process_id ? id % 5
           : column == PACKED_site_device_id  ? id % 2
           : column == PACKED_site_kind       ? id % KIND_COUNT
           : column == PACKED_site_line_id    ? id % 9
                                              : id * (uint64_t)column;
}

static void pack_sites(sqlite3 *db)
{
    static uint64_t values[PACKED_ROWS];
    struct chunk_codec *codec = chunk_codec_open();
    struct buf data = BUF(1 << 21);
    sqlite3_stmt *s = NULL;
    assert_int_equal(sqlite3_prepare_v2(db, PACKED_INSERT, -1, &s, NULL), SQLITE_OK);
    for (enum packed_column c = PACKED_KEY_site; c < PACKED_KEY_resident_site; c++)
        for (uint32_t first = 1; first <= SITES; first += PACKED_ROWS) {
            uint32_t count = SITES - first + 1 < PACKED_ROWS ? SITES - first + 1 : PACKED_ROWS;
            for (uint32_t i = 0; i < count; i++)
                values[i] = value_of(c, first + i);
            assert_int_equal(packed_encode(codec, c, first, values, count, &data), 1);
            packed_bind(s, PACKED_TABLE_site, 0, c, first, count, &data);
            assert_int_equal(sqlite3_step(s), SQLITE_DONE);
            sqlite3_reset(s);
        }
    sqlite3_finalize(s);
    buf_free(&data);
    chunk_codec_close(codec);
}

static const enum packed_column columns[] = {PACKED_site_stack_id, PACKED_site_line_id, PACKED_site_kind,
                                             PACKED_site_process_id, PACKED_site_end_bytes};
#define COLUMNS (sizeof columns / sizeof *columns)

static void compare_sites(sqlite3 *db, int is_packed)
{
    struct error err;
    struct site_rows rows;
    uint64_t id = 0;
    assert_int_equal(site_rows_open(db, columns, COLUMNS, &rows, &err), 0);
    assert_int_equal(rows.packed != NULL, is_packed);
    while (site_rows_next(&rows, &err) == 1) {
        id++;
        if ((uint64_t)rows.site_id != id)
            fail_msg("site %llu", (unsigned long long)id);
        for (size_t i = 0; i < COLUMNS; i++)
            if ((uint64_t)site_rows_value(&rows, (int)i) != value_of(columns[i], id))
                fail_msg("column %d of site %llu", (int)columns[i], (unsigned long long)id);
    }
    assert_int_equal(id, SITES);
    site_rows_close(&rows);
}

/* How many sites a line has; each is one of its own (line_id: the rest by 9), with its own values. */
static int sites_of_line(sqlite3 *db, int64_t line_id, int is_recorded)
{
    struct error err;
    struct site_rows rows;
    int count = 0;
    int64_t last = 0;
    assert_int_equal(site_rows_open_line(db, line_id, is_recorded, columns, COLUMNS, &rows, &err), 0);
    for (; site_rows_next(&rows, &err) == 1; count++) {
        assert_int_equal(rows.site_id % 9, line_id);
        assert_true(rows.site_id > last);
        last = rows.site_id;
        for (size_t i = 0; i < COLUMNS; i++)
            assert_int_equal(site_rows_value(&rows, (int)i), value_of(columns[i], (uint64_t)last));
    }
    site_rows_close(&rows);
    return count;
}

static void compare_lines(sqlite3 *db, int64_t line_of_13)
{
    struct error err;
    struct site_lines lines;
    assert_int_equal(sites_of_line(db, 4, 0), 7777 + (line_of_13 == 4));
    assert_int_equal(sites_of_line(db, 4, 1), 7778);
    assert_int_equal(sites_of_line(db, 8, 0), 7777);
    assert_int_equal(sites_of_line(db, 0, 0), 0);
    assert_int_equal(sites_of_line(db, 0, 1), 0);
    assert_int_equal(sites_of_line(db, -1, 0), 0);
    assert_int_equal(site_lines_open(db, &lines, &err), 0);
    assert_int_equal(site_lines_of(&lines, 13, -7), line_of_13);
    assert_int_equal(site_lines_of(&lines, SITES, -7), SITES % 9);
    assert_int_equal(site_lines_of(&lines, 18, -7), -7);
    assert_int_equal(site_lines_of(&lines, 0, -7), -7);
    assert_int_equal(site_lines_of(&lines, SITES + 1, -7), -7);
    assert_int_equal(site_lines_of(&lines, -1, -7), -7);
    site_lines_close(&lines);
}

static void test_sites(void **state)
{
    (void)state;
    struct error err;
    sqlite3 *db = scratch_db("sites.db");
    pack_sites(db);
    assert_null(packed_shared(db));
    assert_int_equal(packed_views(db, &err), 0);
    assert_non_null(packed_shared(db));
    compare_sites(db, 1);
    compare_lines(db, 4);
    /* the sites of one line: every ninth of 70,000, and none of line 0 and of what is no line */
    assert_int_equal(db_int(db, "SELECT count(*) FROM site_line WHERE line_id = 4", 0), 7778);
    assert_int_equal(db_int(db, "SELECT sum(site_id % 9) FROM site_line WHERE line_id = 4", 0), 7778 * 4);
    assert_int_equal(db_int(db, "SELECT count(*) FROM site_line WHERE line_id = 8", 0), 7777);
    assert_int_equal(db_int(db, "SELECT count(*) FROM site_line WHERE line_id IN (0, -1, 9, 4.5, 'x')", 9), 0);
    assert_int_equal(db_int(db, "SELECT count(*) FROM site_line WHERE line_id = 4 AND site_id = 13", 0), 1);
    assert_int_equal(db_int(db, "SELECT count(*) FROM site_line WHERE line_id = 4 AND site_id = 14", 9), 0);
    /* what a lens puts before the table counts, and the same rows are the same as plain ones */
    scratch_sql(db,
                "CREATE TEMP TABLE own AS SELECT * FROM site; CREATE TEMP TABLE own_line AS SELECT * FROM site_line;"
                "DROP TABLE temp.site; DROP TABLE temp.site_line; CREATE TEMP VIEW site AS SELECT * FROM own;"
                "CREATE TEMP VIEW site_line AS SELECT * FROM own_line");
    compare_sites(db, 0);
    compare_lines(db, 4);
    scratch_sql(db, "DELETE FROM own_line WHERE site_id = 13");
    compare_lines(db, -7);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* Damage is an error, in words. */
static void test_damaged_sites(void **state)
{
    (void)state;
    struct error err;
    struct site_rows rows;
    sqlite3 *db = scratch_db("damaged.db");
    pack_sites(db);
    scratch_sql(db, "UPDATE packed SET data = x'00' WHERE column_name = 'end_bytes'");
    assert_int_equal(packed_views(db, &err), 0);
    assert_int_equal(site_rows_open(db, columns, COLUMNS, &rows, &err), -EIO);
    assert_non_null(strstr(err.text, "damaged.db: the packed rows of 'stack' or 'site' are damaged"));
    site_rows_close(&rows);
    assert_int_equal(site_rows_open(db, columns, 2, &rows, &err), 0); /* others are whole */
    site_rows_close(&rows);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frames),
        cmocka_unit_test(test_noise),
        cmocka_unit_test(test_sites),
        cmocka_unit_test(test_damaged_sites),
    };
    return cmocka_run_group_tests(tests, scratch_begin, scratch_end);
}
