/* Rings and the threads behind them: found when a program takes one, given back when its thread is gone. */
#include "drain_private.h"
#include "pidns.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CHECK_NS       5000000u    /* between two looks at the states of all rings */
#define GONE_CHECK_NS  1000000u    /* between two questions after a thread that is closing */
#define LOOK_PAUSE_NS  50000000u   /* between two looks at all threads of a process of another pid namespace */
#define IDLE_NS        1000000000u /* after which a silent thread is asked after */
#define ADOPT_RETRY_NS 1000000u
#define ADOPT_FAST_NS  20000000u

/* An image that has told its end may be another program by now, whose first thread's name this is. */
static int may_be_replaced(const struct drain *d, const struct ring *r)
{
    const struct wire_proc *slot = &d->session->procs[r->process->slot];
    return r->tid == r->process->pid && __atomic_load_n(&slot->title_bytes, __ATOMIC_ACQUIRE);
}

static void read_name(const struct drain *d, struct ring *r)
{
    char path[64], text[32];
    if (r->named)
        return;
    snprintf(path, sizeof path, "/proc/%d/task/%d/comm", r->process->outer_pid, r->tid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    if (n <= 0 || may_be_replaced(d, r))
        return;
    text[n] = 0;
    text[strcspn(text, "\n")] = 0;
    snprintf(r->name, sizeof r->name, "%.15s", text);
}

static void insert_row(struct drain *d, const struct ring *r, int64_t start_ns)
{
    sqlite3_stmt *q = store_statement(
        d->store, "INSERT INTO thread(thread_id, process_id, tid, name, start_ns) VALUES(?, ?, ?, ?, ?)");
    sqlite3_bind_int64(q, 1, r->thread_id);
    sqlite3_bind_int64(q, 2, r->process->process_id);
    sqlite3_bind_int64(q, 3, r->tid);
    sqlite3_bind_text(q, 4, r->name, -1, SQLITE_TRANSIENT);
    sqlite3_bind_int64(q, 5, start_ns);
    store_step(d->store, q);
}

/* 0: its process is not known yet. */
static int adopt(struct drain *d, uint32_t index)
{
    const struct wire_ring *wire = &d->session->rings[index];
    struct process *p = processes_of_slot(d->processes, wire->proc_slot, wire->pid);
    if (!p)
        return 0;
    struct ring *r = xcalloc(1, sizeof *r);
    uint64_t start = wire->start_stamp, now = clock_stamp(d->clock);
    r->process = p;
    r->index = index;
    r->tid = wire->tid;
    r->words = session_ring_words(d->session, index);
    r->clear = start < now ? start : now;
    r->newest = d->merged; /* what it has already written is not late */
    r->active_ns = d->now_ns;
    snprintf(r->name, sizeof r->name, "%.15s", p->name);
    session_ring_taken(d->session, index);
    if (!p->discard) {
        r->thread_id = ++d->thread_rows;
        if (!p->dead)
            read_name(d, r);
        insert_row(d, r, clock_ns(d->clock, r->clear));
    }
    p->ring_count++;
    d->rings[d->ring_count++] = r;
    d->adopted++;
    return 1;
}

/* Processes that ended since: now their rings are all there to be found, and it is the last time that anybody looks. */
static int some_ended(struct drain *d)
{
    int ended = 0;
    for (uint32_t i = 0; i < d->processes->slot_end; i++) {
        struct process *p = d->processes->by_slot[i];
        if (!p || !p->dead || p->rings_known)
            continue;
        p->rings_known = 1;
        ended = 1;
    }
    return ended;
}

/* Where very many threads begin at once, most may still be on their way to own what they took, and a short process that
 * owns a ring behind theirs be over: the search goes on to the last ring that was taken. */
void threads_adopt(struct drain *d)
{
    int ended = some_ended(d);
    uint32_t pops = session_pops(d->session);
    if (pops == d->adopted)
        return;
    /* A thread may be anywhere between taking a ring and owning it; one that died there is not searched for ever. */
    if (pops != d->pops_seen)
        d->adopt_fast_until_ns = d->now_ns + ADOPT_FAST_NS;
    else if (!ended && d->now_ns > d->adopt_fast_until_ns && d->now_ns < d->adopt_retry_ns)
        return;
    d->pops_seen = pops;
    d->adopt_retry_ns = d->now_ns + ADOPT_RETRY_NS;
    uint32_t end = session_ring_end(d->session);
    for (uint32_t i = 0; i < end; i++) {
        if (d->in_use[i])
            continue;
        if (__atomic_load_n(&d->session->rings[i].state, __ATOMIC_ACQUIRE) == WIRE_RING_FREE)
            continue;
        d->in_use[i] = (uint8_t)adopt(d, i);
    }
}

void threads_close(struct drain *d, struct ring *r, int64_t end_ns)
{
    for (uint32_t i = 0; i < d->ring_count; i++)
        if (d->rings[i] == r) {
            d->rings[i] = d->rings[--d->ring_count];
            break;
        }
    if (!r->process->discard) {
        sqlite3_stmt *q = store_statement(d->store, "UPDATE thread SET name = ?, end_ns = ? WHERE thread_id = ?");
        sqlite3_bind_text(q, 1, r->name, -1, SQLITE_TRANSIENT);
        if (end_ns >= 0)
            sqlite3_bind_int64(q, 2, end_ns);
        else
            sqlite3_bind_null(q, 2);
        sqlite3_bind_int64(q, 3, r->thread_id);
        store_step(d->store, q);
    }
    r->process->ring_count--;
    d->in_use[r->index] = 0;
    if (end_ns >= 0)
        session_free_ring(d->session, r->index, r->used_words);
    stack_path_close(r->path);
    free(r);
}

static void look_at_threads(struct process *p, uint64_t now_ns)
{
    struct thread_look *look = &p->look;
    uint64_t begin_ns = clock_monotonic_ns();
    look->count = pidns_threads(p->outer_pid, look->ids, look->room);
    if (look->count > look->room) { /* the next look has room */
        free(look->ids);
        look->room = look->count * 2;
        look->ids = xcalloc(look->room, sizeof *look->ids);
        look->count = 0;
    }
    look->ns = now_ns;
    look->number++;
    uint64_t pause_ns = 20 * (clock_monotonic_ns() - begin_ns);
    look->next_ns = now_ns + (pause_ns > LOOK_PAUSE_NS ? pause_ns : LOOK_PAUSE_NS);
}

/* Two looks: threads that end while a directory is read may hide others. */
static int namespace_thread_is_gone(const struct drain *d, struct ring *r)
{
    struct process *p = r->process;
    if (!p->outer_pid)
        return 0;
    if (d->now_ns >= p->look.next_ns)
        look_at_threads(p, d->now_ns);
    if (!p->look.count || p->look.ns < r->closing_ns || r->absent == p->look.number)
        return 0;
    for (uint32_t i = 0; i < p->look.count; i++)
        if (p->look.ids[i] == r->tid) {
            r->absent = 0;
            return 0;
        }
    uint32_t before = r->absent;
    r->absent = p->look.number;
    return before != 0;
}

static int thread_is_gone(const struct drain *d, struct ring *r)
{
    if (r->process->pid_namespace != d->processes->pid_namespace ||
        r->process->outer_pid != r->process->pid) /* its tid means nothing here */
        return namespace_thread_is_gone(d, r);
    return syscall(SYS_tgkill, r->process->pid, r->tid, 0) != 0 && errno == ESRCH;
}

/* 1: r was closed. */
static int check(struct drain *d, struct ring *r)
{
    struct wire_ring *wire = &d->session->rings[r->index];
    if (r->process->dead || d->now_ns < r->check_ns || r->position != r->end)
        return 0;
    int closing = __atomic_load_n(&wire->state, __ATOMIC_ACQUIRE) == WIRE_RING_CLOSING;
    if (!closing && d->now_ns - r->active_ns < IDLE_NS)
        return 0;
    if (closing && !r->check_ns)
        read_name(d, r);
    if (!r->closing_ns)
        r->closing_ns = d->now_ns;
    r->check_ns = d->now_ns + (closing ? GONE_CHECK_NS : IDLE_NS);
    if (!thread_is_gone(d, r))
        return 0;
    /* gone: what its head says now is its last word */
    if (__atomic_load_n(&wire->head, __ATOMIC_ACQUIRE) != r->position)
        return 0;
    threads_close(d, r, clock_ns(d->clock, d->merged));
    return 1;
}

void threads_check(struct drain *d)
{
    if (d->now_ns < d->thread_check_ns)
        return;
    d->thread_check_ns = d->now_ns + CHECK_NS;
    for (uint32_t i = 0; i < d->ring_count;)
        i += !check(d, d->rings[i]);
}
