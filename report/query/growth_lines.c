/* What grows, by site and by line. */
#include "growth.h"

#include "../../common/array.h"
#include "../../common/db.h"
#include "../../common/map.h"
#include "../../common/wrap.h"
#include "device.h"
#include "growth_private.h"
#include "rows.h"
#include "theil_sen.h"
#include "walk.h"

#include <stdlib.h>
#include <string.h>

enum { PARTS = 8, LINES_MAX = 20000 };
/* Of sites there are many, of which any may look as if it grew; of what grows by ever less a sum is the place. */
#define SITE_STRAIGHT 0.95
#define SUM_STRAIGHT  0.85
/* Where the place it begins at may be chosen, more of what is random looks straight. */
#define LATE_STRAIGHT 0.98

struct line_sum {
    int64_t series[GROWTH_SAMPLES]; /* the sum of the sites that do not grow by themselves */
    double slope;                   /* of its sites that do; then with that of the sum */
    uint32_t site_id;               /* the one that grew most, */
    double site_slope;              /* by so much, */
    int first;                      /* from this sample on; 0: throughout */
};

struct lines {
    struct growth *g;
    sqlite3 *db;
    const struct growth_filter *filter;
    struct map number_of; /* of line and device */
    struct line_sum *line;
    uint32_t count, capacity;
    struct line_sum total;
};

static void fill_series(const struct growth *g, size_t site, int64_t series[GROWTH_SAMPLES])
{
    int end = g->sample_count;
    for (uint32_t at = g->sites[site].newest; at; at = g->changes[at - 1].next) {
        const struct growth_change *c = &g->changes[at - 1];
        for (; end > (int)c->sample; end--)
            series[end - 1] = c->bytes;
    }
    for (; end > 0; end--)
        series[end - 1] = 0;
}

/* How much of its variance from a sample on a straight line takes. */
static double straightness(const struct growth *g, const int64_t *series, int from)
{
    const int count = g->sample_count - from;
    double x = 0, y = 0, xx = 0, yy = 0, xy = 0;
    for (int i = from; i < g->sample_count; i++) {
        x += (double)g->numbers[i] / count;
        y += (double)series[i] / count;
    }
    for (int i = from; i < g->sample_count; i++) {
        double dx = (double)g->numbers[i] - x, dy = (double)series[i] - y;
        xx += dx * dx;
        yy += dy * dy;
        xy += dx * dy;
    }
    return yy > 0 ? xy * xy / xx / yy : 0;
}

/* 1: the median of each part of the executions is above that of the part before, and all near a line; -1: below; 0:
 * neither. */
static int direction(const struct growth *g, const int64_t *series, int from, double straight)
{
    const int samples = g->sample_count - from, parts = samples < PARTS ? samples : PARTS;
    double values[GROWTH_SAMPLES], before = 0;
    int rises = 0, falls = 0;
    for (int part = 0; part < parts; part++) {
        const int first = samples * part / parts, count = samples * (part + 1) / parts - first;
        for (int i = 0; i < count; i++)
            values[i] = (double)series[from + first + i];
        double median = theil_sen_select(values, (size_t)count, (size_t)count / 2);
        rises += part && median > before;
        falls += part && median < before;
        before = median;
    }
    if ((rises < parts - 1 && falls < parts - 1) || straightness(g, series, from) < straight)
        return 0;
    return rises ? 1 : -1;
}

/* The sample at which a level that a line leaves there fits the series best; 0: none that leaves enough behind it, or
 * it does not fit. */
static int corner(const struct growth *g, const int64_t *series)
{
    const int count = g->sample_count;
    const int64_t end = g->numbers[count - 1], rest = end - g->numbers[0] + 1;
    const int64_t least = rest / 3 > GROWTH_LATE_LEAST ? rest / 3 : GROWTH_LATE_LEAST;
    double mean = 0, all = 0, best = 0;
    int at = 0;
    for (int i = 0; i < count; i++)
        mean += (double)series[i] / count;
    for (int i = 0; i < count; i++)
        all += ((double)series[i] - mean) * ((double)series[i] - mean);
    double n = 0, x = 0, xx = 0, y = 0, xy = 0; /* sums behind the corner, x from the end on, y from the mean */
    for (int i = count - 1; i > 0; i--) {
        const double k = (double)(g->numbers[i] - end), high = (double)series[i] - mean;
        n++, x += k, xx += k * k, y += high, xy += k * high;
        const double sum = x - n * k, squares = xx - 2 * k * x + n * k * k - sum * sum / count, both = xy - k * y;
        const double fit = squares > 0 && all > 0 ? both * both / squares / all : 0;
        if (end - g->numbers[i] >= least && fit > best) {
            best = fit;
            at = i;
        }
    }
    return best >= LATE_STRAIGHT ? at : 0;
}

static double median_slope(const struct growth *g, const int64_t *series, int from)
{
    return theil_sen_slope(g->numbers + from, series + from, (size_t)(g->sample_count - from));
}

/* What a site grows by, from sample *first on (0: throughout); 0 where it does not. */
static double site_slope(const struct growth *g, const int64_t *series, int *first)
{
    *first = 0;
    if (direction(g, series, 0, SITE_STRAIGHT))
        return median_slope(g, series, 0);
    *first = corner(g, series);
    if (*first && direction(g, series, *first, LATE_STRAIGHT))
        return median_slope(g, series, *first);
    return *first = 0;
}

static void add_to(int64_t *sum, const int64_t *series, int count)
{
    for (int i = 0; i < count; i++)
        wrap_change(&sum[i], (uint64_t)series[i]);
}

static void add_site(struct lines *l, size_t site, struct line_sum *line)
{
    const struct growth *g = l->g;
    int64_t series[GROWTH_SAMPLES];
    fill_series(g, site, series);
    int first;
    double slope = site_slope(g, series, &first);
    double rise = slope != 0 ? slope
                             : ((double)series[g->sample_count - 1] - (double)series[0]) /
                                   (double)(g->numbers[g->sample_count - 1] - g->numbers[0]);
    struct line_sum *const sums[] = {&l->total, line};
    for (int i = 0; i < 2 && sums[i]; i++) {
        sums[i]->slope += slope;
        if (slope == 0)
            add_to(sums[i]->series, series, g->sample_count);
    }
    if (!line)
        return;
    if (!line->site_id || rise > line->site_slope) {
        line->site_id = g->sites[site].site_id;
        line->site_slope = rise;
        line->first = first;
    }
}

/* NULL: there are so many that nobody reads this one. */
static struct line_sum *line_of(struct lines *l, int64_t line_id, int64_t device_id)
{
    if (l->count == LINES_MAX && map_number(&l->number_of, (uint64_t)line_id, (uint64_t)device_id) == MAP_NONE)
        return NULL;
    uint32_t number = map_number_or(&l->number_of, (uint64_t)line_id, (uint64_t)device_id, l->count);
    if (number == l->count)
        ARRAY_ADD(l->line, l->count, l->capacity);
    return &l->line[number];
}

/* All sites that changed and are neither filtered out nor suppressed. */
static int add_sites(struct lines *l, struct walk *walk, struct error *err)
{
    struct growth *g = l->g;
    const struct growth_filter *o = l->filter;
    const int has_patterns = o->suppressions && o->suppressions->count;
    struct map index = {0};
    sqlite3_stmt *s = NULL;
    for (size_t i = 0; i < g->site_count; i++)
        if (g->sites[i].newest)
            map_set_number(&index, g->sites[i].site_id, 0, (uint32_t)i);
    int rc = db_prepare(l->db,
                        "SELECT s.site_id, s.stack_id, coalesce(sl.line_id, 0), s.device_id FROM site s LEFT JOIN "
                        "site_line sl USING(site_id) WHERE " DEVICE_ID_IS(
                            "s.device_id", "?1") " AND (?2 IS NULL OR ?2 IN ('all', s.kind))",
                        &s, err);
    if (rc == 0) {
        sqlite3_bind_text(s, 1, o->device, -1, SQLITE_STATIC);
        sqlite3_bind_text(s, 2, o->kind, -1, SQLITE_STATIC);
    }
    while (rc == 0 && db_next(s, &rc, err)) {
        uint32_t site = map_number(&index, (uint64_t)sqlite3_column_int64(s, 0), 0);
        struct walk_stack stack;
        if (site == MAP_NONE)
            continue;
        if (has_patterns) {
            rc = walk_stack(walk, sqlite3_column_int64(s, 1), &stack, err);
            if (rc || suppressed_by(o->suppressions, &stack) >= 0)
                continue;
        }
        add_site(l, site, line_of(l, sqlite3_column_int64(s, 2), sqlite3_column_int64(s, 3)));
    }
    sqlite3_finalize(s);
    map_close(&index);
    return rc;
}

/* --- lines --- */

/* Of a sum only what grows throughout: the noise of others makes a full cache among them look as if it still rose. */
static double slope_of(const struct lines *l, const struct line_sum *line)
{
    return line->slope + (direction(l->g, line->series, 0, SUM_STRAIGHT) ? median_slope(l->g, line->series, 0) : 0);
}

static int by_slope(const void *a, const void *b)
{
    const struct line_sum *x = a, *y = b;
    if (x->slope != y->slope)
        return x->slope < y->slope ? 1 : -1;
    return (x->site_id > y->site_id) - (x->site_id < y->site_id);
}

static int add_line(const struct growth *g, struct growth_result *r, const struct line_sum *line, sqlite3_stmt *s,
                    struct error *err)
{
    int rc = 0;
    sqlite3_reset(s);
    sqlite3_bind_int64(s, 1, line->site_id);
    if (db_next(s, &rc, err))
        *ARRAY_ADD(r->line, r->line_count, r->line_capacity) =
            (struct growth_line){.slope = line->slope,
                                 .from = line->first ? g->indexes[line->first] + 1 : 0,
                                 .count = g->numbers[g->sample_count - 1] - g->numbers[line->first] + 1,
                                 .site_id = line->site_id,
                                 .stack_id = sqlite3_column_int64(s, 0),
                                 .device = db_own_text(s, 1),
                                 .function = db_own_text(s, 2),
                                 .file = db_own_text(s, 3),
                                 .line = sqlite3_column_int64(s, 4)};
    return rc;
}

static int add_lines(struct lines *l, struct growth_result *r, struct error *err)
{
    sqlite3_stmt *s = NULL;
    for (uint32_t i = 0; i < l->count; i++)
        l->line[i].slope = slope_of(l, &l->line[i]);
    if (l->count)
        qsort(l->line, l->count, sizeof *l->line, by_slope);
    int rc = db_prepare(l->db,
                        "SELECT s.stack_id, d.name, " ROW_FUNCTION_SQL ", f.path, l.line FROM site s "
                        "JOIN device d USING(device_id) LEFT JOIN site_line sl USING(site_id) LEFT JOIN line l "
                        "USING(line_id) LEFT JOIN function fn ON fn.function_id = l.function_id LEFT JOIN file f ON "
                        "f.file_id = l.file_id LEFT JOIN module_key m ON m.key_id = l.module_key_id WHERE s.site_id = "
                        "?1",
                        &s, err);
    for (uint32_t i = 0; rc == 0 && i < l->count && l->line[i].slope > 0; i++)
        rc = add_line(l->g, r, &l->line[i], s, err);
    sqlite3_finalize(s);
    return rc;
}

int growth_sum_up(struct growth *g, sqlite3 *db, const struct growth_filter *filter, int with_lines,
                  struct growth_result *result, struct error *err)
{
    struct lines l = {.g = g, .db = db, .filter = filter};
    struct walk *walk = NULL;
    *result = (struct growth_result){.slope = 0};
    int rc = walk_open(db, filter->language, &walk, err);
    if (rc == 0)
        rc = add_sites(&l, walk, err);
    if (rc == 0)
        result->slope = slope_of(&l, &l.total);
    if (rc == 0 && with_lines)
        rc = add_lines(&l, result, err);
    walk_close(walk);
    map_close(&l.number_of);
    free(l.line);
    return rc;
}

void growth_result_free(struct growth_result *r)
{
    for (int i = 0; i < r->line_count; i++) {
        free(r->line[i].device);
        free(r->line[i].function);
        free(r->line[i].file);
    }
    free(r->line);
    *r = (struct growth_result){.slope = 0};
}
