/* Blocks that grow by the same few bytes again and again: each realloc may copy all that was there. */
#include "../../common/array.h"
#include "../../common/sum.h"
#include "rules.h"

#include <stdlib.h>

#define STEPS_LEAST  8         /* of one size, in a row */
#define COPIED_LEAST (4 << 20) /* by a line: below, it costs nobody anything, */
#define COPIED_TIMES 4         /* nor below so many times what the blocks came to */
#define THREADS_MAX  65536

struct chain { /* of a block that was resized */
    int64_t step_bytes, row;
    int64_t copied_bytes; /* by those in a row */
};

struct grower { /* a line */
    int64_t rows, longest, step_bytes, copied_bytes, size_bytes, largest_bytes, site_id;
};

struct watch_reallocs {
    struct rules *r;
    struct chain *chains;
    uint32_t chain_count, chain_capacity;
    struct map chain_of; /* of blocks that were resized, by the number of their birth */
    struct pending {     /* by thread: the block that is being resized */
        int64_t size_bytes;
        uint32_t chain; /* + 1; 0: it was not resized before */
        int is_there;
    } * pending;
    struct grower *growers; /* by line */
};

void *watch_reallocs_open(struct rules *r)
{
    struct watch_reallocs *w = xcalloc(1, sizeof *w);
    w->r = r;
    w->pending = xcalloc(THREADS_MAX, sizeof *w->pending);
    w->growers = xcalloc(r->line_count + 1ul, sizeof *w->growers);
    return w;
}

void watch_reallocs_close(void *watch)
{
    struct watch_reallocs *w = watch;
    map_close(&w->chain_of);
    free(w->chains);
    free(w->pending);
    free(w->growers);
    free(w);
}

/* Counts a row of steps when it is long enough, and then each further step of it. */
static void count_row(struct watch_reallocs *w, struct chain *c, const struct chunk_event *e, int64_t old_bytes)
{
    const struct rule_line *line = rule_line_of(w->r, e->site_id);
    old_bytes = rule_sane(old_bytes);
    sum_add(&c->copied_bytes, old_bytes);
    if (!line || c->row < STEPS_LEAST)
        return;
    struct grower *g = &w->growers[line - w->r->lines];
    if (c->row == STEPS_LEAST) {
        g->rows++;
        sum_add(&g->copied_bytes, c->copied_bytes);
        sum_add(&g->size_bytes, rule_sane((int64_t)e->size_bytes));
    } else {
        sum_add(&g->copied_bytes, old_bytes);
        sum_add(&g->size_bytes, rule_sane(c->step_bytes));
    }
    if (c->row > g->longest) {
        g->longest = c->row;
        g->step_bytes = c->step_bytes;
        g->site_id = e->site_id;
    }
    if ((int64_t)e->size_bytes > g->largest_bytes)
        g->largest_bytes = (int64_t)e->size_bytes;
}

static void resized(struct watch_reallocs *w, const struct pass_event *e, const struct pending *old)
{
    int64_t step = (int64_t)e->event->size_bytes - old->size_bytes;
    uint32_t number = old->chain;
    if (step <= 0)
        return;
    if (!number) {
        ARRAY_ADD(w->chains, w->chain_count, w->chain_capacity);
        number = w->chain_count;
    }
    struct chain *c = &w->chains[number - 1];
    if (step != c->step_bytes)
        *c = (struct chain){.step_bytes = step};
    c->row++;
    map_set_number(&w->chain_of, (uint64_t)e->number, 0, number - 1);
    count_row(w, c, e->event, old->size_bytes);
}

void watch_reallocs_see(void *watch, const struct pass_event *e)
{
    struct watch_reallocs *w = watch;
    if (e->event->thread_id >= THREADS_MAX)
        return;
    struct pending *p = &w->pending[e->event->thread_id];
    if (e->event->op == CHUNK_realloc_free && e->block)
        *p = (struct pending){(int64_t)e->block->size_bytes, (uint32_t)map_take(&w->chain_of, e->block->time_ns, 0), 1};
    if (e->event->op == CHUNK_realloc_alloc) {
        if (p->is_there)
            resized(w, e, p);
        p->is_there = 0;
    }
}

static void say(struct rules *r, const struct grower *g)
{
    struct finding *f = rule_finding(r, r->device->name);
    struct saving none = {.changes = NULL};
    char steps[UNITS_TEXT];
    finding_line(r, f, g->site_id, "run");
    finding_caller(r, f, g->site_id);
    finding_say(f, " resized a block by the same size %d times in a row or more, %s time%s; at most %s times, by %s. ",
                STEPS_LEAST, units_count(r->a, g->rows), g->rows == 1 ? "" : "s", units_count(steps, g->longest),
                units_bytes(r->b, g->step_bytes));
    finding_say(f, "The largest came to %s. Had each been moved each time, %s were copied.",
                units_bytes(r->c, g->largest_bytes), units_bytes(r->d, g->copied_bytes));
    finding_number(f, "row_count", g->rows);
    finding_number(f, "longest_row", g->longest);
    finding_number(f, "step_bytes", g->step_bytes);
    finding_number(f, "largest_bytes", g->largest_bytes);
    finding_number(f, "copied_bytes_at_most", g->copied_bytes);
    f->next = "With half as much again, or twice as much, each time, what is copied is no more than two or three times "
              "the block.";
    finding_saves(r, f, &none, FINDING_EXACT);
}

void find_reallocs(struct rules *r)
{
    struct watch_reallocs *w = r->watch[WATCH_reallocs];
    for (uint32_t shown = 0; w && shown < FINDINGS_MOST; shown++) {
        struct grower *best = NULL;
        for (uint32_t i = 0; i < r->line_count; i++) {
            struct grower *g = &w->growers[i];
            if (r->lines[i].device_id == r->device->device_id && g->copied_bytes >= COPIED_LEAST &&
                g->copied_bytes / COPIED_TIMES >= g->size_bytes && (!best || g->copied_bytes > best->copied_bytes))
                best = g;
        }
        if (!best)
            return;
        say(r, best);
        *best = (struct grower){.rows = 0};
    }
}
