/* What a module or a source file is by its path. */
#include "../../common/module_kind.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void test_python(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        int is_python;
    } cases[] = {
        {"/usr/bin/python3.11", 1},
        {"/usr/bin/python", 1},
        {"/usr/bin/python3.11-dbg", 1},
        {"/opt/lib/libpython3.11.so.1.0", 1},
        {"/opt/lib/libpython3.13t.so.1.0", 1},
        {"/usr/lib/python3.11/lib-dynload/_json.cpython-311-x86_64-linux-gnu.so", 1},
        {"/usr/lib/python3/dist-packages/lxml/etree.cpython-311-x86_64-linux-gnu.so", 0},
        {"/usr/bin/pythonista", 0},
        {"/home/me/python3/job", 0},
        {"/opt/lib/libpython_helpers.so", 0},
        {"", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(module_is_python(cases[i].path), cases[i].is_python);
}

static void test_python_library(void **state)
{
    (void)state;
    static const struct {
        const char *file;
        int is_library;
    } cases[] = {
        {"/usr/lib/python3.11/json/decoder.py", 1},
        {"/usr/lib64/python3.9/typing.py", 1},
        {"/opt/lib/python311.zip/typing.py", 1},
        {"<frozen importlib._bootstrap>", 1},
        {"<string>", 0},
        {"/usr/lib/python3/dist-packages/certifi/core.py", 0},
        {"/home/me/venv/lib/python3.11/site-packages/torch/nn/modules/module.py", 0},
        {"/home/me/python3.11/job.py", 0},
        {"/home/me/lib/python/job.py", 0},
        {"/home/me/lib/tools.py", 0},
        {"job.py", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(module_is_python_library(cases[i].file), cases[i].is_library);
}

static void test_package(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        int is_package, is_system;
    } cases[] = {
        {"/usr/lib/python3/dist-packages/pandas/_libs/index.cpython-311-x86_64-linux-gnu.so", 1, 1},
        {"/home/me/venv/lib/python3.11/site-packages/torch/nn/functional.py", 1, 0},
        {"/usr/lib/python3.11/json/decoder.py", 0, 0},
        {"/usr/lib/x86_64-linux-gnu/libopenblas.so.0", 0, 1},
        {"/lib64/libz.so.1", 0, 1},
        {"/home/me/lib/libmine.so", 0, 0},
        {"/usr/local/lib/libmine.so", 0, 0},
        {"/usr/bin/job", 0, 0},
        {"/home/me/site-packages.py", 0, 0},
        {"job.py", 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(module_is_python_package(cases[i].path), cases[i].is_package);
        assert_int_equal(module_is_system_library(cases[i].path), cases[i].is_system);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_python), cmocka_unit_test(test_python_library),
                                       cmocka_unit_test(test_package)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
