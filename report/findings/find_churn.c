#include "../../common/array.h"
#include "rules.h"

#include <stdlib.h>

#define LEAST       1000
#define LEAST_SHARE 10 /* a part of the run's allocations */
#define SHOWN       3
#define KEYS_MAX    (1 << 22)

struct churn { /* temporaries of one size of a line */
    int64_t count;
    uint64_t size_bytes;
    uint32_t line, site_id;
};

struct watch_churn {
    struct rules *r;
    struct map of;
    struct churn *item;
    uint32_t count, capacity;
};

void *watch_churn_open(struct rules *r)
{
    struct watch_churn *w = xcalloc(1, sizeof *w);
    w->r = r;
    return w;
}

void watch_churn_close(void *watch)
{
    struct watch_churn *w = watch;
    map_close(&w->of);
    free(w->item);
    free(w);
}

void watch_churn_see(void *watch, const struct pass_event *e)
{
    struct watch_churn *w = watch;
    const struct rule_line *line = e->is_temporary ? rule_line_of(w->r, e->event->site_id) : NULL;
    if (!line || w->count == KEYS_MAX)
        return;
    uint32_t number = (uint32_t)(line - w->r->lines), i = map_number_or(&w->of, number, e->block->size_bytes, w->count);
    if (i == w->count)
        *ARRAY_ADD(w->item, w->count, w->capacity) =
            (struct churn){.size_bytes = e->block->size_bytes, .line = number, .site_id = e->event->site_id};
    w->item[i].count++;
}

static void say_size(struct rules *r, const struct churn *c)
{
    struct finding *f = rule_finding(r, r->device->name);
    struct saving none = {.changes = NULL};
    finding_line(r, f, c->site_id, "run");
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

static void find_sizes(struct rules *r, struct watch_churn *w)
{
    for (int shown = 0; shown < SHOWN; shown++) {
        struct churn *best = NULL;
        for (uint32_t i = 0; i < w->count; i++) {
            struct churn *c = &w->item[i];
            if (r->lines[c->line].device_id == r->device->device_id && c->count >= LEAST &&
                c->count >= r->device->alloc_count / LEAST_SHARE && (!best || c->count > best->count))
                best = c;
        }
        if (!best)
            return;
        say_size(r, best);
        best->count = 0;
    }
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
