#include "resident.h"

#include "../../common/buf.h"
#include "../../common/error.h"
#include "../account/resident_rows.h"
#include "../account/seen.h"
#include "copied.h"
#include "look.h"
#include "own.h"
#include "pages.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define APART        16u /* two rounds are so many times their cost apart, unless memory grew faster. */
#define STEP_SHARE   16u /* A new maximum is one by this part, and by: */
#define STEP_BYTES   (256u << 10)
#define REST_SAMPLES 4u  /* but after so many alike any is. */
#define MISSED_MAX   8u  /* rounds that came too late, one after another */
#define AGAIN_MAX    2u  /* rounds at memory that rests, where events were not counted yet at the one before */
#define GROWTH_TIME  4u  /* so many times as memory grew is what a look may have taken of the time since then, */
#define GROWTH_SHARE 16u /* and so many times as it grew is what all of these may have taken in shares of the run */
#define FALL_SHARE   8u  /* of a process, when so much of it changed since its last look, and: */
#define FALL_BYTES   (1u << 20)
#define CHEAP_NS     5000000u   /* what such a look costs, one at the end of a process is made at once */
#define HOLD_AGE_NS  100000000u /* that a process has lived before its end waits for a look */
#define WRITE_APART  128u       /* rows are written so many times apart what that costs */
#define ROUND_NS     200000000u /* by the clock: a round looks at no further process then, samples and commits are due */
#define WAITING_MAX  (1u << 20) /* rows: 80 MiB */

struct resident {
    int follow;
    struct store *store;
    struct processes *processes;
    struct look look;
    struct own own;      /* of the process that is looked at */
    struct seen seen;    /* of a round */
    struct seen touched; /* pages of shared memory that any look saw */
    struct copied copied;
    struct resident_rows *rows;
    uint64_t begin_ns, looked_ns, write_ns;           /* monotonic; looked_ns: when the last round ended, */
    uint64_t last_cost_ns;                            /* which took so long */
    uint64_t peaks_ns, growth_ns, others_ns, rows_ns; /* what took how long */
    uint64_t peak_bytes;                              /* of the newest round at a new maximum, */
    uint64_t peak_seen_bytes, peak_own_bytes;         /* and what that one saw which was kept, no page twice */
    unsigned missed_count;                            /* rounds since then that came too late */
    unsigned again_count;                             /* and rounds at the same sum */
    int is_peak_late;                                 /* that one lacked events of its time */
    uint64_t sum_bytes;                               /* of the newest sample, and */
    unsigned rest_count;                              /* how many before it were the same */
    uint32_t scan_id;
    /* the newest look, until the events up to its end are counted */
    uint32_t open_id; /* 0: none */
    uint64_t open_until, open_events;
    unsigned mallocs; /* of all processes, as in pages */
    uint64_t looks, late, unreadable, ended, too_large, too_costly;
};

struct resident *resident_open(int follow, struct store *store, struct account *account, struct drain *drain,
                               struct processes *processes, const struct clock *clock)
{
    struct resident *r = xcalloc(1, sizeof *r);
    r->follow = follow;
    r->store = store;
    r->processes = processes;
    r->look = (struct look){.account = account, .drain = drain, .clock = clock};
    r->rows = resident_rows_open(store);
    r->begin_ns = clock_monotonic_ns();
    return r;
}

void resident_close(struct resident *r)
{
    if (!r)
        return;
    look_close(&r->look);
    resident_rows_close(r->rows);
    seen_clear(&r->seen);
    seen_clear(&r->touched);
    free(r);
}

static uint64_t events(const struct resident *r)
{
    struct account_counts counts;
    account_counts(r->look.account, &counts);
    return counts.events;
}

/* Whether no other process can have its private pages: only forks share them. */
static int is_alone(const struct resident *r, const struct process *p)
{
    if (!r->follow || (p->inherited && p->family == p->process_id))
        return 0;
    for (uint32_t i = 0; i < r->processes->slot_end; i++) {
        const struct process *other = r->processes->by_slot[i];
        if (other && other != p && !other->dead && other->family == p->family)
            return 0;
    }
    return 1;
}

static int is_there(const struct resident *r, const struct process *p, uint32_t slot, uint16_t process_id)
{
    return r->processes->by_slot[slot] == p && p->process_id == process_id;
}

struct round {
    uint64_t seen_bytes, again_bytes;
    unsigned allowed; /* 1 << enum reason */
    int is_copied;    /* at the same sum as before, or nearly so, of which less may be counted twice */
};

/* Returns 0 where there was nothing to see. The process may be gone after this. */
static int look_at_one(struct resident *r, struct process *p, struct round *round)
{
    struct look *l = &r->look;
    struct resident_result result;
    uint64_t begin = clock_stamp(l->clock), begin_ns = clock_processor_ns(), drain_ns = l->drain_ns;
    struct resident_scan scan = {.scan_id = r->scan_id + 1, .process_id = p->process_id, .rss_bytes = p->rss_bytes};
    uint32_t slot = p->slot;
    l->pages.begun = p->begun;
    l->pages.begun_count = p->begun_count;
    own_read(&r->processes->session->procs[slot], &r->own);
    l->pages.own = r->own.ranges;
    l->pages.own_count = r->own.count;
    l->pages.family = p->family;
    l->pages.touched = &r->touched;
    l->pages.is_only = r->follow && r->processes->others == 0;
    p->looked_rss_bytes = p->rss_bytes;
    int rc = look_at(l, p, is_alone(r, p), &result);
    if (rc) {
        r->too_large += rc == -E2BIG;
        r->ended += rc == -ESRCH || rc == -ENOENT;
        r->unreadable += rc != -E2BIG && rc != -ESRCH && rc != -ENOENT;
        p->looks_fail = rc != -ESRCH && rc != -ENOENT;
        return 0;
    }
    r->mallocs |= l->pages.mallocs;
    r->late += l->is_late != 0;
    int64_t time_ns = clock_ns(l->clock, begin), end_ns = clock_ns(l->clock, clock_stamp(l->clock));
    scan.time_ns = time_ns > 0 ? (uint64_t)time_ns : 0;
    scan.duration_ns = (uint64_t)(end_ns - time_ns);
    round->seen_bytes += result.all.resident_bytes;
    round->again_bytes += result.again_bytes;
    uint64_t own_bytes = result.all.resident_bytes - result.all.shared_bytes;
    resident_rows_add(r->rows, &scan, &l->pages, &result);
    r->scan_id++;
    r->looks++;
    if (is_there(r, p, slot, scan.process_id)) {
        p->looked_ns = clock_processor_ns() - begin_ns - (l->drain_ns - drain_ns);
        copied_looked(p, own_bytes);
    }
    return 1;
}

static void write_rows(struct resident *r)
{
    uint64_t begin_ns = clock_processor_ns();
    resident_rows_write(r->rows);
    uint64_t cost_ns = clock_processor_ns() - begin_ns;
    r->rows_ns += cost_ns;
    r->write_ns = clock_monotonic_ns() + cost_ns * WRITE_APART;
}

static void settle_open(struct resident *r)
{
    uint64_t moved_count = events(r) - r->open_events;
    if (r->open_id)
        resident_rows_moved(r->rows, r->open_id, moved_count);
    r->open_id = 0;
}

enum reason { NOT, PEAK, CHANGED, LEAVING };

static enum reason reason_to_look(const struct resident *r, const struct process *p, int is_peak)
{
    uint64_t before = p->looked_rss_bytes, now = p->rss_bytes, change = now > before ? now - before : before - now;
    uint64_t step = r->rest_count >= REST_SAMPLES ? STEP_BYTES : before / FALL_SHARE + FALL_BYTES;
    if (p->dead || p->discard || p->has_exec || !now) /* after an exec they are another program's pages */
        return NOT;
    if (is_peak)
        return PEAK;
    if (p->leaving_deadline_ns)
        return p->looked_at_end ? NOT : LEAVING;
    return change > step || p->copying.bytes > before / FALL_SHARE + FALL_BYTES ? CHANGED : NOT;
}

static void take_peak(struct resident *r, uint32_t first_id, const struct round *round)
{
    r->peak_seen_bytes = round->seen_bytes;
    r->peak_own_bytes = round->seen_bytes - round->again_bytes;
    resident_rows_peak(r->rows, first_id);
}

/* Memory may have gone before its pages were looked at: then the round before stays, and the next sample of so much is
 * looked at again, unless that is of no use. */
static void settle_peak(struct resident *r, uint32_t first_id, const struct round *round)
{
    if (round->is_copied) {
        if (round->seen_bytes - round->again_bytes > r->peak_own_bytes)
            take_peak(r, first_id, round);
        r->peak_bytes = r->sum_bytes > r->peak_bytes ? r->sum_bytes : r->peak_bytes;
        return;
    }
    if (round->seen_bytes < r->peak_seen_bytes && r->missed_count++ < MISSED_MAX)
        return;
    if (round->seen_bytes >= r->peak_seen_bytes)
        take_peak(r, first_id, round);
    r->missed_count = 0;
    r->again_count = r->sum_bytes == r->peak_bytes ? r->again_count + 1 : 0;
    r->peak_bytes = r->sum_bytes;
}

/* Whoever waits for its last look may go. */
static void say_looked(const struct resident *r, const struct process *p)
{
    uint32_t *word = process_last_look(r->processes, p);
    if (__atomic_exchange_n(word, WIRE_LOOK_NONE, __ATOMIC_ACQ_REL) == WIRE_LOOK_WANTED)
        syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

/* Of those that are about to end, or of the others. Returns how many were looked at. */
static int look_at_some(struct resident *r, int are_leaving, uint64_t until_ns, struct round *round)
{
    int looked = 0, is_peak = round->allowed == 1u << PEAK;
    unsigned allowed = round->allowed;
    for (uint32_t i = 0; i < r->processes->slot_end; i++) {
        struct process *p = r->processes->by_slot[i];
        if (!p || p->seen_leaving != are_leaving || !(allowed & (1u << reason_to_look(r, p, is_peak)) & ~(1u << NOT)))
            continue;
        if (clock_monotonic_ns() > until_ns) {
            r->too_costly++;
            break;
        }
        p->looked_at_end = p->leaving_deadline_ns != 0;
        looked += look_at_one(r, p, round);
        if (are_leaving)
            say_looked(r, p);
    }
    return looked;
}

/* Those that wait for it first. Returns how many were looked at. *is_whole: no process was left out. */
static int look_at_each(struct resident *r, struct round *round, int *is_whole)
{
    uint64_t until_ns = clock_monotonic_ns() + ROUND_NS, failed = r->unreadable + r->too_large + r->too_costly;
    int looked = look_at_some(r, 1, until_ns, round);
    looked += look_at_some(r, 0, until_ns, round);
    *is_whole = r->unreadable + r->too_large + r->too_costly == failed;
    return looked;
}

/* One round over the processes that have a reason of those that are allowed. */
static void look_at_all(struct resident *r, struct round round, uint64_t *purse)
{
    uint64_t begin_ns = clock_processor_ns(), drain_ns = r->look.drain_ns, events_before = events(r);
    uint64_t late = r->late;
    int is_peak = round.allowed == 1u << PEAK, is_whole;
    settle_open(r);
    r->look.waited_ns = 0;
    r->look.pages.seen = is_peak && r->processes->live > 1 ? &r->seen : NULL;
    int looked = look_at_each(r, &round, &is_whole);
    seen_clear(&r->seen);
    if (!looked)
        return;
    r->open_id = r->scan_id - (uint32_t)looked + 1;
    r->open_until = clock_stamp(r->look.clock);
    r->open_events = events_before;
    if (is_peak) {
        if (is_whole)
            resident_rows_touched(r->rows, r->open_id, &r->touched);
        settle_peak(r, r->open_id, &round);
        r->copied.bytes = 0;
        r->is_peak_late = r->late > late;
    }
    uint64_t cost_ns = clock_processor_ns() - begin_ns - (r->look.drain_ns - drain_ns);
    *purse += cost_ns;
    r->looked_ns = clock_monotonic_ns();
    r->last_cost_ns = cost_ns;
}

struct wish {           /* what there is to look at, and what the looks before at the same took */
    uint64_t sum_bytes; /* of all processes */
    uint64_t peak_ns, changed_ns, leaving_ns;
    int is_changed, is_leaving;
    int is_awaited; /* by one that is leaving */
};

/* --- who waits for its last look --- */

/* One that lives for some time, and whose look is paid for and takes little of the time that it would wait. */
static int may_wait(const struct resident *r, const struct process *p, uint64_t now_ns)
{
    return !p->looks_fail && p->rss_bytes && now_ns - p->adopted_ns >= HOLD_AGE_NS &&
           p->looked_ns <= WIRE_LAST_LOOK_NS / 2 &&
           resident_may(r->others_ns + r->processes->begun_ns + p->looked_ns, now_ns - r->begin_ns);
}

static void tell_processes(const struct resident *r)
{
    uint64_t now_ns = clock_monotonic_ns();
    for (uint32_t i = 0; i < r->processes->slot_end; i++) {
        const struct process *p = r->processes->by_slot[i];
        if (!p || p->dead || p->discard || p->has_exec)
            continue;
        if (!p->leaving_deadline_ns && may_wait(r, p, now_ns))
            __atomic_store_n(process_last_look(r->processes, p), WIRE_LOOK_WANTED, __ATOMIC_RELEASE);
        else if (!p->leaving_deadline_ns ||
                 p->seen_leaving) /* the next round looks at who began to leave in this one */
            say_looked(r, p);
    }
}

/* --- what to look at, and when --- */

static struct wish find_wish(const struct resident *r)
{
    struct wish w = {0};
    for (uint32_t i = 0; i < r->processes->slot_end; i++) {
        struct process *p = r->processes->by_slot[i];
        if (!p || p->dead || p->discard)
            continue;
        p->seen_leaving = p->leaving_deadline_ns != 0;
        enum reason reason = reason_to_look(r, p, 0);
        w.sum_bytes += p->rss_bytes;
        w.peak_ns += p->looked_ns;
        w.is_changed |= reason == CHANGED;
        w.changed_ns += reason == CHANGED ? p->looked_ns : 0;
        w.is_leaving |= reason == LEAVING;
        w.is_awaited |= reason == LEAVING && process_awaits_look(r->processes, p);
        w.leaving_ns += reason == LEAVING ? p->looked_ns : 0;
    }
    return w;
}

/* Whose time a look at a new maximum takes; NULL: none's. At a maximum that is higher by a tenth than the last one that
 * was looked at, that look may have taken four tenths of the time since. Looks while memory grows have a purse of their
 * own, and the more it grew, the more is in it: the costs of such looks grow as memory does, so that their sum is some
 * times the last one's. What is left of the other is for the maximum at which memory stays. */
static uint64_t *purse_for_peak(struct resident *r, const struct wish *w, int is_copied, uint64_t run_ns,
                                uint64_t since_ns)
{
    int is_again = is_copied || w->sum_bytes == r->peak_bytes;
    double growth = is_again ? 0 : r->peak_bytes ? (double)(w->sum_bytes - r->peak_bytes) / (double)r->peak_bytes : 1;
    double shares = GROWTH_SHARE * (growth < 0.5 ? growth : 0.5);
    if (is_again ? since_ns < r->last_cost_ns * APART
                 : (double)r->last_cost_ns > GROWTH_TIME * (double)since_ns * growth)
        return NULL;
    if (shares >= 1 && resident_may(r->growth_ns + w->peak_ns, (uint64_t)((double)run_ns * shares)))
        return &r->growth_ns;
    return resident_may(r->peaks_ns + w->peak_ns, run_ns) ? &r->peaks_ns : NULL;
}

/* The sum is what it was at its maximum, and processes that shared pages then have some of their own now. */
static int is_much_copied(const struct resident *r, const struct wish *w)
{
    const uint64_t peak = r->peak_bytes, step = r->copied.rest_count >= REST_SAMPLES ? 0 : peak / STEP_SHARE;
    return w->sum_bytes > peak - peak / STEP_SHARE && r->copied.bytes > step + COPIED_LEAST;
}

static void look_where_wished(struct resident *r)
{
    copied_see(&r->copied, r->processes);
    struct wish w = find_wish(r);
    uint64_t now_ns = clock_monotonic_ns(), run_ns = now_ns - r->begin_ns, since_ns = now_ns - r->looked_ns;
    uint64_t peak = r->peak_bytes, others_ns = r->others_ns + r->processes->begun_ns;
    r->rest_count = w.sum_bytes == r->sum_bytes ? r->rest_count + 1 : 0;
    r->sum_bytes = w.sum_bytes;
    int is_time = since_ns >= r->last_cost_ns * APART;
    int is_resting = r->rest_count >= REST_SAMPLES;
    int is_peak = w.sum_bytes > peak + (is_resting ? 0 : peak / STEP_SHARE + STEP_BYTES);
    is_peak |= is_resting && w.sum_bytes == peak && r->is_peak_late && r->again_count < AGAIN_MAX;
    int is_copied = !is_peak && is_much_copied(r, &w);
    uint64_t *purse = is_peak || is_copied ? purse_for_peak(r, &w, is_copied, run_ns, since_ns) : NULL;
    if (purse) {
        look_at_all(r, (struct round){.allowed = 1u << PEAK, .is_copied = is_copied}, purse);
        return;
    }
    uint64_t leaving_ns = others_ns + w.leaving_ns, changed_ns = leaving_ns + w.changed_ns;
    int may_leaving =
        w.is_leaving && (is_time || w.is_awaited || w.leaving_ns <= CHEAP_NS) && resident_may(leaving_ns, run_ns);
    int may_changed = w.is_changed && is_time && resident_may(changed_ns, run_ns / 2);
    r->too_costly += is_peak || is_copied || (w.is_leaving && !may_leaving);
    /* who ends is looked at anyway: a maximum that is hardly one costs no other look, if it is all there is */
    if (may_leaving && w.sum_bytes > peak + STEP_BYTES && r->processes->live == 1)
        look_at_all(r, (struct round){.allowed = 1u << PEAK}, &r->others_ns);
    else if (may_leaving || may_changed)
        look_at_all(r, (struct round){.allowed = (unsigned)may_leaving << LEAVING | (unsigned)may_changed << CHANGED},
                    &r->others_ns);
}

uint64_t resident_look(struct resident *r)
{
    r->look.words = 0;
    look_where_wished(r);
    tell_processes(r);
    return r->look.words;
}

void resident_events(struct resident *r, const struct event *events, size_t count)
{
    look_events(&r->look, events, count);
}

void resident_settle(struct resident *r)
{
    if (r->open_id && drain_state(r->look.drain).merged >= r->open_until)
        settle_open(r);
    uint64_t waiting = resident_rows_waiting(r->rows);
    if (waiting && (waiting > WAITING_MAX || clock_monotonic_ns() >= r->write_ns))
        write_rows(r);
}

/* The segments of the recording are theirs. */
static void write_mallocs(const struct resident *r)
{
    struct buf names = BUF(256);
    for (unsigned i = 0; pages_mallocs[i]; i++)
        if (r->mallocs >> i & 1)
            buf_printf(&names, "%s%s", names.length ? "," : "", pages_mallocs[i]);
    if (names.length)
        store_meta_text(r->store, "mallocs", buf_text(&names));
    buf_free(&names);
}

void resident_end(struct resident *r)
{
    settle_open(r);
    write_rows(r);
    write_mallocs(r);
    uint64_t took_ns =
        r->peaks_ns + r->growth_ns + r->others_ns + r->rows_ns + r->processes->begun_ns + r->copied.cost_ns;
    store_counter(r->store, 0, "resident_scan", r->looks, "looks at which pages of a process are present");
    store_counter(r->store, 0, "resident_scan_us", took_ns / 1000, "microseconds of the collector that these took");
    store_counter(r->store, 0, "resident_late", r->late,
                  "looks at present pages whose blocks are older than the pages: events came too late");
    store_counter(r->store, 0, "resident_unreadable", r->unreadable,
                  "looks at present pages that failed: the process is another user's, or lets nobody look");
    store_counter(r->store, 0, "resident_ended", r->ended,
                  "looks at present pages that came too late: the process had ended");
    store_counter(r->store, 0, "resident_too_large", r->too_large,
                  "looks at present pages that were left out: above 128 GiB");
    store_counter(r->store, 0, "resident_postponed", r->too_costly,
                  "samples of resident memory without a look at its pages: it would have cost too much");
}
