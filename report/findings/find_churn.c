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

/* is_mean: they were of several sizes. */
static void say(struct rules *r, const struct size_count *c, int is_mean)
{
    struct finding *f = rule_finding(r, r->device->name);
    struct saving none = {.changes = NULL};
    finding_line(r, f, c->site_id, "run");
    finding_caller(r, f, c->site_id);
    finding_say(f,
                " allocated %s blocks of %s%s that were freed before their thread allocated again, %d %% of %s "
                "allocations.",
                units_count(r->a, c->count), units_bytes(r->b, (int64_t)c->size_bytes), is_mean ? " in the mean" : "",
                rule_percent(c->count, r->device->alloc_count), units_count(r->c, r->device->alloc_count));
    size_count_say_cost(r, f, c);
    finding_number(f, "temporary_count", c->count);
    finding_number(f, "size_bytes", (int64_t)c->size_bytes);
    f->next = "They cost time rather than memory: one block that is kept, or one on the stack, would do.";
    finding_saves(r, f, &none, FINDING_EXACT);
}

static int64_t least_count(const struct rules *r)
{
    const int64_t share = r->device->alloc_count / LEAST_SHARE;
    return share > LEAST ? share : LEAST;
}

static void find_sizes(struct rules *r, const struct size_counts *all)
{
    uint32_t count;
    struct size_count *lines = size_counts_by_line(all, least_count(r), &count);
    for (uint32_t i = 0, told = 0; i < count && told < FINDINGS_MOST; i++)
        if (size_count_is_worth(r, &lines[i])) {
            say(r, &lines[i], 0);
            told++;
        }
    free(lines);
}

/* Where the events are not read: the line that has most, whatever their sizes were. */
static void find_line(struct rules *r)
{
    static const char most_sql[] = /* of the line, the site that has most speaks for its callers */
        "SELECT site_id FROM site JOIN site_line USING(site_id) WHERE device_id = ?2 AND line_id = (SELECT line_id "
        "FROM site_line WHERE site_id = ?1) ORDER BY temporary_count DESC, site_id LIMIT 1";
    int64_t all;
    const struct rule_line *line = rule_top_line(r, LINE_TEMPORARY_COUNT, &all);
    const int64_t count = line ? line->sums[LINE_TEMPORARY_COUNT] : 0;
    if (count < least_count(r))
        return;
    const int64_t of[] = {line->site_id, line->device_id};
    const struct size_count c = {.count = count,
                                 .size_bytes = (uint64_t)(line->sums[LINE_TEMPORARY_BYTES] / count),
                                 .site_id = (uint32_t)rule_query_amount(r, most_sql, of, 2, line->site_id)};
    if (size_count_is_worth(r, &c))
        say(r, &c, 1);
}

void find_churn(struct rules *r)
{
    if (r->watch[WATCH_churn])
        find_sizes(r, r->watch[WATCH_churn]);
    else
        find_line(r);
}
