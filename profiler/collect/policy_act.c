/* Actions: keyframes and marks here, signals and commands from here, and orders to the programs; what came of them. */
#include "policy_private.h"

#include "../devices/devices.h"

#include "../../common/array.h"
#include "../../common/buf.h"
#include "../../common/kind.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define SETTLE_NS       60000000u   /* after which samples of used memory are new ones */
#define SETTLE_OTHER_NS 1000000000u /* a signal's handler has run by then, if it ever does */
#define BYTES_MAX       (UINT64_C(1) << 48)

extern char **environ;

static const struct policy_action *action_of(const struct policies *k, const struct policy_time *t, unsigned action)
{
    return &k->policy.bands[t->band].actions[action];
}

static struct policy_pending *add_pending(struct policies *k, struct policy_time *t, unsigned action,
                                          const struct process *p)
{
    struct policy_pending *e = ARRAY_ADD(k->pending, k->pending_count, k->pending_room);
    e->time = t;
    e->action = action;
    e->process = p;
    e->process_id = p ? p->process_id : 0;
    e->slot = p ? p->slot : 0;
    e->what = action_of(k, t, action)->what;
    t->unanswered++;
    return e;
}

/* --- whom --- */

static int is_there(const struct policies *k, const struct process *p, unsigned device)
{
    (void)k;
    return p && !p->dead && !p->discard && !p->has_exit && !p->has_exec &&
           (!device || (p->devices && devices_ordinal(p->devices, device) >= 0));
}

/* Of those that use the device the one with most resident memory. */
static const struct process *largest(const struct policies *k, unsigned device)
{
    const struct process *most = NULL;
    for (uint32_t i = 0; i < k->processes->slot_end; i++) {
        const struct process *p = k->processes->by_slot[i];
        if (is_there(k, p, device) && (!most || p->rss_bytes > most->rss_bytes))
            most = p;
    }
    return most;
}

/* --- orders --- */

static int has_pending(const struct policies *k, const struct policy_time *t, unsigned action, const struct process *p)
{
    unsigned of_process = 0;
    for (size_t i = 0; i < k->pending_count; i++) {
        const struct policy_pending *e = &k->pending[i];
        if (e->process != p || e->is_answered || policy_whose[e->what] != POLICY_PROGRAM)
            continue;
        of_process++;
        if (e->time->generation == t->generation && e->time->band == t->band && e->time->device == t->device &&
            e->action == action)
            return 1;
    }
    return of_process >= WIRE_ORDERS;
}

static uint32_t wire_what(enum policy_what what)
{
    return what == POLICY_MALLOC_TRIM      ? WIRE_ORDER_MALLOC_TRIM
           : what == POLICY_POOL_TRIM      ? WIRE_ORDER_POOL_TRIM
           : what == POLICY_POOL_TRIM_SYNC ? WIRE_ORDER_POOL_TRIM_SYNC
                                           : WIRE_ORDER_CALLBACK;
}

/* Its number. What the slot holds may have been written by anybody: only what is put there now counts. */
static uint32_t post(struct policies *k, const struct policy_time *t, const struct policy_action *a,
                     const struct process *p)
{
    struct wire_proc *slot = &k->session->procs[p->slot];
    const uint32_t number = __atomic_load_n(&slot->ordered, __ATOMIC_RELAXED) + 1;
    struct wire_order *o = &slot->orders[number % WIRE_ORDERS];
    o->what = wire_what(a->what);
    o->ordinal = t->device ? (uint32_t)devices_ordinal(p->devices, t->device) : WIRE_DEVICE_HOST;
    memcpy(o->name, a->name, sizeof o->name);
    policy_device_name(k, t->device, o->device);
    o->answered = number - 1;
    o->number = number;
    __atomic_store_n(&slot->ordered, number, __ATOMIC_RELEASE);
    syscall(SYS_futex, &slot->ordered, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
    return number;
}
_Static_assert(POLICY_NAME == WIRE_NAME_BYTES, "names as programs have them");

/* Returns how many processes were asked. */
static unsigned order(struct policies *k, struct policy_time *t, unsigned action, const struct policy_figures *f)
{
    unsigned asked = 0;
    for (uint32_t i = 0; i < k->processes->slot_end && k->pending_count < POLICY_PENDING_MAX; i++) {
        const struct process *p = k->processes->by_slot[i];
        if (!is_there(k, p, t->device) || has_pending(k, t, action, p))
            continue;
        struct policy_pending *e = add_pending(k, t, action, p);
        e->number = post(k, t, action_of(k, t, action), p);
        e->action_id = policy_write_action(k, t, action, p->process_id, f, "not taken");
        t->asked[action]++;
        asked++;
    }
    return asked;
}

/* --- signals and commands --- */

static void send_signal(struct policies *k, struct policy_time *t, unsigned action, const struct policy_figures *f)
{
    const struct process *p = largest(k, t->device);
    const int number = action_of(k, t, action)->signal;
    /* by its descriptor where there is one: its number may be another's by now */
    int failed = !p              ? 1
                 : p->pidfd >= 0 ? (int)syscall(SYS_pidfd_send_signal, p->pidfd, number, NULL, 0) != 0
                                 : kill(p->outer_pid, number) != 0;
    int64_t id = policy_write_action(k, t, action, p ? p->process_id : 0, f, failed ? "not possible" : "done");
    if (failed)
        return;
    struct policy_pending *e = add_pending(k, t, action, p);
    e->is_answered = 1;
    e->settle_ns = k->now_ns + SETTLE_OTHER_NS;
    e->action_id = id;
}

static void expand(struct buf *text, const char *command, int pid)
{
    for (const char *p = command; *p; p++) {
        if (p[0] == '%' && p[1] == 'p')
            buf_printf(text, "%d", pid);
        else
            buf_putc(text, *p);
        p += p[0] == '%' && (p[1] == 'p' || p[1] == '%');
    }
}

static int spawn(const char *command, pid_t *pid)
{
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_t files;
    sigset_t none, usual;
    char *const argv[] = {(char *)"sh", (char *)"-c", (char *)command, NULL};
    sigemptyset(&none);
    sigemptyset(&usual);
    sigaddset(&usual, SIGPIPE);
    sigaddset(&usual, SIGXFSZ);
    sigaddset(&usual, SIGCHLD);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &usual);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    int code = posix_spawn(pid, "/bin/sh", &files, &attributes, argv, environ);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
    return code;
}

static unsigned running(const struct policies *k)
{
    unsigned count = 0;
    for (size_t i = 0; i < k->pending_count; i++)
        count += k->pending[i].pid > 0;
    return count;
}

static void run_command(struct policies *k, struct policy_time *t, unsigned action, const struct policy_figures *f)
{
    const struct process *p = largest(k, t->device);
    struct buf text = BUF(POLICY_FILE_MAX);
    pid_t pid = 0;
    expand(&text, action_of(k, t, action)->command, p ? p->outer_pid : 0);
    int failed = text.failed || !p || running(k) >= POLICY_COMMANDS_MAX || spawn(buf_text(&text), &pid) != 0;
    int64_t id = policy_write_action(k, t, action, p ? p->process_id : 0, f, failed ? "not possible" : "running");
    buf_free(&text);
    if (failed)
        return;
    struct policy_pending *e = add_pending(k, t, action, p);
    e->pid = pid;
    e->action_id = id;
}

/* --- a band acts --- */

static int would_order(const struct policies *k, const struct policy_time *t, unsigned action)
{
    for (uint32_t i = 0; i < k->processes->slot_end; i++) {
        const struct process *p = k->processes->by_slot[i];
        if (is_there(k, p, t->device) && !has_pending(k, t, action, p))
            return 1;
    }
    return 0;
}

static int is_possible(const struct policies *k, const struct policy_time *t, const struct policy_state *s)
{
    const struct policy_band *b = &k->policy.bands[t->band];
    for (unsigned i = 0; i < b->action_count; i++) {
        const enum policy_what what = b->actions[i].what;
        if (s->is_off[i])
            continue;
        if (policy_whose[what] == POLICY_PROGRAM ? would_order(k, t, i) : k->processes->live > 0)
            return 1;
    }
    return 0;
}

static void begin_mark(struct policies *k, struct policy_time *t)
{
    const int64_t now = clock_ns(k->clock, clock_stamp(k->clock));
    if (k->action_rows < POLICY_ACTIONS_MAX)
        t->mark_id = drain_mark(k->drain, "policy", k->policy.bands[t->band].text, 0, now, 1);
}

static void do_action(struct policies *k, struct policy_time *t, unsigned action, const struct policy_figures *f)
{
    switch (action_of(k, t, action)->what) {
    case POLICY_MARK:
        policy_write_action(k, t, action, 0, f, "done");
        break;
    case POLICY_KEYFRAME:
        account_keyframe(k->account);
        policy_write_action(k, t, action, 0, f, "done");
        break;
    case POLICY_SIGNAL:
        send_signal(k, t, action, f);
        break;
    case POLICY_RUN:
        run_command(k, t, action, f);
        break;
    default:
        order(k, t, action, f);
        break;
    }
}

int policy_act(struct policies *k, unsigned band, unsigned device, const struct policy_figures *f)
{
    const struct policy_state *s = &k->states[band * (size_t)DEVICE_ROWS + device];
    const struct policy_time wanted = {.generation = k->generation, .band = band, .device = device};
    if (!is_possible(k, &wanted, s))
        return 0;
    struct policy_time *t = xmalloc(sizeof *t);
    *t = wanted;
    begin_mark(k, t);
    for (unsigned i = 0; i < k->policy.bands[band].action_count; i++)
        if (!s->is_off[i])
            do_action(k, t, i, f);
    if (!t->unanswered)
        policy_time_ends(k, t);
    return 1;
}

/* --- what came of it --- */

static uint64_t bounded(uint64_t bytes)
{
    return bytes < BYTES_MAX ? bytes : BYTES_MAX;
}

/* What glibc's heap holds now: a program that sleeps tells nothing else of it. */
static void tell_heap(const struct policies *k, const struct policy_pending *e, const struct wire_order *o)
{
    const uint64_t mapped = bounded(o->mapped_bytes);
    if (e->what != POLICY_MALLOC_TRIM || !(o->arena_bytes || mapped) || !k->session->control->sample_interval)
        return;
    drain_emit(k->drain, (struct event){.op = EVENT_RESERVED,
                                        .size_bytes = bounded(o->arena_bytes) + mapped,
                                        .address = mapped,
                                        .stack_id = HEAP_ASKED,
                                        .process_id = e->process_id,
                                        .kind = KIND_heap});
}

static void take_answer(struct policies *k, struct policy_pending *e, const struct wire_order *from)
{
    struct wire_order o = *from; /* once: the program may write there at any time */
    struct policy_time *t = e->time;
    const uint64_t now = clock_stamp(k->clock);
    o.before_bytes = bounded(o.before_bytes);
    o.after_bytes = bounded(o.after_bytes);
    o.end_stamp = o.end_stamp < now ? o.end_stamp : now;
    o.begin_stamp = o.begin_stamp < o.end_stamp ? o.begin_stamp : o.end_stamp;
    t->before[e->action] += o.before_bytes;
    t->after[e->action] += o.after_bytes;
    *(o.result == WIRE_ORDER_DONE ? &t->done[e->action] : &t->refused[e->action]) += 1;
    tell_heap(k, e, &o);
    policy_write_answer(k, e->action_id, &o);
    e->is_answered = 1;
    e->settle_ns = k->now_ns + SETTLE_NS;
}

/* A process that has ended may have answered before; its slot's next one gets higher numbers. */
static int look_for_answer(struct policies *k, struct policy_pending *e)
{
    const struct wire_order *o = &k->session->procs[e->slot].orders[e->number % WIRE_ORDERS];
    if (e->pid || __atomic_load_n(&o->answered, __ATOMIC_ACQUIRE) != e->number)
        return 0;
    take_answer(k, e, o);
    return 1;
}

static int has_gone(const struct policies *k, const struct policy_pending *e)
{
    const struct process *p = e->process ? k->processes->by_slot[e->slot] : NULL;
    return e->process && (p != e->process || p->process_id != e->process_id || p->dead);
}

/* Returns 1 where the entry is over, with its last words written. */
static int settle(struct policies *k, struct policy_pending *e)
{
    char status[32];
    int wait_status;
    struct policy_figures f;
    if (e->pid > 0) {
        pid_t ended = waitpid(e->pid, &wait_status, WNOHANG);
        if (ended == 0)
            return 0;
        snprintf(status, sizeof status, "%s %d", ended < 0 || WIFEXITED(wait_status) ? "status" : "signal",
                 ended < 0                ? -1
                 : WIFEXITED(wait_status) ? WEXITSTATUS(wait_status)
                                          : WTERMSIG(wait_status));
        policy_write_status(k, e->action_id, status);
    } else if (e->is_answered && k->now_ns < e->settle_ns && !has_gone(k, e)) {
        return 0;
    } else if (!e->is_answered && look_for_answer(k, e)) {
        return 0;
    } else if (!e->is_answered) {
        if (has_gone(k, e))
            policy_write_status(k, e->action_id, "process ended");
        return has_gone(k, e);
    }
    if (has_gone(k, e)) /* what is there afterwards is what its end left */
        return 1;
    policy_figures_now(k, e->time->device, &f);
    policy_write_after(k, e->action_id, &f);
    return 1;
}

unsigned policy_settle(struct policies *k)
{
    unsigned over = 0;
    for (size_t i = k->pending_count; i-- > 0;) {
        struct policy_time *t = k->pending[i].time;
        if (!settle(k, &k->pending[i]))
            continue;
        k->pending[i] = k->pending[--k->pending_count];
        over++;
        if (--t->unanswered == 0)
            policy_time_ends(k, t);
    }
    return over;
}

void policy_abandon(struct policies *k)
{
    policy_settle(k);
    for (size_t i = 0; i < k->pending_count; i++) {
        struct policy_pending *e = &k->pending[i];
        if (!e->is_answered)
            look_for_answer(k, e);
        if (--e->time->unanswered == 0)
            policy_time_ends(k, e->time);
    }
    k->pending_count = 0;
}
