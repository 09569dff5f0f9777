/* Processes that begin, become others and end, as the collector sees them. */
#include "drain_setup.h"
#include "ring_writer.h"
#include "scratch.h"

#include "../../common/db.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/wait.h>

#include <cmocka.h>

/* A child is killed while it is busy: what it published counts, and nobody waits for the rest. */
static void test_killed_while_busy(void **state)
{
    (void)state;
    struct setup *s = setup_begin(1);
    struct writer w;
    uint32_t slot = writer_claim_slot(s->session.control, getpid(), getppid(), WIRE_START_EXEC, 0);
    writer_open(&w, s->session.control, slot, getpid(), getpid());
    writer_free(&w, 1);
    pid_t pid = fork();
    if (pid == 0) {
        struct writer c;
        uint32_t mine = writer_claim_slot(s->session.control, getpid(), getppid(), WIRE_START_FORK, slot + 1);
        writer_open(&c, s->session.control, mine, getpid(), getpid());
        for (int i = 0; i < 1000; i++)
            writer_free(&c, 100);
        writer_busy(&c);
        raise(SIGKILL);
    }
    int status;
    setup_wait_until(s, "SELECT count(*) FROM process", 2);
    waitpid(pid, &status, 0);
    uint64_t reap[3] = {0, WIRE_WORD1(WIRE_REAP, 0, pid), (uint64_t)status};
    writer_put(&w, reap, 3);
    writer_free(&w, 2);
    setup_wait_until(
        s, "SELECT exit_signal FROM process WHERE process_id = 2 AND end_kind = 'signal' AND parent_id = 1", SIGKILL);
    setup_rounds(s, 5);
    uint64_t of_child = 0;
    size_t end_at = 0, after = 0;
    for (size_t i = 0; i < s->count; i++) {
        of_child += s->events[i].process_id == 2 && s->events[i].op == EVENT_FREE;
        if (s->events[i].address == 2)
            after = i;
    }
    assert_int_equal(of_child, 1000);
    assert_non_null(setup_find_event(s, EVENT_PROCESS_END, 2, &end_at));
    assert_true(end_at < after);
    assert_int_equal(s->events[0].inherited, 0);
    assert_int_equal(setup_find_event(s, EVENT_FREE, 2, NULL)->inherited, 1);
    assert_int_equal(s->session.procs[1].state, WIRE_PROC_FREE);
    setup_end(s);
}

/* exec: the old image's blocks leave before the new one's come. */
static void test_exec(void **state)
{
    (void)state;
    struct setup *s = setup_begin(1);
    int go[2];
    assert_int_equal(pipe(go), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct writer c;
        char byte;
        uint32_t slot = writer_claim_slot(s->session.control, getpid(), getppid(), WIRE_START_EXEC, 0);
        writer_open(&c, s->session.control, slot, getpid(), getpid());
        writer_alloc(&c, 1, 10, 0);
        uint64_t exec[2] = {0, WIRE_WORD1(WIRE_EXEC, 0, 2ull << 32)};
        writer_put(&c, exec, 2);
        slot = writer_claim_slot(s->session.control, getpid(), getppid(), WIRE_START_EXEC, 0);
        writer_open(&c, s->session.control, slot, getpid(), getpid());
        writer_alloc(&c, 2, 20, 0);
        uint64_t over[2] = {0, WIRE_WORD1(WIRE_EXIT, 0, 5)};
        if (read(go[0], &byte, 1) < 0)
            _exit(1);
        writer_put(&c, over, 2);
        _exit(5);
    }
    setup_wait_until(s, "SELECT count(*) FROM process", 2);
    setup_rounds(s, 10);
    assert_int_equal(write(go[1], "x", 1), 1);
    setup_wait_until(s, "SELECT exit_status FROM process WHERE process_id = 2 AND end_kind = 'exit' AND parent_id = 1",
                     5);
    waitpid(pid, NULL, 0);
    assert_int_equal(
        db_int(store_db(s->store), "SELECT count(*) FROM process WHERE process_id = 1 AND end_kind = 'exec'", -1), 1);
    size_t end_at = 0, next_at = 0;
    assert_non_null(setup_find_event(s, EVENT_PROCESS_END, 1, &end_at));
    assert_non_null(setup_find_event(s, EVENT_ALLOC, 2, &next_at));
    assert_true(end_at < next_at);
    assert_int_equal(s->disorder, 0);
    close(go[0]);
    close(go[1]);
    setup_end(s);
}

/* A process that does nothing until it is told to end. */
static pid_t start_idle(int *go)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        char byte;
        close(ends[1]);
        _exit(read(ends[0], &byte, 1) < 0);
    }
    close(ends[0]);
    *go = ends[1];
    return pid;
}

/* The slot that an image gets depends on which were free just then. */
static uint32_t claim_this_slot(struct setup *s, uint32_t index, int pid, int parent_pid, uint32_t kind,
                                uint32_t parent)
{
    for (uint32_t i = 0; i < 8; i++)
        if (s->session.procs[i].state == WIRE_PROC_FREE)
            s->session.procs[i].state = WIRE_PROC_CLAIMED;
    s->session.procs[index].state = WIRE_PROC_FREE;
    uint32_t slot = writer_claim_slot(s->session.control, pid, parent_pid, kind, parent);
    assert_int_equal(slot, index);
    return slot;
}

static int64_t count_of(struct setup *s, const char *from)
{
    char sql[512];
    snprintf(sql, sizeof sql, "SELECT count(*) FROM %s", from);
    return db_int(store_db(s->store), sql, -1);
}

/* A program starts, forks, and the child becomes another program, all between two rounds: whatever slots they have, the
 * newest image lives, has its ring read, and comes from the fork, which comes from the program. */
static void test_exec_in_any_slots(void **state)
{
    (void)state;
    static const uint32_t orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    for (int k = 0; k < 6; k++) {
        struct setup *s = setup_begin(1);
        struct writer old, new;
        int go;
        pid_t pid = start_idle(&go);
        uint32_t program = claim_this_slot(s, orders[k][0], getpid(), getppid(), WIRE_START_EXEC, 0);
        uint32_t child = claim_this_slot(s, orders[k][1], pid, getpid(), WIRE_START_FORK, program + 1);
        writer_open(&old, s->session.control, child, pid, pid);
        writer_alloc(&old, 1, 10, 0);
        uint32_t image = claim_this_slot(s, orders[k][2], pid, getpid(), WIRE_START_EXEC, 0);
        writer_open(&new, s->session.control, image, pid, pid);
        writer_alloc(&new, 2, 20, 0);
        setup_rounds(s, 5);
        assert_int_equal(count_of(s, "process"), 3);
        assert_int_equal(count_of(s, "process WHERE process_id = 1 AND parent_id IS NULL AND end_kind IS NULL"), 1);
        assert_int_equal(count_of(s, "process WHERE process_id = 2 AND parent_id = 1 AND end_kind = 'exec'"), 1);
        assert_int_equal(count_of(s, "process WHERE process_id = 3 AND parent_id = 2 AND end_kind IS NULL"), 1);
        assert_int_equal(s->session.procs[image].state, WIRE_PROC_LIVE);
        assert_int_equal(new.ring->state, WIRE_RING_LIVE);
        assert_int_equal(s->session.procs[child].state, WIRE_PROC_FREE);
        assert_int_equal(old.ring->state, WIRE_RING_FREE);
        writer_alloc(&new, 3, 30, 0);
        setup_rounds(s, 3);
        assert_int_equal(new.ring->tail, new.ring->head);
        assert_int_equal(setup_find_event(s, EVENT_ALLOC, 2, NULL)->size_bytes, 10);
        assert_int_equal(s->events[s->count - 1].process_id, 3);
        assert_int_equal(s->events[s->count - 1].size_bytes, 30);
        assert_int_equal(s->disorder, 0);
        close(go);
        waitpid(pid, NULL, 0);
        setup_wait_until(s, "SELECT count(*) FROM process WHERE process_id = 3 AND end_kind IS NOT NULL", 1);
        setup_end(s);
    }
}

/* An older image that is seen after the one that replaced it is the one that is gone. Stamps are the other side's:
 * those of no clock do no harm. */
static void test_older_image_seen_late(void **state)
{
    (void)state;
    static const uint64_t stamps[] = {1, 0, UINT64_MAX, 1ull << 63};
    for (int k = 0; k < 4; k++) {
        struct setup *s = setup_begin(1);
        struct writer old, new;
        int go;
        pid_t pid = start_idle(&go);
        uint32_t program = claim_this_slot(s, 0, getpid(), getppid(), WIRE_START_EXEC, 0);
        uint32_t child = claim_this_slot(s, 1, pid, getpid(), WIRE_START_FORK, program + 1);
        s->session.procs[child].state = WIRE_PROC_CLAIMED;
        if (k)
            s->session.procs[child].start_stamp = stamps[k];
        writer_open(&old, s->session.control, child, pid, pid);
        uint32_t image = claim_this_slot(s, 2, pid, getpid(), WIRE_START_EXEC, 0);
        writer_open(&new, s->session.control, image, pid, pid);
        setup_rounds(s, 5);
        s->session.procs[child].state = WIRE_PROC_LIVE;
        writer_free(&old, 1);
        writer_free(&new, 2);
        setup_rounds(s, 5);
        int is_older = stamps[k] < 2; /* else it is another process, and nobody replaces anybody */
        assert_int_equal(s->session.procs[image].state, WIRE_PROC_LIVE);
        assert_int_equal(s->session.procs[child].state, is_older ? WIRE_PROC_FREE : WIRE_PROC_LIVE);
        assert_int_equal(s->count, 2 + is_older); /* the end of the replaced one, too */
        assert_int_equal(count_of(s, "process WHERE end_kind = 'exec'"), is_older);
        close(go);
        waitpid(pid, NULL, 0);
        setup_wait_until(s, "SELECT count(*) FROM process WHERE end_kind IS NOT NULL", 2);
        setup_end(s);
    }
}

/* A process that was killed between taking a slot and filling it leaves it to others; one that lives keeps it. */
static void test_claim_of_the_dead(void **state)
{
    (void)state;
    struct setup *s = setup_begin(1);
    struct wire_proc *procs = s->session.procs;
    int go;
    pid_t pid = start_idle(&go);
    uint32_t dead = claim_this_slot(s, 0, pid, getpid(), WIRE_START_FORK, 0);
    uint32_t alive = claim_this_slot(s, 1, getpid(), getppid(), WIRE_START_EXEC, 0);
    for (uint32_t i = 0; i < 8; i++) {
        procs[i].state = i < 2 ? WIRE_PROC_CLAIMED : WIRE_PROC_FREE;
        procs[i].pid_namespace = i < 2 ? s->processes.pid_namespace : 0;
    }
    setup_rounds(s, 3);
    assert_int_equal(procs[dead].state, WIRE_PROC_CLAIMED);
    close(go);
    waitpid(pid, NULL, 0);
    usleep(1100000);
    setup_rounds(s, 3);
    assert_int_equal(procs[dead].state, WIRE_PROC_FREE);
    assert_int_equal(procs[alive].state, WIRE_PROC_CLAIMED);
    /* the free slot before it hides nobody */
    procs[alive].state = WIRE_PROC_LIVE;
    setup_rounds(s, 3);
    assert_int_equal(count_of(s, "process"), 1);
    setup_end(s);
}

/* A thread that took long to begin writes, and its process is gone: the last look at it finds the ring. */
static void test_late_ring_of_the_dead(void **state)
{
    (void)state;
    struct setup *s = setup_begin(1);
    struct writer main_ring, late;
    int go;
    pid_t pid = start_idle(&go);
    uint32_t old = writer_claim_slot(s->session.control, pid, getpid(), WIRE_START_EXEC, 0);
    writer_open(&main_ring, s->session.control, old, pid, pid);
    setup_rounds(s, 3);
    writer_open(&late, s->session.control, old, pid, pid + 1);
    late.ring->state = WIRE_RING_FREE; /* so far */
    for (int i = 0; i < 40; i++) {
        usleep(1000);
        drain_round(s->drain);
    }
    late.ring->state = WIRE_RING_LIVE;
    writer_alloc(&late, 1, 10, 0);
    writer_claim_slot(s->session.control, pid, getpid(), WIRE_START_EXEC, 0);
    drain_round(s->drain);
    setup_rounds(s, 5);
    assert_non_null(setup_find_event(s, EVENT_ALLOC, 1, NULL));
    assert_int_equal(late.ring->state, WIRE_RING_FREE);
    close(go);
    waitpid(pid, NULL, 0);
    setup_end(s);
}

/* Very many threads have taken rings that they do not own yet, and a child that has one behind theirs is over before
 * they go on: nothing of either is lost. */
static void test_short_child_of_a_crowd(void **state)
{
    (void)state;
    enum { CROWD = 500 };
    static struct writer crowd[CROWD];
    struct setup *s = setup_begin(1);
    struct writer child;
    int go;
    pid_t pid = start_idle(&go);
    uint32_t program = writer_claim_slot(s->session.control, getpid(), getppid(), WIRE_START_EXEC, 0);
    for (int i = 0; i < CROWD; i++)
        writer_take(&crowd[i], s->session.control);
    uint32_t slot = writer_claim_slot(s->session.control, pid, getpid(), WIRE_START_FORK, program + 1);
    writer_open(&child, s->session.control, slot, pid, pid);
    writer_alloc(&child, 1, 10, 0);
    close(go);
    waitpid(pid, NULL, 0);
    setup_wait_until(s, "SELECT count(*) FROM process WHERE process_id = 2 AND end_kind IS NOT NULL", 1);
    assert_int_equal(count_of(s, "thread WHERE process_id = 2"), 1);
    assert_non_null(setup_find_event(s, EVENT_ALLOC, 2, NULL));
    assert_int_equal(child.ring->state, WIRE_RING_FREE);
    for (int i = 0; i < CROWD; i++) {
        writer_own(&crowd[i], program, getpid(), getpid() + i);
        writer_alloc(&crowd[i], 2 + (uint64_t)i, 20, 0);
    }
    setup_rounds(s, 50);
    assert_int_equal(count_of(s, "thread WHERE process_id = 1"), CROWD);
    assert_int_equal(s->disorder, 0);
    setup_end(s);
}

/* A child without a ring says that it becomes a program: it is waited for, unless its pid means nothing here. */
static void test_spawn_without_ring(void **state)
{
    (void)state;
    struct setup *s = setup_begin(1);
    struct wire_control *c = s->session.control;
    int go;
    pid_t pid = start_idle(&go);
    uint32_t slot = writer_claim_slot(c, getpid(), getppid(), WIRE_START_EXEC, 0);
    const uint64_t whos[] = {(uint64_t)slot << 32 | (uint32_t)pid, 77ull << 32 | (uint32_t)pid,
                             (uint64_t)WIRE_PROCS << 32 | (uint32_t)pid, UINT64_MAX};
    c->spawns[5] =
        (struct wire_spawn){.stamp = clock_stamp(&s->clock), .who = whos[0]}; /* its parent is not known yet */
    c->spawns_told++;
    processes_scan_spawns(&s->processes, clock_monotonic_ns());
    assert_false(processes_expected(&s->processes, clock_monotonic_ns()));
    setup_rounds(s, 1);
    assert_true(processes_expected(&s->processes, s->drain->now_ns));
    s->processes.expected[0].pid = 0;
    for (unsigned i = 4; i-- > 0;) {
        c->spawns[i * 21] = (struct wire_spawn){.stamp = clock_stamp(&s->clock), .who = whos[i]};
        c->spawns_told++;
        assert_false(processes_expected(&s->processes, s->drain->now_ns));
        setup_rounds(s, 1);
        assert_int_equal(processes_expected(&s->processes, s->drain->now_ns), i == 0);
        assert_int_equal(c->spawns[i * 21].who, 0);
    }
    close(go);
    waitpid(pid, NULL, 0);
    assert_false(processes_expected(&s->processes, s->drain->now_ns));
    setup_end(s);
}

/* A program whose parent is gone is its child where it was expected at that time, not by its pid alone. */
static void test_expected_in_time(void **state)
{
    (void)state;
    struct setup *s = setup_begin(1);
    writer_claim_slot(s->session.control, getpid(), getppid(), WIRE_START_EXEC, 0);
    setup_rounds(s, 1);
    for (unsigned seconds = 0; seconds < 3; seconds += 2) {
        char query[96];
        int go;
        pid_t pid = start_idle(&go);
        uint64_t stamp = clock_stamp(&s->clock) - clock_ticks(&s->clock, seconds * 1000000000ull);
        processes_expect(&s->processes, pid, 1, stamp, clock_monotonic_ns(), NULL, 0);
        writer_claim_slot(s->session.control, pid, 1, WIRE_START_EXEC, 0);
        setup_rounds(s, 1);
        snprintf(query, sizeof query, "SELECT coalesce(parent_id, 0) FROM process WHERE pid = %d", pid);
        assert_int_equal(db_int(store_db(s->store), query, -1), seconds == 0);
        close(go);
        waitpid(pid, NULL, 0);
    }
    setup_end(s);
}

/* The program has ended, and so has a child: both have a slot until their last events are counted. */
static void test_outlive(void **state)
{
    (void)state;
    static struct processes ps;
    const struct process *one;
    struct process first = {.pid = 10}, ended = {.pid = 11, .dead = 1}, child = {.pid = 12}, other = {.pid = 13};
    ps = (struct processes){.first_pid = 10, .first_ended = 1, .by_slot = {&first, NULL, &ended}, .slot_end = 5};
    assert_int_equal(processes_that_outlive(&ps, &one), 0);
    assert_null(one);
    ps.by_slot[3] = &child;
    ps.by_slot[4] = &other;
    assert_int_equal(processes_that_outlive(&ps, &one), 2);
    assert_ptr_equal(one, &child);
    child.pid_namespace = 7; /* where that number is another process */
    child.pid = 10;
    assert_int_equal(processes_that_outlive(&ps, &one), 2);
}

/* Tells of its end that it had 100 MiB, beside another one of 40 MiB: in the sum of all it is what it had then. */
static void peak_beside(int is_later, uint64_t expected)
{
    struct setup *s = setup_begin(1);
    int go;
    pid_t pid = start_idle(&go);
    if (!is_later)
        writer_claim_slot(s->session.control, getpid(), getppid(), WIRE_START_EXEC, 0);
    setup_wait_until(s, "SELECT count(*) FROM process", !is_later);
    uint32_t slot = writer_claim_slot(s->session.control, pid, getpid(), WIRE_START_EXEC, 0);
    setup_wait_until(s, "SELECT count(*) FROM process", 1 + !is_later);
    if (is_later)
        writer_claim_slot(s->session.control, getpid(), getppid(), WIRE_START_EXEC, 0);
    setup_wait_until(s, "SELECT count(*) FROM process", 2);
    struct process *p = processes_of_slot(&s->processes, slot, pid);
    struct process *other = processes_of_slot(&s->processes, !slot, getpid());
    assert_non_null(p);
    assert_non_null(other);
    drain_emit_rss(s->drain, p, 0, 10 << 20);
    drain_emit_rss(s->drain, other, 0, 40 << 20);
    s->session.procs[slot].peak_rss_bytes = 100 << 20;
    close(go);
    waitpid(pid, NULL, 0);
    uint16_t id = p->process_id;
    for (int i = 0; i < 1000 && !setup_find_event(s, EVENT_PROCESS_END, id, NULL); i++) {
        setup_rounds(s, 1);
        usleep(1000);
    }
    assert_non_null(setup_find_event(s, EVENT_PROCESS_END, id, NULL));
    uint64_t most = 0;
    for (size_t i = 0; i < s->count; i++)
        if (s->events[i].op == EVENT_RSS && s->events[i].process_id == id && s->events[i].size_bytes > most)
            most = s->events[i].size_bytes;
    assert_int_equal(most, expected);
    setup_end(s);
}

static void test_peak_beside_others(void **state)
{
    (void)state;
    peak_beside(0, 100 << 20);
    peak_beside(1, 60 << 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_killed_while_busy),      cmocka_unit_test(test_exec),
        cmocka_unit_test(test_exec_in_any_slots),      cmocka_unit_test(test_older_image_seen_late),
        cmocka_unit_test(test_claim_of_the_dead),      cmocka_unit_test(test_late_ring_of_the_dead),
        cmocka_unit_test(test_short_child_of_a_crowd), cmocka_unit_test(test_spawn_without_ring),
        cmocka_unit_test(test_expected_in_time),       cmocka_unit_test(test_outlive),
        cmocka_unit_test(test_peak_beside_others),
    };
    return cmocka_run_group_tests(tests, scratch_begin, scratch_end);
}
