/* Finding, checking and starting programs; the place of the output. */
#include "../../profiler/collect/launch.h"
#include "../../profiler/collect/program.h"
#include "../../profiler/store/output.h"
#include "scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void write_file(const char *path, const void *data, size_t length, mode_t mode)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, data, length), length);
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
}

static void test_find(void **state)
{
    (void)state;
    char path[PATH_MAX], list[PATH_MAX + 64];
    struct error err;
    write_file(scratch_path("plain-file"), "x", 1, 0600);
    write_file(scratch_path("tool"), "x", 1, 0700);
    snprintf(list, sizeof list, "/nonexistent:%s:/bin", scratch_directory());
    setenv("PATH", list, 1);
    assert_int_equal(program_find("tool", path, &err), 0);
    assert_string_equal(path, scratch_path("tool"));
    assert_int_equal(program_find("sh", path, &err), 0);
    assert_string_equal(path, "/bin/sh");
    assert_int_equal(program_find("no-such-tool", path, &err), -ENOENT);
    assert_string_equal(err.text, "no-such-tool: not found in PATH");
    assert_int_equal(program_find("", path, &err), -ENOENT);
    assert_int_equal(program_find("/no/such", path, &err), -ENOENT);
    assert_int_equal(program_find(scratch_path("plain-file"), path, &err), -EACCES);
    assert_int_equal(program_find(scratch_directory(), path, &err), -EACCES);
}

/* A binary of this machine with one thing changed. */
static enum program_check check_changed(size_t at, uint8_t value, const char *from, const char *to, struct error *err)
{
    char *data = malloc(1 << 22);
    int fd = open("/proc/self/exe", O_RDONLY);
    ssize_t n = read(fd, data, 1 << 22);
    close(fd);
    assert_true(n > 1000);
    if (at)
        data[at] = (char)value;
    if (from)
        for (ssize_t i = 0; i + (ssize_t)strlen(from) < n; i++)
            if (memcmp(data + i, from, strlen(from)) == 0) {
                memcpy(data + i, to, strlen(to) + 1);
                break;
            }
    write_file(scratch_path("binary"), data, (size_t)n, 0700);
    free(data);
    err->text[0] = 0;
    return program_check(scratch_path("binary"), err);
}

static void test_check(void **state)
{
    (void)state;
    struct error err = {""};
    assert_int_equal(check_changed(0, 0, NULL, NULL, &err), PROGRAM_OK);
    assert_int_equal(check_changed(18, 183, NULL, NULL, &err), PROGRAM_UNUSABLE); /* e_machine: AArch64 */
    assert_non_null(strstr(err.text, "another architecture"));
    assert_int_equal(check_changed(0, 0, "/lib64/ld-linux-x86-64.so.2", "/lib/ld-musl-x86_64.so.1", &err),
                     PROGRAM_UNUSABLE);
    assert_non_null(strstr(err.text, "musl"));
    /* without its program headers nothing names a loader */
    assert_int_equal(check_changed(56, 0, NULL, NULL, &err), PROGRAM_UNUSABLE);
    assert_non_null(strstr(err.text, "statically linked"));
    /* a script is what its interpreter is */
    char script[PATH_MAX + 16];
    snprintf(script, sizeof script, "#! %s -x\n", scratch_path("binary"));
    write_file(scratch_path("script"), script, strlen(script), 0700);
    assert_int_equal(program_check(scratch_path("script"), &err), PROGRAM_UNUSABLE);
    write_file(scratch_path("script"), "#!/bin/sh\n", 10, 0700);
    assert_int_equal(program_check(scratch_path("script"), &err), PROGRAM_OK);
    /* a script that interprets itself ends somewhere */
    snprintf(script, sizeof script, "#!%s\n", scratch_path("script"));
    write_file(scratch_path("script"), script, strlen(script), 0700);
    program_check(scratch_path("script"), &err);
    /* garbage with the right beginning */
    uint8_t garbage[4096];
    memset(garbage, 0xa5, sizeof garbage);
    memcpy(garbage, "\177ELF\2\1\1", 7);
    write_file(scratch_path("garbage"), garbage, sizeof garbage, 0700);
    program_check(scratch_path("garbage"), &err);
}

static void test_set_uid(void **state)
{
    (void)state;
    struct error err = {""};
    if (getuid() != 0)
        skip();
    check_changed(0, 0, NULL, NULL, &err);
    /* a set-user-ID program of somebody else */
    assert_int_equal(chown(scratch_path("binary"), 1, 1), 0);
    assert_int_equal(chmod(scratch_path("binary"), 04755), 0);
    assert_int_equal(program_check(scratch_path("binary"), &err), PROGRAM_UNUSABLE);
    assert_non_null(strstr(err.text, "set-user-ID"));
    /* one's own changes nothing */
    assert_int_equal(chown(scratch_path("binary"), 0, 0), 0);
    assert_int_equal(chmod(scratch_path("binary"), 04755), 0);
    assert_int_equal(program_check(scratch_path("binary"), &err), PROGRAM_OK);
}

static int run(char *const argv[], const char *library, const char *session)
{
    struct launch_state launch;
    struct error err;
    char path[PATH_MAX];
    int status;
    assert_int_equal(program_find(argv[0], path, &err), 0);
    assert_int_equal(launch_prepare(&launch, &err), 0);
    pid_t pid = launch_start(&launch, path, argv, library, session, &err);
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    launch_restore(&launch);
    return launch_exit_status(status);
}

static int run_shell(const char *script, const char *library, const char *session)
{
    return run((char *const[]){(char *)"sh", (char *)"-c", (char *)(uintptr_t)script, NULL}, library, session);
}

static void test_start(void **state)
{
    (void)state;
    struct error err;
    sigset_t before = {0}, after = {0};
    assert_int_equal(run_shell("exit 3", NULL, NULL), 3);
    assert_int_equal(run_shell("kill -9 $$", NULL, NULL), 128 + 9);
    /* the loader complains about a library that is not there, and goes on */
    unsetenv("LD_PRELOAD");
    assert_int_equal(
        run_shell("[ \"$LD_PRELOAD\" = /none.so ] && [ $MEMPROF_SESSION = /proc/1/fd/2 ]", "/none.so", "/proc/1/fd/2"),
        0);
    setenv("LD_PRELOAD", "/mine.so", 1);
    assert_int_equal(run_shell("[ \"$LD_PRELOAD\" = /none.so:/mine.so ]", "/none.so", "/proc/1/fd/2"), 0);
    unsetenv("LD_PRELOAD");
    /* mask and dispositions are those of before: TERM is not blocked in the program, CHLD is as it was */
    sigprocmask(SIG_BLOCK, NULL, &before);
    static const char look[] =
        "/^SigBlk/ {b = $2} /^SigIgn/ {i = $2} END {exit !(b ~ /^0+$/ && i ~ /[13579bdf]....$/)}";
    /* status 1 where CHLD is not ignored: the test can fail */
    char *const awk[] = {(char *)"awk", (char *)(uintptr_t)look, (char *)"/proc/self/status", NULL};
    assert_int_equal(run(awk, NULL, NULL), 1);
    struct sigaction ignore = {.sa_handler = SIG_IGN}, now;
    sigaction(SIGCHLD, &ignore, NULL);
    struct launch_state launch;
    int status;
    assert_int_equal(launch_prepare(&launch, &err), 0);
    pid_t pid = launch_start(&launch, "/usr/bin/awk", awk, NULL, NULL, &err);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(launch_exit_status(status), 0);
    launch_restore(&launch);
    sigaction(SIGCHLD, NULL, &now);
    assert_ptr_equal(now.sa_handler, SIG_IGN);
    signal(SIGCHLD, SIG_DFL);
    sigprocmask(SIG_BLOCK, NULL, &after);
    assert_memory_equal(&before, &after, sizeof before);
    /* what cannot be started says so */
    char *const argv[] = {(char *)"x", NULL};
    assert_int_equal(launch_prepare(&launch, &err), 0);
    assert_int_equal(launch_start(&launch, "/etc/passwd", argv, NULL, NULL, &err), -EACCES);
    launch_restore(&launch);
    /* no format that the kernel knows: a script of sh, as execvp does */
    write_file(scratch_path("bare"), "exit 11\n", 8, 0700);
    assert_int_equal(launch_prepare(&launch, &err), 0);
    pid = launch_start(&launch, scratch_path("bare"), argv, NULL, NULL, &err);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(launch_exit_status(status), 11);
    launch_restore(&launch);
}

static void test_output(void **state)
{
    (void)state;
    struct output output;
    struct error err;
    struct stat st;
    const char *path = scratch_path("out.db");
    char old[PATH_MAX + 8], log[PATH_MAX + 8], old_log[PATH_MAX + 16];
    snprintf(old, sizeof old, "%s.old", path);
    snprintf(log, sizeof log, "%s-wal", path);
    snprintf(old_log, sizeof old_log, "%s-wal", old);
    assert_int_equal(output_prepare(&output, path, &err), 0);
    write_file(path, "one", 3, 0600);
    write_file(log, "log", 3, 0600);
    assert_int_equal(output_prepare(&output, path, &err), 0);
    assert_int_not_equal(stat(path, &st), 0);
    assert_int_not_equal(stat(log, &st), 0);
    assert_int_equal(stat(old, &st), 0);
    assert_int_equal(stat(old_log, &st), 0);
    write_file(path, "seven..", 7, 0600);
    output_undo(&output);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, 3);
    assert_int_equal(stat(log, &st), 0);
    assert_int_not_equal(stat(old, &st), 0);
    assert_int_equal(output_prepare(&output, scratch_directory(), &err), -EINVAL);
    assert_non_null(strstr(err.text, "not a regular file"));
    assert_true(output_prepare(&output, "/dev/null", &err) < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_find),  cmocka_unit_test(test_check),  cmocka_unit_test(test_set_uid),
        cmocka_unit_test(test_start), cmocka_unit_test(test_output),
    };
    return cmocka_run_group_tests(tests, scratch_begin, scratch_end);
}
