/* `memprof leaks`: order, grouping, suppressions, start-up blocks, hostile stacks, on a database made here. */
#include "../../common/db.h"
#include "../../report/query/noise.h"
#include "../../report/query/views.h"
#include "../../report/text/leaks.h"
#include "../../report/text/stack.h"
#include "scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static sqlite3 *db;

static void site(int id, int stack, int bytes, int blocks, int line)
{
    scratch_sql(db,
                "INSERT INTO site VALUES(%d, %d, 1, 0, 'heap', %d, %d, 0, 0, 0, 0, 0, 0, 0, %d, %d, %d, 0, 0, %d, 0);"
                "INSERT INTO site_line VALUES(%d, %d)",
                id, stack, blocks, bytes, bytes, bytes, blocks, bytes, id, line);
}

static int setup(void **state)
{
    struct error err;
    if (scratch_begin(state))
        return -1;
    db = scratch_db("a.db");
    scratch_sql(
        db,
        "INSERT INTO meta VALUES('format', 'memprof'), ('cwd', '/w'), ('state', 'complete');"
        "INSERT INTO device(device_id, name, total_bytes) VALUES(0, 'host', NULL);"
        "INSERT INTO total VALUES(0, 'heap', 9, 0, 9, 0, 0, 0, 9, 1, 1, 9, 1, 9, 9, 0, 0);"
        "INSERT INTO process(process_id, pid, start_kind, exe, command_line, start_ns, end_ns, end_kind, exit_status)"
        " VALUES(1, 7, 'exec', '/w/app', './app', 0, 9, 'exit', 0);"
        "INSERT INTO file VALUES(1, '/w/a.c', NULL);"
        "INSERT INTO module VALUES(1, 1, '/w/app', NULL, 0, 9, 0, 0, NULL, 'dwarf'), (2, 1, "
        "'/lib/ld-linux-x86-64.so.2', NULL, 9, 99, 0, 0,"
        " NULL, 'symtab'), (3, 1, '/lib/libgui.so', NULL, 9, 99, 0, 0, NULL, 'none: stripped');"
        "INSERT INTO function VALUES(1, 'malloc', 'malloc', 'malloc', NULL, NULL, 1), (2, 'make(int)', 'make', 'm', 1, "
        "5, 0),"
        " (3, 'main', 'main', 'main', 1, 20, 0), (4, '_dl_init', '_dl_init', '_dl_init', NULL, NULL, 0),"
        " (5, '__libc_start_call_main', 's', 's', NULL, NULL, 0);"
        "INSERT INTO address VALUES(1, 1, 16), (2, 1, 32), (3, 1, 48), (4, 2, 64), (5, 3, 80), (6, NULL, 4096), (7, 1, "
        "7);"
        "INSERT INTO frame VALUES(1, 0, 1, NULL, NULL, NULL, 'native', 0), (2, 0, 2, 1, 7, NULL, 'native', 1),"
        " (2, 1, 3, 1, 22, NULL, 'native', 0), (3, 0, 3, 1, 25, NULL, 'native', 0), (4, 0, 4, NULL, NULL, NULL, "
        "'native', 0),"
        " (7, 0, 5, NULL, NULL, NULL, 'native', 0);"
        /* 10: malloc <- make (inlined in main:22) <- libc; 20: libgui <- main:25; 30: _dl_init; 40: in no module; 50,
           51: a cycle */
        "INSERT INTO stack VALUES(12, NULL, 7, 1, 0), (11, 12, 2, 2, 0), (10, 11, 1, 3, 0), (21, NULL, 3, 1, 0), (20, "
        "21, 5, 2, 0),"
        " (30, NULL, 4, 1, 0), (40, NULL, 6, 1, 2), (50, 51, 2, 2, 0), (51, 50, 3, 2, 0);"
        "INSERT INTO line VALUES(1, 2, 1, 7, NULL, NULL), (2, 3, 1, 25, NULL, NULL);");
    site(1, 10, 100, 2, 1);
    site(2, 20, 5000, 1, 2);
    site(3, 30, 72704, 1, 0);
    site(4, 40, 8, 8, 0);
    return views_own(db, &err);
}

static int teardown(void **state)
{
    sqlite3_close(db);
    return scratch_end(state);
}

/* The report with patterns (separated by spaces) suppressed; returns whether something leaked. */
static int leaks_of(enum row_key by, int64_t top, int all, const char *patterns, const char *expected)
{
    struct report_options report = {.top = top, .sort = -1, .by = by, .frames = 30};
    struct suppressions suppressions = {0};
    struct suppression items[8] = {{0}};
    char words[256];
    struct leaks_options options = {&report, &suppressions, all};
    char *text = NULL;
    size_t length = 0;
    struct report_out out = {.file = open_memstream(&text, &length)};
    struct error err = {""};
    int leaked = -1;
    snprintf(words, sizeof words, "%s", patterns ? patterns : "");
    suppressions.item = items;
    for (char *word = strtok(words, " "); word && suppressions.count < 8; word = strtok(NULL, " "))
        items[suppressions.count++].pattern = word;
    assert_int_equal(leaks_report(db, &options, &out, &leaked, &err), 0);
    fclose(out.file);
    if (expected)
        assert_string_equal(text, expected);
    free(text);
    return leaked;
}

static int leaks_are(enum row_key by, int64_t top, const char *patterns, const char *expected)
{
    return leaks_of(by, top, 1, patterns, expected);
}

/* What the loader made with nothing of the program on its stack is counted, not shown. */
static void test_library(void **state)
{
    (void)state;
    leaks_of(
        ROW_LINE, 1, 0, NULL,
        "   bytes  blocks   largest  device  function  source\n"
        "4.88 KiB       1  4.88 KiB  host    main      a.c:25\n"
        "\n"
        "Live at the end: 4.99 KiB in 11 blocks, from 3 lines (1 shown; --top 0 shows all).\n"
        "Not shown: 71.00 KiB in 1 block of the C, C++, Rust and OpenMP libraries' own: start-up, threads, buffers, "
        "caches; --all shows them.\n"
        "Memory that the program could still reach is included: memprof does not scan for pointers.\n");
    assert_int_equal(
        leaks_of(ROW_STACK, -1, 0, "main ??",
                 "Nothing of the program's was live at the end; suppressed: 4.99 KiB in 11 blocks from 3 "
                 "stacks.\n"
                 "Not shown: 71.00 KiB in 1 block of the C, C++, Rust and OpenMP libraries' own: start-up, "
                 "threads, buffers, caches; "
                 "--all shows them.\n"
                 "\n"
                 "stacks  blocks     bytes  suppressed by\n"
                 "     2       3  4.98 KiB  main\n"
                 "     1       8       8 B  ??\n"),
        0);
}

/* What noise.h says of frames, each a module and a function by name, innermost first: "libc.so.6:setlocale app:main" */
static int ask(const char *frames, int is_map)
{
    sqlite3 *own = scratch_db("noise.db");
    struct walk *walk;
    struct error err;
    char words[512];
    int count = 0;
    snprintf(words, sizeof words, "%s", frames);
    for (char *word = strtok(words, " "); word; word = strtok(NULL, " ")) {
        char *name = strchr(word, ':');
        *name++ = 0;
        count++;
        scratch_sql(own,
                    "INSERT INTO module VALUES(%d, 1, %Q, NULL, 0, 9, 0, 0, NULL, 'symtab'); INSERT INTO address "
                    "VALUES(%d, %d, 16); INSERT INTO function VALUES(%d, %Q, %Q, %Q, NULL, NULL, %d); INSERT INTO "
                    "frame(address_id, inline_depth, function_id) VALUES(%d, 0, nullif(%d, 0)); INSERT INTO stack "
                    "VALUES(%d, %d, %d, 1, 0)",
                    count, word, count, count, count, name, name, name,
                    !strcmp(name, "malloc") || strstr(name, "std::"), count, *name ? count : 0, count, count + 1,
                    count);
    }
    scratch_sql(own, "UPDATE stack SET parent_id = NULL WHERE stack_id = %d", count);
    assert_int_equal(walk_open(own, TREE_BOTH, &walk, &err), 0);
    struct noise *noise = noise_open(walk);
    int answer = noise_of(noise, 1, is_map, &err);
    noise_close(noise);
    walk_close(walk);
    sqlite3_close(own);
    return answer;
}

static int is_library(const char *frames)
{
    return ask(frames, 0) == NOISE_LIBRARY;
}

static int is_arena(const char *frames)
{
    return ask(frames, 1) == NOISE_ARENA;
}

static void test_arenas(void **state)
{
    (void)state;
    assert_true(is_arena("libc.so.6:malloc /w/app:_rjem_je_pages_map /w/app:base_new /w/app:main"));
    assert_true(is_arena("/w/app:pages_map /w/app:main"));
    assert_false(is_arena("/w/app:main /w/app:pages_map"));
    assert_false(is_arena("/w/app:pages_mapped /w/app:main"));
    assert_false(is_arena("libc.so.6:malloc"));
    assert_false(is_arena(""));
    assert_int_equal(ask("/w/app:pages_map /w/app:main", 0), NOISE_NONE); /* a block of malloc */
}

static void test_noise(void **state)
{
    (void)state;
    assert_true(is_library("/lib/libc.so.6:malloc /lib/libstdc++.so.6.0.30:pool /lib/ld-linux-x86-64.so.2:call_init"));
    assert_true(
        is_library("libc.so.6:malloc libc.so.6:__GI__IO_file_doallocate libc.so.6:puts /w/app:main libc.so.6:s"));
    assert_true(is_library("libc.so.6:malloc libc.so.6:_nl_intern_locale_data libc.so.6:setlocale /w/app:main"));
    assert_true(is_library("ld-linux-x86-64.so.2:malloc ld-linux-x86-64.so.2: ld-linux-x86-64.so.2:_dl_allocate_tls "
                           "libc.so.6:pthread_create libstdc++.so.6:_M_start_thread /w/app:main"));
    assert_true(is_library("libc.so.6:malloc libc.so.6: libc.so.6:putenv /w/app:main"));
    assert_true(is_library("libc.so.6:malloc libc.so.6:getpwnam /w/app:main"));
    assert_true(is_library("libgomp.so.1: libgomp.so.1:GOMP_parallel /w/app:main"));
    assert_true(is_library("libc.so.6:malloc libgomp.so.1: ld-linux-x86-64.so.2:call_init"));
    /* of Rust's start, with and without its inlined functions; not of main(), which may be inlined, nor of a thread */
    assert_true(is_library("libc.so.6:malloc /w/r:std::sys::stack_overflow::init /w/r:std::rt::init "
                           "/w/r:std::rt::lang_start_internal /w/r:main libc.so.6:__libc_start_call_main"));
    assert_true(is_library("libc.so.6:malloc /w/r:std::thread::set /w/r:std::rt::lang_start_internal /w/r:main"));
    assert_false(is_library("libc.so.6:malloc /w/r:own::main /w/r:std::sys::backtrace::__rust_begin_short_backtrace "
                            "/w/r:std::rt::lang_start_internal /w/r:main"));
    assert_false(is_library("libc.so.6:malloc /w/r:std::sys::backtrace::__rust_begin_short_backtrace "
                            "/w/r:std::rt::lang_start_internal /w/r:main"));
    assert_false(is_library("libc.so.6:malloc /w/r:std::rt::lang_start::{closure} /w/r:std::rt::lang_start_internal "
                            "/w/r:main"));
    assert_false(is_library("libc.so.6:malloc /w/r:std::thread::spawn /w/r:main libc.so.6:__libc_start_call_main"));
    /* the program's own: of main(), of a constructor, of a library of its own, through libc's functions */
    assert_false(is_library("libc.so.6:malloc /w/app:main libc.so.6:__libc_start_call_main"));
    assert_false(is_library("libc.so.6:malloc /w/app: libc.so.6:setlocale ld-linux-x86-64.so.2:call_init"));
    assert_false(is_library("libc.so.6:malloc libc.so.6:strdup /w/libown.so:init ld-linux-x86-64.so.2:call_init"));
    assert_false(is_library("libc.so.6:malloc libc.so.6:__fopen_internal /w/app:main"));
    assert_false(is_library("libc.so.6:malloc libc.so.6:newlocale /w/app:main"));
    assert_false(is_library("libc.so.6:malloc ld-linux-x86-64.so.2:_dl_map_object libc.so.6:dlopen /w/app:main"));
    assert_false(is_library("libc.so.6:malloc libc.so.6:getaddrinfo /w/app:main"));
    assert_false(is_library("libc.so.6:malloc libc.so.6:getline /w/app:main"));
    assert_false(is_library("libc.so.6:malloc /w/app:getpwnam /w/app:main")); /* a function of its own */
    assert_false(is_library("libc.so.6:malloc /w/app:main._omp_fn.0 libgomp.so.1:GOMP_parallel /w/app:main"));
    assert_false(is_library("libgomp.so.1:omp_alloc /w/app:main"));
    assert_false(is_library(""));
}

static void test_stacks(void **state)
{
    (void)state;
    assert_int_equal(
        leaks_are(ROW_STACK, -1, NULL,
                  "71.00 KiB in 1 block (host heap), before main(), allocated at\n"
                  "    #0  _dl_init  [ld-linux-x86-64.so.2+0x40]\n"
                  "\n"
                  "4.88 KiB in 1 block (host heap), allocated at\n"
                  "    #0  ??    [libgui.so+0x50]\n"
                  "    #1  main  a.c:25\n"
                  "\n"
                  "100 B in 2 blocks, largest 100 B (host heap), allocated at\n"
                  "    #0  make(int)  a.c:7 (inlined)\n"
                  "    #1  main       a.c:22\n"
                  "\n"
                  "8 B in 8 blocks, largest 8 B (host heap), allocated at\n"
                  "    #0  ??  [0x1000]\n"
                  "    ... the callers are unknown: no unwind information\n"
                  "\n"
                  "Live at the end: 75.99 KiB in 12 blocks, from 4 stacks.\n"
                  "Of these, the start-up of libraries before main() holds 71.00 KiB in 1 block.\n"
                  "Memory that the program could still reach is included: memprof does not scan for pointers.\n"),
        1);
}

/* p: Python's, i: of an import, n: the interpreter's own, x: of an extension, a: of the allocator family */
static void folds_to(const char *frames, const char *expected)
{
    struct walk_frame frame[16] = {{0}};
    const struct walk_frame *list[16];
    char kept[17] = "";
    struct walk_stack stack = {.frames = list};
    for (; frames[stack.count]; stack.count++) {
        char c = frames[stack.count];
        frame[stack.count] = (struct walk_frame){.is_python = c == 'p' || c == 'i',
                                                 .is_interpreter = c == 'n',
                                                 .is_allocator = c == 'a',
                                                 .function = &frames[stack.count],
                                                 .file = c == 'i' ? "<frozen importlib._bootstrap>" : "/w/job.py"};
        list[stack.count] = &frame[stack.count];
    }
    int count = stack.count;
    walk_fold(&stack);
    for (int i = 0; i < stack.count; i++)
        kept[i] = *stack.frames[i]->function;
    assert_string_equal(kept, expected);
    assert_int_equal(stack.folded, count - stack.count);
}

static void test_fold(void **state)
{
    (void)state;
    folds_to("annpnnpn", "app");      /* a method of the interpreter's */
    folds_to("axnpniinnipn", "axpp"); /* an extension's, below an import */
    folds_to("aniinnpn", "aip");      /* an import's own: who it is, and for whom */
    folds_to("axiipn", "axp");        /* the start of a module in C */
    folds_to("annx", "annx");         /* no frame of Python's: the interpreter itself */
    folds_to("", "");
}

static void test_lines(void **state)
{
    (void)state;
    leaks_are(ROW_LINE, 2, "*ld-linux*",
              "   bytes  blocks   largest  device  function   source\n"
              "4.88 KiB       1  4.88 KiB  host    main       a.c:25\n"
              "   100 B       2     100 B  host    make(int)  a.c:7\n"
              "\n"
              "Live at the end: 4.99 KiB in 11 blocks, from 3 lines (2 shown; --top 0 shows all); suppressed: 71.00 "
              "KiB in 1 block from 1"
              " stack.\n"
              "Memory that the program could still reach is included: memprof does not scan for pointers.\n"
              "\n"
              "stacks  blocks      bytes  suppressed by\n"
              "     1       1  71.00 KiB  *ld-linux*\n");
}

static void test_suppressed(void **state)
{
    (void)state;
    assert_int_equal(leaks_are(ROW_STACK, -1, "*",
                               "Nothing was live at the end; suppressed: 75.99 KiB in 12 blocks from 4 stacks.\n"
                               "\n"
                               "stacks  blocks      bytes  suppressed by\n"
                               "     4      12  75.99 KiB  *\n"),
                     0);
    assert_int_equal(leaks_are(ROW_STACK, -1, "^main$", NULL), 1);
}

/* The first pattern that matches any frame shown takes a stack; frames that are not shown match nothing. */
static void test_suppression_order(void **state)
{
    (void)state;
    leaks_are(ROW_LINE, 1, "malloc nothing_here a.c make ld-linux libgui 0x10",
              "bytes  blocks  largest  device  function  source\n"
              "  8 B       8      8 B  host    ??\n"
              "\n"
              "Live at the end: 8 B in 8 blocks, from 1 line; suppressed: 75.98 KiB in 4 blocks from 3 stacks.\n"
              "Memory that the program could still reach is included: memprof does not scan for pointers.\n"
              "\n"
              "stacks  blocks      bytes  suppressed by\n"
              "     2       3   4.98 KiB  a.c\n"
              "     1       1  71.00 KiB  ld-linux\n"
              "Suppressions that matched nothing: malloc, nothing_here, make, libgui, 0x10\n");
}

/* --frames counts frames that would be shown: neither malloc nor what calls main(). */
static void test_frames(void **state)
{
    (void)state;
    struct walk *walk;
    struct walk_stack stack;
    struct error err;
    char *text = NULL;
    size_t length = 0;
    struct report_out out = {.file = open_memstream(&text, &length)};
    assert_int_equal(walk_open(db, TREE_BOTH, &walk, &err), 0);
    assert_int_equal(walk_stack(walk, 10, &stack, &err), 0);
    stack_print(&stack, &out, "/w", 1, "");
    stack_print(&stack, &out, "/w", 2, "");
    fclose(out.file);
    assert_string_equal(text, "#0  make(int)  a.c:7 (inlined)\n"
                              "... 1 more frame (--frames 0 shows all)\n"
                              "#0  make(int)  a.c:7 (inlined)\n"
                              "#1  main       a.c:22\n");
    free(text);
    walk_close(walk);
}

/* A stack that is its own caller ends somewhere. */
static void test_cycle(void **state)
{
    (void)state;
    struct walk *walk;
    struct walk_stack stack;
    struct error err;
    assert_int_equal(walk_open(db, TREE_BOTH, &walk, &err), 0);
    assert_int_equal(walk_stack(walk, 50, &stack, &err), 0);
    assert_int_equal(stack.count, WALK_FRAMES_MAX);
    assert_true(stack.is_cut);
    assert_int_equal(walk_stack(walk, 10, &stack, &err), 0);
    assert_int_equal(stack.count, 4);
    int first, end;
    walk_shown(&stack, &first, &end);
    assert_int_equal(first, 1);
    assert_int_equal(end, 3); /* libc calls main() */
    assert_string_equal(stack.frames[1]->function, "make(int)");
    assert_int_equal(walk_stack(walk, 99999, &stack, &err), 0);
    assert_int_equal(stack.count, 0);
    walk_close(walk);
}

/* A file whose views are traps: ours stand before them. */
static void test_hostile_schema(void **state)
{
    (void)state;
    sqlite3 *other;
    struct error err;
    assert_int_equal(sqlite3_open(":memory:", &other), SQLITE_OK);
    assert_int_equal(
        sqlite3_exec(
            other,
            "CREATE VIEW v_total AS WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r) SELECT x FROM r;"
            "CREATE TABLE device(device_id, name, total_bytes); CREATE TABLE total(device_id, kind)",
            NULL, NULL, NULL),
        SQLITE_OK);
    assert_int_equal(views_own(other, &err), 0);
    sqlite3_stmt *s;
    /* our definition, which names columns that this table lacks: an error, not an endless loop */
    assert_int_not_equal(sqlite3_prepare_v2(other, "SELECT * FROM v_total", -1, &s, NULL), SQLITE_OK);
    sqlite3_close(other);
}

/* What a damaged file says that Python freed is a part of what there is all the same. */
static void take_part(void *arg, const struct leaks_row *row)
{
    int64_t *kept = arg;
    assert_in_range(row->kept_bytes, 0, row->bytes);
    assert_in_range(row->kept_blocks, 0, row->blocks);
    kept[0] += row->kept_bytes;
    kept[1] += row->kept_blocks;
}

static void test_damaged_teardown(void **state)
{
    (void)state;
    struct report_options report = {.top = 20, .sort = -1, .by = ROW_STACK, .frames = 30};
    struct suppressions none = {0};
    struct error err;
    int64_t kept[2] = {0, 0};
    scratch_sql(db, "INSERT INTO site_teardown VALUES(1, 9223372036854775807, 9223372036854775807), (2, "
                    "-9223372036854775807, -9223372036854775807)");
    assert_int_equal(leaks_each(db, &(struct leaks_options){&report, &none, 1}, take_part, kept, &err), 0);
    leaks_of(ROW_STACK, 20, 1, NULL, NULL);
    scratch_sql(db, "DELETE FROM site_teardown");
    assert_int_equal(kept[0], 5000 + 72704 + 8);
    assert_int_equal(kept[1], 1 + 1 + 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stacks),
        cmocka_unit_test(test_damaged_teardown),
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_suppressed),
        cmocka_unit_test(test_suppression_order),
        cmocka_unit_test(test_library),
        cmocka_unit_test(test_frames),
        cmocka_unit_test(test_noise),
        cmocka_unit_test(test_arenas),
        cmocka_unit_test(test_fold),
        cmocka_unit_test(test_cycle),
        cmocka_unit_test(test_hostile_schema),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
