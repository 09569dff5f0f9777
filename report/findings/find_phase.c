/*
 * What is allocated in a range, a phase, and kept when that has long ended. No access is seen, so it goes by lifetimes:
 *   of a phase that comes again, what is still there when the next one has ended, most times: the last step's, say,
 *   or what stays while another phase runs and is freed behind that, by none: what one made that another one needs
 *   looks the same, so it is a question,
 *   of one that comes once, what lives on ten times as long as the phase took.
 * Of ranges within ranges a block is held past the outermost that comes again of those that it outlives.
 */
#include "../../common/array.h"
#include "../../common/sum.h"
#include "../query/executions.h"
#include "../query/marks.h"
#include "rules.h"

#include <stdlib.h>
#include <string.h>

#define AGAIN_LEAST   3          /* executions of a name, and those that held: fewer are a start */
#define HELD_SHARE    2          /* a part of the executions that must have held */
#define LONG_TIMES    10         /* of a phase that comes once */
#define ONCE_SHARE    4          /* a part of the peak that it saves: what is read in a phase is mostly needed */
#define THROUGH_SHARE 10         /* the same of what is held while another phase runs */
#define INNER_MAX     3          /* ranges within ranges that come again: deeper ones are calls rather than phases */
#define SIBLINGS_MAX  64         /* that are looked at behind a phase */
#define CHANGES_MAX   (1u << 22) /* of all lines */
#define COUNTED       1u
#define COUNTED_LONG  2u
#define NOT_YET       INT64_MAX
#define NONE          UINT32_MAX

struct phase { /* by thread and then time, the outer one first */
    int64_t start_ns, end_ns;
    int64_t first_event, end_event; /* NOT_YET: it has not begun, or ended */
    int64_t thread_id;
    uint32_t name, next;      /* next: of the same thread and name; NONE */
    uint32_t parent, sibling; /* that it is in; the next one in that. NONE */
    int is_again;
};

struct edge {
    int64_t time_ns;
    uint32_t phase;
    int is_end;
};

struct held { /* by name and line */
    uint32_t name, line, site_id;
    int64_t phase_count, long_count /* of these: to the next execution */;
    int64_t block_count, freed_count, bytes, longest_ns;
    int64_t through_count, through_ns; /* of the blocks: held while another phase ran, but not to the next execution */
    uint32_t through;                  /* the name of the longest of these */
    int is_again;
    struct saving saving;
};

struct watch_phase {
    struct rules *r;
    struct executions all;
    struct phase *phases;
    struct edge *edges;
    uint32_t phase_count, phase_capacity, held_count, held_capacity;
    size_t edge_count, next_edge;
    uint32_t *ended; /* by name: its phases */
    int64_t last_end, now_ns;
    struct map first_of; /* thread -> its first phase */
    struct map held_of;
    struct map counted; /* held and phase -> COUNTED bits: blocks come in the order in which they go */
    struct held *held;
    size_t change_count;
};

/* --- which phases there are ----------------------------------------------------------------------------------------
 */

static int by_thread(const void *a, const void *b)
{
    const struct execution *x = a, *y = b;
    if (x->thread_id != y->thread_id)
        return x->thread_id < y->thread_id ? -1 : 1;
    if (x->start_ns != y->start_ns)
        return x->start_ns < y->start_ns ? -1 : 1;
    return (x->end_ns < y->end_ns) - (x->end_ns > y->end_ns); /* the outer one first */
}

struct open {                                              /* the phases that an execution is in, the outermost first */
    uint32_t phase[INNER_MAX + 1], last_of[INNER_MAX + 2]; /* last_of: by depth, the one before; NONE */
    int depth;
};

/* The depth of an execution in what is open; -1: too deep, or in a part of it only. */
static int enter(struct watch_phase *w, struct open *o, const struct execution *e, int is_new_thread)
{
    if (is_new_thread)
        *o = (struct open){.last_of = {NONE}};
    while (o->depth && w->phases[o->phase[o->depth - 1]].end_ns <= e->start_ns)
        o->depth--;
    int is_in = !o->depth || rule_sane(e->end_ns) <= w->phases[o->phase[o->depth - 1]].end_ns;
    return is_in && o->depth <= INNER_MAX ? o->depth : -1;
}

static void add_phase(struct watch_phase *w, struct open *o, const struct execution *e, int is_again)
{
    const uint32_t number = w->phase_count;
    if (!map_get(&w->first_of, (uint64_t)e->thread_id, 0))
        map_set_number(&w->first_of, (uint64_t)e->thread_id, 0, w->phase_count);
    *ARRAY_ADD(w->phases, w->phase_count, w->phase_capacity) =
        (struct phase){.start_ns = rule_sane(e->start_ns),
                       .end_ns = rule_sane(e->end_ns),
                       .first_event = NOT_YET,
                       .end_event = NOT_YET,
                       .thread_id = e->thread_id,
                       .name = e->name,
                       .next = NONE,
                       .parent = o->depth ? o->phase[o->depth - 1] : NONE,
                       .sibling = NONE,
                       .is_again = is_again};
    w->ended[e->name]++;
    if (o->last_of[o->depth] != NONE)
        w->phases[o->last_of[o->depth]].sibling = number;
    o->last_of[o->depth] = o->phase[o->depth] = number;
    o->last_of[++o->depth] = NONE;
}

/* Those that come again; and those that come once and have none in them. */
static void choose(struct watch_phase *w)
{
    struct executions *all = &w->all;
    uint32_t *count = xcalloc(all->name_count + 1ul, sizeof *count);
    struct open open = {.depth = 0};
    for (uint32_t i = 0; i < all->count; i++)
        count[all->execution[i].name] += all->execution[i].is_ended;
    for (uint32_t i = 0; i < all->count; i++) {
        const struct execution *e = &all->execution[i], *next = i + 1 < all->count ? e + 1 : NULL;
        const int depth = enter(w, &open, e, i == 0 || e->thread_id != e[-1].thread_id);
        const int is_again = count[e->name] >= AGAIN_LEAST;
        const int has_inner = next && next->thread_id == e->thread_id && next->start_ns < e->end_ns;
        if (e->is_ended && depth >= 0 && (is_again || (!has_inner && depth == 0)))
            add_phase(w, &open, e, is_again);
    }
    free(count);
}

static int by_time(const void *a, const void *b)
{
    const struct edge *x = a, *y = b;
    if (x->time_ns != y->time_ns)
        return x->time_ns < y->time_ns ? -1 : 1;
    if (x->phase != y->phase)
        return x->phase < y->phase ? -1 : 1;
    return x->is_end - y->is_end;
}

static void link_all(struct watch_phase *w)
{
    struct map last = {0}; /* thread and name -> phase */
    w->edges = xcalloc(2ul * w->phase_count + 1, sizeof *w->edges);
    for (uint32_t i = 0; i < w->phase_count; i++) {
        struct phase *p = &w->phases[i];
        uint32_t before = map_number(&last, (uint64_t)p->thread_id, p->name);
        if (before != MAP_NONE)
            w->phases[before].next = i;
        map_set_number(&last, (uint64_t)p->thread_id, p->name, i);
        w->edges[w->edge_count++] = (struct edge){p->start_ns, i, 0};
        w->edges[w->edge_count++] = (struct edge){p->end_ns, i, 1};
    }
    map_close(&last);
    if (w->edge_count)
        qsort(w->edges, w->edge_count, sizeof *w->edges, by_time);
}

void *watch_phase_open(struct rules *r)
{
    struct error err;
    if (!rule_query_amount(r, "SELECT EXISTS (SELECT 1 FROM mark WHERE is_range)", NULL, 0, 0))
        return NULL;
    struct watch_phase *w = xcalloc(1, sizeof *w);
    w->r = r;
    if (marks_find_executions(r->db, "advise", "*", &w->all, &err) == 0 && w->all.count) {
        qsort(w->all.execution, w->all.count, sizeof *w->all.execution, by_thread);
        w->ended = xcalloc(w->all.name_count + 1ul, sizeof *w->ended);
        choose(w);
        link_all(w);
    }
    return w;
}

void watch_phase_close(void *watch)
{
    struct watch_phase *w = watch;
    for (uint32_t i = 0; i < w->held_count; i++)
        saving_close(&w->held[i].saving);
    executions_free(&w->all);
    map_close(&w->first_of);
    map_close(&w->held_of);
    map_close(&w->counted);
    free(w->held);
    free(w->phases);
    free(w->edges);
    free(w->ended);
    free(w);
}

/* --- what is held --------------------------------------------------------------------------------------------------
 */

/* The innermost phase in which a thread came to an event; NULL: none. */
static const struct phase *phase_at(const struct watch_phase *w, uint32_t thread_id, int64_t number)
{
    uint32_t first = map_number(&w->first_of, thread_id, 0);
    if (first == MAP_NONE)
        return NULL;
    uint32_t low = first, high = w->phase_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (w->phases[middle].thread_id == (int64_t)thread_id && w->phases[middle].first_event <= number)
            low = middle + 1;
        else
            high = middle;
    }
    uint32_t p = low > first ? low - 1 : NONE;
    while (p != NONE && number >= w->phases[p].end_event)
        p = w->phases[p].parent;
    return p == NONE ? NULL : &w->phases[p];
}

/* Of the phases in which a block was born the outermost that has ended; NULL: none has. */
static const struct phase *phase_outlived(const struct watch_phase *w, const struct block *block)
{
    const struct phase *outlived = NULL;
    const struct phase *p = phase_at(w, block->thread_id, (int64_t)block->time_ns);
    for (; p && p->end_event != NOT_YET; p = p->parent == NONE ? NULL : &w->phases[p->parent])
        outlived = p;
    return outlived;
}

/* The phase beside p that a thread is in at an event; NULL: none. */
static const struct phase *beside_at(const struct watch_phase *w, const struct phase *p, int64_t number)
{
    const struct phase *at = phase_at(w, (uint32_t)p->thread_id, number);
    while (at && at->parent != p->parent)
        at = at->parent == NONE ? NULL : &w->phases[at->parent];
    return at;
}

/* The longest other phase that ran from p's end to event until, where none other freed the block then: it would be what
 * needed it. NULL: there was none. */
static const struct phase *held_through(const struct watch_phase *w, const struct phase *p, int64_t until)
{
    const struct phase *longest = NULL, *freed_in;
    uint32_t next = p->sibling;
    for (int i = 0; i < SIBLINGS_MAX && next != NONE; i++, next = w->phases[next].sibling) {
        const struct phase *s = &w->phases[next];
        if (s->end_event == NOT_YET || s->end_event > until || s->name == p->name)
            break;
        if (s->is_again && (!longest || s->end_ns - s->start_ns > longest->end_ns - longest->start_ns))
            longest = s;
    }
    freed_in = longest ? beside_at(w, p, until) : NULL;
    return freed_in && freed_in->name != p->name ? NULL : longest;
}

static int is_long(const struct watch_phase *w, const struct phase *p)
{
    double lasted = (double)p->end_ns - (double)p->start_ns, since = (double)w->now_ns - (double)p->end_ns;
    if (p->is_again)
        return p->parent == NONE && p->next != NONE && w->phases[p->next].end_event != NOT_YET;
    return since > LONG_TIMES * lasted;
}

static struct held *held_at(struct watch_phase *w, const struct phase *p, uint32_t site_id)
{
    const struct rule_line *line = rule_line_of(w->r, site_id);
    if (!line)
        return NULL;
    uint32_t number = (uint32_t)(line - w->r->lines), i = map_number_or(&w->held_of, number, p->name, w->held_count);
    if (i == w->held_count)
        *ARRAY_ADD(w->held, w->held_count, w->held_capacity) =
            (struct held){.name = p->name, .line = number, .site_id = site_id, .is_again = p->is_again};
    return &w->held[i];
}

/* Whether it is the first block of the phase for which this counts. Of very many that is not looked at any more. */
static int is_first(struct watch_phase *w, const struct held *h, const struct phase *p, unsigned bit)
{
    const uint64_t a = (uint64_t)(h - w->held) + 1, b = (uint64_t)(p - w->phases);
    uint64_t *slot = w->counted.count < CHANGES_MAX || map_get(&w->counted, a, b) ? map_slot(&w->counted, a, b) : NULL;
    const int is_new = slot && !(*slot & bit);
    if (slot)
        *slot |= bit;
    return is_new;
}

/* A block goes, or is there to the end: from where its phase ended on it was held. */
static void look_at(struct watch_phase *w, const struct block *block, int64_t until, int is_freed)
{
    const int64_t born = (int64_t)block->time_ns;
    const struct phase *p = born < w->last_end ? phase_outlived(w, block) : NULL;
    const int is_held = p && is_long(w, p);
    const struct phase *through = p && p->is_again && !is_held ? held_through(w, p, until) : NULL;
    /* of it the others tell what it is */
    const int is_last = p && p->is_again && p->next == NONE && p->parent == NONE && !through;
    struct held *h = is_last || is_held || through ? held_at(w, p, block->site_id) : NULL;
    if (!h)
        return;
    if (!is_last)
        h->phase_count += is_first(w, h, p, COUNTED);
    if (is_held)
        h->long_count += is_first(w, h, p, COUNTED_LONG);
    h->block_count++;
    h->through_count += through != NULL;
    if (through && through->end_ns - through->start_ns >= h->through_ns) {
        h->through_ns = through->end_ns - through->start_ns;
        h->through = through->name;
    }
    h->freed_count += is_freed;
    sum_add(&h->bytes, rule_sane((int64_t)block->size_bytes));
    if (w->now_ns - p->end_ns > h->longest_ns)
        h->longest_ns = w->now_ns - p->end_ns;
    if (w->change_count < CHANGES_MAX)
        saving_add(&h->saving, p->end_event, until, (int64_t)block->size_bytes);
    else
        saving_leave_out(&h->saving, (int64_t)block->size_bytes);
    w->change_count += 2;
}

void watch_phase_see(void *watch, const struct pass_event *e)
{
    struct watch_phase *w = watch;
    w->now_ns = rule_sane((int64_t)e->event->time_ns);
    for (; w->next_edge < w->edge_count && w->edges[w->next_edge].time_ns <= w->now_ns; w->next_edge++) {
        const struct edge *edge = &w->edges[w->next_edge];
        if (edge->is_end)
            w->phases[edge->phase].end_event = w->last_end = e->number;
        else
            w->phases[edge->phase].first_event = e->number;
    }
    if (e->block)
        look_at(w, e->block, e->number, 1);
}

/* --- what is said --------------------------------------------------------------------------------------------------
 */

static void say(struct rules *r, const struct watch_phase *w, struct held *h)
{
    struct finding *f = rule_finding(r, r->device->name);
    finding_line(r, f, h->site_id, "run");
    finding_say(f, " allocated %s in %s block%s in %s", units_bytes(r->a, h->bytes), units_count(r->b, h->block_count),
                h->block_count == 1 ? "" : "s", w->all.names[h->name]);
    const int is_through = h->through_count > h->block_count / 2;
    const int64_t count = is_through || !h->is_again ? h->phase_count : h->long_count;
    if (is_through) {
        f->severity = FINDING_INFO;
        finding_say(f, " which were held while %s ran, and freed behind it, in %s of %u executions.",
                    w->all.names[h->through], units_count(r->c, count), w->ended[h->name]);
        f->next = "Unless that one needs it, free it where its own phase ends.";
    } else if (h->is_again) {
        finding_say(f, " which were still live when the next execution of that had ended, in %s of %u executions.",
                    units_count(r->c, count), w->ended[h->name]);
        f->next = "Unless the next ones need it, free it where its phase ends.";
    } else {
        f->severity = FINDING_INFO;
        finding_say(f, " which lived on for up to %s after that had ended.", units_ns(r->c, h->longest_ns));
        f->next = "Unless it is needed later, it could be freed where the phase ends.";
    }
    finding_number(f, "held_bytes", h->bytes);
    finding_number(f, "block_count", h->block_count);
    finding_number(f, "execution_count", count);
    finding_number(f, "longest_ns", h->longest_ns);
    finding_saves(r, f, &h->saving, FINDING_EXACT);
    /* holding what is not in the way of the peak is no news */
    if (f->saved_bytes <= f->peak_bytes / (is_through ? THROUGH_SHARE : h->is_again ? 100 : ONCE_SHARE))
        finding_lessen(f);
}

/* What is held in every execution; what is never freed is a leak, and what grows find_steps.c's. */
static int is_telling(const struct watch_phase *w, const struct held *h)
{
    return h->is_again ? h->phase_count >= AGAIN_LEAST && h->phase_count >= w->ended[h->name] / HELD_SHARE &&
                             h->freed_count >= h->block_count / 2
                       : h->freed_count > 0;
}

static void end(struct rules *r, struct watch_phase *w)
{
    for (size_t i = 0; i < r->pass->gone_count; i++)
        look_at(w, &r->pass->gone[i].block, r->pass->gone[i].end_event, 0);
    w->last_end = 0;
}

void find_phase(struct rules *r)
{
    struct watch_phase *w = r->watch[WATCH_phase];
    if (w && w->last_end)
        end(r, w);
    for (uint32_t shown = 0; w && shown < FINDINGS_MOST; shown++) {
        struct held *best = NULL;
        for (uint32_t i = 0; i < w->held_count; i++) {
            struct held *h = &w->held[i];
            if (r->lines[h->line].device_id == r->device->device_id && h->bytes > 0 && is_telling(w, h) &&
                (!best || h->bytes > best->bytes))
                best = h;
        }
        if (!best)
            return;
        say(r, w, best);
        best->bytes = 0;
    }
}
