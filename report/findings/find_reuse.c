/* A block is freed, and soon another of its size allocated by the same stack: the first one could have been kept. What
 * is freed before anything else is allocated is find_churn.c's. */
#include "size_counts.h"

#include <stdlib.h>

#define SOON_NS     1000000
#define LEAST       100
#define LEAST_SHARE 100 /* a part of the run's allocations */

void *watch_reuse_open(struct rules *r)
{
    return size_counts_open(r);
}

void watch_reuse_close(void *watch)
{
    size_counts_close(watch);
}

void watch_reuse_see(void *watch, const struct pass_event *e)
{
    const int is_free = e->event->op == CHUNK_free && e->block && !e->is_temporary;
    if (e->event->size_bytes <= SIZE_CACHED_BYTES || (!is_free && e->event->op != CHUNK_alloc))
        return;
    struct size_count *u = size_count_at(watch, e->event->site_id, e->event->size_bytes);
    const int64_t now = (int64_t)e->event->time_ns;
    if (!u)
        return;
    if (now - u->freed_ns > SOON_NS)
        u->waiting = 0;
    if (is_free) {
        u->freed_ns = now;
        u->waiting++;
    } else if (u->waiting) {
        u->waiting--;
        u->count++;
    }
}

static void say(struct rules *r, const struct size_count *u)
{
    struct finding *f = rule_finding(r, r->device->name);
    struct saving none = {.changes = NULL};
    finding_line(r, f, u->site_id, "run");
    finding_caller(r, f, u->site_id);
    finding_say(f,
                " allocated %s times a block of %s within 1 ms after one of the same size, from the same stack, was "
                "freed: %d %% of all allocations.",
                units_count(r->a, u->count), units_bytes(r->b, (int64_t)u->size_bytes),
                rule_percent(u->count, r->device->alloc_count));
    size_count_say_cost(r, f, u);
    finding_number(f, "reuse_count", u->count);
    finding_number(f, "size_bytes", (int64_t)u->size_bytes);
    f->next = "The block could be kept for the next time: that saves calls, and for large blocks page faults.";
    finding_saves(r, f, &none, FINDING_EXACT);
}

void find_reuse(struct rules *r)
{
    const int64_t share = r->device->alloc_count / LEAST_SHARE;
    uint32_t count = 0;
    struct size_count *lines = r->watch[WATCH_reuse]
                                   ? size_counts_by_line(r->watch[WATCH_reuse], share > LEAST ? share : LEAST, &count)
                                   : NULL;
    for (uint32_t i = 0, told = 0; i < count && told < FINDINGS_MOST; i++)
        if (size_count_is_worth(r, &lines[i])) {
            say(r, &lines[i]);
            told++;
        }
    free(lines);
}
