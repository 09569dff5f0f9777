#include "look.h"

#include "pages.h"

#include <time.h>

/* How long events are waited for: a stamp is given out 50 us after it at the earliest, and a thread may be in the
 * middle of a record, without a processor. */
#define FIRST_NAP_NS 60000u
#define NAP_NS       250000u
#define NAPS         8u
/* By the clock, over the looks of a round: where a hundred processes want this processor each nap may last, and nothing
 * is sampled or committed meanwhile. */
#define WAIT_MAX_NS 20000000u

void look_close(struct look *l)
{
    pages_free(&l->pages);
    resident_gone_free(&l->gone);
}

static void give_blocks(struct look *l)
{
    resident_blocks(l->account, l->process_id, &l->pages, &l->gone, l->waiting);
    l->waiting = NULL;
}

void look_events(struct look *l, const struct event *events, size_t count)
{
    for (size_t i = 0; l->waiting && i < count; i++) {
        if (events[i].op != EVENT_PROCESS_END || events[i].process_id != l->process_id)
            continue;
        resident_gone_events(&l->gone, l->account, l->process_id, events, i);
        give_blocks(l);
        events += i;
        count -= i;
    }
    if (l->waiting)
        resident_gone_events(&l->gone, l->account, l->process_id, events, count);
    else
        account_events(l->account, events, count);
}

/* Until the events of the process up to a stamp are in the accounts, or its end is. */
static void catch_up(struct look *l, const struct process *p, uint64_t stamp)
{
    uint64_t begin_ns = clock_processor_ns(), clock_ns = clock_monotonic_ns(), waited_ns = l->waited_ns;
    l->is_late = !drain_is_read(l->drain, p);
    for (unsigned i = 0; l->waiting && l->is_late && i < NAPS && l->waited_ns < WAIT_MAX_NS; i++) {
        nanosleep(&(struct timespec){.tv_nsec = i ? NAP_NS : FIRST_NAP_NS}, NULL);
        l->words += drain_round_until(l->drain, stamp);
        l->is_late = l->waiting && !drain_is_in(l->drain, p, stamp);
        l->waited_ns = waited_ns + clock_monotonic_ns() - clock_ns;
    }
    l->drain_ns += clock_processor_ns() - begin_ns;
}

int look_at(struct look *l, const struct process *p, int is_alone, struct resident_result *result)
{
    int rc = pages_read(p->outer_pid, is_alone, &l->pages);
    if (rc)
        return rc;
    l->process_id = p->process_id;
    l->gone.count = 0;
    l->is_late = 0;
    l->waiting = result;
    if (!p->leaving_deadline_ns) /* else its last words were read */
        catch_up(l, p, clock_stamp(l->clock));
    if (l->waiting)
        give_blocks(l);
    return 0;
}
