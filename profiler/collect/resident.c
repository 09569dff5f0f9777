#include "resident.h"

#include "../../common/buf.h"
#include "../../common/error.h"
#include "../account/seen.h"
#include "pages.h"

#include <errno.h>
#include <stdlib.h>

#define APART        16u /* two of them are so many times their cost apart. */
#define STEP_SHARE   16u /* A new maximum is one by this part, and by: */
#define STEP_BYTES   (256u << 10)
#define REST_SAMPLES 4u /* but after so many alike any is. */
#define FALL_SHARE   8u /* of a process, when so much of it changed since its last look, and: */
#define FALL_BYTES   (1u << 20)
#define CHEAP_NS     5000000u /* what such a look costs, one at the end of a process is made at once */

struct resident {
    int follow;
    struct store *store;
    const struct account *account;
    struct drain *drain;
    struct processes *processes;
    const struct clock *clock;
    struct resident_pages pages;
    struct seen seen;           /* of a round */
    uint64_t begin_ns, next_ns; /* monotonic */
    uint64_t cost_ns, last_cost_ns;
    uint64_t peak_bytes; /* of the newest round */
    uint64_t sum_bytes;  /* of the newest sample, and */
    unsigned rest_count; /* how many before it were the same */
    uint32_t scan_id;
    /* the newest look, until the events up to its end are counted */
    uint32_t open_id; /* 0: none */
    uint64_t open_until, open_events;
    unsigned mallocs; /* of all processes, as in pages */
    uint64_t looks, unreadable, ended, too_large, too_costly;
};

struct resident *resident_open(int follow, struct store *store, const struct account *account, struct drain *drain,
                               struct processes *processes, const struct clock *clock)
{
    struct resident *r = xcalloc(1, sizeof *r);
    r->follow = follow;
    r->store = store;
    r->account = account;
    r->drain = drain;
    r->processes = processes;
    r->clock = clock;
    r->begin_ns = clock_monotonic_ns();
    return r;
}

void resident_close(struct resident *r)
{
    if (!r)
        return;
    pages_free(&r->pages);
    seen_clear(&r->seen);
    free(r);
}

static uint64_t events(const struct resident *r)
{
    struct account_counts counts;
    account_counts(r->account, &counts);
    return counts.events;
}

/* Returns 0 where there was nothing to see. */
static int look_at(struct resident *r, struct process *p, int is_peak, int is_first)
{
    struct resident_result result;
    uint64_t begin = clock_stamp(r->clock);
    r->pages.begun = p->begun;
    r->pages.begun_count = p->begun_count;
    r->pages.family = p->family;
    int rc = pages_read(p->outer_pid, r->follow && r->processes->total == 1, &r->pages);
    p->looked_rss_bytes = p->rss_bytes;
    if (rc) {
        r->too_large += rc == -E2BIG;
        r->ended += rc == -ESRCH || rc == -ENOENT;
        r->unreadable += rc != -E2BIG && rc != -ESRCH && rc != -ENOENT;
        return 0;
    }
    r->mallocs |= r->pages.mallocs;
    resident_blocks(r->account, p->process_id, &r->pages, &result);
    int64_t time_ns = clock_ns(r->clock, begin), end_ns = clock_ns(r->clock, clock_stamp(r->clock));
    struct resident_scan scan = {.scan_id = ++r->scan_id,
                                 .process_id = p->process_id,
                                 .is_peak = is_peak,
                                 .time_ns = time_ns > 0 ? (uint64_t)time_ns : 0,
                                 .duration_ns = (uint64_t)(end_ns - time_ns),
                                 .rss_bytes = p->rss_bytes};
    if (is_peak && is_first)
        resident_begin_peak(r->store);
    resident_write(r->store, &scan, &r->pages, &result);
    free(result.sites);
    r->looks++;
    return 1;
}

static void settle_open(struct resident *r)
{
    if (r->open_id)
        resident_write_moved(r->store, r->open_id, events(r) - r->open_events);
    r->open_id = 0;
}

/* is_peak: all processes; else those that have changed, or are about to end. */
static int is_wanted(const struct process *p, int is_peak, int may_all)
{
    uint64_t before = p->looked_rss_bytes, now = p->rss_bytes, change = now > before ? now - before : before - now;
    int is_leaving = p->leaving_deadline_ns != 0;
    if (p->dead || p->discard || p->has_exec || !now) /* after an exec they are another program's pages */
        return 0;
    if (is_peak)
        return 1;
    return is_leaving ? !p->looked_at_end : may_all && change > before / FALL_SHARE + FALL_BYTES;
}

static void look_at_all(struct resident *r, int is_peak, int may_all)
{
    uint64_t begin_ns = clock_processor_ns(), events_before = events(r);
    int looked = 0;
    settle_open(r);
    r->pages.seen = is_peak && r->processes->live > 1 ? &r->seen : NULL;
    for (uint32_t i = 0; i < r->processes->slot_end; i++) {
        struct process *p = r->processes->by_slot[i];
        if (!p || !is_wanted(p, is_peak, may_all))
            continue;
        p->looked_at_end = p->leaving_deadline_ns != 0;
        looked += look_at(r, p, is_peak, !looked);
    }
    seen_clear(&r->seen);
    if (!looked)
        return;
    r->open_id = r->scan_id - (uint32_t)looked + 1;
    r->open_until = clock_stamp(r->clock);
    r->open_events = events_before;
    r->last_cost_ns = clock_processor_ns() - begin_ns;
    r->cost_ns += r->last_cost_ns;
    r->next_ns = clock_monotonic_ns() + r->last_cost_ns * APART;
}

void resident_look(struct resident *r)
{
    uint64_t sum = 0, now_ns = clock_monotonic_ns();
    int is_leaving = 0, is_changed = 0;
    for (uint32_t i = 0; i < r->processes->slot_end; i++) {
        const struct process *p = r->processes->by_slot[i];
        if (!p || p->dead || p->discard)
            continue;
        sum += p->rss_bytes;
        is_changed |= is_wanted(p, 0, 1);
        is_leaving |= p->leaving_deadline_ns && !p->looked_at_end;
    }
    r->rest_count = sum == r->sum_bytes ? r->rest_count + 1 : 0;
    r->sum_bytes = sum;
    int is_peak = sum > r->peak_bytes + (r->rest_count >= REST_SAMPLES ? 0 : r->peak_bytes / STEP_SHARE + STEP_BYTES);
    if (!is_peak && !is_changed)
        return;
    uint64_t run_ns = now_ns - r->begin_ns, cost_ns = r->cost_ns + r->processes->begun_ns + r->last_cost_ns;
    int may_all = now_ns >= r->next_ns && resident_may(cost_ns, run_ns);
    int may_leaving = r->last_cost_ns <= CHEAP_NS && resident_may(cost_ns, 2 * run_ns);
    if (!may_all && !(is_leaving && may_leaving)) {
        r->too_costly += is_peak || is_leaving;
        return;
    }
    if (is_peak)
        r->peak_bytes = sum;
    look_at_all(r, is_peak, may_all);
}

void resident_settle(struct resident *r)
{
    if (r->open_id && drain_state(r->drain).merged >= r->open_until)
        settle_open(r);
}

static void write_counter(struct store *store, const char *name, const char *text, uint64_t value)
{
    sqlite3_stmt *q = value ? store_statement(store, "INSERT INTO counter VALUES(NULL, ?, ?, ?)") : NULL;
    if (!q)
        return;
    sqlite3_bind_text(q, 1, name, -1, SQLITE_STATIC);
    sqlite3_bind_int64(q, 2, (int64_t)value);
    sqlite3_bind_text(q, 3, text, -1, SQLITE_STATIC);
    store_step(store, q);
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
    write_mallocs(r);
    write_counter(r->store, "resident_scan", "looks at which pages of a process are present", r->looks);
    write_counter(r->store, "resident_scan_us", "microseconds of the collector that these took",
                  (r->cost_ns + r->processes->begun_ns) / 1000);
    write_counter(r->store, "resident_unreadable",
                  "looks at present pages that failed: the process is another user's, or lets nobody look",
                  r->unreadable);
    write_counter(r->store, "resident_ended", "looks at present pages that came too late: the process had ended",
                  r->ended);
    write_counter(r->store, "resident_too_large", "looks at present pages that were left out: above 128 GiB",
                  r->too_large);
    write_counter(r->store, "resident_postponed",
                  "samples of resident memory without a look at its pages: it would have cost too much", r->too_costly);
}
