/* Names of compilers' clones, and the ends of paths, that a diff matches by. */
#include "../../report/query/diff_private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void is_bare(const char *name, const char *bare)
{
    struct buf got = BUF(1 << 16);
    diff_bare_name(name, &got);
    assert_string_equal(buf_text(&got), bare);
    buf_free(&got);
}

static void test_clones(void **state)
{
    (void)state;
    is_bare("work", "work");
    is_bare("work.constprop.0", "work");
    is_bare("work.isra.0.cold", "work");
    is_bare("work.part.12.constprop.3", "work");
    is_bare("work.cold", "work");
    is_bare("work.lto_priv.0", "work");
    is_bare("work.llvm.1234567890", "work");
    is_bare("f(int) [clone .constprop.0]", "f(int)");
    is_bare("f(int) [clone .isra.0] [clone .cold]", "f(int)");
    is_bare("f(int) (.part.0)", "f(int)");
}

static void test_no_clones(void **state)
{
    (void)state;
    is_bare("", "");
    is_bare(".cold", ".cold");
    is_bare("main.counter", "main.counter");
    is_bare("part.0", "part.0");
    is_bare("f.12", "f.12");
    is_bare("operator()(int)", "operator()(int)");
    is_bare("[clone .cold]", "[clone .cold]");
    is_bare("f(std::vector<int> (*)(int))", "f(std::vector<int> (*)(int))");
}

static void is_end(const char *path, int components, const char *end)
{
    const char *got = diff_path_end(path, components);
    end ? assert_string_equal(got, end) : assert_null(got);
}

static void test_path_ends(void **state)
{
    (void)state;
    is_end("/old/src/net.c", 1, "net.c");
    is_end("/old/src/net.c", 2, "src/net.c");
    is_end("/old/src/net.c", 3, "old/src/net.c");
    is_end("/old/src/net.c", 4, NULL);
    is_end("src//net.c", 2, "src//net.c");
    is_end("net.c", 1, "net.c");
    is_end("net.c", 2, NULL);
    is_end("", 1, NULL);
    is_end("/", 1, NULL);
    is_end("dir/", 1, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clones),
        cmocka_unit_test(test_no_clones),
        cmocka_unit_test(test_path_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
