/* What finish_database says of single sites and addresses: the self line, with Python and without; symbols of
 * just-in-time code and of this very program. */
#include "../../common/db.h"
#include "../../profiler/finish/finish.h"
#include "finish_recording.h"
#include "scratch.h"

#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

/* --- the self rule ----------------------------------------------------------------------------------------------- */

static void test_self_lines(void **state)
{
    (void)state;
    sqlite3 *db = finish_empty("self.db");
    scratch_sql(
        db,
        "INSERT INTO module(module_id, process_id, path, start_address, end_address, bias, load_ns) VALUES"
        "(1, 1, '/bin/app', 0, 1, 0, 0), (2, 1, '/usr/lib/libmemprof.so', 0, 1, 0, 0);"
        "INSERT INTO file VALUES(1, '/src/app.c', NULL), (2, '/src/new_allocator.h', NULL);"
        "INSERT INTO function VALUES(1, 'main', 'main', 'main', 1, 1, 0), (2, 'allocate', 'allocate', 'x', 2, 1, 1),"
        "(3, 'libcall', 'libcall', 'libcall', NULL, NULL, 0), (4, 'thread_start', 'thread_start', 'thread_start', 1, "
        "9, 0);"
        "INSERT INTO address VALUES(1, 1, 16), (2, 1, 32), (3, 1, 48), (4, 2, 64), (5, 1, 80);"
        /* 1: main with a line; 2: the allocator with one; 3: a library function without; 4: memprof's own; 5: nothing
           known */
        "INSERT INTO frame(address_id, inline_depth, function_id, file_id, line) VALUES(1, 0, 1, 1, 5), (2, 0, 2, 2, "
        "100),"
        "(3, 0, 3, NULL, NULL), (4, 0, 4, 1, 77), (5, 0, NULL, NULL, NULL);"
        /* outermost first */
        "INSERT INTO stack VALUES(1, NULL, 1, 1, 0), (2, 1, 3, 2, 0), (3, 2, 2, 3, 0), (4, NULL, 4, 1, 0), (5, 4, 3, "
        "2, 0),"
        "(6, 5, 2, 3, 0), (7, NULL, 5, 1, 0), (8, 7, 2, 2, 0), (9, NULL, 5, 1, 0);");
    static const int stacks[] = {3, 6, 8, 9, 4, 0};
    for (int i = 0; i < 6; i++)
        scratch_sql(db, "INSERT INTO site SELECT %d, %d, 1, 0, 'heap', 1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1", i + 1,
                    stacks[i]);
    finish_all(db, 0);
    static const char *const expected[] = {
        "main /src/app.c 5", /* past the allocator and the function without a line */
        "libcall  0",        /* the thread's start is memprof's own: no line anywhere else */
        "/bin/app+0x50  0",  /* only an allocator's function is known: what called it */
        "/bin/app+0x50  0",  "unknown  0", "unknown  0",
    };
    for (int i = 0; i < 6; i++) {
        char query[500];
        snprintf(query, sizeof query,
                 "SELECT 1 FROM site_line sl JOIN line l USING(line_id) LEFT JOIN function fn USING(function_id) LEFT "
                 "JOIN file f ON "
                 "f.file_id = l.file_id LEFT JOIN module_key m ON m.key_id = l.module_key_id WHERE site_id = %d AND "
                 "printf('%%s %%s %%d', coalesce(fn.name, m.path || printf('+0x%%x', l.offset), 'unknown'), f.path, "
                 "l.line) = '%s'",
                 i + 1, expected[i]);
        if (db_int(db, query, 0) != 1)
            fail_msg("site %d is not at '%s'", i + 1, expected[i]);
    }
    sqlite3_close(db);
}

/* --- code without a symbol --------------------------------------------------------------------------------------- */

enum { APP = 1, GLIB, PLUGIN, LIBC, CXX, JIT };

/* A frame of the stack under caller: name "" has no symbol; with a line or without. Its stack and address are id. */
static void code(sqlite3 *db, int id, int caller, int module, const char *name, int line)
{
    char text[8];
    snprintf(text, sizeof text, module == JIT ? "NULL" : "%d", module);
    scratch_sql(db, "INSERT INTO address VALUES(%d, %s, %d)", id, text, 16 * id);
    scratch_sql(db,
                "INSERT OR IGNORE INTO function SELECT %d, %Q, %Q, %Q, NULL, NULL, %Q LIKE '%%alloc' WHERE %Q <> ''",
                id, name, name, name, name, name);
    scratch_sql(db,
                "INSERT INTO frame(address_id, inline_depth, function_id, file_id, line) VALUES(%d, 0, (SELECT "
                "function_id FROM function WHERE function_id = %d), %s, nullif(%d, 0))",
                id, id, line ? "1" : "NULL", line);
    scratch_sql(db, "INSERT INTO stack VALUES(%d, nullif(%d, 0), %d, 1, 0)", id, caller, id);
    scratch_sql(db, "INSERT INTO site VALUES(%d, %d, 1, 0, 'heap', 1, 8, 0, 0, 0, 0, 8, 1, 8, 8, 8, 1, 8, 8, 8, 0)", id,
                id);
}

static void test_code_without_symbols(void **state)
{
    (void)state;
    static const struct {
        int id, caller, module;
        const char *name;
        int line;
        const char *self;
    } rows[] = {
        {1, 0, APP, "main", 9, "main 9"},
        /* a library that a line of one's own calls by name does its work for that line, whatever is stripped in it */
        {2, 1, GLIB, "g_hash_insert", 0, "main 9"},
        {3, 2, GLIB, "", 0, "main 9"},
        {4, 3, LIBC, "qsort", 0, "main 9"},
        {5, 4, GLIB, "", 0, "main 9"},
        {6, 5, GLIB, "", 0, "main 9"},
        /* one that is called through a pointer is on its own, and what it calls with it */
        {10, 1, PLUGIN, "", 0, "/lib/plugin.so+0xa0 0"},
        {11, 10, PLUGIN, "", 0, "/lib/plugin.so+0xb0 0"},
        {12, 11, GLIB, "g_strdup", 0, "g_strdup 0"},
        {13, 11, PLUGIN, "plugin_alloc", 0, "/lib/plugin.so+0xb0 0"}, /* an allocator's caller */
        {14, 13, PLUGIN, "", 0, "/lib/plugin.so+0xb0 0"},             /* and what is inside of it */
        {15, 14, GLIB, "", 0, "/lib/glib.so+0xf0 0"},                 /* but not beside it */
        {16, 11, APP, "callback", 12, "callback 12"},
        {17, 11, PLUGIN, "plugin_open", 0, "plugin_open 0"},
        {18, 10, LIBC, "", 0, "/lib/plugin.so+0xa0 0"},   /* the C library allocates for who called it */
        {20, 2, PLUGIN, "", 0, "/lib/plugin.so+0x140 0"}, /* called back by a library */
        /* the run-time library and just-in-time code are no libraries that could be blamed */
        {21, 1, LIBC, "", 0, "main 9"},
        {22, 1, JIT, "", 0, "main 9"},
        {23, 22, PLUGIN, "plugin_run", 0, "main 9"},
        /* no source anywhere */
        {30, 0, APP, "start", 0, "start 0"},
        {31, 30, GLIB, "g_option_context_parse", 0, "g_option_context_parse 0"},
        {32, 31, PLUGIN, "", 0, "/lib/plugin.so+0x200 0"},
        {33, 32, PLUGIN, "", 0, "/lib/plugin.so+0x210 0"},
        {34, 33, GLIB, "g_memdup", 0, "g_memdup 0"},
        {35, 31, JIT, "", 0, "unknown 0"},
        /* the C library with its debug information */
        {40, 1, LIBC, "getline", 70, "main 9"},
        {41, 40, LIBC, "grow", 71, "main 9"},
        {42, 41, LIBC, "", 0, "main 9"},
        {43, 30, LIBC, "strdup", 72, "start 0"}, /* for code that has no lines, too */
        {44, 32, LIBC, "fopen", 73, "/lib/plugin.so+0x200 0"},
        {45, 40, APP, "compare", 14, "compare 14"},               /* called back */
        {46, 1, LIBC, "pthread_create", 74, "pthread_create 74"}, /* what threads take is its own */
        {47, 46, LIBC, "allocate_dtv", 75, "allocate_dtv 75"},
        {48, 47, LIBC, "calloc_inner", 76, "allocate_dtv 75"},
        {50, 0, LIBC, "_dl_start", 77, "_dl_start 77"}, /* nobody asked */
        {51, 50, LIBC, "_dl_map", 78, "_dl_map 78"},
        {52, 51, PLUGIN, "plugin_init", 0, "plugin_init 0"},
        {53, 52, LIBC, "getenv_copy", 79, "plugin_init 0"},
        /* nothing but the family: what the program was compiled with says most, then what came compiled with lines */
        {60, 0, LIBC, "start_alloc", 80, "start_alloc 80"},
        {61, 60, APP, "prebuilt_alloc", 81, "prebuilt_alloc 81"},
        {62, 61, APP, "grow_alloc", 82, "grow_alloc 82"},
        {63, 61, APP, "closure_alloc", 0, "closure_alloc 0"},
        {64, 63, APP, "format_alloc", 83, "closure_alloc 0"},
        {65, 64, LIBC, "calloc", 84, "closure_alloc 0"},
        {66, 63, APP, "worker", 0, "worker 0"},
        {67, 66, APP, "vector_alloc", 0, "worker 0"},
        /* how the C++ library starts a thread has no symbol */
        {70, 60, CXX, "", 0, "/lib/libstdc++.so.6+0x460 0"},
        {71, 70, APP, "invoke_alloc", 0, "invoke_alloc 0"},
        {72, 71, CXX, "new_alloc", 0, "invoke_alloc 0"},
        {73, 71, APP, "worker", 0, "worker 0"},
        {74, 50, CXX, "", 0, "/lib/libstdc++.so.6+0x4a0 0"}, /* before main, it is its own */
        {75, 74, APP, "new_alloc", 0, "/lib/libstdc++.so.6+0x4a0 0"},
    };
    sqlite3 *db = finish_empty("bare.db");
    scratch_sql(db, "INSERT INTO module(module_id, process_id, path, start_address, end_address, bias, load_ns) VALUES"
                    "(1, 1, '/home/app', 0, 1, 0, 0), (2, 1, '/lib/glib.so', 0, 1, 0, 0), (3, 1, '/lib/plugin.so', 0, "
                    "1, 0, 0), (4, 1, '/lib/libc.so.6', 0, 1, 0, 0), "
                    "(5, 1, '/lib/libstdc++.so.6', 0, 1, 0, 0);"
                    "INSERT INTO file VALUES(1, '/src/app.c', NULL)");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        code(db, rows[i].id, rows[i].caller, rows[i].module, rows[i].name, rows[i].line);
    finish_all(db, 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char query[500];
        snprintf(query, sizeof query,
                 "SELECT count(*) FROM site_line JOIN line l USING(line_id) LEFT JOIN function fn USING(function_id) "
                 "LEFT JOIN module_key m ON m.key_id = l.module_key_id WHERE site_id = %d AND '%s' = coalesce(fn.name, "
                 "m.path || printf('+0x%%x', l.offset), 'unknown') || ' ' || l.line",
                 rows[i].id, rows[i].self);
        if (db_int(db, query, 0) != 1)
            fail_msg("site %d is not at '%s'", rows[i].id, rows[i].self);
    }
    /* each in its own module, and all of it adds up */
    assert_int_equal(db_int(db,
                            "SELECT alloc_count FROM v_module WHERE module LIKE '%/plugin.so' AND NOT inclusive "
                            "AND kind = 'heap'",
                            0),
                     12);
    sqlite3_close(db);
}

/* --- the self line under Python ---------------------------------------------------------------------------------- */

/* One address, frame, function and stack node. */
static void python_node(sqlite3 *db, int id, int caller, int module, const char *function, int file,
                        const char *language)
{
    char text[8];
    snprintf(text, sizeof text, module ? "%d" : "NULL", module);
    scratch_sql(db, "INSERT INTO address VALUES(%d, %s, %d)", id, text, module ? 100 * id : -id);
    scratch_sql(db, "INSERT INTO function VALUES(%d, %Q, %Q, %Q, NULL, NULL, 0)", id, function, function, function);
    scratch_sql(db,
                "INSERT INTO frame(address_id, inline_depth, function_id, file_id, line, language) VALUES(%d, 0, %d, "
                "nullif(%d, 0), nullif(%d, 0), %Q)",
                id, id, file, file ? 10 + id : 0, language);
    snprintf(text, sizeof text, caller ? "%d" : "NULL", caller);
    scratch_sql(db, "INSERT INTO stack VALUES(%d, %s, %d, 1, 0)", id, text, id);
}

static void python_site(sqlite3 *db, int stack)
{
    scratch_sql(db, "INSERT INTO site VALUES(%d, %d, 1, 0, 'heap', 1, 8, 0, 0, 0, 0, 8, 1, 8, 8, 8, 1, 8, 8, 8, 0)",
                stack, stack);
}

static void expect_self(sqlite3 *db, int stack, const char *function)
{
    char query[256];
    snprintf(query, sizeof query,
             "SELECT count(*) FROM site_line JOIN line USING(line_id) JOIN function USING(function_id) WHERE site_id = "
             "%d AND name = '%s'",
             stack, function);
    if (db_int(db, query, -1) != 1)
        fail_msg("site %d is not charged to %s", stack, function);
}

static void test_python_self(void **state)
{
    (void)state;
    sqlite3 *db = finish_empty("python.db");
    const char *path = scratch_path("ext.c");
    fclose(fopen(path, "w"));
    scratch_sql(
        db,
        "INSERT INTO module(module_id, process_id, path, build_id, start_address, end_address, bias, load_ns, symbols) "
        "VALUES(1, 1, '/home/u/venv/lib/libpython3.11.so.1.0', 'aa', 0, 1, 0, 0, 'dwarf'),"
        "(2, 1, '/home/u/work/ext.so', 'bb', 0, 1, 0, 0, 'dwarf'), (3, 1, '/usr/lib/libx.so', 'cc', 0, 1, 0, 0, "
        "'dwarf'),"
        "(4, 1, '/home/u/.local/lib/python3.11/site-packages/np/core.so', 'dd', 0, 1, 0, 0, 'dwarf'),"
        "(5, 1, '/home/u/venv/lib/libblas.so', 'ee', 0, 1, 0, 0, 'dwarf')");
    scratch_sql(db, "INSERT INTO file VALUES(1, '/src/train.py', NULL), (2, %Q, NULL), (3, '/build/gone.c', NULL)",
                path);
    /* a C program, then Python, then each kind of native code */
    python_node(db, 1, 0, 2, "main", 2, "native");
    python_node(db, 2, 1, 1, "PyEval_EvalCode", 2, "native"); /* the interpreter before any Python */
    python_node(db, 3, 2, 0, "train", 1, "python");
    python_node(db, 4, 3, 1, "list_append", 2, "native");
    python_node(db, 5, 3, 4, "array_new", 2, "native");
    python_node(db, 6, 3, 3, "x_alloc", 2, "native");
    python_node(db, 7, 3, 5, "dgemm", 2, "native"); /* beside the interpreter */
    python_node(db, 8, 3, 2, "ext_own", 2, "native");
    python_node(db, 9, 8, 3, "x_inside", 2, "native"); /* called by one's own code */
    python_node(db, 10, 3, 2, "ext_stripped", 0, "native");
    python_node(db, 11, 3, 2, "ext_source_gone", 3, "native");
    python_node(db, 12, 8, 0, "callback", 1, "python"); /* own code calls Python again */
    for (int i = 1; i <= 12; i++)
        python_site(db, i);
    struct finish_options options = {0};
    struct error err = {""};
    assert_int_equal(finish_database(db, &options, &err), 0);
    expect_self(db, 1, "main");
    expect_self(db, 2, "PyEval_EvalCode");
    for (int i = 3; i <= 7; i++)
        expect_self(db, i, "train");
    expect_self(db, 8, "ext_own");
    expect_self(db, 9, "ext_own");
    expect_self(db, 10, "train");
    expect_self(db, 11, "train");
    expect_self(db, 12, "callback");
    sqlite3_close(db);
}

/* --- symbols in the database ------------------------------------------------------------------------------------- */

static void test_jit_addresses(void **state)
{
    (void)state;
    sqlite3 *db = finish_empty("jit.db");
    int pid = getpid();
    char path[64];
    snprintf(path, sizeof path, "/tmp/perf-%d.map", pid);
    FILE *f = fopen(path, "w");
    fputs("700000000000 100 js:work\n", f);
    fclose(f);
    scratch_sql(
        db,
        "UPDATE process SET pid = %d;"
        "INSERT INTO module(module_id, process_id, path, start_address, end_address, bias, load_ns) VALUES(1, 1, "
        "'//anon', 0, 1, "
        "123145302310912, 0);"
        "INSERT INTO address VALUES(1, NULL, 123145302310928), (2, NULL, 4096), (3, 1, 32);"
        "INSERT INTO stack VALUES(1, NULL, 2, 1, 0), (2, 1, 1, 2, 0), (3, NULL, 3, 1, 0);"
        "INSERT INTO site SELECT 1, 2, 1, 0, 'heap', 1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1;",
        pid);
    finish_all(db, 0);
    unlink(path);
    assert_int_equal(
        db_int(
            db,
            "SELECT count(*) FROM frame JOIN function USING(function_id) WHERE name = 'js:work' AND language = 'jit' "
            "AND address_id IN (1, 3)",
            0),
        2);
    assert_int_equal(db_int(db, "SELECT count(*) FROM frame WHERE address_id = 2 AND function_id IS NULL", 0), 1);
    assert_int_equal(db_int(db, "SELECT count(*) FROM module WHERE symbols = 'perf map'", 0), 1);
    sqlite3_close(db);
}

__attribute__((noinline)) static void *return_address(void)
{
    return __builtin_return_address(0);
}

static int find_main(struct dl_phdr_info *info, size_t size, void *bias)
{
    (void)size;
    *(uint64_t *)bias = info->dlpi_addr;
    return 1; /* the program itself comes first */
}

static void test_own_module_and_source(void **state)
{
    (void)state;
    sqlite3 *db = finish_empty("own.db");
    char *path = realpath("/proc/self/exe", NULL);
    void *here = return_address();
    int line = __LINE__ - 1;
    uint64_t bias = 0;
    dl_iterate_phdr(find_main, &bias);
    scratch_sql(
        db,
        "INSERT INTO module(module_id, process_id, path, start_address, end_address, bias, load_ns) VALUES(1, 1, %Q, "
        "0, 1, 0, 0),"
        "(2, 1, '/gone (deleted)', 0, 1, 0, 0);"
        "INSERT INTO address VALUES(1, 1, %lld), (2, 2, 100), (3, 1, %lld);",
        path, (long long)((uintptr_t)here - bias), 1LL);
    struct finish_options options = {.with_source = 1};
    struct error err = {""};
    assert_int_equal(finish_database(db, &options, &err), 0);
    char query[300];
    snprintf(query, sizeof query,
             "SELECT count(*) FROM frame f JOIN function fn USING(function_id) JOIN file fi ON fi.file_id = f.file_id "
             "WHERE f.address_id = 1 "
             "AND fn.name = 'test_own_module_and_source' AND f.line = %d AND fi.source LIKE '%%return_address()%%'",
             line);
    assert_int_equal(db_int(db, query, 0), 1);
    assert_int_equal(
        db_int(db, "SELECT count(*) FROM frame WHERE address_id IN (2, 3) AND function_id IS NULL AND inline_depth = 0",
               0),
        2);
    assert_int_equal(db_int(db, "SELECT symbols = 'dwarf' FROM module WHERE module_id = 1", 0), 1);
    assert_int_equal(
        db_int(db, "SELECT symbols = 'none: file deleted while it ran' FROM module WHERE module_id = 2", 0), 1);
    free(path);
    sqlite3_close(db);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_self_lines),
        cmocka_unit_test(test_code_without_symbols),
        cmocka_unit_test(test_python_self),
        cmocka_unit_test(test_jit_addresses),
        cmocka_unit_test(test_own_module_and_source),
    };
    return cmocka_run_group_tests(tests, scratch_begin, scratch_end);
}
