#include "process.h"

#include "../../common/buf.h"
#include "../devices/devices.h"
#include "../devices/mapping.h"
#include "../store/python.h"
#include "../store/sources.h"
#include "pidns.h"
#include "process_title.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

void processes_open(struct processes *ps, struct session *session, struct store *store, struct clock *clock,
                    struct watch *watch, struct stacks *stacks, int first_pid)
{
    *ps = (struct processes){.session = session,
                             .store = store,
                             .clock = clock,
                             .watch = watch,
                             .stacks = stacks,
                             .first_pid = first_pid,
                             .own_pid = (int)getpid(),
                             .pid_namespace = pidns_of(getpid())};
    ps->named = named_open(store, stacks);
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
    sources_close(p->sources);
    mapping_close(p->mapping);
    devices_close(p->devices);
    free(p->look.ids);
    free(p->begun);
    free(p->exe);
    free(p->linked);
    free(p->command);
    free(p->target);
    free(p);
}

void processes_close(struct processes *ps)
{
    for (uint32_t i = 0; i < ps->slot_end; i++)
        if (ps->by_slot[i])
            release(ps, ps->by_slot[i]);
    for (unsigned i = 0; i < PROCESSES_EXPECTED; i++)
        free(ps->expected[i].path);
    named_close(ps->named);
    ps->named = NULL;
    pids_close(&ps->pids);
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
    /* one that announced its end is awaited: its watcher may be the later one to run */
    if ((stamp || p->leaving_deadline_ns) && poll(&poll_fd, 1, 0) == 1) {
        p->dead = 1;
        p->dead_stamp = stamp ? stamp : clock_stamp(ps->clock);
    }
}

void processes_scan(struct processes *ps)
{
    struct rusage usage;
    int is_new = 0;
    ps->claimed = 0;
    for (uint32_t i = 0; i < WIRE_PROCS; i++) {
        struct process *p = ps->by_slot[i];
        uint32_t state = p ? WIRE_PROC_CLAIMED : __atomic_load_n(&ps->session->procs[i].state, __ATOMIC_RELAXED);
        is_new |= state == WIRE_PROC_LIVE;
        ps->claimed += !p && state == WIRE_PROC_CLAIMED;
        if (p && !p->dead)
            look_for_end(ps, p);
        if (state == WIRE_PROC_FREE && i >= ps->slot_end)
            break;
    }
    if (is_new)
        processes_adopt(ps);
    if (!ps->first_ended && ps->first_pid > 0 &&
        wait4(ps->first_pid, &ps->first_status, WNOHANG, &usage) == ps->first_pid) {
        ps->first_ended = 1;
        ps->first_peak_bytes = (uint64_t)usage.ru_maxrss * 1024;
    }
}

#define EXEC_CHECK_NS 20000000u

void processes_scan_execs(struct processes *ps, uint64_t now_ns)
{
    for (uint32_t i = 0; i < ps->slot_end; i++) {
        struct process *p = ps->by_slot[i];
        if (!p || p->dead || !p->has_exec || now_ns < p->leaving_deadline_ns || now_ns < p->exec_check_ns)
            continue;
        p->exec_check_ns = now_ns + EXEC_CHECK_NS;
        if (pidns_has_session(p->outer_pid) != 0)
            continue;
        p->dead = p->replaced = 1;
        p->dead_stamp = p->exec_stamp;
        processes_expect(ps, p->outer_pid, p->process_id, p->exec_stamp, now_ns, p->target, p->target_reach);
    }
}

/* Where the parent was gone already when the child asked who it is. */
static void write_parent(struct processes *ps, uint16_t process_id, uint16_t parent_id)
{
    sqlite3_stmt *q =
        store_statement(ps->store, "UPDATE process SET parent_id = ? WHERE process_id = ? AND parent_id IS NULL");
    sqlite3_bind_int64(q, 1, parent_id);
    sqlite3_bind_int64(q, 2, process_id);
    if (parent_id && parent_id < process_id)
        store_step(ps->store, q);
}

/* Of very many the newest. */
void processes_expect(struct processes *ps, int outer_pid, uint16_t parent_id, uint64_t stamp, uint64_t now_ns,
                      const char *path, uint32_t reach)
{
    const struct pid_entry *known = pids_find(&ps->pids, ps->pid_namespace, outer_pid);
    unsigned oldest = 0;
    if (outer_pid <= 0 || reach == WIRE_REACH_APART)
        return;
    if (known && known->start_stamp > stamp) { /* it is here already */
        write_parent(ps, known->process_id, parent_id);
        return;
    }
    for (unsigned i = 0; i < PROCESSES_EXPECTED && ps->expected[oldest].pid; i++)
        if (!ps->expected[i].pid || ps->expected[i].until_ns < ps->expected[oldest].until_ns)
            oldest = i;
    if (ps->expected[oldest].pid)
        processes_settle_one(ps, &ps->expected[oldest]);
    ps->expected[oldest] = (struct expected){.pid = outer_pid,
                                             .parent_id = parent_id,
                                             .stamp = stamp,
                                             .until_ns = now_ns + PROCESSES_JOIN_NS,
                                             .reach = reach,
                                             .path = path && *path ? xstrdup(path) : NULL};
}

void processes_scan_spawns(struct processes *ps, uint64_t now_ns)
{
    struct wire_control *c = ps->session->control;
    uint64_t told = __atomic_load_n(&c->spawns_told, __ATOMIC_ACQUIRE);
    if (told == ps->spawns_seen)
        return;
    ps->spawns_seen = told;
    for (unsigned i = 0; i < WIRE_SPAWNS; i++) {
        struct wire_spawn *place = &c->spawns[i];
        char target[WIRE_TARGET_MAX];
        uint64_t seen = __atomic_load_n(&place->who, __ATOMIC_ACQUIRE), none = 0;
        if (!seen)
            continue;
        memcpy(target, place->target, sizeof target); /* once the place is taken it may be another's */
        target[sizeof target - 1] = 0;
        uint32_t reach = __atomic_load_n(&place->reach, __ATOMIC_RELAXED);
        uint64_t who = __atomic_exchange_n(&place->who, 0, __ATOMIC_ACQ_REL), slot = who >> 32;
        if (who != seen)
            *target = 0;
        if (!who || slot >= WIRE_PROCS)
            continue;
        const struct process *parent = ps->by_slot[slot];
        if (!parent && __atomic_load_n(&ps->session->procs[slot].state, __ATOMIC_ACQUIRE) == WIRE_PROC_LIVE) {
            /* its parent came after processes_scan: the next round knows it */
            __atomic_compare_exchange_n(&c->spawns[i].who, &none, who, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
            ps->spawns_seen = told - 1;
        }
        if (!parent || parent->pid_namespace != ps->pid_namespace)
            continue;
        uint64_t stamp = __atomic_load_n(&c->spawns[i].stamp, __ATOMIC_RELAXED);
        if (reach == WIRE_REACH_FAILED)
            processes_forget_expected(ps, (int)(uint32_t)who, stamp);
        else
            processes_expect(ps, (int)(uint32_t)who, parent->process_id, stamp, now_ns, target, reach);
    }
}

int processes_expected(const struct processes *ps, uint64_t now_ns)
{
    for (unsigned i = 0; i < PROCESSES_EXPECTED; i++)
        if (ps->expected[i].pid && now_ns < ps->expected[i].until_ns && kill(ps->expected[i].pid, 0) == 0)
            return 1;
    return 0;
}

unsigned processes_that_outlive(const struct processes *ps, const struct process **one)
{
    unsigned count = 0;
    *one = NULL;
    for (uint32_t i = 0; i < ps->slot_end; i++) {
        const struct process *p = ps->by_slot[i];
        if (!p || p->dead || process_is_first(ps, p))
            continue;
        count++;
        *one = *one ? *one : p;
    }
    return count;
}

struct process *processes_of_slot(struct processes *ps, uint32_t slot, int pid)
{
    struct process *p = slot < WIRE_PROCS ? ps->by_slot[slot] : NULL;
    return p && p->pid == pid ? p : NULL;
}

void process_text(const struct process *p, const char *name, char *text, size_t size_bytes)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", p->outer_pid, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, size_bytes - 1);
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = 0;
}

/* From a line of /proc/PID/status; a file of its own is open while it is needed only: it is read where the statm, which
 * costs a tenth, says something new. */
static uint64_t read_peak_rss(const struct processes *ps, const struct process *p)
{
    struct wire_proc *slot = &ps->session->procs[p->slot];
    char text[4096 + 1];
    unsigned long long kib;
    process_text(p, "status", text, sizeof text);
    if (strstr(text, "\nSeccomp:\t2"))
        __atomic_store_n(&slot->is_filtered, 1, __ATOMIC_RELAXED);
    const char *line = strstr(text, "\nVmLck:");
    if (line && sscanf(line, "\nVmLck: %llu kB", &kib) == 1)
        __atomic_store_n(&slot->is_locking, kib > 0, __ATOMIC_RELAXED);
    line = strstr(text, "\nVmHWM:");
    return line && sscanf(line, "\nVmHWM: %llu kB", &kib) == 1 ? kib * 1024 : 0;
}

uint64_t process_rss(const struct processes *ps, struct process *p)
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
    uint64_t bytes = sscanf(text, "%llu %llu", &size, &resident) == 2 ? resident * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
    if (bytes && bytes != p->rss_bytes) {
        uint64_t peak_bytes = read_peak_rss(ps, p);
        if (peak_bytes < bytes)
            peak_bytes = bytes;
        if (peak_bytes > p->peak_rss_bytes)
            p->peak_rss_bytes = peak_bytes;
    }
    return bytes;
}

static uint64_t told_peak_rss(const struct processes *ps, const struct process *p)
{
    return __atomic_load_n(&ps->session->procs[p->slot].peak_rss_bytes, __ATOMIC_RELAXED);
}

#define BEFORE_SPARE (1u << 20) /* what it may have touched since, and how far the kernel's counters may be off */

/* Who was killed could not tell, but the kernel says so to its parent, which we are: the peak of all that the process
 * was, and of all children that it waited for. That is this image's where all others had less. 0: nobody knows. */
static uint64_t reaped_peak_rss(const struct processes *ps, const struct process *p)
{
    static const char sql[] =
        "SELECT count(*) FROM process WHERE process_id <> ?1 AND (pid <> ?2 OR start_kind <> 'exec' "
        "OR coalesce(peak_rss_sampled, 1) OR peak_rss_bytes >= ?3)";
    uint64_t bytes = ps->first_ended && process_is_first(ps, p) && !p->replaced ? ps->first_peak_bytes : 0;
    if (bytes + BEFORE_SPARE < p->peak_rss_bytes || bytes < BEFORE_SPARE + ps->first_before_bytes ||
        !(ps->session->control->flags & WIRE_FOLLOW))
        return 0;
    sqlite3_stmt *q = store_statement(ps->store, sql);
    if (!q)
        return 0;
    sqlite3_bind_int64(q, 1, p->process_id);
    sqlite3_bind_int64(q, 2, p->pid);
    sqlite3_bind_int64(q, 3, (int64_t)bytes);
    int others = sqlite3_step(q) != SQLITE_ROW || sqlite3_column_int64(q, 0) > 0;
    sqlite3_reset(q);
    return others ? 0 : bytes;
}

/* As the kernel says; 0: it does not. */
static uint64_t known_peak_rss(const struct processes *ps, const struct process *p)
{
    uint64_t told = told_peak_rss(ps, p);
    return told ? told : reaped_peak_rss(ps, p);
}

uint64_t process_peak_rss(const struct processes *ps, const struct process *p)
{
    uint64_t told = known_peak_rss(ps, p);
    return told > p->peak_rss_bytes ? told : p->peak_rss_bytes;
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

void processes_write_gone(struct processes *ps, uint16_t process_id, int64_t end_ns, int is_first)
{
    if (is_first)
        write_status(ps, process_id, end_ns, ps->first_status);
    else
        write_end(ps, process_id, end_ns, "unknown", -1, 0);
}

/* A child in a pid namespace of its own has another number for its parent, which is ours where the parent lives with
 * us. */
static struct process *child_of(const struct processes *ps, const struct process *parent, int pid, uint64_t stamp)
{
    int is_known = pids_find(&ps->pids, parent->pid_namespace, pid) != NULL;
    struct process *found = NULL;
    for (uint32_t i = 0; i < ps->slot_end; i++) {
        struct process *p = ps->by_slot[i];
        if (!p || p->replaced || p->discard || p->start_stamp > stamp || (found && p->start_stamp < found->start_stamp))
            continue;
        if (is_known ? p->pid == pid && p->pid_namespace == parent->pid_namespace
                     : parent->pid_namespace == ps->pid_namespace && p->outer_pid == pid)
            found = p;
    }
    return found;
}

struct process *processes_reaped(struct processes *ps, const struct process *parent, int pid, int wait_status,
                                 uint64_t stamp)
{
    if (parent->pid_namespace == ps->pid_namespace)
        processes_settle_expected(ps, pid, stamp);
    struct process *p = child_of(ps, parent, pid, stamp);
    struct pid_entry *entry =
        p ? pids_find(&ps->pids, p->pid_namespace, p->pid) : pids_find(&ps->pids, parent->pid_namespace, pid);
    int is_first = pid == ps->first_pid && parent->pid_namespace == ps->pid_namespace;
    if (p && entry && entry->process_id != p->process_id) { /* its number is another's by now */
        if (!p->reaped && !is_first)
            write_status(ps, p->process_id, clock_ns(ps->clock, stamp), wait_status);
        p->reaped = 1;
        p->dead_stamp = p->dead && p->dead_stamp < stamp ? p->dead_stamp : stamp;
        p->dead = 1;
        return p;
    }
    if (!entry || entry->start_stamp > stamp || !(WIFEXITED(wait_status) || WIFSIGNALED(wait_status)))
        return NULL;
    if (!entry->ended && !(pid == ps->first_pid && entry->pid_namespace == ps->pid_namespace))
        write_status(ps, entry->process_id, clock_ns(ps->clock, stamp), wait_status);
    if (!p) {
        entry->ended = 1;
        entry->executed = 0; /* its number is anybody's */
        return NULL;
    }
    if (!p->dead || stamp < p->dead_stamp) /* we may have been told late */
        p->dead_stamp = stamp;
    p->dead = 1;
    entry->ended = 1; /* the row has its status */
    return p;
}

static void write_counters(struct processes *ps, const struct process *p)
{
    static const char *const names[] = {
#define X(name, text) #name,
#include "../wire_counters.def"
#undef X
    };
    static const char *const texts[] = {
#define X(name, text) text,
#include "../wire_counters.def"
#undef X
    };
    const uint64_t *values = (const uint64_t *)&ps->session->procs[p->slot].counters;
    struct devices_counts ours = {0};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        store_counter(ps->store, p->process_id, names[i], __atomic_load_n(&values[i], __ATOMIC_RELAXED), texts[i]);
    if (p->devices)
        devices_counts(p->devices, &ours);
    store_counter(ps->store, p->process_id, "alloc_retry_count", p->alloc_retries + ours.alloc_retries,
                  "allocations that failed and then succeeded when tried again");
    store_counter(ps->store, p->process_id, "device_refused", ours.refused,
                  "calls to free, unmap or destroy that the driver refused: nothing was taken away");
    store_counter(ps->store, p->process_id, "device_lost_free", ours.lost_frees,
                  "blocks of device memory whose free was not seen");
}

static void write_peak_rss(struct processes *ps, const struct process *p)
{
    uint64_t peak_bytes = process_peak_rss(ps, p);
    sqlite3_stmt *q =
        store_statement(ps->store, "UPDATE process SET peak_rss_bytes = ?, peak_rss_sampled = ? WHERE process_id = ?");
    sqlite3_bind_int64(q, 1, (int64_t)peak_bytes);
    sqlite3_bind_int(q, 2, known_peak_rss(ps, p) == 0);
    sqlite3_bind_int64(q, 3, p->process_id);
    if (peak_bytes)
        store_step(ps->store, q);
}

void processes_end(struct processes *ps, struct process *p, int64_t end_ns)
{
    struct pid_entry *entry = pids_find(&ps->pids, p->pid_namespace, p->pid);
    int newest = entry && entry->process_id == p->process_id, reaped = p->reaped || (newest && entry->ended);
    /* it was over with before it was found, and its next image may come yet */
    if (p->has_exec && !p->outer_pid && (p->target_reach == WIRE_REACH_YES || p->target_reach == WIRE_REACH_ADDRESSES))
        p->replaced = 1;
    if (newest && p->replaced)
        entry->ended = entry->executed = 1;
    if (p->discard)
        ;
    else if (p->replaced)
        write_end(ps, p->process_id, end_ns, "exec", -1, 0);
    else if (process_is_first(ps, p) && ps->first_ended)
        write_status(ps, p->process_id, end_ns, ps->first_status);
    else if (!reaped && p->has_exit)
        write_end(ps, p->process_id, end_ns, "exit", p->exit_value & 255, 0);
    else if (!reaped)
        write_end(ps, p->process_id, end_ns, "unknown", -1, 0);
    if (p->has_exec && !p->replaced && !p->discard)
        processes_end_missing(ps, p, reaped || p->has_exit || (process_is_first(ps, p) && ps->first_ended));
    if (!p->discard) {
        write_counters(ps, p);
        write_peak_rss(ps, p);
        process_write_title(ps, p);
    }
    uint32_t slot = p->slot;
    release(ps, p);
    processes_free_slot(ps, slot);
}

void processes_abandon(struct processes *ps, struct process *p)
{
    write_counters(ps, p);
    write_peak_rss(ps, p);
    process_write_title(ps, p);
    release(ps, p);
}
