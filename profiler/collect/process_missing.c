/* Images that are not recorded: programs that were executed, as who did so says, and whose library never came. */
#include "../../common/buf.h"
#include "process.h"
#include "program.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK_NS 20000000u

/* What its executor has told. Some is against it only once its library has not come, and what its file says is worse.
 */
static const struct {
    const char *text;
    int is_likely;
} reaches[] = {
    [WIRE_REACH_DENIED] = {"runs as another user or with other rights, without access to the recording", 0},
    [WIRE_REACH_NO_SESSION] = {"the recording cannot be reached from its root directory or pid namespace", 0},
    [WIRE_REACH_NO_LIBRARY] = {"memprof's library is not there in its root directory", 0},
    [WIRE_REACH_SECURE] = {"its real and effective user or group differ: the system lets no library be preloaded", 1},
    [WIRE_REACH_CAPABILITIES] = {"it has fewer capabilities than memprof: the system does not let it at the recording",
                                 1},
    [WIRE_REACH_ADDRESSES] = {"its limit of addresses is low: memprof's library found no room (ulimit -v)", 1},
};

static const char did_not_start[] = "memprof's library did not start in it";
static const char lacks_library[] =
    "it ended with status 127 before memprof's library started: a library that it needs may be missing";

static const char *reach_text(uint32_t reach, int is_likely)
{
    return reach < sizeof reaches / sizeof *reaches && reaches[reach].is_likely == is_likely ? reaches[reach].text
                                                                                             : NULL;
}

/* Why it cannot be recorded; 0: nothing is known against it. */
static int reason(const char *path, uint32_t reach, char *text, size_t room)
{
    struct error why = {""};
    const char *told = reach_text(reach, 0);
    if (told)
        snprintf(text, room, "%s", told);
    else if (path && program_is_unusable(path, &why))
        snprintf(text, room, "%s", why.text);
    else
        return 0;
    return 1;
}

/* The arguments of a process that may be gone. */
static char *arguments(int pid, const char *path)
{
    char file[64], text[WIRE_COMMAND_MAX + 1];
    struct buf b = BUF(4 * WIRE_COMMAND_MAX + 16);
    snprintf(file, sizeof file, "/proc/%d/cmdline", pid);
    int fd = pid > 0 ? open(file, O_RDONLY | O_CLOEXEC) : -1;
    ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = 0;
    for (ssize_t at = 0; at < n; at += (ssize_t)strlen(text + at) + 1) {
        if (at)
            buf_putc(&b, ' ');
        buf_shell(&b, text + at);
    }
    if (!b.data && path)
        buf_shell(&b, path);
    return b.data ? b.data : xstrdup("?");
}

/* Its children may have been seen before what it is was told. */
static void adopt_orphans(struct processes *ps, const struct pid_entry *parent)
{
    for (unsigned i = 0; i < PROCESSES_EXPECTED; i++) {
        struct orphan *o = &ps->orphans[i];
        if (!o->process_id || o->parent_pid != parent->pid || o->stamp < parent->start_stamp)
            continue;
        sqlite3_stmt *q =
            store_statement(ps->store, "UPDATE process SET parent_id = ? WHERE process_id = ? AND parent_id IS NULL");
        sqlite3_bind_int64(q, 1, parent->process_id);
        sqlite3_bind_int64(q, 2, o->process_id);
        store_step(ps->store, q);
        o->process_id = 0;
    }
}

/* Returns its row's number; 0: none left. live_pid: 0 where it is gone. */
static uint16_t insert_row(struct processes *ps, const struct pid_entry *image, uint16_t parent_id, const char *path,
                           uint32_t reach, int live_pid)
{
    char why[sizeof(struct error)];
    if (ps->total == UINT16_MAX) {
        ps->refused++;
        return 0;
    }
    if (!reason(path, reach, why, sizeof why))
        snprintf(why, sizeof why, "%s", reach_text(reach, 1) ? reach_text(reach, 1) : did_not_start);
    struct pid_entry entry = *image;
    entry.process_id = (uint16_t)++ps->total;
    char *command = arguments(live_pid, path);
    sqlite3_stmt *q =
        store_statement(ps->store, "INSERT INTO process(process_id, pid, parent_id, start_kind, exe, command_line, "
                                   "start_ns, not_recorded) VALUES(?, ?, ?, 'exec', ?, ?, ?, ?)");
    sqlite3_bind_int64(q, 1, entry.process_id);
    sqlite3_bind_int64(q, 2, entry.pid);
    sqlite3_bind_int64(q, 3, parent_id);
    sqlite3_bind_text(q, 4, path ? path : "", -1, SQLITE_TRANSIENT);
    sqlite3_bind_text(q, 5, command, -1, SQLITE_TRANSIENT);
    sqlite3_bind_int64(q, 6, clock_ns(ps->clock, entry.start_stamp));
    sqlite3_bind_text(q, 7, why, -1, SQLITE_TRANSIENT);
    store_step(ps->store, q);
    free(command);
    pids_set(&ps->pids, &entry);
    if (entry.pid_namespace == ps->pid_namespace)
        adopt_orphans(ps, &entry);
    return entry.process_id;
}

static int is_followed(const struct processes *ps)
{
    return __atomic_load_n(&ps->session->control->flags, __ATOMIC_RELAXED) & WIRE_FOLLOW;
}

static void forget(struct expected *e)
{
    free(e->path);
    *e = (struct expected){0};
}

void processes_settle_one(struct processes *ps, struct expected *e)
{
    /* what it executes next, if that joins, comes of it */
    struct pid_entry image = {
        .pid = e->pid, .pid_namespace = ps->pid_namespace, .start_stamp = e->stamp, .executed = 1};
    if (is_followed(ps))
        insert_row(ps, &image, e->parent_id, e->path, e->reach, kill(e->pid, 0) == 0 || errno == EPERM ? e->pid : 0);
    forget(e);
}

void processes_settle_expected(struct processes *ps, int outer_pid, uint64_t stamp)
{
    for (unsigned i = 0; i < PROCESSES_EXPECTED; i++)
        if (ps->expected[i].pid == outer_pid && outer_pid && ps->expected[i].stamp <= stamp)
            processes_settle_one(ps, &ps->expected[i]);
}

void processes_forget_expected(struct processes *ps, int outer_pid, uint64_t until_stamp)
{
    for (unsigned i = 0; i < PROCESSES_EXPECTED; i++)
        if (ps->expected[i].pid == outer_pid && outer_pid && ps->expected[i].stamp <= until_stamp)
            forget(&ps->expected[i]);
}

/* How it ended nobody told so far, but for the first one, which is our own child. */
static void write_gone(struct processes *ps, int pid)
{
    struct pid_entry *entry = pids_find(&ps->pids, ps->pid_namespace, pid);
    if (!entry || entry->ended || !entry->executed)
        return;
    entry->ended = pid == ps->first_pid && ps->first_ended;
    entry->executed = 0;
    processes_write_gone(ps, entry->process_id, clock_ns(ps->clock, clock_stamp(ps->clock)), entry->ended);
}

/* A program that nothing is known against may only be slow to start: its time is up with the recording. */
void processes_scan_missing(struct processes *ps, uint64_t now_ns)
{
    char why[sizeof(struct error)];
    if (now_ns < ps->expected_check_ns)
        return;
    ps->expected_check_ns = now_ns + CHECK_NS;
    for (unsigned i = 0; i < PROCESSES_EXPECTED; i++) {
        struct expected *e = &ps->expected[i];
        int pid = e->pid;
        if (!pid)
            continue;
        if (kill(pid, 0) != 0 && errno == ESRCH) {
            /* its slot may be there, not looked at yet: at the next look it was */
            if (!e->is_gone) {
                e->is_gone = 1;
                continue;
            }
            processes_settle_one(ps, e);
            write_gone(ps, pid);
        } else if (now_ns >= e->until_ns && !e->is_judged) {
            e->is_judged = 1;
            if (reason(e->path, e->reach, why, sizeof why))
                processes_settle_one(ps, e);
        }
    }
}

/* What the dynamic loader says where it cannot load all of a program. */
static void explain_status(struct processes *ps)
{
    sqlite3_stmt *q =
        store_statement(ps->store, "UPDATE process SET not_recorded = ? WHERE not_recorded = ? AND exit_status = 127");
    sqlite3_bind_text(q, 1, lacks_library, -1, SQLITE_STATIC);
    sqlite3_bind_text(q, 2, did_not_start, -1, SQLITE_STATIC);
    store_step(ps->store, q);
}

void processes_finish_missing(struct processes *ps)
{
    for (unsigned i = 0; i < PROCESSES_EXPECTED; i++)
        if (ps->expected[i].pid)
            processes_settle_one(ps, &ps->expected[i]);
    if (ps->first_ended)
        write_gone(ps, ps->first_pid);
    explain_status(ps);
}

void processes_end_missing(struct processes *ps, const struct process *p, int has_status)
{
    struct pid_entry image = {.pid = p->pid,
                              .pid_namespace = p->pid_namespace,
                              .start_stamp = p->exec_stamp,
                              .ended = (uint8_t)(has_status != 0)};
    const int is_apart = p->target_reach == WIRE_REACH_APART;
    uint16_t row = 0;
    if (is_followed(ps) && !is_apart)
        row = insert_row(ps, &image, p->process_id, p->target, p->target_reach, 0);
    if (!row && !is_apart)
        return;
    sqlite3_stmt *q = store_statement(
        ps->store, "UPDATE process SET (end_ns, end_kind, exit_status, exit_signal) = (SELECT o.end_ns, o.end_kind, "
                   "o.exit_status, o.exit_signal FROM process o WHERE o.process_id = ?) WHERE process_id = ?");
    sqlite3_bind_int64(q, 1, p->process_id);
    sqlite3_bind_int64(q, 2, row);
    if (row && (p->outer_pid || has_status)) /* one that was never found may run yet */
        store_step(ps->store, q);
    q = store_statement(ps->store, "UPDATE process SET end_ns = ?, end_kind = 'exec', exit_status = NULL, "
                                   "exit_signal = NULL WHERE process_id = ?");
    sqlite3_bind_int64(q, 1, clock_ns(ps->clock, p->exec_stamp));
    sqlite3_bind_int64(q, 2, p->process_id);
    store_step(ps->store, q);
}
