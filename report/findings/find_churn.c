#include "size_counts.h"

#include <stdlib.h>

#define LEAST       1000
#define LEAST_SHARE 10 /* a part of the run's allocations */

void *watch_churn_open(struct rules *r)
{
    return size_counts_open(r);
}

void watch_churn_close(void *watch)
{
    size_counts_close(watch);
}

void watch_churn_see(void *watch, const struct pass_event *e)
{
    struct size_count *c = e->is_temporary ? size_count_at(watch, e->event->site_id, e->event->size_bytes) : NULL;
    if (c)
        c->count++;
}

static void say_size(struct rules *r, const struct size_count *c)
{
    struct finding *f = rule_finding(r, r->device->name);
    struct saving none = {.changes = NULL};
    finding_line(r, f, c->site_id, "run");
    finding_caller(r, f, c->site_id);
    finding_say(f,
                " allocated %s blocks of %s that were freed before their thread allocated again, %d %% of %s "
                "allocations.",
                units_count(r->a, c->count), units_bytes(r->b, (int64_t)c->size_bytes),
                rule_percent(c->count, r->device->alloc_count), units_count(r->c, r->device->alloc_count));
    finding_number(f, "temporary_count", c->count);
    finding_number(f, "size_bytes", (int64_t)c->size_bytes);
    f->next = "They cost time rather than memory: one block that is kept, or one on the stack, would do.";
    finding_saves(r, f, &none, FINDING_EXACT);
}

static void find_sizes(struct rules *r, const struct size_counts *all)
{
    const int64_t share = r->device->alloc_count / LEAST_SHARE;
    uint32_t count;
    struct size_count *lines = size_counts_by_line(all, share > LEAST ? share : LEAST, &count);
    for (uint32_t i = 0; i < count && i < r->most; i++)
        say_size(r, &lines[i]);
    free(lines);
}

void find_churn(struct rules *r)
{
    const struct rule_device *d = r->device;
    int64_t all;
    if (d->temporary_count < LEAST || d->temporary_count < d->alloc_count / LEAST_SHARE)
        return;
    if (r->watch[WATCH_churn]) {
        find_sizes(r, r->watch[WATCH_churn]);
        return;
    }
    const struct rule_line *line = rule_top_line(r, LINE_TEMPORARY_COUNT, &all);
    if (!line)
        return;
    struct finding *f = rule_finding(r, d->name);
    finding_say(f, "%s of %s allocations (%d %%) were freed ", units_count(r->a, d->temporary_count),
                units_count(r->b, d->alloc_count), rule_percent(d->temporary_count, d->alloc_count));
    finding_say(f, "before their thread allocated again. Most of them, %s, in ",
                units_count(r->c, line->sums[LINE_TEMPORARY_COUNT]));
    finding_line(r, f, line->site_id, "run");
    finding_say(f, ".");
    f->next = "They cost time rather than memory: a buffer that is kept and reused would save them.";
}
