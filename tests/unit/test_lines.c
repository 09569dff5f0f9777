/* `memprof lines`: names of functions and files, grouping, ranges, columns, on a database made here. */
#include "../../common/db.h"
#include "../../common/match.h"
#include "../../report/query/views.h"
#include "../../report/text/lines.h"
#include "scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void test_function_names(void **state)
{
    (void)state;
    static const struct {
        const char *pattern, *name, *plain;
        int matches;
    } rows[] = {
        {"forward", "forward", "forward", 1},
        {"forward", "net::forward(int)", "forward", 1},
        {"net::forward", "net::forward(int)", "forward", 1},
        {"net::forward", "ml::net::forward(int) const", "forward", 1},
        {"et::forward", "net::forward(int)", "forward", 0},
        {"for", "forward", "forward", 0},
        {"for*", "net::forward(int)", "forward", 1},
        {"*ward", "forward", "forward", 1},
        {"f?rward", "forward", "forward", 1},
        {"a::b::c", "void a::b<int, x<2> >::c<3>(char) const", "c", 1},
        {"a::b<int, x<2> >::c<3>", "void a::b<int, x<2> >::c<3>(char) const", "c", 1},
        {"net::forward(int)", "net::forward(int)", "forward", 1},
        {"net::forward(long)", "net::forward(int)", "forward", 0},
        {"net::operator()", "net::operator()(int)", "operator()", 1},
        {"net::operator<<", "std::ostream& net::operator<<(std::ostream&)", "operator<<", 1},
        {"(anonymous namespace)::f", "(anonymous namespace)::f(int)", "f", 1},
        {"f", "f(int) [clone .cold]", "f", 1},
        {"*", "anything", "anything", 1},
        {"*a*a*a*a*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "aaaaaaaaaaaaaaaaaaaaaaaaaaa", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (match_function(rows[i].pattern, rows[i].name, rows[i].plain) != rows[i].matches)
            fail_msg("'%s' on '%s': expected %d", rows[i].pattern, rows[i].name, rows[i].matches);
}

static void test_file_names(void **state)
{
    (void)state;
    assert_true(match_file("net.c", "/home/ada/src/net.c"));
    assert_true(match_file("src/net.c", "/home/ada/src/net.c"));
    assert_true(match_file("/home/ada/src/net.c", "/home/ada/src/net.c"));
    assert_true(match_file("*.c", "/home/ada/src/net.c"));
    assert_true(match_file("src/*.c", "/home/ada/src/net.c"));
    assert_true(match_file("*/src/*", "/home/ada/src/net.c"));
    assert_false(match_file("et.c", "/home/ada/src/net.c"));
    assert_false(match_file("*.cpp", "/home/ada/src/net.c"));
    assert_false(match_file("lib/*.c", "/home/ada/src/net.c"));
}

static sqlite3 *db;

/* An inclusive account of a line; the values not given are 0. */
static void account(int line_id, int device, int allocs, int bytes, int freed, int peak)
{
    scratch_sql(
        db,
        "INSERT INTO account VALUES('line', %d, 1, %d, 'all', %d, %d, 0, %d, 0, 0, %d, 0, 0, NULL, %d, 0, %d, 0, 0, 0)",
        line_id, device, allocs, bytes, freed, peak, bytes - freed, peak);
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
        "INSERT INTO device(device_id, name, total_bytes) VALUES(0, 'host', NULL), (1, 'cuda:0', NULL);"
        "INSERT INTO total SELECT device_id, 'all', 1, 0, 1, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 0, 0 FROM device;"
        "INSERT INTO file VALUES(1, '/w/t.hpp', '// 1\n// 2\ntemplate<class T>\nvoid push(T "
        "x)\n{\n\tgrow(x);\n\tstore(x);\n}\n\nint other;\n'),"
        " (2, '/w/gone.c', NULL);"
        "INSERT INTO function VALUES(1, 'void a::push<int>(int)', 'push', 'x', 1, 4, 0), (2, 'void "
        "a::push<long>(long)', 'push', 'y', 1, 4, 0),"
        " (3, 'b::push(char)', 'push', 'z', 2, 10, 0), (4, 'idle', 'idle', 'idle', 2, 90, 0);"
        "INSERT INTO line VALUES(1, 1, 1, 6, NULL, NULL), (2, 2, 1, 6, NULL, NULL), (3, 2, 1, 7, NULL, NULL), (4, 3, "
        "2, 12, NULL, NULL),"
        " (5, 3, 2, 400, NULL, NULL);");
    account(1, 0, 10, 1000, 400, 5000);
    account(2, 0, 5, 2000, 0, 9000);
    account(3, 0, 1, 8, 8, 9000);
    account(4, 0, 3, 30, 0, 100);
    account(5, 1, 4, 40, 0, 100);
    return views_own(db, &err);
}

static int teardown(void **state)
{
    sqlite3_close(db);
    return scratch_end(state);
}

static void lines_are(const char *function, const char *file, const char *columns, enum report_format format,
                      const char *expected)
{
    struct report_options report = {.top = -1, .sort = -1};
    struct lines_options options = {.report = &report,
                                    .functions = {function},
                                    .function_count = function != NULL,
                                    .files = {file},
                                    .file_count = file != NULL};
    char *text = NULL;
    size_t length = 0;
    struct report_out out = {.file = open_memstream(&text, &length), .format = format};
    struct error err = {""};
    assert_int_equal(lines_columns(columns, &options, &err), 0);
    int rc = lines_report(db, &options, &out, &err);
    fclose(out.file);
    assert_string_equal(rc ? err.text : text, expected);
    free(text);
}

static void test_template(void **state)
{
    (void)state;
    /* both instances are one function of the source; counts add up, peaks do not; the declaration to the closing brace
     */
    lines_are("a::push", NULL, NULL, REPORT_TEXT,
              "## a::push   t.hpp:4   host\n"
              "(device active, reserved: the highest of the whole device while the line was on the stack)\n"
              "\n"
              "   held   own  device    device     net  allocs  temp  line  code\n"
              "at peak  peak  active  reserved  growth\n"
              "                                                          4  void push(T x)\n"
              "                                                          5  {\n"
              " 13.67K     -   8.79K         0   2.54K      15     0     6          grow(x);\n"
              "  8.79K     -   8.79K         0       0       1     0     7          store(x);\n"
              "                                                          8  }\n"
              "(own peaks are not known of what several stacks make)\n");
}

static void test_instances(void **state)
{
    (void)state;
    /* of each instance's line the own peak is known: of line 7, which one has, it is shown */
    scratch_sql(db, "UPDATE account SET own_peak_bytes = 9000");
    lines_are("a::push", NULL, "alloc.bytes,own.peak", REPORT_TEXT,
              "## a::push   t.hpp:4   host\n"
              "\n"
              "alloc    own  line  code\n"
              "bytes   peak\n"
              "                 4  void push(T x)\n"
              "                 5  {\n"
              "2.93K      -     6          grow(x);\n"
              "    8  8.79K     7          store(x);\n"
              "                 8  }\n"
              "(own peak -: several instances of a template, or clones, make the line, and what one of them calls of "
              "another counts in both; 'memprof report --by line --inclusive' has each one's)\n");
    scratch_sql(db, "UPDATE account SET own_peak_bytes = NULL");
}

static void test_columns(void **state)
{
    (void)state;
    lines_are("b::push", "gone.c", "alloc.bytes,own.peak", REPORT_TEXT,
              "## b::push   gone.c:10   host\n"
              "! the source cannot be read here; 'memprof run --source' puts it into the database\n"
              "\n"
              "alloc   own  line  code\n"
              "bytes  peak\n"
              "   30     -    12\n"
              "(own peaks are not known of what several stacks make)\n"
              "\n"
              "## b::push   gone.c:10   cuda:0\n"
              "\n"
              "alloc   own  line  code\n"
              "bytes  peak\n"
              "   40     -   400\n");
    /* by PyTorch's names, each once */
    lines_are("b::push", "gone.c", "allocated_bytes.all.allocated,alloc.bytes,active_bytes.all.peak", REPORT_TEXT,
              "## b::push   gone.c:10   host\n"
              "! the source cannot be read here; 'memprof run --source' puts it into the database\n"
              "(device active, reserved: the highest of the whole device while the line was on the stack)\n"
              "\n"
              "alloc  device  line  code\n"
              "bytes  active\n"
              "   30     100    12\n"
              "\n"
              "## b::push   gone.c:10   cuda:0\n"
              "(more active than reserved: managed memory and that of other processes is not reserved here)\n"
              "\n"
              "alloc  device  line  code\n"
              "bytes  active\n"
              "   40     100   400\n");
    /* no run of its own could keep the source of what was imported */
    scratch_sql(db, "INSERT INTO meta VALUES('imported_from', '/w/a.pickle')");
    lines_are("b::push", "gone.c", "alloc.bytes", REPORT_TEXT,
              "## b::push   gone.c:10   host\n"
              "! the source cannot be read here\n"
              "\n"
              "alloc  line  code\n"
              "bytes\n"
              "   30    12\n"
              "\n"
              "## b::push   gone.c:10   cuda:0\n"
              "\n"
              "alloc  line  code\n"
              "bytes\n"
              "   40   400\n");
    scratch_sql(db, "DELETE FROM meta WHERE key = 'imported_from'");
}

static void test_nothing(void **state)
{
    (void)state;
    struct lines_options options = {0};
    struct error err = {""};
    lines_are("idle", NULL, NULL, REPORT_TEXT,
              "no function 'idle' allocated, or called what allocates; 'memprof report' lists those that did");
    lines_are(
        "absent", NULL, NULL, REPORT_TEXT,
        "no function 'absent' in this recording; try a pattern such as '*absent*', or 'memprof report --by function'");
    /* no pattern with more stars than one that matched nothing */
    lines_are(
        "*absent*", NULL, NULL, REPORT_TEXT,
        "no function '*absent*' in this recording; 'memprof report --by function --inclusive --top 0' lists those "
        "that are here");
    lines_are("libz.so.1+0x12", NULL, NULL, REPORT_TEXT,
              "no function 'libz.so.1+0x12' in this recording: a name with +0x is of one build of its module; 'memprof "
              "report --by function --inclusive --top 0' lists those that are here");
    assert_true(lines_columns("alloc.bytes,nonsense", &options, &err) < 0);
    assert_non_null(strstr(err.text, "'nonsense'"));
    assert_true(lines_columns("alloc.bytes,segment.all.peak", &options, &err) < 0);
    assert_non_null(strstr(err.text, "'segment.all.peak'"));
    assert_true(lines_columns(",", &options, &err) < 0);
}

/* Code without a symbol, of a module whose name looks like several words: two builds of it are two. */
static void test_bare_code(void **state)
{
    (void)state;
    static const char expected[] = "## my <lib>.so+0x12   (no line information)   host\n"
                                   "\n"
                                   "alloc  line  code\n"
                                   "bytes\n"
                                   "   70     ?\n"
                                   "\n"
                                   "## my <lib>.so+0x12   (no line information)   host\n"
                                   "\n"
                                   "alloc  line  code\n"
                                   "bytes\n"
                                   "   60     ?\n";
    scratch_sql(db, "INSERT INTO module_key VALUES(1, '/w/my <lib>.so', 'aa'), (2, '/w/my <lib>.so', 'bb');"
                    "INSERT INTO line VALUES(6, NULL, NULL, 0, 1, 18), (7, NULL, NULL, 0, 2, 18)");
    account(6, 0, 1, 60, 0, 60);
    account(7, 0, 1, 70, 0, 70);
    lines_are("my <lib>.so+0x12", NULL, "alloc.bytes", REPORT_TEXT, expected);
    lines_are("*.so+0x1?", NULL, "alloc.bytes", REPORT_TEXT, expected);
    lines_are("my <lib>+0x12", NULL, "alloc.bytes", REPORT_TEXT, expected);
    lines_are("*0x12", NULL, "alloc.bytes", REPORT_TEXT,
              "no function '*0x12' in this recording; 'memprof report --by function --inclusive --top 0' lists those "
              "that are here");
    scratch_sql(db, "DELETE FROM account WHERE key_id IN (6, 7); DELETE FROM line WHERE line_id IN (6, 7);"
                    "DELETE FROM module_key");
}

static void test_csv(void **state)
{
    (void)state;
    lines_are("b::push", NULL, NULL, REPORT_CSV,
              "device,kind,function,file,declared_line,line,code,alloc_count,alloc_bytes,free_count,free_bytes,"
              "temporary_count,"
              "temporary_bytes,at_peak_bytes,at_peak_count,at_kind_peak_bytes,own_peak_bytes,end_bytes,end_count,"
              "active_peak_bytes,"
              "reserved_peak_bytes,largest_bytes,lifetime_ns,resident_bytes,resident_shared_bytes,"
              "resident_huge_bytes,swapped_bytes,untouched_bytes,resident_end_bytes,net_growth_bytes,mean_bytes,mean_"
              "lifetime_ns,reserved_growth_bytes\n"
              "host,all,b::push,/w/gone.c,10,12,,3,30,0,0,0,0,100,0,0,,30,0,100,0,0,0,,,,,,,30,10,,\n"
              "cuda:0,all,b::push,/w/gone.c,10,400,,4,40,0,0,0,0,100,0,0,,40,0,100,0,0,0,,,,,,,40,10,,0\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_function_names), cmocka_unit_test(test_file_names), cmocka_unit_test(test_template),
        cmocka_unit_test(test_instances),      cmocka_unit_test(test_columns),    cmocka_unit_test(test_nothing),
        cmocka_unit_test(test_bare_code),      cmocka_unit_test(test_csv),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
