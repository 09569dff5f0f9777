/* Pages that a forked child copies, by its faults: a real child, whose writes are counted in pages. */
#include "../../profiler/collect/copied.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define MIB (1ul << 20)
enum { HELD_MIB = 24, SPARE = 4 }; /* MiB: faults of code, data and a sanitizer's shadow */

struct child {
    int pid, orders[2], done[2];
};

/* Writes to so many MiB more of what it has from its parent with each order. */
static void obey(const struct child *c, char *held)
{
    unsigned char mib;
    while (read(c->orders[0], &mib, 1) == 1) {
        memset(held, 2, mib * MIB);
        held += mib * MIB;
        if (write(c->done[1], &mib, 1) != 1)
            break;
    }
    _exit(0);
}

static void child_start(struct child *c)
{
    char *held = mmap(NULL, HELD_MIB * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(held != MAP_FAILED);
    madvise(held, HELD_MIB * MIB, MADV_NOHUGEPAGE);
    memset(held, 1, HELD_MIB * MIB);
    assert_int_equal(pipe(c->orders) | pipe(c->done), 0);
    c->pid = fork();
    if (c->pid == 0) {
        close(c->orders[1]);
        obey(c, held);
    }
}

static void child_write(const struct child *c, unsigned char mib)
{
    assert_int_equal(write(c->orders[1], &mib, 1), 1);
    assert_int_equal(read(c->done[0], &mib, 1), 1);
}

static void child_end(const struct child *c)
{
    close(c->orders[1]);
    waitpid(c->pid, NULL, 0);
}

static void see(struct processes *ps)
{
    struct copied c = {0};
    copied_see(&c, ps);
    assert_int_equal(c.bytes, ps->by_slot[0]->copying.bytes + ps->by_slot[1]->copying.bytes);
}

static void assert_mib(uint64_t bytes, uint64_t mib)
{
    assert_in_range(bytes, mib * MIB, (mib + SPARE) * MIB);
}

static struct processes ps;

static void test_copied(void **state)
{
    (void)state;
    struct child c;
    child_start(&c);
    struct process parent = {.outer_pid = getpid(), .family = 70}, child = {.outer_pid = c.pid, .family = 70};
    child.inherited = 1;
    ps = (struct processes){.by_slot = {&parent, &child}, .slot_end = 2, .live = 2};
    see(&ps);
    assert_int_equal(parent.copying.bytes, 0); /* what it did before is no copy */
    child_write(&c, 8);
    see(&ps);
    assert_mib(child.copying.bytes, 8);
    assert_mib(parent.copying.bytes, 0);
    /* what came anew is in its resident bytes */
    child.rss_bytes = 3 * MIB;
    see(&ps);
    assert_mib(child.copying.bytes, 5);
    /* the look found it */
    copied_looked(&child, 8 * MIB);
    child.looked_rss_bytes = child.rss_bytes;
    assert_int_equal(child.copying.bytes, 0);
    assert_int_equal(child.copying.vain_count, 0);
    see(&ps);
    assert_mib(child.copying.bytes, 0);
    child_end(&c);
}

static void test_vain(void **state)
{
    (void)state;
    struct child c;
    child_start(&c);
    struct process parent = {.outer_pid = getpid(), .family = 1}, child = {.outer_pid = c.pid, .family = 1};
    child.inherited = 1;
    ps = (struct processes){.by_slot = {&parent, &child}, .slot_end = 2, .live = 2};
    child_write(&c, 8);
    see(&ps);
    copied_looked(&child, 0); /* nothing of it was there: half of the next counts, */
    child_write(&c, 8);
    see(&ps);
    assert_in_range(child.copying.bytes, 4 * MIB, (4 + SPARE / 2) * MIB);
    copied_looked(&child, 8 * MIB); /* until it is found */
    child_write(&c, 8);
    see(&ps);
    assert_mib(child.copying.bytes, 8);
    child_end(&c);
}

/* Only forks share pages, and a process whose last kin has ended shares none. */
static void test_families(void **state)
{
    (void)state;
    struct child c;
    child_start(&c);
    struct process parent = {.outer_pid = getpid(), .family = 1}, child = {.outer_pid = c.pid, .family = 65};
    child.inherited = 1;
    ps = (struct processes){.by_slot = {&parent, &child}, .slot_end = 2, .live = 2};
    child_write(&c, 8);
    see(&ps);
    assert_int_equal(child.copying.bytes, 0);
    child.family = 1;
    parent.dead = 1;
    see(&ps);
    assert_int_equal(child.copying.bytes, 0);
    parent.dead = 0;
    see(&ps);
    assert_mib(child.copying.bytes, 8);
    child_end(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_copied), cmocka_unit_test(test_vain),
                                       cmocka_unit_test(test_families)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
