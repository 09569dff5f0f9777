/* What grows from one execution of a range to the next (query/growth.h), and what its line would save had it kept
 * nothing. */
#include "../../common/array.h"
#include "../query/growth.h"
#include "../query/marks.h"
#include "rules.h"

#include <stdlib.h>
#include <string.h>

#define NAMES_LOOKED_AT 4 /* ranges, those that last longest in all: within a step there are many, which all grow */
#define LEAST_BYTES     1024

struct step_line {
    const struct rule_line *line; /* of r->lines */
    double slope;
    int64_t site_id;
    char *range;
    int64_t execution_count;
};

struct watch_steps {
    struct rules *r;
    struct line_savings kept;
    struct step_line *item; /* as in kept.savings */
    uint32_t count, capacity;
    int64_t *ends; /* of the executions that lines were told from */
    size_t end_count, end_capacity, next_end;
    int64_t last_end; /* the number of the event that came at the last of them or behind it */
};

static void take_line(struct watch_steps *w, const struct growth_line *g, const char *range)
{
    const struct rule_line *line = rule_line_of(w->r, g->site_id);
    const int64_t executions = g->count;
    const double grown = g->slope * (double)executions;
    if (!line || !(grown >= LEAST_BYTES && grown < 0x1p62) || line_savings_of(&w->kept, g->site_id))
        return;
    line_savings_add(&w->kept, line);
    *ARRAY_ADD(w->item, w->count, w->capacity) =
        (struct step_line){line, g->slope, g->site_id, xstrdup(range), executions};
}

/* The executions of one name. Where the growth of these cannot be told there is nothing to say. */
static void look_at(struct watch_steps *w, struct executions *e, const char *range)
{
    struct executions_samples samples;
    struct executions_result read;
    int64_t rest = 0;
    uint32_t before = w->count;
    struct growth *g = growth_open(e, GROWTH_WARMUP, &rest);
    if (!g)
        return;
    growth_samples(g, &samples);
    int rc = executions_measure(w->r->db, e, &(struct executions_options){.samples = &samples}, &read, w->r->err);
    for (uint32_t i = 0; rc == 0 && !read.chunks_damaged && !read.has_unknown_sample && i < read.device_count; i++) {
        const struct growth_filter filter = {.device = read.device[i].name};
        struct growth_result found = {.slope = 0};
        rc = growth_sum_up(g, w->r->db, &filter, 1, &found, w->r->err);
        for (int k = 0; rc == 0 && k < found.line_count; k++)
            take_line(w, &found.line[k], range);
        growth_result_free(&found);
    }
    for (uint32_t i = 0; w->count > before && i < e->count; i++)
        if (e->execution[i].is_ended)
            *ARRAY_ADD(w->ends, w->end_count, w->end_capacity) = e->execution[i].end_ns;
    executions_result_free(&read);
    growth_close(g);
}

static int by_time(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* The name whose executions last longest in all, and no longer than the one before; e->name_count: none. */
static uint32_t longest(const struct executions *e, double *lasted)
{
    uint32_t best = e->name_count;
    for (uint32_t i = 0; i < e->name_count; i++)
        if (lasted[i] > 0 && (best == e->name_count || lasted[i] > lasted[best]))
            best = i;
    return best;
}

static void look_at_all(struct watch_steps *w, struct executions *all)
{
    double *lasted = xcalloc(all->name_count + 1ul, sizeof *lasted);
    for (uint32_t i = 0; i < all->count; i++)
        lasted[all->execution[i].name] += (double)all->execution[i].end_ns - (double)all->execution[i].start_ns + 1;
    for (int looked = 0; looked < NAMES_LOOKED_AT;) {
        uint32_t name = longest(all, lasted);
        struct executions of = {.count = 0};
        if (name == all->name_count)
            break;
        lasted[name] = 0;
        for (uint32_t i = 0; i < all->count; i++)
            if (all->execution[i].name == name)
                *ARRAY_ADD(of.execution, of.count, of.capacity) = all->execution[i];
        if (of.count >= GROWTH_WARMUP + GROWTH_LEAST) {
            look_at(w, &of, all->names[name]);
            looked++;
        }
        free(of.execution);
    }
    free(lasted);
}

void *watch_steps_open(struct rules *r)
{
    struct executions all;
    struct error err;
    if (!rule_query_amount(r, "SELECT EXISTS (SELECT 1 FROM mark WHERE is_range)", NULL, 0, 0))
        return NULL;
    struct watch_steps *w = xcalloc(1, sizeof *w);
    w->r = r;
    line_savings_open(&w->kept, r);
    if (marks_find_executions(r->db, "advise", "*", &all, &err) == 0)
        look_at_all(w, &all);
    executions_free(&all);
    if (w->end_count)
        qsort(w->ends, w->end_count, sizeof *w->ends, by_time);
    return w;
}

void watch_steps_close(void *watch)
{
    struct watch_steps *w = watch;
    for (uint32_t i = 0; i < w->count; i++)
        free(w->item[i].range);
    line_savings_close(&w->kept);
    free(w->item);
    free(w->ends);
    free(w);
}

/* What is kept is what outlives an execution; of that, what is freed in the end. */
void watch_steps_see(void *watch, const struct pass_event *e)
{
    struct watch_steps *w = watch;
    while (w->next_end < w->end_count && w->ends[w->next_end] <= (int64_t)e->event->time_ns) {
        w->last_end = e->number;
        w->next_end++;
    }
    if (!e->block || (int64_t)e->block->time_ns >= w->last_end)
        return;
    struct saving *kept = line_savings_of(&w->kept, e->event->site_id);
    if (kept)
        saving_add(kept, (int64_t)e->block->time_ns, e->number, (int64_t)e->event->size_bytes);
}

static void say(struct rules *r, const struct step_line *l, struct saving *kept)
{
    struct finding *f = rule_finding(r, r->device->name);
    int64_t never_freed = rule_add_gone(r, kept, l->line, NULL);
    finding_line(r, f, l->site_id, "end");
    finding_say(f, " holds %s more after each execution of %s than after the one before, over %s of them.",
                units_bytes(r->a, (int64_t)(l->slope + 0.5)), l->range, units_count(r->b, l->execution_count));
    if (never_freed)
        finding_say(f, " %s of its blocks %s never freed.", units_count(r->c, never_freed),
                    never_freed == 1 ? "was" : "were");
    finding_keeper(r, f, l->line, NULL);
    finding_number(f, "bytes_an_execution", (int64_t)(l->slope + 0.5));
    finding_number(f, "execution_count", l->execution_count);
    finding_number(f, "never_freed_count", never_freed);
    f->bytes = (int64_t)(l->slope * (double)l->execution_count);
    f->next = "What is taken at each step and kept looks like this: free it in the step, or bound what keeps it.";
    finding_saves(r, f, kept, FINDING_AT_MOST);
}

void find_steps(struct rules *r)
{
    struct watch_steps *w = r->watch[WATCH_steps];
    uint32_t shown = 0;
    for (uint32_t i = 0; w && i < w->count && shown < FINDINGS_MOST;
         i++) /* of each range those that grow most come first */
        if (w->item[i].line->device_id == r->device->device_id) {
            say(r, &w->item[i], &w->kept.savings[i]);
            shown++;
        }
}
