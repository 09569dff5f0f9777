/* Text for terminals and tables: cleaning, widths, shortening, fitting, colours. */
#include "../../common/match.h"
#include "../../report/page/page_names.h"
#include "../../report/print/listing.h"
#include "../../report/query/short_name.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void clean_is(const char *text, const char *expected)
{
    struct buf out = BUF(1 << 16);
    text_clean(&out, text);
    assert_string_equal(out.data, expected);
    buf_free(&out);
}

static void test_clean(void **state)
{
    (void)state;
    clean_is("", "");
    clean_is("forward(int)", "forward(int)");
    clean_is("a\033[31mb", "a\\x1b[31mb");
    clean_is("a\r\n\tb\x7f", "a\\x0d\\x0a\\x09b\\x7f");
    clean_is("gr\xc3\xbc\xc3\x9f \xe6\xbc\xa2 \xf0\x9f\x98\x80", "gr\xc3\xbc\xc3\x9f \xe6\xbc\xa2 \xf0\x9f\x98\x80");
    clean_is("\xc2\x9b"
             "31m",
             "\\u{9b}31m"); /* the C1 form of escape [ */
    clean_is("\xe2\x80\xae"
             "evil",
             "\\u{202e}evil");                                              /* right-to-left override */
    clean_is("\xff\xc0\xaf\xed\xa0\x80", "\\xff\\xc0\\xaf\\xed\\xa0\\x80"); /* not UTF-8, overlong, surrogate */
    clean_is("cut\xe6\xbc", "cut\\xe6\\xbc");
}

static void test_valid(void **state)
{
    (void)state;
    struct buf out = BUF(1 << 16);
    text_valid(&out, "a\xff\n\xc3\xbc");
    assert_string_equal(out.data, "a\xef\xbf\xbd\n\xc3\xbc");
    buf_free(&out);
}

static void test_plain(void **state)
{
    (void)state;
    struct buf out = BUF(1 << 16);
    text_plain(&out, "a\xff\n\xc2\x9b\x7f\xc3\xbc\xc2\xa0");
    assert_string_equal(out.data, "a????\xc3\xbc\xc2\xa0"); /* U+009B is one, U+00A0 none */
    buf_free(&out);
}

static void fit_is(const char *text, int width, enum text_cut cut, int utf8, const char *expected)
{
    struct buf out = BUF(1 << 16);
    buf_puts(&out, "");
    text_fit(&out, text, width, cut, utf8);
    assert_string_equal(out.data, expected);
    assert_true(cut == TEXT_CUT_NONE || text_width(out.data) <= width);
    buf_free(&out);
}

static void test_fit(void **state)
{
    (void)state;
    fit_is("forward", 7, TEXT_CUT_MIDDLE, 1, "forward");
    fit_is("very::long::name", 9, TEXT_CUT_MIDDLE, 1, "very\xe2\x80\xa6name");
    fit_is("very::long::name", 10, TEXT_CUT_MIDDLE, 0, "very..name");
    fit_is("/usr/include/c++/12/vector:42", 16, TEXT_CUT_LEFT, 1, "\xe2\x80\xa6/12/vector:42");
    fit_is("/usr/lib/python3/requests/__init__.py:37", 20, TEXT_CUT_LEFT, 1,
           "\xe2\x80\xa6"
           "ests/__init__.py:37");
    fit_is("averylongfilenamewithoutslash.c", 10, TEXT_CUT_LEFT, 1, "\xe2\x80\xa6utslash.c");
    fit_is("int main(void)", 6, TEXT_CUT_RIGHT, 1, "int m\xe2\x80\xa6");
    fit_is("\xe6\xbc\xa2\xe6\xbc\xa2\xe6\xbc\xa2", 4, TEXT_CUT_RIGHT, 1,
           "\xe6\xbc\xa2\xe2\x80\xa6"); /* two columns each */
    fit_is("long", 1, TEXT_CUT_MIDDLE, 1, "l");
    fit_is("long", 2, TEXT_CUT_NONE, 1, "long");
}

/* The own name stays longest: without arguments, then template arguments, then scopes. */
static void test_fit_name(void **state)
{
    (void)state;
    static const char push[] = "void stats::list<int, std::less<int> >::push<int>(int, long)";
    fit_is(push, 60, TEXT_CUT_NAME, 1, push);
    fit_is(push, 59, TEXT_CUT_NAME, 1, "stats::list<int, std::less<int> >::push<int>");
    fit_is(push, 43, TEXT_CUT_NAME, 1, "stats::list::push");
    fit_is(push, 16, TEXT_CUT_NAME, 1, "\xe2\x80\xa6::push");
    fit_is(push, 16, TEXT_CUT_NAME, 0, "..::push");
    fit_is(push, 4, TEXT_CUT_NAME, 1, "push");
    fit_is(push, 3, TEXT_CUT_NAME, 1, "pu\xe2\x80\xa6");
    fit_is("forward", 7, TEXT_CUT_NAME, 1, "forward");
    fit_is("a_long_function", 9, TEXT_CUT_NAME, 1, "a_long_f\xe2\x80\xa6");
    /* of a caller and others both stay, the number alone where there is little room */
    fit_is("<- net::Pool::make and 12 others", 32, TEXT_CUT_LEFT, 1, "<- net::Pool::make and 12 others");
    fit_is("<- net::AddressPool::make_all and 12 others", 34, TEXT_CUT_LEFT, 0, "<- ..::make_all and 12 others");
    fit_is("<- net::AddressPool::make_all and 1 other", 20, TEXT_CUT_LEFT, 0, "<- ..::make_all +1");
    fit_is("<- net::make and other", 14, TEXT_CUT_LEFT, 0, "<- other"); /* no number: a name as others */
    fit_is("main::{lambda(int)#1}::operator()(int) const", 34, TEXT_CUT_NAME, 1, "main::{lambda(int)#1}::operator()");
    /* what is within a function is not the function */
    fit_is("app::work(int, long)::{lambda(char)#1}::operator()(char) const", 48, TEXT_CUT_NAME, 1,
           "app::work::{lambda(char)#1}::operator()");
    /* of an instance for a closure this says most */
    static const char run[] = "std::Run<std::tuple<main::{lambda(int)#1}> >::_M_run(int)";
    fit_is(run, 45, TEXT_CUT_NAME, 1, "std::Run<main::{lambda(int)#1}>::_M_run");
    fit_is(run, 38, TEXT_CUT_NAME, 1, "\xe2\x80\xa6<main::{lambda(int)#1}>::_M_run");
    fit_is(run, 30, TEXT_CUT_NAME, 0, "..<main::{lambda(int)#1}>..");
    fit_is(run, 20, TEXT_CUT_NAME, 1, "std::Run::_M_run");
    fit_is("app::each<main::{lambda()#1}>(int)", 28, TEXT_CUT_NAME, 1, "\xe2\x80\xa6::each<main::{lambda()#1}>");
    fit_is("app::each<main::{lambda()#1}>(int)", 20, TEXT_CUT_NAME, 1, "app::each");
    /* the type for which a trait is implemented begins with what is no arrow */
    fit_is("<app::Tree<u8> as app::Grow>::grow", 33, TEXT_CUT_NAME, 1, "<app::Tree as app::Grow>::grow");
    fit_is("  <- <app::Tree<u8> as app::Grow>::grow", 37, TEXT_CUT_NAME, 1, "  <- <app::Tree as app::Grow>::grow");
    fit_is("<app::Tree<u8> as app::Grow>::grow", 20, TEXT_CUT_NAME, 1, "\xe2\x80\xa6::grow");
    fit_is("std::ostream& std::operator<< <char>(std::ostream&, char)", 20, TEXT_CUT_NAME, 1, "std::operator<<");
    fit_is("load.<locals>.<listcomp>(int)", 24, TEXT_CUT_NAME, 1, "load.<locals>.<listcomp>");
    fit_is("<- std::vector<int>::push_back(int)", 25, TEXT_CUT_LEFT, 1, "<- std::vector::push_back");
    fit_is("<module>", 8, TEXT_CUT_NAME, 1, "<module>");
    fit_is("<module>", 4, TEXT_CUT_NAME, 1, "<mo\xe2\x80\xa6");
    fit_is("<", 0, TEXT_CUT_NAME, 1, "");
    fit_is("(anonymous namespace)::run(int)", 28, TEXT_CUT_NAME, 1, "(anonymous namespace)::run");
    fit_is("std::vector<((anonymous", 8, TEXT_CUT_NAME, 1, "vector"); /* not a name */
    fit_is("{{{<<<(((", 5, TEXT_CUT_NAME, 1, "{{{<\xe2\x80\xa6");
    fit_is("::::", 2, TEXT_CUT_NAME, 1, "::");
}

static void path_is(const char *path, const char *expected)
{
    struct buf out = BUF(1 << 16);
    text_path(&out, path, "/home/ada/net");
    assert_string_equal(out.data, expected);
    buf_free(&out);
}

static void test_path_shown(void **state)
{
    (void)state;
    path_is("/home/ada/net/src/net.c", "src/net.c");
    path_is("/home/ada/net/build/../src/./net.c", "src/net.c");
    path_is("/home/ada/x/../net//src/net.c", "src/net.c");
    path_is("./elf/elf/../dl.c", "elf/dl.c");
    path_is("intl/../../x.c", "../x.c");
    path_is("../../x.c", "../../x.c");
    path_is("/../x.c", "/x.c");
    path_is("/", "/");
    path_is(".", ".");
    path_is("", "");
    path_is("a/..", "a/.."); /* nothing would be left */
}

static void test_paths(void **state)
{
    (void)state;
    assert_string_equal(text_relative("/home/ada/net/src/net.c", "/home/ada/net"), "src/net.c");
    assert_string_equal(text_relative("/home/ada/net/src/net.c", "/home/ada/net/"), "src/net.c");
    assert_string_equal(text_relative("/home/ada/network.c", "/home/ada/net"), "/home/ada/network.c");
    assert_string_equal(text_relative("/usr/x.c", "/"), "/usr/x.c");
    assert_string_equal(text_relative("/usr/x.c", NULL), "/usr/x.c");
    assert_string_equal(text_basename("/usr/lib/libz.so.1"), "libz.so.1");
    assert_string_equal(text_basename("libz.so.1"), "libz.so.1");
    assert_string_equal(text_filename("/usr/lib/net.py"), "net.py");
    assert_string_equal(text_filename("/usr/lib/requests/__init__.py"), "requests/__init__.py");
    assert_string_equal(text_filename("requests/__main__.py"), "requests/__main__.py");
    assert_string_equal(text_filename("__init__.py"), "__init__.py");
    assert_string_equal(text_filename("/__init__.py"), "__init__.py");
    assert_string_equal(page_basename("/usr/lib/requests/__init__.py"), "requests/__init__.py");
}

static const struct column columns[] = {
    COLUMN(NULL, "bytes", BYTES),
    COLUMN(NULL, "peak\nactive", COUNT, .flags = COLUMN_OPTIONAL),
    COLUMN(NULL, "function", TEXT, .cut = TEXT_CUT_MIDDLE),
};

static void table_is(int width, int color, const char *expected)
{
    char *text = NULL;
    size_t length = 0;
    struct report_out out = {.file = open_memstream(&text, &length), .width = width, .color = color, .utf8 = 0};
    struct listing *l = listing_open(columns, COLUMN_COUNT_OF(columns), &out, NULL);
    listing_int(l, 40960);
    listing_int(l, 1234567);
    listing_text(l, "forward");
    listing_style(l, TABLE_DIM);
    listing_int(l, 1);
    listing_share(l, 1, 0);
    listing_text(l, "std::vector<long, std::allocator<long> >::push_back(long const&)");
    assert_int_equal(listing_rows(l), 2);
    listing_print(l);
    fclose(out.file);
    assert_string_equal(text, expected);
    listing_close(l);
    free(text);
}

static void test_table(void **state)
{
    (void)state;
    table_is(0, 0,
             "    bytes       peak  function\n"
             "              active\n"
             "40.00 KiB  1,234,567  forward\n"
             "      1 B             std::vector<long, std::allocator<long> >::push_back(long const&)\n");
    table_is(48, 0,
             "    bytes       peak  function\n"
             "              active\n"
             "40.00 KiB  1,234,567  forward\n"
             "      1 B             std::vector<..long const&)\n");
}

/* Names that are alike once they are shortened keep the argument that differs, and others stay as they are. */
static void apart_is(int width, const char *const names[3], const char *const expected[3])
{
    static const struct column function[] = {COLUMN(NULL, "function", TEXT, .cut = TEXT_CUT_NAME)};
    struct buf want = BUF(1 << 12);
    char *text = NULL;
    size_t length = 0;
    struct report_out out = {.file = open_memstream(&text, &length), .width = width};
    struct listing *l = listing_open(function, 1, &out, NULL);
    for (int i = 0; i < 3; i++) {
        listing_text(l, names[i]);
        buf_printf(&want, "%s\n", expected[i]);
    }
    assert_int_equal(listing_rows(l), 3);
    listing_print(l);
    listing_close(l);
    fclose(out.file);
    assert_string_equal(strchr(text, '\n') + 1, want.data);
    buf_free(&want);
    free(text);
}

static void test_apart(void **state)
{
    (void)state;
    const char *const maps[] = {
        "stats::Map<std::string, int, stats::Pool<std::string> >::insert(std::string const&)",
        "stats::Map<std::string, wide::Key, stats::Pool<std::string> >::insert(std::string const&)",
        "stats::Map<std::string, int, stats::Pool<std::string> >::erase(std::string const&)"};
    apart_is(
        0, maps,
        (const char *const[]){"stats::Map::insert<..int..>", "stats::Map::insert<..wide::Key..>", "stats::Map::erase"});
    apart_is(32, maps,
             (const char *const[]){"stats::Map::insert<..int..>", "..::insert<..wide::Key..>", "stats::Map::erase"});
    /* a difference in one bracket, and so in the next */
    apart_is(22,
             (const char *const[]){"stats::put<int>(int const&)", "stats::put<char>(char const&)", "stats::get(int)"},
             (const char *const[]){"stats::put<int>", "stats::put<char>", "stats::get(int)"});
    /* one of them has room for all of its arguments */
    apart_is(50,
             (const char *const[]){"os::commit(char*, unsigned long, bool)",
                                   "os::commit(char*, unsigned long, unsigned long, bool)", "os::free(char*)"},
             (const char *const[]){"os::commit(char*, unsigned long, bool)", "os::commit(..unsigned long, bool)",
                                   "os::free(char*)"});
    /* overloads; the first and the last argument of all */
    const char *const overloads[] = {"stats::collect(unsigned long, unsigned long, unsigned long, unsigned long, int)",
                                     "stats::collect(unsigned long, unsigned long, unsigned long, unsigned long, char)",
                                     "stats::collect_all(unsigned long, unsigned long, unsigned long, unsigned long)"};
    apart_is(0, overloads,
             (const char *const[]){"stats::collect(..int)", "stats::collect(..char)", "stats::collect_all"});
    /* a function and a compiler's copy of it, beside another instance */
    const char *const copies[] = {
        "int file_contents<unsigned long*>(Controller*, char const*, char const*, long*)",
        "int file_contents<unsigned long*>(Controller*, char const*, char const*, long*) [clone .constprop.0]",
        "int file_contents<int*>(Controller*, char const*, char const*, int*)"};
    apart_is(0, copies,
             (const char *const[]){"file_contents<unsigned long*>",
                                   "file_contents<unsigned long*> [clone .constprop.0]", "file_contents<int*>"});
    /* closures: the instances of one class for them */
    const char *const closures[] = {
        "std::thread::_State_impl<std::thread::_Invoker<std::tuple<main::{lambda()#1}> > >::_M_run()",
        "std::thread::_State_impl<std::thread::_Invoker<std::tuple<main::{lambda()#2}> > >::_M_run()",
        "std::thread::_State_impl<std::thread::_Invoker<std::tuple<Work> > >::_M_run()"};
    apart_is(0, closures,
             (const char *const[]){"std::thread::_State_impl<main::{lambda()#1}>::_M_run",
                                   "std::thread::_State_impl<main::{lambda()#2}>::_M_run",
                                   "std::thread::_State_impl::_M_run"});
    /* the same function twice is no other one, and of scopes nothing is to be said */
    const char *const same[] = {maps[0], maps[0], maps[2]};
    apart_is(0, same, (const char *const[]){"stats::Map::insert", "stats::Map::insert", "stats::Map::erase"});
    const char *const odd[] = {"a_function_of_one_scope_and_many_words::<<<((::run", "<", ">>>>)"};
    apart_is(12, odd, (const char *const[]){"a_function..", "<", ">>>>)"});
}

/* What a pipe gets of a function: whole up to 60 columns, never cut but for a symbol that could not be demangled. */
static void piped_is(const char *name, const char *expected)
{
    static const struct column function[] = {COLUMN(NULL, "function", TEXT, .cut = TEXT_CUT_NAME),
                                             COLUMN(NULL, "source", TEXT)};
    struct buf want = BUF(1 << 12);
    char *text = NULL;
    size_t length = 0;
    struct report_out out = {.file = open_memstream(&text, &length)};
    struct listing *l = listing_open(function, COLUMN_COUNT_OF(function), &out, NULL);
    listing_text(l, name);
    listing_text(l, "a.c:1");
    listing_print(l);
    listing_close(l);
    fclose(out.file);
    buf_printf(&want, "%s  a.c:1\n", expected);
    assert_string_equal(strchr(text, '\n') + 1, want.data);
    buf_free(&want);
    free(text);
}

static void piped_source_is(const char *source, const char *expected)
{
    static const struct column columns_of[] = {COLUMN(NULL, "source", TEXT, .cut = TEXT_CUT_LEFT)};
    char *text = NULL;
    size_t length = 0;
    struct report_out out = {.file = open_memstream(&text, &length)};
    struct listing *l = listing_open(columns_of, 1, &out, NULL);
    listing_text(l, source);
    listing_print(l);
    listing_close(l);
    fclose(out.file);
    assert_int_equal(strncmp(text, "source\n", 7), 0);
    text[strlen(text) - 1] = 0;
    assert_string_equal(text + 7, expected);
    free(text);
}

static void test_piped(void **state)
{
    (void)state;
    static const char path[] = "/usr/lib/a/directory/whose/name/has/more/than/sixty/columns(1)/a.c:1";
    piped_source_is(path, path);
    piped_source_is("<- clang::Sema::AddBuiltinCandidate(clang::QualType*, llvm::ArrayRef<clang::Expr*>, bool)",
                    "<- clang::Sema::AddBuiltinCandidate");
    piped_is("std::vector<long, std::allocator<long> >::push_back(long&)",
             "std::vector<long, std::allocator<long> >::push_back(long&)");
    piped_is("std::vector<long, std::allocator<long> >::push_back(long const&)",
             "std::vector<long, std::allocator<long> >::push_back");
    piped_is("  <- std::map<std::string, std::vector<long, std::allocator<long> > >::insert(std::pair<int, int>&&)",
             "  <- std::map::insert");
    piped_is("std::_Function_handler<void (int), main::{lambda(int)#3}>::_M_invoke(std::_Any_data const&, int&&)",
             "std::_Function_handler<main::{lambda(int)#3}>::_M_invoke");
    piped_is("<alloc::vec::Vec<u8> as alloc::vec::spec_extend::SpecExtend<u8, app::Iter>>::spec_extend",
             "<alloc::vec::Vec as alloc::vec::spec_extend::SpecExtend>::spec_extend");
    piped_is("a_name_of_one_word_without_any_brackets_that_is_longer_than_sixty_columns",
             "a_name_of_one_word_without_any_brackets_that_is_longer_than_sixty_columns");
    char symbol[700] = "_Z4bomb", cut[TEXT_ENDLESS_WIDTH + 1] = "_Z4bomb";
    memset(symbol + 7, 'S', sizeof symbol - 8);
    memset(cut + 7, 'S', sizeof cut - 8);
    memcpy(cut + 39, "..", 2);
    piped_is(symbol, cut);
    char *name = short_name(symbol);
    assert_string_equal(name, cut);
    free(name);
    symbol[1] = cut[1] = 'z'; /* of C */
    piped_is(symbol, cut);
}

static void test_optional(void **state)
{
    (void)state;
    /* a readable name is worth more than the optional column */
    table_is(40, 0,
             "    bytes  function\n"
             "40.00 KiB  forward\n"
             "      1 B  std::vector<lo..(long const&)\n");
}

static void prose_is(int width, const char *prose, const char *expected)
{
    char *text = NULL;
    size_t length = 0;
    struct report_out out = {.file = open_memstream(&text, &length), .width = width};
    table_prose(&out, TABLE_PLAIN, prose);
    fclose(out.file);
    assert_string_equal(text, expected);
    free(text);
}

static void test_prose(void **state)
{
    (void)state;
    prose_is(0, "! one two three four five", "! one two three four five\n"); /* in a pipe */
    prose_is(12, "! one two three four five", "! one two\n  three four\n  five\n");
    prose_is(11, "one two three four", "one two\nthree four\n");
    prose_is(7, "one two", "one two\n");
    prose_is(6, "* incomprehensible as ever", "* incomprehensible\n  as\n  ever\n");            /* no word is broken */
    prose_is(9, "\xc3\xa4\xc3\xb6\xc3\xbc 345 789 1", "\xc3\xa4\xc3\xb6\xc3\xbc 345\n789 1\n"); /* columns */
    prose_is(1, "! a", "! a\n");
    prose_is(80, "", "\n");
}

static void test_colors(void **state)
{
    (void)state;
    char *text = NULL;
    size_t length = 0;
    struct report_out out = {.file = open_memstream(&text, &length), .color = 1};
    table_line(&out, TABLE_STRONG, "a\033b");
    table_line(&out, TABLE_PLAIN, "c");
    out.color = 0;
    table_line(&out, TABLE_DIM, "d");
    fclose(out.file);
    assert_string_equal(text, "\033[1ma\\x1bb\033[0m\nc\nd\n");
    free(text);
}

static void record_is(enum report_format format, const char *expected)
{
    char *text = NULL;
    size_t length = 0;
    struct report_out out = {.file = open_memstream(&text, &length), .format = format};
    struct record r;
    record_open(&r, &out);
    record_document_begin(&r);
    record_member_text(&r, "file", "a\"b");
    record_array_begin(&r, "rows");
    for (int i = 0; i < 2; i++) {
        record_begin(&r);
        record_text(&r, "name", i ? NULL : "x,\"y\"\xff");
        record_int(&r, "bytes", INT64_MIN);
        record_real(&r, "share", 0.5);
        record_end(&r);
    }
    record_array_end(&r);
    record_member_int(&r, "count", 2);
    record_document_end(&r);
    record_close(&r);
    fclose(out.file);
    assert_string_equal(text, expected);
    free(text);
}

static void test_record(void **state)
{
    (void)state;
    record_is(REPORT_JSON,
              "{\n\"file\": \"a\\\"b\",\n\"rows\": [\n"
              "  {\"name\": \"x,\\\"y\\\"\xef\xbf\xbd\", \"bytes\": -9223372036854775808, \"share\": 0.5},\n"
              "  {\"name\": null, \"bytes\": -9223372036854775808, \"share\": 0.5}],\n\"count\": 2\n}\n");
    record_is(REPORT_CSV,
              "name,bytes,share\n\"x,\"\"y\"\"\xef\xbf\xbd\",-9223372036854775808,0.5\n,-9223372036854775808,0.5\n");
}

/* One description of the columns is a table, JSON and CSV: other columns, in another order. */
static const struct column described[] = {
    COLUMN("device", "device", TEXT, .place = 3, .none = "?"),
    COLUMN("size_bytes", "size", BYTES, .place = 1),
    COLUMN(NULL, "share", PERCENT, .place = 2),
    COLUMN("time_ns", NULL, NS),
    COLUMN("file", "source", SOURCE, .place = 4),
    COLUMN("line", NULL, NUMBER),
    COLUMN("frames", NULL, TEXT, .flags = COLUMN_JSON),
};

static void listing_is(enum report_format format, int rows, const char *expected)
{
    static const char sql[] = "SELECT 'cuda:0', 4096, 12.5, 7, '/w/src/./a.c', 3, '[]', 9 UNION ALL"
                              " SELECT NULL, 1, NULL, NULL, '/w/b.c', NULL, NULL, 9";
    char *text = NULL;
    size_t length = 0;
    struct report_out out = {.file = open_memstream(&text, &length), .format = format};
    struct listing *l = listing_open(described, COLUMN_COUNT_OF(described), &out, "/w");
    sqlite3 *db;
    sqlite3_stmt *s;
    assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &s, NULL), SQLITE_OK);
    struct error err = {""};
    int64_t all = 0;
    assert_int_equal(rows ? listing_statement(l, s, &all, &err) : 0, 0);
    assert_int_equal(all, rows ? 9 : 0); /* its last column, which the listing does not have, says so */
    listing_print_under(l, "Rows", all);
    listing_close(l);
    sqlite3_finalize(s);
    sqlite3_close(db);
    fclose(out.file);
    assert_string_equal(text, expected);
    free(text);
}

static void test_listing(void **state)
{
    (void)state;
    listing_is(REPORT_TEXT, 1,
               "\nRows (2 of 9)\n"
               "    size   share  device  source\n"
               "4.00 KiB  12.5 %  cuda:0  src/a.c:3\n"
               "     1 B          ?       b.c\n");
    listing_is(REPORT_JSON, 1,
               "[\n{\"device\": \"cuda:0\", \"size_bytes\": 4096, \"time_ns\": 7, \"file\": \"/w/src/./a.c\", "
               "\"line\": 3, \"frames\": \"[]\"},\n"
               "{\"device\": null, \"size_bytes\": 1, \"time_ns\": null, \"file\": \"/w/b.c\", \"line\": null, "
               "\"frames\": null}\n]\n");
    listing_is(REPORT_CSV, 1, "device,size_bytes,time_ns,file,line\ncuda:0,4096,7,/w/src/./a.c,3\n,1,,/w/b.c,\n");
    listing_is(REPORT_TEXT, 0, "");
    listing_is(REPORT_JSON, 0, "[\n]\n");
    listing_is(REPORT_CSV, 0, "device,size_bytes,time_ns,file,line\n");
}

/* Rows within a row. */
static void test_nested(void **state)
{
    (void)state;
    struct buf json = BUF(1 << 16);
    struct record r;
    record_open_in(&r, &json);
    for (int i = 0; i < 2; i++) {
        record_begin(&r);
        record_text(&r, "name", i ? "b" : "a\"");
        record_int_if(&r, "line", i, 5);
        record_end(&r);
    }
    record_close(&r);
    assert_string_equal(json.data, "[{\"name\": \"a\\\"\", \"line\": null}, {\"name\": \"b\", \"line\": 5}]");
    buf_free(&json);
}

/* Only arguments go: what stands in brackets of its own is a name. tests/page/names.sh asks the page for the same. */
static void test_short_names(void **state)
{
    (void)state;
    static const char *const names[][3] = {
#define ROW(name, bare, short) {name, bare, short},
#include "../short_names.h"
#undef ROW
        {"libruby-3.1.so.3.1+0xd89a4", NULL, "libruby-3.1.so.3.1+0xd89a4"},
        {"g<<<", NULL, "g"},
        {"(no name)", "", "(no name)"},
        {"", NULL, "?"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct buf bare = BUF(1 << 16);
        char *name = short_name(names[i][0]);
        assert_string_equal(names[i][2], name);
        match_bare_name(names[i][0], 0, &bare);
        if (*names[i][0])
            assert_string_equal(names[i][1] ? names[i][1] : names[i][2], bare.data);
        buf_free(&bare);
        free(name);
    }
}

/* The page's: of code without a symbol the module's name alone. */
static void test_short_labels(void **state)
{
    (void)state;
    static const char *const names[][2] = {
        {"libruby-3.1.so.3.1+0xd89a4", "libruby-3.1+0xd89a4"},
        {"etree.cpython-311-x86_64-linux-gnu.so+0x12f", "etree+0x12f"},
        {"python3.11+0x12f", "python3.11+0x12f"},
        {"f<int>(char)", "f"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *name = short_label(names[i][0]);
        assert_string_equal(names[i][1], name);
        free(name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_short_names), cmocka_unit_test(test_clean),  cmocka_unit_test(test_valid),
        cmocka_unit_test(test_plain),       cmocka_unit_test(test_fit),    cmocka_unit_test(test_fit_name),
        cmocka_unit_test(test_path_shown),  cmocka_unit_test(test_paths),  cmocka_unit_test(test_table),
        cmocka_unit_test(test_apart),       cmocka_unit_test(test_piped),  cmocka_unit_test(test_optional),
        cmocka_unit_test(test_prose),       cmocka_unit_test(test_colors), cmocka_unit_test(test_record),
        cmocka_unit_test(test_listing),     cmocka_unit_test(test_nested), cmocka_unit_test(test_short_labels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
