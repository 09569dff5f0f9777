/*
 * test_symbols.c: symbol tables, DWARF of this very program, perf maps, and the tables that workers and the cache
 * exchange.
 */
#include "../../profiler/symbols/symbols.h"
#include "../../profiler/symbols/symbols_beside.h"
#include "../../profiler/symbols/symbols_cache.h"
#include "../../profiler/symbols/symbols_pool.h"
#include "scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* --- this program ------------------------------------------------------------------------------------------------ */

static int find_main(struct dl_phdr_info *info, size_t size, void *bias)
{
    (void)size;
    *(uint64_t *)bias = info->dlpi_addr;
    return 1; /* the program itself comes first */
}

static uint64_t own_offset(const void *address)
{
    uint64_t bias = 0;
    dl_iterate_phdr(find_main, &bias);
    return (uint64_t)(uintptr_t)address - bias;
}

__attribute__((noinline)) static void *here(void)
{
    return (char *)__builtin_return_address(0) - 1;
}

static const void *inner_address;
static int inner_line, outer_line;

static inline __attribute__((always_inline)) void inlined_into(void)
{
    inner_line = __LINE__ + 1;
    inner_address = here();
    __asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) static void outer_function(void)
{
    outer_line = __LINE__ + 1;
    inlined_into();
    __asm__ volatile("" ::: "memory");
}

static char *own_path(void)
{
    return realpath("/proc/self/exe", NULL);
}

static void test_own_inline_chain(void **state)
{
    (void)state;
    outer_function();
    char *path = own_path();
    struct symbols *s = symbols_open(path, NULL);
    assert_string_equal(symbols_source(s), "dwarf");
    struct symbols_frame frames[SYMBOLS_INLINE_MAX];
    assert_int_equal(symbols_lookup(s, own_offset(inner_address), frames), 2);
    assert_string_equal(frames[0].name, "inlined_into");
    assert_int_equal(frames[0].line, inner_line);
    assert_true(frames[0].is_inline);
    assert_string_equal(frames[1].name, "outer_function");
    assert_int_equal(frames[1].line, outer_line);
    assert_false(frames[1].is_inline);
    assert_true(strstr(frames[1].file, "test_symbols.c") && frames[1].file[0] == '/');
    assert_string_equal(frames[0].file, frames[0].declared_file);
    assert_true(frames[0].declared_line < inner_line && frames[0].declared_line > inner_line - 5);
    assert_int_equal(symbols_lookup(s, 1, frames), 0);
    assert_int_equal(symbols_lookup(s, UINT64_MAX, frames), 0);
    symbols_close(s);
    free(path);
}

/* Of assembler, without a size: all of a function that says how it is unwound, and none of the one behind it, which has
 * no name. */
void asm_mark(void);
__asm__(
    ".text\n.globl asm_mark\n.type asm_mark, @function\nasm_mark: .cfi_startproc\npush %rbp\n.cfi_def_cfa_offset 16\n"
    "nop\nnop\npop %rbp\n.cfi_def_cfa_offset 8\nret\n.cfi_endproc\n.cfi_startproc\nnop\nret\n.cfi_endproc\n");

static void test_symbol_without_size(void **state)
{
    (void)state;
    char *path = own_path();
    struct symbols *s = symbols_open(path, NULL);
    struct symbols_frame frames[SYMBOLS_INLINE_MAX];
    const uint64_t mark = own_offset((const void *)(uintptr_t)asm_mark);
    for (uint64_t at = mark; at <= mark + 4; at++) {
        assert_int_equal(symbols_lookup(s, at, frames), 1);
        assert_string_equal(frames[0].name, "asm_mark");
    }
    assert_int_equal(symbols_lookup(s, mark + 5, frames), 0);
    symbols_close(s);
    free(path);
}

static void assert_source(const char *path, const char *build_id, const char *expected)
{
    struct symbols *s = symbols_open(path, build_id);
    struct symbols_frame frames[SYMBOLS_INLINE_MAX];
    if (!strstr(symbols_source(s), expected))
        fail_msg("%s: '%s', not '%s'", path, symbols_source(s), expected);
    assert_int_equal(symbols_lookup(s, 0x1000, frames), 0);
    symbols_close(s);
}

static void test_refused_files(void **state)
{
    (void)state;
    char *path = own_path();
    assert_source(path, "00112233445566778899", "none: file changed since the run");
    assert_source("/nonexistent/file", NULL, "none: file gone");
    assert_source("/tmp/x (deleted)", NULL, "none: file deleted");
    assert_source("linux-vdso.so.1", NULL, "none: code of the kernel");
    assert_source("/memfd:jit (deleted)", NULL, "none: ");
    assert_source("[heap]", NULL, "none: not a file");
    assert_source("/dev/null", NULL, "none: not a regular file");
    assert_source("/dev/zero", NULL, "none: not a regular file");
    assert_source("/etc/passwd", NULL, "none: not an ELF file");
    assert_source("/", NULL, "none: ");
    free(path);
}

/* --- perf maps --------------------------------------------------------------------------------------------------- */

static void test_perf_map(void **state)
{
    (void)state;
    char path[64];
    int pid = getpid();
    snprintf(path, sizeof path, "/tmp/perf-%d.map", pid);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs("7f0000001000 100 LazyCompile:*work app.js:3\n"
          "0x7f0000002000 0x10 py::forward:/home/u/net.py\n"
          "7f0000001000 80 replaced by a later one\n"
          "nonsense\n-5 10 minus\n7f0000003000 0 empty\n7f0000004000 10\n7f0000004000 10 \n"
          "ffffffffffffffff ff overflow\n"
          "7f0000005000 10 half a li",
          f);
    fclose(f);
    struct symbols *s = symbols_open_perf_map(pid);
    assert_string_equal(symbols_source(s), "perf map");
    struct symbols_frame frames[SYMBOLS_INLINE_MAX];
    assert_int_equal(symbols_lookup(s, 0x7f0000001010, frames), 1);
    assert_string_equal(frames[0].name, "replaced by a later one");
    assert_int_equal(symbols_lookup(s, 0x7f00000010f0, frames), 1);
    assert_string_equal(frames[0].name, "LazyCompile:*work app.js:3");
    assert_int_equal(symbols_lookup(s, 0x7f000000200f, frames), 1);
    assert_string_equal(frames[0].name, "py::forward:/home/u/net.py");
    static const uint64_t misses[] = {
        0, 0x7f0000000fff, 0x7f0000001100, 0x7f0000002010, 0x7f0000003000, 0x7f0000004000, 0x7f0000005000, UINT64_MAX};
    for (size_t i = 0; i < sizeof misses / sizeof *misses; i++)
        assert_int_equal(symbols_lookup(s, misses[i], frames), 0);
    symbols_close(s);
    unlink(path);
    assert_int_equal(symlink("/etc/passwd", path), 0);
    s = symbols_open_perf_map(pid);
    assert_int_equal(strncmp(symbols_source(s), "none: ", 6), 0);
    symbols_close(s);
    unlink(path);
}

/* --- tables, cache, workers -------------------------------------------------------------------------------------- */

static struct buf build_table(int may_cache, const char *probe)
{
    struct symbols_builder *b = symbols_builder_open();
    struct symbols_frame frames[2] = {{"_Z1fv", "f()", "/a/f.c", 7, 3, "/a/f.h", 2, 1},
                                      {"main", "main", NULL, 0, 0, NULL, 0, 0}};
    symbols_builder_add(b, 500, frames, 2);
    symbols_builder_add(b, 100, frames + 1, 1);
    symbols_builder_add(b, 300, frames, 0);
    symbols_builder_add(b, 100, frames, 2); /* known already */
    if (probe)
        symbols_builder_probe(b, probe);
    struct buf out = BUF(SYMBOLS_TABLE_MAX);
    assert_int_equal(symbols_builder_write(b, "dwarf", may_cache, &out), 0);
    symbols_builder_close(b);
    return out;
}

static void test_table_roundtrip(void **state)
{
    (void)state;
    struct buf bytes = build_table(1, "/etc/passwd");
    struct symbols_table *t = symbols_table_open(bytes.data, bytes.length);
    assert_non_null(t);
    assert_int_equal(symbols_table_count(t), 3);
    assert_string_equal(symbols_table_source(t), "dwarf");
    assert_int_equal(symbols_table_find(t, 200), -1);
    struct symbols_frame frames[SYMBOLS_INLINE_MAX];
    assert_int_equal(symbols_table_frames(t, (size_t)symbols_table_find(t, 500), frames), 2);
    assert_string_equal(frames[0].raw_name, "_Z1fv");
    assert_string_equal(frames[0].file, "/a/f.c");
    assert_int_equal(frames[0].line, 7);
    assert_int_equal(frames[0].declared_line, 2);
    assert_true(frames[0].is_inline);
    assert_null(frames[1].file);
    assert_int_equal(symbols_table_frames(t, (size_t)symbols_table_find(t, 100), frames), 1);
    assert_int_equal(symbols_table_frames(t, (size_t)symbols_table_find(t, 300), frames), 0);
    assert_true(symbols_table_is_current(t, "/etc/passwd"));
    assert_false(symbols_table_is_current(t, "/etc/group"));
    symbols_table_close(t);
}

static void test_table_damage(void **state)
{
    (void)state;
    struct buf good = build_table(1, "/etc/passwd");
    srand(1);
    int accepted = 0;
    for (int i = 0; i < 20000; i++) {
        size_t length = i % 3 ? good.length : (size_t)rand() % (good.length + 1);
        char *bytes = malloc(good.length + 1);
        memcpy(bytes, good.data, good.length);
        for (int n = rand() % 3; n >= 0; n--)
            bytes[(size_t)rand() % good.length] ^= (char)(1 << rand() % 8);
        struct symbols_table *t = symbols_table_open(bytes, length);
        accepted += t != NULL;
        symbols_table_close(t);
    }
    assert_true(accepted < 20); /* two flips of one bit cancel */
    buf_free(&good);
}

static void test_cache(void **state)
{
    (void)state;
    const char *id = "00112233445566778899aabbccddeeff";
    assert_null(symbols_cache_read("/etc/passwd", id));
    struct buf bytes = build_table(1, "/etc/passwd");
    struct symbols_table *t = symbols_table_open(bytes.data, bytes.length);
    symbols_cache_write(id, t, NULL);
    struct symbols_table *old = symbols_cache_read("/etc/passwd", id);
    assert_non_null(old);
    assert_int_equal(symbols_table_count(old), 3);
    assert_null(symbols_cache_read("/etc/group", id)); /* another file of that build-id */
    setenv("DEBUGINFOD_URLS", "http://localhost:1", 1);
    assert_null(symbols_cache_read("/etc/passwd", id)); /* might know more now */
    unsetenv("DEBUGINFOD_URLS");

    struct symbols_builder *b = symbols_builder_open();
    struct symbols_frame frame = {.raw_name = "new", .name = "new"};
    symbols_builder_add(b, 900, &frame, 1);
    symbols_builder_probe(b, "/etc/passwd");
    struct buf more = BUF(SYMBOLS_TABLE_MAX);
    assert_int_equal(symbols_builder_write(b, "dwarf", 1, &more), 0);
    symbols_builder_close(b);
    struct symbols_table *fresh = symbols_table_open(more.data, more.length);
    symbols_cache_write(id, fresh, old);
    struct symbols_table *merged = symbols_cache_read("/etc/passwd", id);
    assert_int_equal(symbols_table_count(merged), 4);
    assert_true(symbols_table_find(merged, 900) >= 0 && symbols_table_find(merged, 500) >= 0);
    symbols_table_close(merged);
    symbols_table_close(fresh);
    symbols_table_close(old);
    symbols_table_close(t);

    assert_null(symbols_cache_read("/etc/passwd", "../../../etc/passwd"));
    assert_null(symbols_cache_read("/etc/passwd", ""));
    assert_null(symbols_cache_read("/etc/passwd", NULL));

    /* a probed file that changes makes its table old */
    const char *probed = scratch_path("probed");
    assert_int_equal(close(open(probed, O_CREAT | O_WRONLY, 0600)), 0);
    bytes = build_table(1, probed);
    t = symbols_table_open(bytes.data, bytes.length);
    symbols_cache_write(id, t, NULL);
    symbols_table_close(t);
    t = symbols_cache_read(probed, id);
    assert_non_null(t);
    symbols_table_close(t);
    int fd = open(probed, O_WRONLY | O_APPEND);
    assert_int_equal(write(fd, "x", 1), 1);
    close(fd);
    assert_null(symbols_cache_read(probed, id));
}

static struct symbols_table *read_beside(const char *recording, const char *path, const char *build_id)
{
    struct symbols_beside *b = symbols_beside_open(recording);
    struct symbols_table *t = b ? symbols_beside_read(b, path, build_id) : NULL;
    symbols_beside_close(b);
    return t;
}

static int has_beside(const char *recording, const char *path, const char *build_id)
{
    struct symbols_table *t = read_beside(recording, path, build_id);
    int count = t ? (int)symbols_table_count(t) : 0;
    symbols_table_close(t);
    return count;
}

static struct symbols_table *one_more(const char *path, uint64_t offset, int may_cache)
{
    struct symbols_builder *b = symbols_builder_open();
    struct symbols_frame frame = {.raw_name = "new", .name = "new"};
    struct buf more = BUF(SYMBOLS_TABLE_MAX);
    symbols_builder_add(b, offset, &frame, 1);
    symbols_builder_probe(b, path);
    assert_int_equal(symbols_builder_write(b, "dwarf", may_cache, &more), 0);
    symbols_builder_close(b);
    return symbols_table_open(more.data, more.length);
}

static void set_file(const char *path, const void *bytes, size_t length)
{
    unlink(path);
    int fd = open(path, O_CREAT | O_WRONLY | O_EXCL, 0600);
    assert_int_equal(write(fd, bytes, length), (ssize_t)length);
    close(fd);
}

static void test_beside(void **state)
{
    (void)state;
    char recording[PATH_MAX], name[PATH_MAX];
    snprintf(recording, sizeof recording, "%s", scratch_path("live.db"));
    snprintf(name, sizeof name, "%s", scratch_path("live.db-symbols"));
    struct buf bytes = build_table(1, "/etc/passwd");
    struct symbols_table *three = symbols_table_open(bytes.data, bytes.length);
    struct symbols_table *one = one_more("/etc/passwd", 900, 1), *none = one_more("/etc/group", 1, 0);
    struct symbols_beside_writer *w = symbols_beside_begin();
    symbols_beside_add(w, "/etc/passwd", NULL, three, NULL);
    symbols_beside_end(w, recording);
    assert_int_equal(access(name, F_OK), -1); /* no recording is there */
    set_file(recording, "", 0);
    w = symbols_beside_begin();
    symbols_beside_add(w, "/etc/passwd", NULL, one, three); /* both */
    symbols_beside_add(w, "/etc/group", "aa", none, NULL);  /* may not be kept */
    symbols_beside_add(w, "/etc/passwd", "ab", NULL, one);
    symbols_beside_end(w, recording);
    assert_int_equal(has_beside(recording, "/etc/passwd", NULL), 4);
    assert_int_equal(has_beside(recording, "/etc/passwd", ""), 4);
    assert_int_equal(has_beside(recording, "/etc/passwd", "ab"), 1);
    assert_int_equal(has_beside(recording, "/etc/passwd", "a"), 0);
    assert_int_equal(has_beside(recording, "/etc/group", "aa"), 0);
    assert_int_equal(has_beside(recording, "/etc/passw", "d"), 0); /* where names end counts */

    /* damage, and what is none of ours */
    char *good = NULL;
    int fd = open(name, O_RDONLY);
    size_t length = (size_t)lseek(fd, 0, SEEK_END);
    good = xmalloc(length);
    assert_int_equal(pread(fd, good, length, 0), (ssize_t)length);
    close(fd);
    for (size_t cut = 0; cut < length; cut++) {
        set_file(name, good, cut);
        int count = has_beside(recording, "/etc/passwd", "ab");
        assert_int_equal(count, 0); /* the last one */
    }
    for (size_t i = 0; i < length; i++) {
        good[i] ^= (char)0xff;
        set_file(name, good, length);
        int count = has_beside(recording, "/etc/passwd", NULL);
        assert_true(count == 0 || count == 4);
        good[i] ^= (char)0xff;
    }
    set_file(name, good, length);
    assert_int_equal(has_beside(recording, "/etc/passwd", NULL), 4);
    chmod(name, 0666);
    assert_int_equal(has_beside(recording, "/etc/passwd", NULL), 0); /* anybody may have written it */
    chmod(name, 0600);
    rename(name, scratch_path("elsewhere"));
    assert_int_equal(symlink(scratch_path("elsewhere"), name), 0);
    assert_int_equal(has_beside(recording, "/etc/passwd", NULL), 0);
    w = symbols_beside_begin();
    symbols_beside_add(w, "/etc/passwd", NULL, one, NULL);
    symbols_beside_end(w, recording); /* replaces the link, and leaves alone what it leads to */
    assert_int_equal(has_beside(recording, "/etc/passwd", NULL), 1);
    rename(scratch_path("elsewhere"), name);
    assert_int_equal(has_beside(recording, "/etc/passwd", NULL), 4);
    symbols_beside_remove(recording);
    assert_int_equal(access(name, F_OK), -1);
    assert_int_equal(mkdir(name, 0700), 0); /* it cannot be written there */
    w = symbols_beside_begin();
    symbols_beside_add(w, "/etc/passwd", NULL, one, NULL);
    symbols_beside_end(w, recording);
    assert_int_equal(has_beside(recording, "/etc/passwd", NULL), 0);
    symbols_beside_remove(recording);
    assert_int_equal(rmdir(name), 0);
    free(good);
    symbols_table_close(three);
    symbols_table_close(one);
    symbols_table_close(none);
}

static void test_cache_is_bounded(void **state)
{
    (void)state;
    for (int i = 0; i < 5000; i++) {
        char name[64];
        snprintf(name, sizeof name, "memprof/%032x.symbols", i);
        assert_int_equal(close(open(scratch_path(name), O_CREAT | O_WRONLY, 0600)), 0);
    }
    const char *other = scratch_path("memprof/other"); /* not ours */
    assert_int_equal(close(open(other, O_CREAT | O_WRONLY, 0600)), 0);
    symbols_cache_trim();
    char command[3 * PATH_MAX];
    snprintf(command, sizeof command, "test $(ls '%s' | wc -l) -le 3073 && test -f '%s'", scratch_path("memprof"),
             other);
    assert_int_equal(system(command), 0);
}

static void test_pool(void **state)
{
    (void)state;
    outer_function();
    char *path = own_path();
    uint64_t offsets[] = {1, own_offset(inner_address)};
    struct symbols_job jobs[] = {{.path = path, .offsets = offsets, .count = 2},
                                 {.path = "/nonexistent", .offsets = offsets, .count = 2},
                                 {.perf_pid = getpid(), .offsets = offsets, .count = 2}};
    assert_int_equal(symbols_pool_run(jobs, 3, &(struct symbols_place){0}, NULL, NULL), 0);
    assert_string_equal(jobs[0].source, "dwarf");
    assert_string_equal(jobs[1].source, "none: file gone");
    assert_int_equal(strncmp(jobs[2].source, "none: ", 6), 0);
    struct symbols_frame frames[SYMBOLS_INLINE_MAX];
    assert_int_equal(symbols_job_frames(&jobs[0], offsets[1], frames), 2);
    assert_string_equal(frames[1].name, "outer_function");
    assert_int_equal(symbols_job_frames(&jobs[0], 1, frames), 0);
    for (int i = 0; i < 3; i++)
        symbols_job_close(&jobs[i]);
    free(path);
}

static void test_pool_uses_the_cache(void **state)
{
    (void)state;
    /* libc has a build-id, so that its answers are kept */
    struct symbols_frame frames[SYMBOLS_INLINE_MAX];
    char path[4096] = "", id[128] = "";
    FILE *f = popen("realpath $(ldconfig -p | sed -n 's/.*libc.so.6.*x86-64.* => //p' | head -1)", "r");
    assert_non_null(f);
    assert_non_null(fgets(path, sizeof path, f));
    pclose(f);
    path[strcspn(path, "\n")] = 0;
    char command[4200];
    snprintf(command, sizeof command, "readelf -n %s | sed -n 's/.*Build ID: //p'", path);
    f = popen(command, "r");
    assert_non_null(fgets(id, sizeof id, f));
    pclose(f);
    id[strcspn(id, "\n")] = 0;
    uint64_t bias_free[] = {0x100, 0x30000, 0x90000};
    for (int round = 0; round < 3; round++) {
        struct symbols_job job = {.path = path, .build_id = id, .offsets = bias_free, .count = round < 2 ? 2 : 3};
        assert_int_equal(symbols_pool_run(&job, 1, &(struct symbols_place){0}, NULL, NULL), 0);
        assert_int_equal(round == 0, job.cached == NULL);
        assert_int_equal(round == 1, job.fresh == NULL);
        for (size_t i = 0; i < job.count; i++)
            symbols_job_frames(&job, bias_free[i], frames);
        symbols_job_close(&job);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own_inline_chain),
        cmocka_unit_test(test_symbol_without_size),
        cmocka_unit_test(test_refused_files),
        cmocka_unit_test(test_perf_map),
        cmocka_unit_test(test_table_roundtrip),
        cmocka_unit_test(test_table_damage),
        cmocka_unit_test(test_cache),
        cmocka_unit_test(test_beside),
        cmocka_unit_test(test_cache_is_bounded),
        cmocka_unit_test(test_pool),
        cmocka_unit_test(test_pool_uses_the_cache),
    };
    return cmocka_run_group_tests(tests, scratch_begin, scratch_end);
}
