#include "../../common/array.h"
#include "../../common/db.h"
#include "../../common/wrap.h"
#include "../query/at.h"
#include "../query/site_rows.h"
#include "rules.h"

#include <stdlib.h>
#include <string.h>

#define POINTS      GROWTH_POINTS
#define LEAST_NS    20000000
#define RATE_NS     10000000000 /* below, a start is most of the run: it says nothing of the time after */
#define LEAST_BYTES 65536
#define LARGE       (1 << 20)
#define LEFT_SHARE  10  /* a part that may be left where it was given back */
#define EVEN_COUNT  100 /* so many blocks, of which a tenth may have been freed: */
#define EVEN_PARTS  3   /* parts of the time since the first of them came, */
#define EVEN_SHARE  16  /* in each of which so much of it came at least. */
#define EVEN_STEPS  8   /* of eleven, that this time is at least; */
#define EVEN_STILL  2   /* in so many none may have come: a busy machine stops a program now and then */

struct points {
    struct rules *r;
    int64_t *live, *recorded; /* of the lines, at each point */
    int first, last;          /* at which what comes was there */
};

static struct rule_even *even_at(const struct rules *r, int64_t site_id)
{
    const struct rule_site *site = rule_site_of(r, site_id);
    return site && site->even ? &r->even[site->even - 1] : NULL;
}

static void change(const struct points *p, int64_t *live, uint64_t bytes)
{
    for (int i = p->first; i <= p->last; i++)
        wrap_change(&live[i], bytes);
}

static void add(void *arg, uint32_t site_id, uint64_t bytes, uint64_t count)
{
    const struct points *p = arg;
    const struct rule_site *site = rule_site_of(p->r, site_id);
    (void)count;
    if (!site)
        return;
    int64_t *grown = &p->r->sites[site - p->r->sites].grown;
    wrap_change(grown, p->first == 0 ? -bytes : 0);
    wrap_change(grown, p->last == POINTS - 1 ? bytes : 0);
    change(p, &p->live[(size_t)site->line * POINTS], bytes);
    change(p, &p->recorded[(size_t)site->recorded * POINTS], bytes);
    if (site->even)
        change(p, p->r->even[site->even - 1].live, bytes);
}

static void reach(void *arg, int first, int last)
{
    struct points *p = arg;
    p->first = first;
    p->last = last;
}

/* What every line held at one instant. */
static int add_point(struct points *p, int64_t time_ns, int number, int64_t *at_ns)
{
    struct at_result result;
    reach(p, number, number);
    int rc = at_changes(p->r->db, time_ns, add, p, &result, p->r->err);
    *at_ns = result.time_ns;
    return rc == 0 && !result.chunks_damaged;
}

static void clear_points(struct points *p)
{
    struct rules *r = p->r;
    memset(p->live, 0, r->line_count * sizeof *p->live * POINTS);
    memset(p->recorded, 0, r->recorded_count * sizeof *p->recorded * POINTS);
    for (size_t i = 0; i < r->site_count; i++)
        r->sites[i].grown = 0;
    for (size_t i = 0; i < r->even_count; i++)
        memset(r->even[i].live, 0, sizeof r->even[i].live);
}

/* One by one where not all events are kept: an instant may then be that of a key frame. */
static int add_points(struct points *p)
{
    int64_t *at_ns = p->r->growth_ns, due_ns[POINTS];
    int is_known = 1;
    for (int i = 0; i < POINTS; i++)
        due_ns[i] = (int64_t)((double)p->r->duration_ns * (0.1 + 0.85 * i / (POINTS - 1)));
    memcpy(at_ns, due_ns, sizeof due_ns);
    if (at_series(p->r->db, due_ns, POINTS, reach, add, p, p->r->err) == 1)
        return 1;
    clear_points(p);
    for (int i = 0; i < POINTS && is_known; i++)
        is_known = add_point(p, due_ns[i], i, &at_ns[i]) && (i == 0 || at_ns[i] > at_ns[i - 1]);
    return is_known;
}

static void add_even(struct rules *r, int64_t site_id)
{
    const struct rule_site *site = rule_site_of(r, site_id);
    if (!site)
        return;
    *ARRAY_ADD(r->even, r->even_count, r->even_capacity) = (struct rule_even){.site_id = site_id};
    r->sites[site - r->sites].even = (uint32_t)r->even_count;
}

static int load_even(struct rules *r)
{
    enum { ALLOCS, FREES, ENDS, COLUMNS };
    static const enum packed_column columns[COLUMNS] = {PACKED_site_alloc_count, PACKED_site_free_count,
                                                        PACKED_site_end_count};
    struct site_rows rows;
    int rc = site_rows_open(r->db, columns, COLUMNS, &rows, r->err);
    while (rc == 0 && (rc = site_rows_next(&rows, r->err)) == 1) {
        rc = 0;
        if (site_rows_value(&rows, ENDS) >= EVEN_COUNT &&
            site_rows_value(&rows, FREES) <= site_rows_value(&rows, ALLOCS) / 10)
            add_even(r, rows.site_id);
    }
    site_rows_close(&rows);
    return rc;
}

int rule_is_even(const struct rules *r, int64_t site_id)
{
    const struct rule_even *even = r->growth ? even_at(r, site_id) : NULL;
    if (!even)
        return 0;
    const int64_t *live = even->live;
    double all = (double)live[POINTS - 1] - (double)live[0];
    int first = 0, up = 0, is_even = all > 0;
    while (first < POINTS - 1 && live[first + 1] <= live[first])
        first++;
    int steps = POINTS - 1 - first;
    for (int i = first; i < POINTS - 1; i++)
        up += live[i + 1] > live[i];
    for (int part = 0; part < EVEN_PARTS; part++) {
        int begin = first + steps * part / EVEN_PARTS, end = first + steps * (part + 1) / EVEN_PARTS;
        is_even &= (double)live[end] - (double)live[begin] >= all / EVEN_SHARE;
    }
    return is_even && steps >= EVEN_STEPS && up >= steps - EVEN_STILL;
}

int64_t rule_even_bytes(void *rules, int64_t site_id, int64_t end_bytes)
{
    return rule_is_even(rules, site_id) ? rule_sane(end_bytes) : 0;
}

int64_t rule_grown(void *rules, int64_t site_id, int64_t end_bytes)
{
    const struct rule_site *site = rule_site_of(rules, site_id);
    (void)end_bytes;
    return site ? site->grown : 0;
}

static void make_sane(int64_t *live, uint32_t line_count)
{
    for (size_t i = 0; i < (size_t)line_count * POINTS; i++)
        live[i] = (uint64_t)live[i] >> 52 ? 0 : live[i];
}

/* Live bytes by line at POINTS instants spread over the run past its first tenth; the last one well before the end,
 * where programs clean up. Nothing where so many are not known. */
static void load_growth(struct rules *r)
{
    r->has_growth = 1;
    if (!db_int(r->db, RULE_HAS_INSTANTS, 0) || r->duration_ns <= LEAST_NS || rule_lines(r) || load_even(r))
        return;
    int64_t *live = xcalloc((r->line_count + 1ul) * POINTS, sizeof *live);
    int64_t *recorded = xcalloc((r->recorded_count + 1ul) * POINTS, sizeof *recorded);
    const int is_known = add_points(&(struct points){.r = r, .live = live, .recorded = recorded});
    make_sane(live, r->line_count);
    make_sane(recorded, r->recorded_count);
    if (is_known) {
        r->growth = live;
        r->recorded_growth = recorded;
    } else {
        free(live);
        free(recorded);
    }
}

static int64_t grown(const int64_t *live)
{
    return live[POINTS - 1] - live[0];
}

/* Grows in at least ten of eleven steps, as much in the second half as a quarter of all, and by a part of the peak that
 * matters. */
static int grows(const int64_t *live, int64_t least)
{
    int up = 0;
    for (int i = 1; i < POINTS; i++)
        up += live[i] > live[i - 1];
    int64_t all = live[POINTS - 1] - live[0], late = live[POINTS - 1] - live[POINTS / 2];
    return up >= POINTS - 2 && all >= least && late >= all / 4;
}

/* Whether little was left of it at the end: a program that fills something and frees it looks like growth, too. */
static int is_given_back(struct rules *r, const struct rule_recorded *line, int64_t bytes)
{
    const char *table = rule_recorded_table(r->db);
    struct buf sql = BUF(1024);
    buf_printf(&sql,
               "SELECT sum(end_bytes) FROM site s JOIN %s l USING(site_id) WHERE s.device_id = ? AND l.line_id = "
               "(SELECT line_id FROM %s WHERE site_id = ?)",
               table, table);
    int64_t left = rule_query_amount(r, buf_text(&sql), (int64_t[]){line->device_id, line->site_id}, 2, bytes);
    buf_free(&sql);
    return left < bytes / LEFT_SHARE;
}

/* By recorded line, where --skip shows it as several the one of them that grew most. */
static uint32_t *shown_lines(const struct rules *r)
{
    uint32_t *shown = xcalloc(r->recorded_count + 1ul, sizeof *shown); /* + 1 */
    for (size_t i = 0; i < r->site_count; i++) {
        const uint32_t line = r->sites[i].line;
        uint32_t *best = &shown[r->sites[i].recorded];
        if (!*best || grown(&r->growth[(size_t)line * POINTS]) > grown(&r->growth[(*best - 1ul) * POINTS]))
            *best = line + 1;
    }
    return shown;
}

/* --- what it would save ------------------------------------------------------------------------------------------ */

/* What is kept of lines that grow: their blocks that are no temporaries. */
void *watch_growth_open(struct rules *r)
{
    rule_growth(r);
    if (!r->growth)
        return NULL;
    struct line_savings *w = xcalloc(1, sizeof *w);
    line_savings_open(w, r);
    for (size_t i = 0; i < r->site_count; i++)
        if (grows(&r->recorded_growth[(size_t)r->sites[i].recorded * POINTS], LEAST_BYTES))
            line_savings_add(w, &r->lines[r->sites[i].line]);
    return w;
}

void watch_growth_close(void *watch)
{
    line_savings_close(watch);
    free(watch);
}

void watch_growth_see(void *watch, const struct pass_event *e)
{
    struct saving *kept = e->block && !e->is_temporary ? line_savings_of(watch, e->event->site_id) : NULL;
    if (kept)
        saving_add(kept, (int64_t)e->block->time_ns, e->number, (int64_t)e->event->size_bytes);
}

static void say_saving(struct rules *r, struct finding *f, const struct rule_line *line)
{
    struct saving *kept = r->watch[WATCH_growth] ? line_savings_of(r->watch[WATCH_growth], line->site_id) : NULL;
    if (kept) {
        rule_add_gone(r, kept, line, NULL);
        finding_saves(r, f, kept, FINDING_AT_MOST);
    } else {
        finding_saves_at_most(r, f, line->sums[LINE_PEAK_BYTES]);
    }
}

static int site_grows(const struct rules *r, int64_t site_id)
{
    const struct rule_site *site = rule_site_of(r, site_id);
    return site && site->grown > 0;
}

/* number: of the recorded line; shown: of the line that is named. */
static void say(struct rules *r, uint32_t number, uint32_t shown)
{
    const struct rule_line *line = &r->lines[shown];
    const int64_t *live = &r->growth[(size_t)shown * POINTS], *recorded = &r->recorded_growth[(size_t)number * POINTS];
    const int64_t *times = r->growth_ns;
    int64_t span_ns = times[POINTS - 1] - times[0];
    /* what a short run is filling beside what it holds */
    int is_start = span_ns < RATE_NS && rule_percent(grown(recorded), r->device->peak_active) <= 50;
    char rate[UNITS_TEXT];
    struct finding *f = rule_finding(r, r->device->name);
    f->bytes = grown(live);
    finding_line_by(r, f, line->site_id, rule_grown);
    finding_say(f, " held %s at %s and %s at %s%s", units_bytes(r->a, live[0]), units_ns(r->b, times[0]),
                units_bytes(r->c, live[POINTS - 1]), units_ns(r->d, times[POINTS - 1]),
                grows(live, 0) ? ", growing nearly all the way" : "");
    if (span_ns >= RATE_NS) {
        finding_say(f, ": about %s a second.",
                    units_bytes(rate, (int64_t)((double)f->bytes / ((double)span_ns / 1e9))));
    } else {
        f->severity = FINDING_INFO;
        f->title = "Growth all the way";
        finding_say(f, ".");
    }
    if (is_given_back(r, &r->recorded[number], recorded[POINTS - 1])) {
        f->severity = FINDING_INFO;
        f->title = "Growth nearly to the end";
        finding_say(f, " It was given back then.");
    }
    if (grown(recorded) < LARGE || is_start)
        finding_lessen(f);
    f->next = "A cache without a limit, or a list that is only added to, looks like this.";
    if (!finding_runtime(r, f, line->site_id) && !finding_keeper(r, f, line, site_grows))
        finding_passed(r, f, line, rule_grown);
    finding_number(f, "grown_bytes", grown(recorded));
    finding_number(f, "span_ns", span_ns);
    say_saving(r, f, line);
}

void rule_growth(struct rules *r)
{
    if (!r->has_growth)
        load_growth(r);
}

struct grower { /* a recorded line */
    uint32_t line;
    int64_t grown;
};

static int by_growth(const void *a, const void *b)
{
    const struct grower *x = a, *y = b;
    if (x->grown != y->grown)
        return x->grown > y->grown ? -1 : 1;
    return (x->line > y->line) - (x->line < y->line);
}

/* Those of the device, most first. */
static struct grower *list_growers(const struct rules *r, uint32_t *count)
{
    const struct rule_device *d = r->device;
    const int64_t least = d->peak_active / 50 > LEAST_BYTES ? d->peak_active / 50 : LEAST_BYTES;
    struct grower *growers = NULL;
    uint32_t capacity = 0;
    *count = 0;
    for (uint32_t line = 0; line < r->recorded_count; line++) {
        const int64_t *live = &r->recorded_growth[(size_t)line * POINTS];
        if (r->recorded[line].device_id == d->device_id && grows(live, least))
            *ARRAY_ADD(growers, *count, capacity) = (struct grower){line, grown(live)};
    }
    if (*count)
        qsort(growers, *count, sizeof *growers, by_growth);
    return growers;
}

static int is_among(const uint32_t *lines, uint32_t count, uint32_t line)
{
    for (uint32_t i = 0; i < count; i++)
        if (lines[i] == line)
            return 1;
    return 0;
}

void find_growth(struct rules *r)
{
    rule_growth(r);
    if (!r->growth || rule_replaces_unseen(r))
        return;
    uint32_t grower_count, count = 0, *shown = shown_lines(r);
    struct grower *growers = list_growers(r, &grower_count);
    uint32_t *named = xcalloc(grower_count + 1ul, sizeof *named);
    for (uint32_t i = 0; i < grower_count && count < FINDINGS_MOST; i++) {
        const uint32_t line = shown[growers[i].line] - 1;
        if (is_among(named, count, line)) /* two wrappers of one caller */
            continue;
        named[count++] = line;
        say(r, growers[i].line, line);
    }
    free(named);
    free(growers);
    free(shown);
}
