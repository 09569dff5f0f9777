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
        uint64_t exec[2] = {0, WIRE_WORD1(WIRE_EXEC, 0, 0)};
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_killed_while_busy),
        cmocka_unit_test(test_exec),
    };
    return cmocka_run_group_tests(tests, scratch_begin, scratch_end);
}
