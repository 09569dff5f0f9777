/* A recording found from outside: by its collector (this test), by a process of it, by its file; and what is refused.
 */
#include "drain_setup.h"
#include "scratch.h"

#include "../../common/db.h"
#include "../../profiler/collect/desk.h"
#include "../../profiler/outside/outside.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static struct error err;

static int try_open(const char *what)
{
    struct outside *o;
    int rc = outside_open(what, &o, &err);
    assert_int_equal(rc == 0, o != NULL);
    if (o)
        assert_int_equal(outside_collector(o), getpid());
    outside_close(o);
    return rc;
}

static int try_pid(int pid)
{
    char text[32];
    snprintf(text, sizeof text, "%d", pid);
    return try_open(text);
}

/* Its environment is there to be read: the kernel shuts what is closed at exec before it says where that lies. */
static int has_environment(int pid)
{
    char name[64], byte;
    snprintf(name, sizeof name, "/proc/%d/environ", pid);
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, &byte, 1);
    if (fd >= 0)
        close(fd);
    return n == 1 && byte == 'A';
}

/* A process whose MEMPROF_SESSION is this; it waits until it is killed. NULL: none is set. */
static int begin_process(const char *session)
{
    char assignment[4096], byte;
    int ready[2];
    char *environment[] = {(char *)"A=b", session ? assignment : NULL, NULL};
    snprintf(assignment, sizeof assignment, WIRE_ENV_SESSION "=%s", session ? session : "");
    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    int pid = fork();
    if (!pid) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execle("/bin/sleep", "sleep", "1000", NULL, environment);
        _exit(1);
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 0); /* closed as it is executed */
    close(ready[0]);
    for (int i = 0; i < 10000 && !has_environment(pid); i++)
        usleep(1000);
    assert_true(has_environment(pid));
    return pid;
}

static void end_process(int pid)
{
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static int try_session(const char *session)
{
    int pid = begin_process(session), rc = try_pid(pid);
    end_process(pid);
    return rc;
}

static void test_processes(void **state)
{
    struct setup *s = setup_begin(0);
    char session[WIRE_SESSION_MAX];
    (void)state;
    snprintf(session, sizeof session, "%s", s->session.control->session_path);
    assert_int_equal(try_pid(getpid()), 0);
    assert_int_equal(try_session(session), 0);
    assert_int_equal(try_session(NULL), -ESRCH);
    assert_int_equal(try_pid(0), -ENOENT);
    assert_int_equal(try_open("99999999999999999999"), -ENOENT);
    int pid = begin_process(session);
    assert_int_equal(try_pid(pid), 0);
    s->session.control->state = WIRE_STATE_OFF;
    assert_int_equal(try_pid(pid), -ESRCH);
    setup_end(s);
    assert_int_equal(try_pid(pid), -ESRCH);
    end_process(pid);
    assert_int_equal(try_pid(pid), -ENOENT);
}

/* What an environment may say without that anything else is opened. */
static void test_hostile_paths(void **state)
{
    struct setup *s = setup_begin(0);
    char path[256];
    (void)state;
    const char *fifo = scratch_path("fifo");
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_int_equal(try_session(fifo), -EPROTO);
    assert_int_equal(try_session(""), -EPROTO);
    assert_int_equal(try_session("/dev/zero"), -EPROTO);
    assert_int_equal(try_session("/proc/-1/fd/3"), -EPROTO);
    assert_int_equal(try_session("/proc/1/fd/3/../../../etc/passwd"), -EPROTO);
    snprintf(path, sizeof path, "%s/", s->session.control->session_path);
    assert_int_equal(try_session(path), -EPROTO);
    snprintf(path, sizeof path, "%0100d%s", 0, s->session.control->session_path);
    assert_int_equal(try_session(path), -EPROTO);
    snprintf(path, sizeof path, "/proc/%d/fd/9999", getpid());
    assert_int_equal(try_session(path), -ESRCH);
    setup_end(s);
}

/* A file that is memory, too, and says what it likes. */
static void test_hostile_memory(void **state)
{
    struct setup *s = setup_begin(0);
    struct wire_control *c = s->session.control;
    char path[64];
    (void)state;
    int fd = memfd_create("other", MFD_CLOEXEC), pid;
    snprintf(path, sizeof path, "/proc/%d/fd/%d", getpid(), fd);
    assert_int_equal(try_session(path), -EPROTO); /* empty */
    assert_int_equal(ftruncate(fd, (off_t)WIRE_TOTAL_BYTES), 0);
    assert_int_equal(try_session(path), -EPROTO); /* zeros */
    assert_int_equal(pwrite(fd, c, sizeof *c, 0), sizeof *c);
    assert_int_equal(try_session(path), 0); /* a good copy */
    assert_int_equal(ftruncate(fd, (off_t)sizeof *c), 0);
    assert_int_equal(try_session(path), -EPROTO); /* cut */
    close(fd);
    pid = begin_process(c->session_path);
    c->version++;
    assert_int_equal(try_pid(pid), -EPROTO);
    assert_non_null(strstr(err.text, "another version"));
    c->version--;
    c->total_bytes--;
    assert_int_equal(try_pid(pid), -EPROTO);
    c->total_bytes++;
    c->magic--;
    assert_int_equal(try_pid(pid), -EPROTO);
    c->magic++;
    assert_int_equal(try_pid(pid), 0);
    end_process(pid);
    setup_end(s);
}

static void test_files(void **state)
{
    struct setup *s = setup_begin(0);
    (void)state;
    sqlite3 *db = scratch_db("live.db");
    const char *path = scratch_path("live.db");
    assert_int_equal(db_meta_set_text(db, "format", "memprof"), 0);
    assert_int_equal(db_meta_set_text(db, "state", "recording"), 0);
    assert_int_equal(db_meta_set_int(db, "collector_pid", getpid()), 0);
    assert_int_equal(try_open(path), 0);
    assert_int_equal(db_meta_set_int(db, "collector_pid", getppid()), 0); /* has neither the file nor a session */
    assert_int_equal(try_open(path), -ESRCH);
    assert_int_equal(db_meta_set_int(db, "collector_pid", -1), 0);
    assert_int_equal(try_open(path), -ESRCH);
    assert_int_equal(db_meta_set_int(db, "collector_pid", getpid()), 0);
    assert_int_equal(db_meta_set_text(db, "state", "done"), 0);
    assert_int_equal(try_open(path), -ESRCH);
    assert_int_equal(db_meta_set_text(db, "state", "recording"), 0);
    sqlite3_close(db); /* the collector would have it open: its number is another's by now */
    assert_int_equal(try_open(path), -ESRCH);
    assert_int_equal(try_open(scratch_path("none.db")), -ENOENT);
    setup_end(s);
}

static void test_rows(void **state)
{
    struct setup *s = setup_begin(0);
    struct wire_desk *desk = (struct wire_desk *)((char *)s->session.control + WIRE_DESK_OFFSET);
    struct wire_figures f = {0};
    struct outside *o;
    char text[32], name[WIRE_NAME_BYTES + 1];
    (void)state;
    snprintf(text, sizeof text, "%d", getpid());
    assert_int_equal(outside_open(text, &o, &err), 0);
    assert_int_equal(outside_row(o, 0, name, &f), 0);
    memset(desk->rows[1].name, 'x', WIRE_NAME_BYTES);
    desk->rows[1].version = 7;
    desk->rows[1].figures[0].active_bytes = 10; /* being written */
    desk->rows[1].figures[1].active_bytes = 20;
    desk->row_count = 2;
    assert_int_equal(outside_row(o, 1, name, &f), 1);
    assert_string_equal(name, "xxxxxxxxxxxxxxxx");
    assert_int_equal(f.active_bytes, 20);
    desk->row_count = UINT32_MAX;
    assert_int_equal(outside_row(o, WIRE_FIGURES, name, &f), 0);
    assert_int_equal(outside_is_recording(o), 1);
    setup_end(s); /* it reads on, without a fault */
    assert_int_equal(outside_is_recording(o), 0);
    assert_int_equal(ftruncate(outside_fd(o), 0), 0);
    assert_int_equal(outside_is_recording(o), 0);
    assert_int_equal(outside_row(o, 1, name, &f), 0);
    outside_close(o);
}

/* The collector's last look whether any process has the memory, after which it writes to a copy of its own. */
static void test_sealed(void **state)
{
    struct setup *s = setup_begin(0);
    struct outside *o;
    char text[32];
    (void)state;
    snprintf(text, sizeof text, "%d", getpid());
    assert_int_equal(outside_open(text, &o, &err), 0);
    assert_int_equal(outside_is_recording(o), 1);
    assert_int_equal(session_is_shared(&s->session), 0);
    assert_int_equal(outside_is_recording(o), 0);
    outside_close(o);
    setup_end(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_processes), cmocka_unit_test(test_hostile_paths), cmocka_unit_test(test_hostile_memory),
        cmocka_unit_test(test_files),     cmocka_unit_test(test_rows),          cmocka_unit_test(test_sealed),
    };
    return cmocka_run_group_tests(tests, scratch_begin, scratch_end);
}
