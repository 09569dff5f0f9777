/* Pages and blocks of one instant: what a process does while its pages are read, or before the drain has read of it, in
 * the middle of the call that finds them. This process is the one that is looked at. */
#include "drain_setup.h"
#include "ring_writer.h"
#include "scratch.h"

#include "../../profiler/collect/look.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cmocka.h>

enum { PAGE = 4096, SIZE = 512 * PAGE, HEADER = 16 };

static struct writer writer;
/* As large as what malloc maps for a block of SIZE - HEADER bytes: behind a header; NULL: gone. */
static char *regions[3];

/* --- what happens while pages are read, and after that --- */

static void (*after_pages)(void), (*before_events)(void);

static void once(void (**f)(void))
{
    void (*call)(void) = *f;
    *f = NULL;
    if (call)
        call();
}

int ioctl(int fd, unsigned long request, ...)
{
    va_list args;
    va_start(args, request);
    void *arg = va_arg(args, void *);
    va_end(args);
    long rc = syscall(SYS_ioctl, fd, request, arg);
    once(&after_pages);
    return (int)rc;
}

int nanosleep(const struct timespec *time, struct timespec *left)
{
    once(&before_events);
    return (int)syscall(SYS_nanosleep, time, left);
}

/* --- a process with an account --- */

struct one {
    struct setup *s;
    struct look look;
    struct resident_result result;
    uint32_t slot;
};

static void take(void *arg, const struct event *events, size_t count)
{
    look_events(arg, events, count);
}

static void one_begin(struct one *o, int pid)
{
    *o = (struct one){.s = setup_begin(1)};
    o->look = (struct look){.account = account_open(o->s->store, &(struct account_options){0}),
                            .drain = o->s->drain,
                            .clock = &o->s->clock};
    o->s->drain->sink = (struct drain_sink){.events = take, .arg = &o->look};
    o->slot = writer_claim_slot(o->s->session.control, pid, getppid(), WIRE_START_EXEC, 0);
    assert_int_equal(writer_open(&writer, o->s->session.control, o->slot, pid, pid), 0);
}

static char *region(void)
{
    char *p = mmap(NULL, SIZE + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(p != MAP_FAILED);
    madvise(p, SIZE, MADV_NOHUGEPAGE);
    assert_int_equal(mprotect(p + SIZE, PAGE, PROT_NONE), 0); /* no neighbour is joined */
    return memset(p, 1, SIZE);
}

static void born(unsigned i)
{
    regions[i] = region();
    writer_alloc(&writer, (uintptr_t)regions[i] + HEADER, SIZE - HEADER, 0);
}

static void gone(unsigned i)
{
    writer_free(&writer, (uintptr_t)regions[i] + HEADER);
    munmap(regions[i], SIZE + PAGE);
    regions[i] = NULL;
}

/* With its first block, of which the drain has read. */
static void one_begin_born(struct one *o)
{
    one_begin(o, getpid());
    born(0);
    setup_rounds(o->s, 3);
}

static void one_end(struct one *o)
{
    for (unsigned i = 0; i < sizeof regions / sizeof *regions; i++)
        if (regions[i])
            gone(i);
    account_finish(o->look.account, UINT32_MAX);
    account_close(o->look.account);
    look_close(&o->look);
    free(o->result.sites);
    setup_end(o->s);
}

static void look_now(struct one *o, int is_alone)
{
    o->look.waited_ns = 0;
    assert_int_equal(look_at(&o->look, o->s->processes.by_slot[o->slot], is_alone, &o->result), 0);
    assert_null(o->look.waiting);
    assert_null(after_pages);
}

/* All blocks are of one site: so many live bytes, of which so many are on pages. */
static void check(const struct one *o, uint64_t live_count, uint64_t live_bytes, uint64_t resident_bytes)
{
    assert_int_equal(o->result.site_count, 1);
    const struct resident_site *site = &o->result.sites[0];
    assert_int_equal(site->live_count, live_count);
    assert_int_equal(site->live_bytes, live_bytes);
    assert_int_equal(site->sum.resident_bytes, resident_bytes);
    assert_int_equal(site->untouched_bytes, live_bytes - resident_bytes);
}

/* --- tests --- */

#define BLOCK (SIZE - HEADER)

static void second_is_born(void)
{
    born(1);
}

/* The drain has read of the first block only. The second was born before the pages were read. */
static void test_born_before(void **state)
{
    (void)state;
    struct one o;
    one_begin_born(&o);
    born(1);
    look_now(&o, 1);
    assert_false(o.look.is_late);
    check(&o, 2, 2ul * BLOCK, 2ul * BLOCK);
    one_end(&o);
}

/* One is born while pages are read, too late for its own. */
static void test_born_meanwhile(void **state)
{
    (void)state;
    struct one o;
    one_begin_born(&o);
    after_pages = second_is_born;
    look_now(&o, 1);
    check(&o, 2, 2ul * BLOCK, BLOCK);
    one_end(&o);
}

static void both_are_gone(void)
{
    born(2); /* while the others have their addresses */
    gone(0);
    gone(1);
    gone(2);
}

/* Two go when their pages have been read, of which the drain knew one; a third comes and goes after that. */
static void test_gone_meanwhile(void **state)
{
    (void)state;
    struct one o;
    one_begin_born(&o);
    born(1);
    after_pages = both_are_gone;
    look_now(&o, 1);
    check(&o, 2, 2ul * BLOCK, 2ul * BLOCK);
    setup_rounds(o.s, 3);
    struct account_counts counts;
    account_counts(o.look.account, &counts);
    assert_int_equal(counts.events, 6);
    assert_int_equal(counts.live_blocks, 0);
    one_end(&o);
}

/* What comes after the pages were read is in the accounts, but not in the look. */
static void test_born_after(void **state)
{
    (void)state;
    struct one o;
    one_begin(&o, getpid());
    setup_rounds(o.s, 3);
    born(0);
    before_events = second_is_born;
    look_now(&o, 1);
    assert_null(before_events);
    check(&o, 1, BLOCK, BLOCK);
    setup_rounds(o.s, 3);
    struct account_counts counts;
    account_counts(o.look.account, &counts);
    assert_int_equal(counts.live_blocks, 2);
    one_end(&o);
}

/* A thread stays in the middle of a record: that is waited for, but not for long. */
static void test_late(void **state)
{
    (void)state;
    struct one o;
    one_begin_born(&o);
    writer_busy(&writer);
    look_now(&o, 1);
    assert_true(o.look.is_late);
    check(&o, 1, BLOCK, BLOCK);
    gone(0);
    free(o.result.sites);
    look_now(&o, 1);
    assert_false(o.look.is_late);
    assert_int_equal(o.result.site_count, 0);
    one_end(&o);
}

/* A round that has waited long enough waits no more, and says so. */
static void test_waited(void **state)
{
    (void)state;
    struct one o;
    one_begin_born(&o);
    writer_busy(&writer);
    o.look.waited_ns = 1000000000;
    before_events = second_is_born;
    assert_int_equal(look_at(&o.look, o.s->processes.by_slot[o.slot], 1, &o.result), 0);
    assert_non_null(before_events);
    before_events = NULL;
    assert_true(o.look.is_late);
    check(&o, 1, BLOCK, BLOCK);
    one_end(&o);
}

static pid_t child;

static void child_ends(void)
{
    uint64_t over[2] = {0, WIRE_WORD1(WIRE_EXIT, 0, 0)};
    writer_put(&writer, over, 2);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    usleep(20000); /* the collector may see it, or not yet */
}

static void child_begins_to_end(void)
{
    writer_busy(&writer);
    before_events = child_ends;
}

/* The process ends when its pages have been read. What it had then is what the look saw. */
static void test_end(void **state)
{
    (void)state;
    struct one o;
    regions[0] = region();
    child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            pause();
    }
    one_begin(&o, child);
    writer_alloc(&writer, (uintptr_t)regions[0] + HEADER, BLOCK, 0);
    setup_rounds(o.s, 3);
    after_pages = child_begins_to_end;
    look_now(&o, 0);
    check(&o, 1, BLOCK, BLOCK);
    one_end(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_born_before),
                                       cmocka_unit_test(test_born_meanwhile),
                                       cmocka_unit_test(test_gone_meanwhile),
                                       cmocka_unit_test(test_born_after),
                                       cmocka_unit_test(test_late),
                                       cmocka_unit_test(test_waited),
                                       cmocka_unit_test(test_end)};
    return cmocka_run_group_tests(tests, scratch_begin, scratch_end);
}
