#include "process.h"

#include "../../common/buf.h"
#include "devices.h"
#include "mapping.h"
#include "pidns.h"
#include "python.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

struct process_pid {
    int pid; /* 0: free */
    uint16_t process_id;
    uint8_t ended;    /* its row needs no status any more */
    uint8_t executed; /* it became a program that is not recorded (so far) */
    uint64_t start_stamp;
};

/* --- pids --- */

static struct process_pid *pid_at(struct processes *ps, int pid)
{
    uint32_t i = (uint32_t)pid * 0x9e3779b1u >> 7 & ps->pid_mask;
    while (ps->pids[i].pid && ps->pids[i].pid != pid)
        i = (i + 1) & ps->pid_mask;
    return &ps->pids[i];
}

static void pid_set(struct processes *ps, int pid, uint16_t process_id, uint64_t start_stamp)
{
    if (ps->pid_count * 2 >= ps->pid_mask) {
        struct process_pid *old = ps->pids;
        uint32_t old_mask = ps->pid_mask;
        ps->pid_mask = ps->pid_mask * 2 + 1;
        ps->pids = xcalloc((unsigned long)ps->pid_mask + 1, sizeof *ps->pids);
        for (uint32_t i = 0; i <= old_mask; i++)
            if (old[i].pid)
                *pid_at(ps, old[i].pid) = old[i];
        free(old);
    }
    struct process_pid *entry = pid_at(ps, pid);
    if (entry->pid && entry->start_stamp > start_stamp)
        return;
    ps->pid_count += !entry->pid;
    *entry = (struct process_pid){.pid = pid, .process_id = process_id, .start_stamp = start_stamp};
}

void processes_open(struct processes *ps, struct session *session, struct store *store, struct clock *clock,
                    struct watch *watch, struct stacks *stacks, int first_pid)
{
    *ps = (struct processes){.session = session,
                             .store = store,
                             .clock = clock,
                             .watch = watch,
                             .stacks = stacks,
                             .first_pid = first_pid,
                             .pid_mask = 1023};
    ps->named = named_open(store, stacks);
    ps->pids = xcalloc((unsigned long)ps->pid_mask + 1, sizeof *ps->pids);
}

static void release(struct processes *ps, struct process *p)
{
    ps->by_slot[p->slot] = NULL;
    ps->live--;
    if (p->pidfd >= 0)
        close(p->pidfd);
    if (p->statm_fd >= 0)
        close(p->statm_fd);
    stack_map_close(p->stacks);
    python_close(p->python);
    mapping_close(p->mapping);
    devices_close(p->devices);
    free(p->exe);
    free(p->command);
    free(p);
}

void processes_close(struct processes *ps)
{
    for (uint32_t i = 0; i < ps->slot_end; i++)
        if (ps->by_slot[i])
            release(ps, ps->by_slot[i]);
    named_close(ps->named);
    ps->named = NULL;
    free(ps->pids);
    ps->pids = NULL;
}

/* --- beginning --- */

/* Text of the other side, which may write on while we read. */
static void copy_text(char *to, const char *from, size_t room)
{
    memcpy(to, from, room);
    to[room - 1] = 0;
}

static char *command_line(const struct wire_proc *slot)
{
    static char command[WIRE_COMMAND_MAX + 1];
    struct buf b = BUF(4 * WIRE_COMMAND_MAX + 16);
    uint32_t length = __atomic_load_n(&slot->command_bytes, __ATOMIC_RELAXED);
    if (length > WIRE_COMMAND_MAX)
        length = WIRE_COMMAND_MAX;
    memcpy(command, slot->command, length);
    command[length] = 0;
    for (uint32_t at = 0; at < length; at += (uint32_t)strlen(command + at) + 1) {
        if (at)
            buf_putc(&b, ' ');
        buf_shell(&b, command + at);
    }
    if (length == WIRE_COMMAND_MAX)
        buf_puts(&b, " ...");
    return b.data ? b.data : xstrdup("");
}

static void insert_row(struct processes *ps, const struct process *p, uint16_t parent_id, int is_fork)
{
    sqlite3_stmt *q = store_statement(ps->store, "INSERT INTO process(process_id, pid, parent_id, start_kind, exe, "
                                                 "command_line, start_ns) VALUES(?, ?, ?, ?, ?, ?, ?)");
    sqlite3_bind_int64(q, 1, p->process_id);
    sqlite3_bind_int64(q, 2, p->pid);
    if (parent_id)
        sqlite3_bind_int64(q, 3, parent_id);
    else
        sqlite3_bind_null(q, 3);
    sqlite3_bind_text(q, 4, is_fork ? "fork" : "exec", -1, SQLITE_STATIC);
    sqlite3_bind_text(q, 5, p->exe, -1, SQLITE_TRANSIENT);
    sqlite3_bind_text(q, 6, p->command, -1, SQLITE_TRANSIENT);
    sqlite3_bind_int64(q, 7, clock_ns(ps->clock, p->start_stamp));
    store_step(ps->store, q);
}

static void replace(struct process *old, const struct process *by)
{
    old->dead = 1;
    old->replaced = 1;
    old->dead_stamp = by->start_stamp;
    if (!old->outer_pid)
        old->outer_pid = by->outer_pid;
}

/* The image that this one replaces, and the row of the image that it comes from. An image never replaces one that began
 * later: that one has replaced it. */
static uint16_t find_parent(struct processes *ps, const struct wire_proc *slot, struct process *p, int is_fork)
{
    uint32_t parent_slot = __atomic_load_n(&slot->parent_slot, __ATOMIC_RELAXED);
    uint16_t parent_id = 0;
    int pid = p->pid;
    for (uint32_t i = 0; i < ps->slot_end; i++) {
        struct process *other = ps->by_slot[i];
        /* a fork replaces nobody: a parent of the same pid is in another namespace */
        if (!other || other->pid != pid || (is_fork && i == parent_slot - 1))
            continue;
        if (other->start_stamp > p->start_stamp) {
            if (!p->replaced || other->start_stamp < p->dead_stamp)
                replace(p, other);
        } else if (!other->replaced || other->dead_stamp > p->start_stamp) {
            replace(other, p);
            parent_id = other->process_id;
        }
    }
    if (is_fork && parent_slot && parent_slot <= WIRE_PROCS && ps->by_slot[parent_slot - 1] &&
        (ps->by_slot[parent_slot - 1]->pid == slot->parent_pid || !slot->parent_pid)) /* 0: of another namespace */
        return ps->by_slot[parent_slot - 1]->process_id;
    if (parent_id)
        return parent_id;
    if (!is_fork && pid_at(ps, pid)->executed)
        return pid_at(ps, pid)->process_id;
    return pid == ps->first_pid ? 0 : pid_at(ps, slot->parent_pid)->process_id;
}

static int is_known(void *arg, int outer)
{
    const struct processes *ps = arg;
    for (uint32_t i = 0; i < ps->slot_end; i++)
        if (ps->by_slot[i] && !ps->by_slot[i]->dead && ps->by_slot[i]->outer_pid == outer)
            return 1;
    return 0;
}

/* The first process of a pid namespace calls itself 1; from then on no pid is believed unseen. */
static int outer_pid(struct processes *ps, int pid)
{
    if (pid == 1 && getpid() != 1)
        ps->other_namespace = 1;
    return ps->other_namespace && !pidns_has_session(pid) ? pidns_find(pid, is_known, ps) : pid;
}

static void watch_for_end(struct processes *ps, struct process *p)
{
    if (p->dead) /* replaced already */
        return;
    p->outer_pid = outer_pid(ps, p->pid);
    p->pidfd = p->outer_pid ? (int)syscall(SYS_pidfd_open, p->outer_pid, 0) : -1;
    if (!p->outer_pid || (p->pidfd < 0 && errno == ESRCH)) {
        p->dead = 1;
        p->dead_stamp = clock_stamp(ps->clock);
    } else if (p->pidfd >= 0 && watch_process(ps->watch, p->slot, p->pidfd)) {
        close(p->pidfd);
        p->pidfd = -1;
    }
}

/* A forked child that cannot look (a chroot without /proc) is what its parent was. */
static void name_image(struct processes *ps, struct process *p, const struct wire_proc *slot)
{
    char exe[WIRE_PATH_MAX];
    copy_text(exe, slot->exe, sizeof exe);
    p->command = command_line(slot);
    uint32_t parent_slot = __atomic_load_n(&slot->parent_slot, __ATOMIC_RELAXED) - 1;
    const struct process *parent = p->inherited && parent_slot < WIRE_PROCS ? ps->by_slot[parent_slot] : NULL;
    if (!*p->command && parent) {
        free(p->command);
        p->command = xstrdup(parent->command);
    }
    p->exe = xstrdup(!*exe && parent ? parent->exe : exe);
    const char *base = strrchr(p->exe, '/');
    snprintf(p->name, sizeof p->name, "%.63s", base ? base + 1 : p->exe);
}

static void adopt(struct processes *ps, uint32_t index)
{
    struct wire_proc *slot = &ps->session->procs[index];
    int pid = slot->pid, is_fork = slot->start_kind == WIRE_START_FORK;
    struct process *p = xcalloc(1, sizeof *p);
    p->slot = index;
    p->pid = pid;
    p->pidfd = -1;
    p->statm_fd = -1;
    uint64_t start = __atomic_load_n(&slot->start_stamp, __ATOMIC_RELAXED), now = clock_stamp(ps->clock);
    p->start_stamp = start < now ? start : now;
    p->inherited = (uint8_t)is_fork;
    uint16_t parent_id = find_parent(ps, slot, p, is_fork);
    if (ps->total < UINT16_MAX) {
        p->process_id = (uint16_t)++ps->total;
    } else { /* it must not wait for ever for room in its rings, so it is seen to, but not recorded */
        p->discard = 1;
        ps->refused++;
    }
    p->mapping = mapping_open();
    name_image(ps, p, slot);
    watch_for_end(ps, p);
    p->python = python_open(ps->named, p->outer_pid);
    p->stacks = stack_map_open(ps->stacks, p->process_id, p->python);
    if (!p->discard) {
        insert_row(ps, p, parent_id, is_fork);
        pid_set(ps, pid, p->process_id, p->start_stamp);
    }
    ps->by_slot[index] = p;
    ps->live++;
    if (index >= ps->slot_end)
        ps->slot_end = index + 1;
}

struct newcomer {
    uint64_t start_stamp;
    uint32_t slot;
};

/* Slots that are live and not adopted yet, in the order of their numbers. */
static uint32_t find_newcomers(const struct processes *ps, struct newcomer *found)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < WIRE_PROCS; i++) {
        const struct wire_proc *slot = &ps->session->procs[i];
        uint32_t state = ps->by_slot[i] ? WIRE_PROC_CLAIMED : __atomic_load_n(&slot->state, __ATOMIC_ACQUIRE);
        if (state == WIRE_PROC_LIVE)
            found[count++] = (struct newcomer){__atomic_load_n(&slot->start_stamp, __ATOMIC_RELAXED), i};
        /* programs take the lowest free slot, so the first one that was never used ends the search */
        if (state == WIRE_PROC_FREE && i >= ps->slot_end)
            break;
    }
    return count;
}

static int by_start(const void *a, const void *b)
{
    const struct newcomer *x = a, *y = b;
    return (x->start_stamp > y->start_stamp) - (x->start_stamp < y->start_stamp);
}

/* Oldest first: an image may stand in a lower slot than the one that it replaced, a child in a lower one than its
 * parent. Each was live before the one that came of it, so when a search finds no more than the one before, none is
 * missing. */
static void adopt_newcomers(struct processes *ps)
{
    struct newcomer found[WIRE_PROCS];
    uint32_t before, count = find_newcomers(ps, found);
    do
        before = count;
    while ((count = find_newcomers(ps, found)) > before);
    qsort(found, count, sizeof *found, by_start);
    for (uint32_t i = 0; i < count; i++)
        adopt(ps, found[i].slot);
}

/* --- while it lives --- */

static void look_for_end(struct processes *ps, struct process *p)
{
    if (p->pidfd < 0) {
        p->dead = kill(p->outer_pid, 0) != 0 && errno == ESRCH;
        p->dead_stamp = clock_stamp(ps->clock);
        return;
    }
    uint64_t stamp = watch_ended(ps->watch, p->slot);
    struct pollfd poll_fd = {.fd = p->pidfd, .events = POLLIN};
    if (stamp && poll(&poll_fd, 1, 0) == 1) {
        p->dead = 1;
        p->dead_stamp = stamp;
    }
}

void processes_scan(struct processes *ps)
{
    int is_new = 0;
    for (uint32_t i = 0; i < WIRE_PROCS; i++) {
        struct process *p = ps->by_slot[i];
        uint32_t state = p ? WIRE_PROC_CLAIMED : __atomic_load_n(&ps->session->procs[i].state, __ATOMIC_RELAXED);
        is_new |= state == WIRE_PROC_LIVE;
        if (p && !p->dead)
            look_for_end(ps, p);
        if (state == WIRE_PROC_FREE && i >= ps->slot_end)
            break;
    }
    if (is_new)
        adopt_newcomers(ps);
    if (!ps->first_ended && ps->first_pid > 0 && waitpid(ps->first_pid, &ps->first_status, WNOHANG) == ps->first_pid)
        ps->first_ended = 1;
}

#define EXEC_CHECK_NS 20000000u
#define EXEC_JOIN_NS  1000000000u

void processes_scan_execs(struct processes *ps, uint64_t now_ns)
{
    for (uint32_t i = 0; i < ps->slot_end; i++) {
        struct process *p = ps->by_slot[i];
        if (!p || p->dead || !p->has_exec || now_ns < p->leaving_deadline_ns || now_ns < p->exec_check_ns)
            continue;
        p->exec_check_ns = now_ns + EXEC_CHECK_NS;
        if (pidns_has_session(p->outer_pid))
            continue;
        p->dead = p->replaced = 1;
        p->dead_stamp = p->exec_stamp;
        ps->expect_pid = p->outer_pid;
        ps->expect_until_ns = now_ns + EXEC_JOIN_NS;
    }
}

int processes_expected(const struct processes *ps, uint64_t now_ns)
{
    return now_ns < ps->expect_until_ns && kill(ps->expect_pid, 0) == 0;
}

struct process *processes_of_slot(struct processes *ps, uint32_t slot, int pid)
{
    struct process *p = slot < WIRE_PROCS ? ps->by_slot[slot] : NULL;
    return p && p->pid == pid ? p : NULL;
}

uint64_t process_rss(struct process *p)
{
    char path[64], text[128];
    if (p->dead)
        return 0;
    if (p->statm_fd < 0) {
        snprintf(path, sizeof path, "/proc/%d/statm", p->outer_pid);
        p->statm_fd = open(path, O_RDONLY | O_CLOEXEC);
    }
    ssize_t n = p->statm_fd < 0 ? -1 : pread(p->statm_fd, text, sizeof text - 1, 0);
    if (n <= 0)
        return 0;
    text[n] = 0;
    unsigned long long size, resident;
    return sscanf(text, "%llu %llu", &size, &resident) == 2 ? resident * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

/* --- end --- */

static void write_end(struct processes *ps, uint16_t process_id, int64_t end_ns, const char *kind, int status,
                      int signal)
{
    sqlite3_stmt *q = store_statement(ps->store, "UPDATE process SET end_ns = coalesce(end_ns, ?), end_kind = ?, "
                                                 "exit_status = ?, exit_signal = ? WHERE process_id = ?");
    sqlite3_bind_int64(q, 1, end_ns);
    sqlite3_bind_text(q, 2, kind, -1, SQLITE_STATIC);
    if (status >= 0)
        sqlite3_bind_int64(q, 3, status);
    else
        sqlite3_bind_null(q, 3);
    if (signal > 0)
        sqlite3_bind_int64(q, 4, signal);
    else
        sqlite3_bind_null(q, 4);
    sqlite3_bind_int64(q, 5, process_id);
    store_step(ps->store, q);
}

static void write_status(struct processes *ps, uint16_t process_id, int64_t end_ns, int wait_status)
{
    if (WIFSIGNALED(wait_status))
        write_end(ps, process_id, end_ns, "signal", -1, WTERMSIG(wait_status));
    else
        write_end(ps, process_id, end_ns, "exit", WEXITSTATUS(wait_status), 0);
}

struct process *processes_reaped(struct processes *ps, int pid, int wait_status, uint64_t stamp)
{
    struct process_pid *entry = pid_at(ps, pid);
    if (entry->pid != pid || !(WIFEXITED(wait_status) || WIFSIGNALED(wait_status)))
        return NULL;
    if (pid != ps->first_pid && !entry->ended)
        write_status(ps, entry->process_id, clock_ns(ps->clock, stamp), wait_status);
    for (uint32_t i = 0; i < ps->slot_end; i++) {
        struct process *p = ps->by_slot[i];
        if (p && p->pid == pid && p->process_id == entry->process_id) {
            if (!p->dead || stamp < p->dead_stamp) /* we may have been told late */
                p->dead_stamp = stamp;
            p->dead = 1;
            entry->ended = 1; /* the row has its status */
            return p;
        }
    }
    return NULL;
}

static void write_counter(struct processes *ps, const struct process *p, const char *name, const char *text,
                          uint64_t value)
{
    if (!value)
        return;
    sqlite3_stmt *q = store_statement(ps->store, "INSERT INTO counter VALUES(?, ?, ?, ?)");
    sqlite3_bind_int64(q, 1, p->process_id);
    sqlite3_bind_text(q, 2, name, -1, SQLITE_STATIC);
    sqlite3_bind_int64(q, 3, (int64_t)value);
    sqlite3_bind_text(q, 4, text, -1, SQLITE_STATIC);
    store_step(ps->store, q);
}

static void write_counters(struct processes *ps, const struct process *p)
{
    static const char *const names[] = {
#define X(name, text) #name,
        WIRE_COUNTERS(X)
#undef X
    };
    static const char *const texts[] = {
#define X(name, text) text,
        WIRE_COUNTERS(X)
#undef X
    };
    const uint64_t *values = (const uint64_t *)&ps->session->procs[p->slot].counters;
    struct devices_counts ours = {0};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        write_counter(ps, p, names[i], texts[i], __atomic_load_n(&values[i], __ATOMIC_RELAXED));
    if (p->devices)
        devices_counts(p->devices, &ours);
    write_counter(ps, p, "alloc_retry_count", "allocations that failed and then succeeded when tried again",
                  p->alloc_retries + ours.alloc_retries);
    write_counter(ps, p, "device_refused",
                  "calls to free, unmap or destroy that the driver refused: nothing was taken away", ours.refused);
    write_counter(ps, p, "device_lost_free", "blocks of device memory whose free was not seen", ours.lost_frees);
}

void processes_end(struct processes *ps, struct process *p, int64_t end_ns)
{
    struct process_pid *entry = pid_at(ps, p->pid);
    int newest = entry->process_id == p->process_id, reaped = newest && entry->ended;
    if (newest && p->replaced)
        entry->ended = entry->executed = 1;
    if (p->discard)
        ;
    else if (p->replaced)
        write_end(ps, p->process_id, end_ns, "exec", -1, 0);
    else if (p->pid == ps->first_pid && ps->first_ended)
        write_status(ps, p->process_id, end_ns, ps->first_status);
    else if (!reaped && p->has_exit)
        write_end(ps, p->process_id, end_ns, "exit", p->exit_value & 255, 0);
    else if (!reaped)
        write_end(ps, p->process_id, end_ns, "unknown", -1, 0);
    if (!p->discard)
        write_counters(ps, p);
    struct wire_proc *slot = &ps->session->procs[p->slot];
    release(ps, p);
    __atomic_store_n(&slot->state, WIRE_PROC_FREE, __ATOMIC_RELEASE);
}

void processes_abandon(struct processes *ps, struct process *p)
{
    write_counters(ps, p);
    release(ps, p);
}
