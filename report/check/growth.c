/*
 * What grows from one execution of a range to the next: the executions, and what each site held at the end of each.
 */
#include "growth.h"

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
    CHANGES_MAX = 1 << 24,
    NAMES_MAX = 5 /* of ranges that a message lists */
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
        struct growth_change *c = ARRAY_ADD(g->changes, g->change_count, g->change_capacity);
        *c = (struct growth_change){site->newest, (uint32_t)sample, sites[i].bytes};
        site->site_id = sites[i].site_id;
        site->newest = g->change_count;
        site->last_bytes = sites[i].bytes;
    }
    return 0;
}

static void choose_samples(struct growth *g, int64_t warmup)
{
    int64_t rest = g->count - warmup;
    g->sample_count = rest < GROWTH_SAMPLES ? (int)rest : GROWTH_SAMPLES;
    for (int i = 0; i < g->sample_count; i++)
        g->numbers[i] = warmup + (rest - 1) * i / (g->sample_count - 1);
    for (int i = 0; i < g->sample_count; i++)
        g->times_ns[i] = g->ends[g->numbers[i]];
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
    if (rc == 0)
        rc = growth_sum_up(g, err);
    r->is_known = rc == 0;
    r->measured = llround(r->slope);
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
    return rc;
}
