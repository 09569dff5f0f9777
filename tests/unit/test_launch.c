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

/* A program of this machine with one thing changed: no test, as one under sanitizers is not to be recorded. */
static enum program_check check_changed(size_t at, uint8_t value, const char *from, const char *to, struct error *err)
{
    char *data = malloc(1 << 22);
    int fd = open("/bin/sh", O_RDONLY);
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

/* As SQLite begins a recording's file, and what tells one from another. */
static void write_recording(const char *path, size_t size_bytes)
{
    char bytes[200] = "SQLite format 3";
    memcpy(bytes + 68, "MPRF", 4);
    write_file(path, bytes, size_bytes, 0600);
}

static off_t size_of(const char *path)
{
    struct stat st;
    return stat(path, &st) ? -1 : st.st_size;
}

static void test_output(void **state)
{
    (void)state;
    struct output output;
    struct error err;
    const char *path = scratch_path("out.db");
    char old[PATH_MAX + 8], log[PATH_MAX + 8], old_log[PATH_MAX + 16], hidden[PATH_MAX + 16];
    snprintf(old, sizeof old, "%s.old", path);
    snprintf(hidden, sizeof hidden, "%s~", old);
    snprintf(log, sizeof log, "%s-wal", path);
    snprintf(old_log, sizeof old_log, "%s-wal", old);
    assert_int_equal(output_prepare(&output, path, &err), 0);
    write_recording(path, 101);
    write_file(log, "\x37\x7f\x06\x82", 4, 0600);
    output_claim(&output);
    output_keep(&output);
    output_close(&output);

    /* a start that fails leaves both as they were */
    write_recording(old, 102);
    assert_int_equal(output_prepare(&output, path, &err), 0);
    assert_string_equal(output.path, path);
    assert_int_equal(size_of(path), -1);
    assert_int_equal(size_of(log), -1);
    assert_int_equal(size_of(old), 101);
    assert_int_equal(size_of(old_log), 4);
    write_recording(path, 103);
    output_claim(&output);
    output_remove(&output, 1);
    output_close(&output);
    assert_int_equal(size_of(path), 101);
    assert_int_equal(size_of(log), 4);
    assert_int_equal(size_of(old), 102);
    assert_int_equal(size_of(hidden), -1);

    /* a run without a recording leaves no file that could be taken for its own */
    assert_int_equal(output_prepare(&output, path, &err), 0);
    output_remove(&output, 0);
    output_close(&output);
    assert_int_equal(size_of(path), -1);
    assert_int_equal(size_of(old), 101);
    assert_int_equal(size_of(hidden), -1);
}

static void test_output_in_use(void **state)
{
    (void)state;
    struct output first, second, third;
    struct error err;
    char path[PATH_MAX + 8];
    snprintf(path, sizeof path, "%s", scratch_path("busy.db"));
    assert_int_equal(output_prepare(&first, path, &err), 0);
    write_recording(path, 101);
    output_claim(&first);
    output_keep(&first);
    assert_int_equal(output_prepare(&second, path, &err), 0);
    assert_string_equal(second.path, scratch_path("busy.1.db"));
    assert_true(second.is_other);
    write_recording(second.path, 101);
    output_claim(&second);
    output_close(&second);
    assert_int_equal(output_prepare(&third, path, &err), 0); /* not over what the second run left */
    assert_string_equal(third.path, scratch_path("busy.2.db"));
    output_remove(&third, 1);
    output_close(&third);
    output_close(&first);
    assert_int_equal(output_prepare(&first, path, &err), 0);
    assert_string_equal(first.path, path);
    assert_true(first.moved);
    output_close(&first);
}

static void test_output_of_somebody_else(void **state)
{
    (void)state;
    struct output output;
    struct error err;
    char path[PATH_MAX + 8], old[PATH_MAX + 16];
    snprintf(path, sizeof path, "%s", scratch_path("thesis.txt"));
    snprintf(old, sizeof old, "%s.old", path);
    write_file(path, "text", 4, 0600);
    assert_int_equal(output_prepare(&output, path, &err), -EEXIST);
    assert_int_equal(size_of(path), 4);
    write_recording(path, 100);
    write_file(old, "text", 4, 0600);
    assert_int_equal(output_prepare(&output, path, &err), -EEXIST);
    assert_int_equal(size_of(old), 4);
    assert_int_equal(size_of(path), 100);
    assert_int_equal(output_prepare(&output, scratch_directory(), &err), -EEXIST);
    assert_non_null(strstr(err.text, "not a regular file"));
    assert_int_equal(output_prepare(&output, "/dev/null", &err), -EEXIST);
    unlink(old);
    write_file(path, "", 0, 0600); /* mktemp makes such a file */
    assert_int_equal(output_prepare(&output, path, &err), 0);
    assert_int_equal(size_of(old), -1);
    output_close(&output);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_find),
        cmocka_unit_test(test_check),
        cmocka_unit_test(test_set_uid),
        cmocka_unit_test(test_start),
        cmocka_unit_test(test_output),
        cmocka_unit_test(test_output_in_use),
        cmocka_unit_test(test_output_of_somebody_else),
    };
    return cmocka_run_group_tests(tests, scratch_begin, scratch_end);
}
