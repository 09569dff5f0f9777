/* What is said where a process may not be traced: by the rules of ptrace(2) and of Yama's ptrace_scope. */
#include "../../profiler/attach/target.h"
#include "scratch.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* scope: what Yama's file holds; NULL: there is none. %s of text is that file. */
static void expect(const char *scope, struct target_refusal r, int rc, const char *text)
{
    char wanted[1024];
    struct error err = {""};
    const char *path = scratch_path("ptrace_scope");
    remove(path);
    if (scope) {
        FILE *file = fopen(path, "we");
        assert_non_null(file);
        fputs(scope, file);
        fclose(file);
    }
    snprintf(wanted, sizeof wanted, text, path);
    r.pid = 4711;
    r.scope_path = path;
    assert_int_equal(target_refusal(&r, &err), rc);
    assert_string_equal(err.text, wanted);
}

static const struct target_refusal same_user = {.uid = 1000, .own_uid = 1000},
                                   other_user = {.uid = 33, .own_uid = 1000}, root = {.uid = 33, .own_uid = 0};
#define NO_SCOPE                                                                                                       \
    "4711: not allowed to trace it; attach as root, in a container with the capability SYS_PTRACE given to that"
#define NO_CAPABILITY "4711: not allowed to trace it, though root: in a container it needs the capability SYS_PTRACE"

static void test_same_user(void **state)
{
    (void)state;
    expect(NULL, same_user, -EPERM, NO_SCOPE);
    expect("0\n", same_user, -EPERM, NO_SCOPE);
    expect("1\n", same_user, -EPERM, "4711: not allowed to trace it (%s is 1); attach as root, or set that to 0");
    expect("2\n", same_user, -EPERM, "4711: not allowed to trace it (%s is 2); attach as root, or set that to 0");
}

static void test_other_user(void **state)
{
    (void)state;
    expect(NULL, other_user, -EPERM, "4711: a process of another user; attach as that user, or as root");
    expect("0\n", other_user, -EPERM, "4711: a process of another user; attach as that user, or as root");
    /* that user may not either */
    expect("1\n", other_user, -EPERM, "4711: a process of another user; attach as root");
    expect("2\n", other_user, -EPERM, "4711: a process of another user; attach as root");
}

static void test_root_without_the_capability(void **state)
{
    (void)state;
    expect(NULL, root, -EPERM, NO_CAPABILITY);
    expect("1\n", root, -EPERM, NO_CAPABILITY);
    expect("2\n", (struct target_refusal){.uid = 0}, -EPERM, NO_CAPABILITY);
}

static void test_nobody_may(void **state)
{
    static const char text[] =
        "4711: this machine lets nobody trace (%s is 3, until it starts anew); start the program with 'memprof run'";
    (void)state;
    expect("3\n", same_user, -EPERM, text);
    expect("3\n", other_user, -EPERM, text);
    expect("3\n", root, -EPERM, text);
}

static void test_traced(void **state)
{
    (void)state;
    expect("1\n", (struct target_refusal){.tracer = 12, .uid = 1000, .own_uid = 1000}, -EBUSY,
           "4711: process 12 traces it (a debugger, or another memprof that attaches); end that first");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_user),
        cmocka_unit_test(test_other_user),
        cmocka_unit_test(test_root_without_the_capability),
        cmocka_unit_test(test_nobody_may),
        cmocka_unit_test(test_traced),
    };
    return cmocka_run_group_tests(tests, scratch_begin, scratch_end);
}
