/*
 * What grows from one execution of a range to the next. Each site is looked at alone, at the end of each execution:
 * what it then holds is a series. One that only moves up and down, or rises once, is none that grows: the medians of
 * the eight parts of the executions must rise from each to the next (or fall, for what shrinks). Of what fills and
 * empties at random, however slowly, one in a hundred or less does that. Growth is then the median of the slopes of all
 * pairs (Theil-Sen), which a few odd executions do not move. What was measured is the sum over the sites.
 */
#include "check_private.h"
#include "held.h"

#include "../../common/array.h"
#include "../../common/db.h"
#include "../../common/units.h"

#include <errno.h>
#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    EXECUTIONS_LEAST = 5,      /* after warming up, to tell what grows */
    EXECUTIONS_MAX = 10000000, /* of one range in a recording */
    PARTS = 8,
    SAMPLES_MAX = 200, /* of more executions as many are looked at, evenly */
    CHANGES_MAX = 1 << 24,
    LINES_MAX = 1000,
    NAMES_MAX = 5 /* of ranges that a message lists */
};

struct change {    /* of what a site holds, from one sample to the next */
    uint32_t next; /* the change before it, + 1 */
    uint32_t sample;
    int64_t bytes;
};

struct growth {
    struct check_measure *m;
    struct check_result *result;
    int64_t *ends; /* of the executions, in order */
    int count, capacity;
    int64_t numbers[SAMPLES_MAX]; /* which executions the samples are */
    int sample_count;
    int64_t times_ns[SAMPLES_MAX];
    struct growth_site {
        int64_t last_bytes; /* at the sample before */
        uint32_t site_id;
        uint32_t newest; /* change + 1 */
    } * sites;
    size_t site_count, site_capacity;
    struct change *changes;
    uint32_t change_count, change_capacity;
    struct growing {
        int64_t site_id;
        double slope;
    } * growing;
    int growing_count, growing_capacity;
};

static int is_range(const char *pattern, const char *name, const char *domain)
{
    struct buf whole = BUF(1 << 16);
    int is_it = strcmp(pattern, name) == 0 || fnmatch(pattern, name, 0) == 0;
    if (!is_it && domain) {
        buf_printf(&whole, "%s:%s", domain, name);
        is_it = !whole.failed && (strcmp(pattern, buf_text(&whole)) == 0 || fnmatch(pattern, buf_text(&whole), 0) == 0);
    }
    buf_free(&whole);
    return is_it;
}

static int by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* The value that would stand at a place if they were sorted; they are then parted there. */
static double select_value(double *values, int count, int place)
{
    for (int low = 0, high = count - 1; low < high;) {
        const double pivot = values[low + (high - low) / 2];
        int i = low, k = high;
        while (i <= k) {
            while (values[i] < pivot)
                i++;
            while (values[k] > pivot)
                k--;
            if (i <= k) {
                double other = values[i];
                values[i++] = values[k];
                values[k--] = other;
            }
        }
        if (place <= k)
            high = k;
        else if (place >= i)
            low = i;
        else
            break;
    }
    return values[place];
}

static int load_executions(struct growth *g, struct error *err)
{
    sqlite3_stmt *s = NULL;
    int rc = db_prepare(g->m->db, "SELECT name, domain, end_ns FROM mark WHERE is_range = 1 AND end_ns IS NOT NULL", &s,
                        err);
    while (rc == 0 && db_next(s, &rc, err)) {
        if (!is_range(g->result->subject, db_text(s, 0), (const char *)sqlite3_column_text(s, 1)))
            continue;
        if (g->count == EXECUTIONS_MAX)
            break;
        *ARRAY_ADD(g->ends, g->count, g->capacity) = sqlite3_column_int64(s, 2);
    }
    sqlite3_finalize(s);
    if (g->count)
        qsort(g->ends, (size_t)g->count, sizeof *g->ends, by_number);
    return rc;
}

static int unknown(struct growth *g, const char *why)
{
    g->result->verdict = CHECK_UNKNOWN;
    snprintf(g->result->note, sizeof g->result->note, "%s", why);
    return 0;
}

/* The names that there are, for who mistyped one. */
static int no_range(struct growth *g, struct error *err)
{
    struct buf text = BUF(sizeof g->result->note);
    sqlite3_stmt *s = NULL;
    int count = 0, rc = db_prepare(g->m->db, "SELECT DISTINCT name FROM mark WHERE is_range = 1 LIMIT 6", &s, err);
    while (rc == 0 && db_next(s, &rc, err)) {
        buf_printf(&text, "%s%.40s", !count ? "no such range was closed; the recording has: " : ", ", db_text(s, 0));
        if (++count == NAMES_MAX)
            break;
    }
    sqlite3_finalize(s);
    unknown(g, count ? buf_text(&text) : "the recording has no ranges (memprof.h, NVTX)");
    buf_free(&text);
    return rc;
}

/* --- what each site held --- */

static int take_sample(void *arg, int sample, const struct held_site *sites, size_t count)
{
    struct growth *g = arg;
    ARRAY_ROOM_ZERO(g->sites, count, g->site_capacity);
    g->site_count = count;
    for (size_t i = 0; i < count; i++) {
        struct growth_site *site = &g->sites[i];
        if (sites[i].bytes == site->last_bytes)
            continue;
        if (g->change_count == CHANGES_MAX)
            return -E2BIG;
        struct change *c = ARRAY_ADD(g->changes, g->change_count, g->change_capacity);
        *c = (struct change){site->newest, (uint32_t)sample, sites[i].bytes};
        site->site_id = sites[i].site_id;
        site->newest = g->change_count;
        site->last_bytes = sites[i].bytes;
    }
    return 0;
}

static void choose_samples(struct growth *g, int64_t warmup)
{
    int64_t rest = g->count - warmup;
    g->sample_count = rest < SAMPLES_MAX ? (int)rest : SAMPLES_MAX;
    for (int i = 0; i < g->sample_count; i++)
        g->numbers[i] = warmup + (rest - 1) * i / (g->sample_count - 1);
    for (int i = 0; i < g->sample_count; i++)
        g->times_ns[i] = g->ends[g->numbers[i]];
}

/* --- series --- */

static void fill_series(const struct growth *g, size_t site, int64_t series[SAMPLES_MAX])
{
    int end = g->sample_count;
    for (uint32_t at = g->sites[site].newest; at; at = g->changes[at - 1].next) {
        const struct change *c = &g->changes[at - 1];
        for (; end > (int)c->sample; end--)
            series[end - 1] = c->bytes;
    }
    for (; end > 0; end--)
        series[end - 1] = 0;
}

/* 1: the median of each part of the executions is above that of the part before; -1: below; 0: neither. */
static int direction(const struct growth *g, const int64_t *series)
{
    const int parts = g->sample_count < PARTS ? g->sample_count : PARTS;
    double values[SAMPLES_MAX], before = 0;
    int rises = 0, falls = 0;
    for (int part = 0; part < parts; part++) {
        const int first = g->sample_count * part / parts, count = g->sample_count * (part + 1) / parts - first;
        for (int i = 0; i < count; i++)
            values[i] = (double)series[first + i];
        double median = select_value(values, count, count / 2);
        rises += part && median > before;
        falls += part && median < before;
        before = median;
    }
    return rises == parts - 1 ? 1 : falls == parts - 1 ? -1 : 0;
}

static double median_slope(const struct growth *g, const int64_t *series, double *slopes)
{
    int count = 0;
    for (int i = 0; i < g->sample_count; i++)
        for (int k = i + 1; k < g->sample_count; k++)
            slopes[count++] = ((double)series[k] - (double)series[i]) / (double)(g->numbers[k] - g->numbers[i]);
    double high = select_value(slopes, count, count / 2);
    return count % 2 ? high : (select_value(slopes, count, count / 2 - 1) + high) / 2;
}

static void find_growing(struct growth *g)
{
    int64_t series[SAMPLES_MAX];
    double *slopes = xcalloc((size_t)SAMPLES_MAX * SAMPLES_MAX / 2, sizeof *slopes);
    for (size_t i = 0; i < g->site_count; i++) {
        if (!g->sites[i].newest)
            continue;
        fill_series(g, i, series);
        if (!direction(g, series))
            continue;
        double slope = median_slope(g, series, slopes);
        if (slope != 0)
            *ARRAY_ADD(g->growing, g->growing_count, g->growing_capacity) =
                (struct growing){g->sites[i].site_id, slope};
    }
    free(slopes);
}

/* --- sites to lines --- */

static int by_slope(const void *a, const void *b)
{
    const struct check_culprit *x = a, *y = b;
    return x->slope != y->slope ? (x->slope < y->slope ? 1 : -1)
                                : (x->stack_id > y->stack_id) - (x->stack_id < y->stack_id);
}

static int is_same_line(const struct check_culprit *c, const char *function, const char *file, int64_t line,
                        const char *device)
{
    return c->line == line && strcmp(c->function, function) == 0 && strcmp(c->file ? c->file : "", file) == 0 &&
           strcmp(c->device, device) == 0;
}

/* The sum of its line so far, or a new one; NULL: there are so many that nobody reads this one. */
static struct check_culprit *line_of(struct check_result *r, sqlite3_stmt *s)
{
    const char *device = db_text(s, 1), *function = db_text(s, 2), *file = db_text(s, 3);
    const int64_t line = sqlite3_column_int64(s, 4);
    for (int i = 0; i < r->culprit_count; i++)
        if (is_same_line(&r->culprits[i], function, file, line, device))
            return &r->culprits[i];
    if (r->culprit_count == LINES_MAX)
        return NULL;
    struct check_culprit *c = check_add_culprit(r);
    *c = (struct check_culprit){.device = xstrdup(device),
                                .function = xstrdup(function),
                                .file = *file ? xstrdup(file) : NULL,
                                .line = line,
                                .stack_id = sqlite3_column_int64(s, 0)};
    return c;
}

static int add_site(struct growth *g, const struct growing *growing, sqlite3_stmt *s, struct walk *walk,
                    struct error *err)
{
    const struct check_options *o = g->m->options;
    struct walk_stack stack;
    int rc = 0;
    sqlite3_reset(s);
    sqlite3_bind_int64(s, 1, growing->site_id);
    sqlite3_bind_text(s, 2, o->device, -1, SQLITE_STATIC);
    sqlite3_bind_text(s, 3, o->kind, -1, SQLITE_STATIC);
    if (!db_next(s, &rc, err))
        return rc;
    if (o->suppressions && o->suppressions->count) {
        rc = walk_stack(walk, sqlite3_column_int64(s, 0), &stack, err);
        if (rc || check_is_suppressed(o->suppressions, &stack))
            return rc;
    }
    struct check_culprit *line = line_of(g->result, s);
    g->result->slope += growing->slope;
    if (line)
        line->slope += growing->slope;
    return 0;
}

static int sum_up(struct growth *g, struct error *err)
{
    struct walk *walk = NULL;
    sqlite3_stmt *s = NULL;
    struct check_result *r = g->result;
    int rc = walk_open(g->m->db, g->m->options->lens ? g->m->options->lens->language : TREE_BOTH, &walk, err);
    if (rc == 0)
        rc = db_prepare(g->m->db,
                        "SELECT s.stack_id, d.name, coalesce(" ROW_FUNCTION_SQL ", '?'), f.path, l.line FROM site s "
                        "JOIN device d USING(device_id) LEFT JOIN site_line sl USING(site_id) LEFT JOIN line l "
                        "USING(line_id) LEFT JOIN function fn ON fn.function_id = l.function_id LEFT JOIN file f ON "
                        "f.file_id = l.file_id LEFT JOIN module_key m ON m.key_id = l.module_key_id WHERE s.site_id = "
                        "?1 AND (?2 IS NULL OR d.name = ?2) AND (?3 IS NULL OR ?3 IN ('all', s.kind))",
                        &s, err);
    for (int i = 0; rc == 0 && i < g->growing_count; i++)
        rc = add_site(g, &g->growing[i], s, walk, err);
    sqlite3_finalize(s);
    walk_close(walk);
    int kept = 0;
    if (r->culprit_count)
        qsort(r->culprits, (size_t)r->culprit_count, sizeof *r->culprits, by_slope);
    for (int i = 0; i < r->culprit_count; i++) {
        struct check_culprit *c = &r->culprits[i];
        if (c->slope > 0 && (!g->m->options->top || kept < g->m->options->top)) {
            c->value = llround(c->slope);
            r->culprits[kept++] = *c;
        } else {
            check_free_culprit(c);
        }
    }
    r->culprit_count = kept;
    return rc;
}

static int measure(struct growth *g, int64_t warmup, struct error *err)
{
    struct check_result *r = g->result;
    choose_samples(g, warmup);
    int rc = held_at(g->m->db, g->times_ns, g->sample_count, take_sample, g, err);
    if (rc == -ENODATA)
        return unknown(g, "not all events around its executions were kept, or some are damaged");
    if (rc == -E2BIG)
        return unknown(g, "too many sites change in each execution");
    if (rc == 0) {
        find_growing(g);
        rc = sum_up(g, err);
    }
    r->is_known = rc == 0;
    r->measured = llround(r->slope);
    r->verdict = r->slope > (double)r->limit ? CHECK_BROKEN : CHECK_KEPT;
    char text[UNITS_TEXT];
    snprintf(r->note, sizeof r->note, "%s executions, the first %lld left out", units_count(text, g->count),
             (long long)warmup);
    return rc;
}

int check_growth(struct check_measure *m, struct check_result *result, struct error *err)
{
    struct growth g = {.m = m, .result = result};
    const struct check_rules *rules = m->options->rules;
    int64_t warmup = rules->has_warmup ? rules->warmup : CHECK_WARMUP;
    int rc = load_executions(&g, err);
    if (rc == 0 && !g.count) {
        rc = no_range(&g, err);
    } else if (rc == 0 && g.count - warmup < EXECUTIONS_LEAST) {
        unknown(&g, "");
        snprintf(result->note, sizeof result->note,
                 "%d executions, of which the first %lld do not count: at least %d are needed to tell what grows",
                 g.count, (long long)warmup, EXECUTIONS_LEAST);
    } else if (rc == 0 && m->options->lens && m->options->lens->pid) {
        rc = unknown(&g, "growth is measured over all processes; leave out --process");
    } else if (rc == 0) {
        rc = measure(&g, warmup, err);
    }
    free(g.ends);
    free(g.sites);
    free(g.changes);
    free(g.growing);
    return rc;
}
