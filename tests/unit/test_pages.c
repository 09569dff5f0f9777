/* Which pages of this process are present, by the kernel's own scan and without it. */
#include "../../profiler/collect/pages.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { PAGE = 4096, COUNT = 200 };

/* Stands before the C library's: an older kernel. */
static int is_old;
int ioctl(int fd, unsigned long request, ...)
{
    va_list args;
    va_start(args, request);
    void *arg = va_arg(args, void *);
    va_end(args);
    if (is_old) {
        errno = ENOTTY;
        return -1;
    }
    return (int)syscall(SYS_ioctl, fd, request, arg);
}

static char *map(size_t pages, int flags)
{
    char *p = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_true(p != MAP_FAILED);
    madvise(p, pages * PAGE, MADV_NOHUGEPAGE);
    return p;
}

static uint8_t flags_at(const struct resident_pages *p, const char *address)
{
    uint64_t at = (uintptr_t)address;
    for (size_t i = 0; i < p->range_count; i++)
        if (at >= p->ranges[i].start && at < p->ranges[i].end)
            return p->flags[p->ranges[i].first + (at - p->ranges[i].start) / PAGE];
    return 0;
}

static int rest_at(const struct resident_pages *p, const void *address)
{
    for (size_t i = 0; i < p->map_count; i++)
        if ((uintptr_t)address >= p->maps[i].start && (uintptr_t)address < p->maps[i].end)
            return p->maps[i].rest;
    return -1;
}

static void check_order(const struct resident_pages *p)
{
    size_t pages = 0;
    for (size_t i = 0; i < p->range_count; i++) {
        assert_true(p->ranges[i].start < p->ranges[i].end && (!i || p->ranges[i - 1].end < p->ranges[i].start));
        assert_int_equal(p->ranges[i].first, pages);
        pages += (p->ranges[i].end - p->ranges[i].start) / PAGE;
    }
    assert_int_equal(pages, p->page_count);
}

static size_t count(const struct resident_pages *p)
{
    size_t n = 0;
    for (size_t i = 0; i < p->page_count; i++)
        n += p->flags[i] & RESIDENT_PRESENT;
    return n;
}

/* Of smaps. */
static size_t kernel_count(void)
{
    char line[512];
    size_t kib, sum = 0;
    FILE *f = fopen("/proc/self/smaps", "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f))
        sum += sscanf(line, "Rss: %zu kB", &kib) == 1 ? kib : 0;
    fclose(f);
    return sum / 4;
}

static void check_own(int old)
{
    struct resident_pages p = {0};
    char *own = map(COUNT, MAP_PRIVATE), *shared = map(COUNT, MAP_SHARED), *reserve = map(16u << 20, MAP_PRIVATE);
    char *copied = map(2, MAP_PRIVATE);
    for (int i = 0; i < COUNT; i += 3)
        own[i * PAGE] = shared[i * PAGE] = 1;
    (void)*(volatile char *)(own + PAGE); /* read only: the zero page */
    madvise(own + 30 * PAGE, PAGE, MADV_DONTNEED);
    reserve[(9ull << 20) * PAGE] = 1;
    copied[0] = copied[PAGE] = 1;
    pid_t child = fork();
    if (child == 0) {
        pause();
        _exit(0);
    }
    own[3 * PAGE] = copied[0] = 2; /* mine alone again; the other page is the child's, too */
    is_old = old;
    assert_int_equal(pages_read(getpid(), 0, &p), 0); /* for its memory */
    assert_int_equal(pages_read(getpid(), 0, &p), 0);
    is_old = 0;
    size_t kernels = kernel_count(), ours = count(&p) - (old ? 1 : 0);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    check_order(&p);
    for (int i = 0; i < COUNT; i++) {
        int is_there = i % 3 == 0 && i != 30, is_zero = old && i == 1;
        assert_int_equal(flags_at(&p, own + i * PAGE) & RESIDENT_PRESENT, is_there || is_zero);
        if (i % 3 == 0)
            assert_int_equal(flags_at(&p, shared + i * PAGE), RESIDENT_PRESENT | RESIDENT_SHARED | RESIDENT_FILE);
    }
    assert_int_equal(flags_at(&p, own + 3 * PAGE), RESIDENT_PRESENT);
    assert_int_equal(flags_at(&p, own + 6 * PAGE), RESIDENT_PRESENT | RESIDENT_SHARED);
    assert_int_equal(flags_at(&p, copied), RESIDENT_PRESENT);
    assert_int_equal(flags_at(&p, copied + PAGE), RESIDENT_PRESENT | RESIDENT_SHARED);
    assert_int_equal(flags_at(&p, reserve + (9ull << 20) * PAGE), RESIDENT_PRESENT | RESIDENT_SHARED);
    assert_true(p.page_count < 100000); /* 64 GiB of it are in no range */
    assert_int_equal(p.has_kinds ? 0 : 1, old);
    assert_int_equal(p.zero_pages > 0, !old);
    /* the two looks are not at one instant: smaps takes pages of its own */
    assert_true(ours < kernels + 64 && kernels < ours + 64);
    assert_int_equal(rest_at(&p, own), REST_anonymous);
    assert_int_equal(rest_at(&p, shared), REST_shared);
    assert_int_equal(rest_at(&p, &p), REST_stack);
    assert_int_equal(rest_at(&p, (void *)(uintptr_t)check_order), REST_file);
    pages_free(&p);
    munmap(own, COUNT * PAGE);
    munmap(shared, COUNT * PAGE);
    munmap(copied, 2 * PAGE);
    munmap(reserve, (16ull << 20) * PAGE);
}

static int has_scan(void)
{
    struct resident_pages p = {0};
    assert_int_equal(pages_read(getpid(), 0, &p), 0);
    int has = p.has_kinds;
    pages_free(&p);
    return has;
}

static void test_scan(void **state)
{
    (void)state;
    if (!has_scan())
        skip();
    check_own(0);
}

/* Whether this process has too many addresses for an older kernel: a sanitizer's shadow. */
static int is_too_large(void)
{
    struct resident_pages p = {0};
    is_old = 1;
    int rc = pages_read(getpid(), 0, &p);
    is_old = 0;
    pages_free(&p);
    return rc == -E2BIG;
}

static void test_old_kernel(void **state)
{
    (void)state;
    if (is_too_large())
        skip();
    check_own(1);
}

/* A page here and there: each is a range of its own. */
static void test_scattered(void **state)
{
    (void)state;
    struct resident_pages p = {0};
    char *far = map(300000, MAP_PRIVATE);
    size_t before, found = 0;
    assert_int_equal(pages_read(getpid(), 0, &p), 0);
    before = p.range_count;
    for (int i = 0; i < 300000; i += 100)
        far[i * (size_t)PAGE] = 1;
    int kernels = is_too_large() ? 1 : 2;
    for (is_old = 0; is_old < kernels; is_old++) {
        assert_int_equal(pages_read(getpid(), 0, &p), 0);
        check_order(&p);
        assert_true(p.range_count >= before + 2900 && p.range_count <= before + 3100);
        found = 0;
        for (int i = 0; i < 300000; i += 100)
            found += flags_at(&p, far + i * (size_t)PAGE) != 0;
        assert_int_equal(found, 3000);
    }
    is_old = 0;
    pages_free(&p);
    munmap(far, 300000ul * PAGE);
}

/* With nobody to share with, the kernel's scan alone says the same. */
static void test_alone(void **state)
{
    (void)state;
    struct resident_pages asked = {0}, alone = {0};
    if (!has_scan())
        skip();
    char *own = map(COUNT, MAP_PRIVATE), *shared = map(COUNT, MAP_SHARED);
    for (int i = 0; i < COUNT; i += 3)
        own[i * PAGE] = shared[i * PAGE] = 1;
    (void)*(volatile char *)(own + PAGE);
    assert_int_equal(pages_read(getpid(), 0, &asked), 0);
    assert_int_equal(pages_read(getpid(), 1, &alone), 0);
    check_order(&alone);
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(flags_at(&alone, own + i * PAGE), i % 3 ? 0 : RESIDENT_PRESENT);
        assert_int_equal(flags_at(&alone, own + i * PAGE), flags_at(&asked, own + i * PAGE));
        assert_int_equal(flags_at(&alone, shared + i * PAGE), flags_at(&asked, shared + i * PAGE));
    }
    assert_true(alone.zero_pages > 0 && asked.zero_pages > 0); /* a sanitizer reads pages of its own in between */
    pages_free(&asked);
    pages_free(&alone);
    munmap(own, COUNT * PAGE);
    munmap(shared, COUNT * PAGE);
}

/* The recorder's memory lies among the program's, in one mapping with it; of what is mapped otherwise none is its own.
 */
static void test_recorders_own(void **state)
{
    (void)state;
    char *among = map(30, MAP_PRIVATE), *shared = map(2, MAP_SHARED);
    uint64_t at = (uintptr_t)among;
    struct resident_own own[] = {{at, at + 2 * PAGE},
                                 {at + 10 * PAGE, at + 12 * PAGE},
                                 {at + 12 * PAGE, at + 13 * PAGE},
                                 {at + 29 * PAGE, at + 30 * PAGE},
                                 {(uintptr_t)shared, (uintptr_t)shared + PAGE}};
    if ((uintptr_t)shared < at) { /* ascending */
        memmove(own + 1, own, 4 * sizeof *own);
        own[0] = (struct resident_own){(uintptr_t)shared, (uintptr_t)shared + PAGE};
    }
    struct resident_pages p = {.own = own, .own_count = 5};
    assert_int_equal(pages_read(getpid(), 0, &p), 0);
    for (int i = 0; i < 30; i++)
        assert_int_equal(rest_at(&p, among + i * PAGE),
                         i < 2 || (i >= 10 && i < 13) || i == 29 ? REST_memprof : REST_anonymous);
    assert_int_equal(rest_at(&p, shared), REST_shared);
    for (size_t i = 1; i < p.map_count; i++)
        assert_true(p.maps[i - 1].end <= p.maps[i].start && p.maps[i].start < p.maps[i].end);
    pages_free(&p);
    munmap(among, 30 * PAGE);
    munmap(shared, 2 * PAGE);
}

static void test_gone(void **state)
{
    (void)state;
    struct resident_pages p = {0};
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    siginfo_t info;
    waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT);
    assert_true(pages_read(child, 0, &p) < 0); /* a zombie has no memory */
    waitpid(child, NULL, 0);
    assert_int_equal(pages_read(child, 0, &p), -ENOENT);
    pages_free(&p);
}

/* A zombie of the same user is gone, and no other user's process, though its files in /proc are root's. */
static void test_gone_for_its_user(void **state)
{
    (void)state;
    pid_t watcher = fork();
    if (watcher == 0) {
        struct resident_pages p = {0};
        siginfo_t info;
        if (geteuid() == 0 && (setgid(65534) || setuid(65534)))
            _exit(1);
        pid_t child = fork();
        if (child == 0)
            _exit(0);
        waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT);
        _exit(-pages_read(child, 0, &p));
    }
    int status;
    assert_int_equal(waitpid(watcher, &status, 0), watcher);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), ESRCH);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_scan),
                                       cmocka_unit_test(test_old_kernel),
                                       cmocka_unit_test(test_alone),
                                       cmocka_unit_test(test_scattered),
                                       cmocka_unit_test(test_gone),
                                       cmocka_unit_test(test_recorders_own),
                                       cmocka_unit_test(test_gone_for_its_user)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
