/* Processes that join: who each of them is, what it replaces, and what it comes from. */
#include "process.h"

#include "../../common/buf.h"
#include "../devices/mapping.h"
#include "../store/python.h"
#include "pages.h"
#include "pidns.h"
#include "resident.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Text of the other side, which may write on while we read. */
static void copy_text(char *to, const char *from, size_t room)
{
    memcpy(to, from, room);
    to[room - 1] = 0;
}

/* is_title: the program has written over its arguments, as setproctitle does; what is left behind the text is nothing
 * but empty ones, which ps does not show either. */
static char *command_line(const struct wire_proc *slot, int is_title)
{
    static char command[WIRE_COMMAND_MAX + 1];
    struct buf b = BUF(4 * WIRE_COMMAND_MAX + 16);
    uint32_t length = __atomic_load_n(&slot->command_bytes, __ATOMIC_RELAXED);
    if (length > WIRE_COMMAND_MAX)
        length = WIRE_COMMAND_MAX;
    memcpy(command, slot->command, length);
    command[length] = 0;
    while (is_title && length && !command[length - 1])
        length--;
    for (uint32_t at = 0; at < length; at += (uint32_t)strlen(command + at) + 1) {
        if (at)
            buf_putc(&b, ' ');
        buf_shell(&b, command + at);
    }
    if (length == WIRE_COMMAND_MAX)
        buf_puts(&b, " ...");
    return buf_take(&b);
}

static void insert_row(struct processes *ps, const struct process *p, uint16_t parent_id)
{
    sqlite3_stmt *q = store_statement(ps->store, "INSERT INTO process(process_id, pid, parent_id, start_kind, exe, "
                                                 "command_line, start_ns) VALUES(?, ?, ?, ?, ?, ?, ?)");
    sqlite3_bind_int64(q, 1, p->process_id);
    sqlite3_bind_int64(q, 2, p->pid);
    if (parent_id)
        sqlite3_bind_int64(q, 3, parent_id);
    else
        sqlite3_bind_null(q, 3);
    sqlite3_bind_text(q, 4, p->inherited ? "fork" : "exec", -1, SQLITE_STATIC);
    sqlite3_bind_text(q, 5, p->exe, -1, SQLITE_TRANSIENT);
    sqlite3_bind_text(q, 6, p->command, -1, SQLITE_TRANSIENT);
    sqlite3_bind_int64(q, 7, clock_ns(ps->clock, p->start_stamp));
    store_step(ps->store, q);
}

/* --- who it is --- */

/* The process of the slot that a fork's child came from, while it is there. */
static struct process *forking_parent(const struct processes *ps, const struct wire_proc *slot)
{
    uint32_t index = __atomic_load_n(&slot->parent_slot, __ATOMIC_RELAXED) - 1;
    struct process *parent = index < WIRE_PROCS ? ps->by_slot[index] : NULL;
    return parent && parent->pid == slot->parent_pid ? parent : NULL;
}

static uint64_t told_namespace(const struct processes *ps, const struct wire_proc *slot)
{
    return ps->pid_namespace ? __atomic_load_n(&slot->pid_namespace, __ATOMIC_RELAXED) : 0;
}

/* Where the process cannot tell (no /proc in its root), it is taken to be where its parent is, or its image before. */
static uint64_t pid_namespace(const struct processes *ps, const struct wire_proc *slot, const struct process *p)
{
    uint64_t told = told_namespace(ps, slot);
    const struct process *like = p->inherited ? forking_parent(ps, slot) : NULL;
    if (told || !ps->pid_namespace)
        return told;
    for (uint32_t i = 0; i < ps->slot_end && !p->inherited && !like; i++)
        if (ps->by_slot[i] && ps->by_slot[i]->pid == p->pid && !ps->by_slot[i]->replaced)
            like = ps->by_slot[i];
    if (p->pid == 1 && ps->own_pid != 1 && (!like || like->pid != 1))
        return 1; /* the first one of a namespace of which no more is known */
    return like ? like->pid_namespace : ps->pid_namespace;
}

static void replace(struct process *old, const struct process *by)
{
    old->dead = 1;
    old->replaced = 1;
    old->dead_stamp = by->start_stamp;
}

/* Another process that had the same pid before: then it has ended, and what watches it will say so, unless it is asked
 * for by its pid. */
static void number_taken(struct process *old, const struct process *by)
{
    if (old->pidfd >= 0 || old->dead)
        return;
    old->dead = 1;
    old->dead_stamp = by->start_stamp;
}

/* The image that p replaces; NULL: none that is here. An image never replaces one that began later: that one has
 * replaced it. */
static const struct process *replace_image(struct processes *ps, struct process *p)
{
    const struct process *before = NULL, *newest = NULL;
    for (uint32_t i = 0; i < ps->slot_end; i++) {
        const struct process *other = ps->by_slot[i];
        if (other && other->pid == p->pid && other->pid_namespace == p->pid_namespace &&
            other->start_stamp <= p->start_stamp && (!newest || other->start_stamp > newest->start_stamp))
            newest = other;
    }
    for (uint32_t i = 0; i < ps->slot_end; i++) {
        struct process *other = ps->by_slot[i];
        if (!other || other->pid != p->pid || other->pid_namespace != p->pid_namespace)
            continue;
        if (other->start_stamp > p->start_stamp) {
            if (!p->replaced || other->start_stamp < p->dead_stamp) {
                replace(p, other);
                p->outer_pid = other->outer_pid;
            }
        } else if (p->inherited || other != newest ||
                   (other->dead && !other->replaced && other->dead_stamp < p->start_stamp)) {
            number_taken(other, p);
        } else if (!other->replaced || other->dead_stamp > p->start_stamp) {
            replace(other, p);
            before = other;
        } else if (!before) { /* it was seen to have become another program: this one */
            before = other;
        }
    }
    return before;
}

/* The row that it comes from; 0: none. */
static uint16_t find_parent(struct processes *ps, const struct wire_proc *slot, const struct process *p,
                            const struct process *before)
{
    const struct process *parent = p->inherited ? forking_parent(ps, slot) : before;
    if (parent)
        return parent->process_id;
    const struct pid_entry *same = p->inherited ? NULL : pids_find(&ps->pids, p->pid_namespace, p->pid);
    if (same && same->executed)
        return same->process_id;
    if (process_is_first(ps, p))
        return 0;
    if (p->pid_namespace == ps->pid_namespace) /* a parent that has not joined, and has come so far */
        processes_settle_expected(ps, slot->parent_pid, p->start_stamp);
    uint16_t row = pids_row(&ps->pids, p->pid_namespace, slot->parent_pid);
    uint64_t near = clock_ticks(ps->clock, PROCESSES_JOIN_NS);
    for (unsigned i = 0; i < PROCESSES_EXPECTED && !row && p->pid_namespace == ps->pid_namespace; i++)
        if (ps->expected[i].pid == p->pid && p->start_stamp - ps->expected[i].stamp + near <= 2 * near)
            row = ps->expected[i].parent_id; /* its parent was gone when it asked who that is */
    return row;
}

static int is_known(void *arg, int outer)
{
    const struct processes *ps = arg;
    for (uint32_t i = 0; i < ps->slot_end; i++)
        if (ps->by_slot[i] && !ps->by_slot[i]->dead && ps->by_slot[i]->outer_pid == outer)
            return 1;
    return 0;
}

/* The pid as we must call it; 0: it is not to be found. A process that could not say where it lives is believed to live
 * where we do until the first process of a pid namespace, which calls itself 1, was seen. */
static int outer_pid(struct processes *ps, const struct process *p, uint64_t told, const struct process *before)
{
    if (p->pid_namespace != ps->pid_namespace || (p->pid == 1 && ps->own_pid != 1))
        ps->other_namespace = 1;
    if (before && before->outer_pid)
        return before->outer_pid;
    if (told ? told == ps->pid_namespace : !ps->other_namespace || pidns_has_session(p->pid) != 0)
        return p->pid;
    return pidns_find(p->pid, told, is_known, ps);
}

static void watch_for_end(struct processes *ps, struct process *p)
{
    p->pidfd = p->outer_pid ? (int)syscall(SYS_pidfd_open, p->outer_pid, 0) : -1;
    if (!p->outer_pid || (p->pidfd < 0 && errno == ESRCH)) {
        p->dead = 1;
        p->dead_stamp = clock_stamp(ps->clock);
    } else if (p->pidfd >= 0 && watch_process(ps->watch, p->slot, p->pidfd)) {
        close(p->pidfd);
        p->pidfd = -1;
    }
}

static int is_same_file(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* The program's file by the name that it was started by, where that is a link beside it: redis-server, not
 * redis-check-rdb. A link that only leaves a version out (python3) says less than the file. */
static void name_as_started(struct process *p, const struct process *parent)
{
    if (parent && strcmp(p->exe, parent->exe) && is_same_file(p->exe, parent->exe)) {
        p->linked = p->exe;
        p->exe = xstrdup(parent->exe);
        return;
    }
    const char *command = p->command + (p->command[0] == '\''); /* a title with blanks: "redis-server *:6379" */
    size_t length = strcspn(command, " '\\\"");
    const char *slash = memrchr(command, '/', length), *name = slash ? slash + 1 : command;
    const char *base = strrchr(p->exe, '/');
    char path[WIRE_PATH_MAX];
    length -= (size_t)(name - command);
    if (!length || (name[length] && name[length] != ' ' && name[length] != '\'') || !base ||
        strncmp(base + 1, name, length) == 0)
        return;
    int n = snprintf(path, sizeof path, "%.*s/%.*s", (int)(base - p->exe), p->exe, (int)length, name);
    if (n < 0 || n >= (int)sizeof path || !is_same_file(path, p->exe))
        return;
    p->linked = p->exe;
    p->exe = xstrdup(path);
}

/* What a forked child finds as its arguments may be a title that its parent gave itself: it was started as its parent
 * was. */
static void name_command(struct process *p, const struct wire_proc *slot, const struct process *parent)
{
    if (parent) {
        p->command = xstrdup(parent->command);
        memcpy(p->started_as, parent->started_as, sizeof p->started_as);
        p->started_bytes = parent->started_bytes;
        return;
    }
    uint32_t length = __atomic_load_n(&slot->command_bytes, __ATOMIC_RELAXED);
    p->command = command_line(slot, p->inherited || slot->start_kind == WIRE_START_ATTACH);
    p->started_bytes = length < sizeof p->started_as ? length : (uint32_t)sizeof p->started_as;
    memcpy(p->started_as, slot->command, p->started_bytes);
}

/* A forked child that cannot look (a chroot without /proc) is what its parent was. */
static void name_image(struct processes *ps, struct process *p, const struct wire_proc *slot)
{
    char exe[WIRE_PATH_MAX];
    copy_text(exe, slot->exe, sizeof exe);
    const struct process *parent = p->inherited ? forking_parent(ps, slot) : NULL;
    name_command(p, slot, parent);
    p->exe = xstrdup(!*exe && parent ? parent->exe : exe);
    name_as_started(p, parent);
    const char *base = strrchr(p->exe, '/');
    snprintf(p->name, sizeof p->name, "%.63s", base ? base + 1 : p->exe);
}

/* At once, for soon it maps memory of its own; in as much time as all looks at pages may take. */
static void find_begun(struct processes *ps, struct process *p)
{
    int64_t run_ns = clock_ns(ps->clock, clock_stamp(ps->clock));
    if (!p->inherited || p->dead || p->discard || run_ns < 0 || !resident_may(ps->begun_ns, (uint64_t)run_ns))
        return;
    uint64_t begin_ns = clock_processor_ns();
    if (pages_mappings(p->outer_pid, &p->begun, &p->begun_count))
        p->begun = NULL;
    ps->begun_ns += clock_processor_ns() - begin_ns;
}

static void adopt(struct processes *ps, uint32_t index)
{
    struct wire_proc *slot = &ps->session->procs[index];
    struct process *p = xcalloc(1, sizeof *p);
    p->slot = index;
    p->pid = slot->pid;
    p->pidfd = -1;
    p->statm_fd = -1;
    p->adopted_ns = p->sampled_ns = clock_monotonic_ns();
    uint64_t start = __atomic_load_n(&slot->start_stamp, __ATOMIC_RELAXED), now = clock_stamp(ps->clock);
    p->start_stamp = start < now ? start : now;
    p->inherited = slot->start_kind == WIRE_START_FORK;
    p->attached = slot->start_kind == WIRE_START_ATTACH;
    p->pid_namespace = pid_namespace(ps, slot, p);
    const struct process *before = replace_image(ps, p);
    ps->others += !before && ps->total > 0;
    uint16_t parent_id = find_parent(ps, slot, p, before);
    if (ps->total < UINT16_MAX) {
        p->process_id = (uint16_t)++ps->total;
    } else { /* it must not wait for ever for room in its rings, so it is seen to, but not recorded */
        p->discard = 1;
        ps->refused++;
    }
    const struct process *parent = p->inherited ? forking_parent(ps, slot) : NULL;
    p->family = parent ? parent->family : p->process_id;
    p->mapping = mapping_open();
    name_image(ps, p, slot);
    if (!p->dead) {
        p->outer_pid = outer_pid(ps, p, told_namespace(ps, slot), before);
        watch_for_end(ps, p);
    }
    find_begun(ps, p);
    if (p->inherited) /* what else had this pid is gone */
        processes_settle_expected(ps, p->outer_pid, p->start_stamp);
    else
        processes_forget_expected(ps, p->outer_pid, UINT64_MAX);
    p->python = python_open(ps->named, p->outer_pid);
    p->stacks = stack_map_open(ps->stacks, p->process_id, p->python);
    if (!p->discard) {
        insert_row(ps, p, parent_id);
        if (!parent_id && !process_is_first(ps, p) && p->pid_namespace == ps->pid_namespace)
            ps->orphans[ps->orphan_count++ % PROCESSES_EXPECTED] =
                (struct orphan){p->process_id, slot->parent_pid, p->start_stamp};
        pids_set(&ps->pids, &(struct pid_entry){.pid = p->pid,
                                                .pid_namespace = p->pid_namespace,
                                                .process_id = p->process_id,
                                                .start_stamp = p->start_stamp});
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
void processes_adopt(struct processes *ps)
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

/* --- slots --- */

void processes_free_slot(struct processes *ps, uint32_t slot)
{
    struct wire_proc *s = &ps->session->procs[slot];
    __atomic_store_n(&s->pid, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&s->pid_namespace, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&s->is_filtered, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&s->is_locking, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&s->last_look, WIRE_LOOK_NONE, __ATOMIC_RELAXED);
    __atomic_store_n(&s->peak_rss_bytes, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&s->title_bytes, 0, __ATOMIC_RELAXED);
    if (slot >= ps->slot_end) /* it was used: it ends no search */
        ps->slot_end = slot + 1;
    __atomic_store_n(&s->state, WIRE_PROC_FREE, __ATOMIC_RELEASE);
}

#define CLAIM_CHECK_NS 1000000000u

void processes_scan_claims(struct processes *ps, uint64_t now_ns)
{
    if (!ps->claimed || now_ns < ps->claim_check_ns)
        return;
    ps->claim_check_ns = now_ns + CLAIM_CHECK_NS;
    for (uint32_t i = 0; i < WIRE_PROCS; i++) {
        const struct wire_proc *slot = &ps->session->procs[i];
        if (ps->by_slot[i] || __atomic_load_n(&slot->state, __ATOMIC_ACQUIRE) != WIRE_PROC_CLAIMED)
            continue;
        int pid = __atomic_load_n(&slot->pid, __ATOMIC_ACQUIRE);
        /* of another namespace the pid says nothing; asked last, so that the slot's state is the dead one's */
        if (pid > 0 && ps->pid_namespace && slot->pid_namespace == ps->pid_namespace && kill(pid, 0) != 0 &&
            errno == ESRCH && __atomic_load_n(&slot->state, __ATOMIC_ACQUIRE) == WIRE_PROC_CLAIMED)
            processes_free_slot(ps, i);
    }
}
