#include "control.h"
#include "holdings.h"

#include "rotate.h"

#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MARKS_MAX 65536u /* from outside; more are not kept */

struct control {
    struct session *session;
    struct drain *drain;
    struct account *account;
    struct processes *processes;
    const struct clock *clock;
    struct wire_request *requests;
    struct rotation *rotation;
    /* a pause, or its end, that waits until all before it was given out */
    uint32_t slot;
    uint64_t stamp; /* UINT64_MAX: none waits */
    int wants_pause;
    int is_paused;
    int64_t pause_mark_id, pause_ns; /* of the present one */
    int64_t paused_ns;               /* of all that are over */
    uint64_t count, marks;
    struct holdings *holdings;
    uint64_t look_stamp[WIRE_REQUESTS]; /* WISH_HOLDINGS waits for what was done before it; 0: none */
    unsigned looks;
};

struct control *control_open(struct session *session, struct drain *drain, struct account *account,
                             struct processes *processes, const struct clock *clock, int is_paused)
{
    struct control *k = xcalloc(1, sizeof *k);
    *k = (struct control){.session = session,
                          .drain = drain,
                          .account = account,
                          .processes = processes,
                          .clock = clock,
                          .stamp = UINT64_MAX,
                          .holdings = holdings_open()};
    k->requests = ((struct wire_desk *)((char *)session->control + WIRE_DESK_OFFSET))->requests;
    if (is_paused)
        control_sync(k, WIRE_SYNC_PAUSE, 0);
    return k;
}

void control_rotates(struct control *k, struct rotation *rotation)
{
    k->rotation = rotation;
}

void control_close(struct control *k)
{
    if (k)
        holdings_close(k->holdings);
    free(k);
}

/* --- pauses --- */

/* Programs look at the word from here on: what they leave out is later than the beginning of the pause, and what they
 * do not is later than its end. */
static void tell_programs(const struct control *k)
{
    uint32_t *pauses = &k->session->control->pauses, next = *pauses + 1;
    next += (next & 1) != (k->is_paused != 0); /* whatever a program wrote there */
    __atomic_store_n(pauses, next, __ATOMIC_RELEASE);
}

static void set(struct control *k, int is_paused, int64_t time_ns)
{
    if (is_paused == k->is_paused)
        return;
    k->is_paused = is_paused;
    drain_pause(k->drain, is_paused);
    if (is_paused) {
        account_forget_last(k->account); /* its thread's next allocation may not be seen */
        k->pause_ns = time_ns;
        k->count++;
        k->pause_mark_id = drain_mark(k->drain, "pause", "paused", 0, time_ns, 1);
    } else {
        drain_mark_end(k->drain, k->pause_mark_id, time_ns);
        k->paused_ns += time_ns - k->pause_ns;
    }
    tell_programs(k);
}

void control_sync(struct control *k, unsigned flags, int64_t time_ns)
{
    if (flags & WIRE_SYNC_PAUSE)
        set(k, 1, time_ns);
    else if (flags & WIRE_SYNC_RESUME)
        set(k, 0, time_ns);
}

/* --- requests from outside --- */

static void answer(struct wire_request *r, enum wire_reply reply)
{
    r->reply = reply;
    __atomic_store_n(&r->answered, r->answered + 1, __ATOMIC_RELEASE);
    syscall(SYS_futex, &r->answered, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* NULL: none. Of several images the one that runs. */
static const struct process *process_of(const struct control *k, int pid)
{
    const struct process *found = NULL;
    for (uint32_t i = 0; pid > 0 && i < k->processes->slot_end; i++) {
        const struct process *p = k->processes->by_slot[i];
        if (p && p->outer_pid == pid && (!found || found->dead))
            found = p;
    }
    return found;
}

static uint16_t process_id_of(const struct control *k, int pid)
{
    const struct process *p = process_of(k, pid);
    return p ? p->process_id : 0;
}

static int64_t now_ns(const struct control *k)
{
    return clock_ns(k->clock, clock_stamp(k->clock));
}

static void mark(struct control *k, const struct wire_request *r)
{
    char text[WIRE_TEXT_MAX + 1];
    /* read once: the program may write there at any time */
    unsigned bytes = __atomic_load_n(&r->text_bytes, __ATOMIC_RELAXED);
    bytes = bytes < WIRE_TEXT_MAX ? bytes : WIRE_TEXT_MAX;
    memcpy(text, r->text, bytes);
    text[bytes] = 0;
    if (k->marks++ < MARKS_MAX)
        drain_mark(k->drain, "outside", text, process_id_of(k, r->pid), now_ns(k), 0);
}

/* merged: a look at present pages may have let the order go on. */
static void settle_pause(struct control *k, uint64_t merged)
{
    struct wire_request *r = &k->requests[k->slot];
    int is_new = k->wants_pause != k->is_paused;
    k->stamp = UINT64_MAX;
    if (r->what != WIRE_WISH_NOTHING)
        set(k, k->wants_pause, clock_ns(k->clock, merged));
    answer(r, is_new ? WIRE_REPLY_DONE : WIRE_REPLY_ALREADY);
}

/* --- GPUs that are given back: profiler/outside/ does it --- */

static void yielded(struct control *k, struct wire_request *r)
{
    struct wire_given given[WIRE_TEXT_MAX / sizeof(struct wire_given)];
    const struct process *p = process_of(k, __atomic_load_n(&r->pid, __ATOMIC_RELAXED));
    unsigned bytes = __atomic_load_n(&r->text_bytes, __ATOMIC_RELAXED);
    bytes = bytes < sizeof given ? bytes : sizeof given;
    memcpy(given, r->text, bytes);
    int is_new = p && holdings_yielded(k->holdings, k->drain, p->process_id, now_ns(k), given, bytes / sizeof *given);
    answer(r, !p ? WIRE_REPLY_NO_PROCESS : is_new ? WIRE_REPLY_DONE : WIRE_REPLY_ALREADY);
}

static void restored(struct control *k, struct wire_request *r)
{
    const struct process *p = process_of(k, __atomic_load_n(&r->pid, __ATOMIC_RELAXED));
    int is_new = p && holdings_restored(k->holdings, k->drain, p->process_id, now_ns(k));
    answer(r, !p ? WIRE_REPLY_NO_PROCESS : is_new ? WIRE_REPLY_DONE : WIRE_REPLY_ALREADY);
}

/* All that was done before it was asked is in the model of the process's devices. */
static unsigned look(struct control *k, uint32_t slot, uint64_t merged)
{
    struct wire_request *r = &k->requests[slot];
    if (!k->look_stamp[slot]) {
        k->look_stamp[slot] = clock_stamp(k->clock);
        k->looks++;
    }
    if (merged < k->look_stamp[slot])
        return 0;
    const struct process *p = process_of(k, __atomic_load_n(&r->pid, __ATOMIC_RELAXED));
    k->look_stamp[slot] = 0;
    k->looks--;
    if (p)
        holdings_write(k->holdings, p, drain_state(k->drain).devices, r);
    answer(r, p ? WIRE_REPLY_DONE : WIRE_REPLY_NO_PROCESS);
    return 1;
}

/* Returns 1 where it was answered at once. */
static unsigned take(struct control *k, uint32_t slot, uint64_t merged)
{
    struct wire_request *r = &k->requests[slot];
    unsigned what = __atomic_load_n(&r->what, __ATOMIC_RELAXED);
    if (what == WIRE_WISH_PAUSE || what == WIRE_WISH_RESUME) {
        if (k->stamp != UINT64_MAX)
            return 0; /* one after the other */
        k->slot = slot;
        k->stamp = clock_stamp(k->clock);
        k->wants_pause = what == WIRE_WISH_PAUSE;
        return 0;
    }
    if (k->look_stamp[slot] && what != WIRE_WISH_HOLDINGS) { /* its asker waits no more */
        k->look_stamp[slot] = 0;
        k->looks--;
    }
    switch (what) {
    case WIRE_WISH_HOLDINGS:
        return look(k, slot, merged);
    case WIRE_WISH_YIELDED:
        yielded(k, r);
        return 1;
    case WIRE_WISH_RESTORED:
        restored(k, r);
        return 1;
    case WIRE_WISH_MARK:
        mark(k, r);
        break;
    case WIRE_WISH_ROTATE:
        if (k->rotation)
            rotate_ask(k->rotation);
        break;
    default:
        break;
    }
    answer(r, WIRE_REPLY_DONE);
    return 1;
}

uint64_t control_bound(const struct control *k)
{
    return k->stamp;
}

int control_waits(const struct control *k)
{
    return k->stamp != UINT64_MAX || k->looks;
}

unsigned control_look(struct control *k)
{
    unsigned answered = 0;
    const uint64_t merged = drain_state(k->drain).merged;
    if (k->stamp != UINT64_MAX && merged >= k->stamp) {
        settle_pause(k, merged);
        answered++;
    }
    for (uint32_t i = 0; i < WIRE_REQUESTS; i++) {
        struct wire_request *r = &k->requests[i];
        if (__atomic_load_n(&r->asked, __ATOMIC_ACQUIRE) == (uint8_t)r->answered ||
            (k->stamp != UINT64_MAX && i == k->slot))
            continue;
        answered += take(k, i, merged);
    }
    return answered;
}

void control_end(struct control *k, struct store *store, int64_t end_ns)
{
    if (k->is_paused) {
        drain_mark_end(k->drain, k->pause_mark_id, end_ns);
        k->paused_ns += end_ns - k->pause_ns;
    }
    holdings_end(k->holdings, k->drain, end_ns);
    if (k->count)
        store_meta_int(store, "paused_ns", k->paused_ns);
}
