/* The executions that are looked at, and what each site held at the end of each. */
#include "growth.h"

#include "../../common/array.h"
#include "growth_private.h"

#include <errno.h>
#include <stdlib.h>

enum { CHANGES_MAX = 1 << 24 };

static int by_end(const void *a, const void *b, void *arg)
{
    const struct execution *all = arg;
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    if (all[x].end_ns != all[y].end_ns)
        return all[x].end_ns < all[y].end_ns ? -1 : 1;
    return (x > y) - (x < y);
}

struct growth *growth_open(const struct executions *e, int64_t warmup, int64_t *rest)
{
    struct growth *g = xcalloc(1, sizeof *g);
    g->ends = xcalloc(e->count + 1ul, sizeof *g->ends);
    for (uint32_t i = 0; i < e->count; i++)
        if (e->execution[i].is_ended)
            g->ends[g->count++] = i;
    *rest = warmup < (int64_t)g->count ? (int64_t)g->count - warmup : 0;
    if (*rest < GROWTH_LEAST) {
        growth_close(g);
        return NULL;
    }
    qsort_r(g->ends, g->count, sizeof *g->ends, by_end, e->execution);
    g->warmup = (size_t)warmup;
    g->sample_count = *rest < GROWTH_SAMPLES ? (int)*rest : GROWTH_SAMPLES;
    for (int i = 0; i < g->sample_count; i++) {
        g->numbers[i] = warmup + (*rest - 1) * i / (g->sample_count - 1);
        g->indexes[i] = g->ends[g->numbers[i]];
    }
    return g;
}

void growth_close(struct growth *g)
{
    if (!g)
        return;
    free(g->ends);
    free(g->sites);
    free(g->changes);
    free(g);
}

static int take_sample(void *arg, int sample, const struct at_live *sites, size_t count)
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
        site->site_id = (uint32_t)sites[i].site_id;
        site->newest = g->change_count;
        site->last_bytes = sites[i].bytes;
    }
    return 0;
}

const uint32_t *growth_ends(const struct growth *g, size_t *count)
{
    *count = g->count - g->warmup;
    return g->ends + g->warmup;
}

void growth_samples(struct growth *g, struct executions_samples *samples)
{
    *samples =
        (struct executions_samples){.indexes = g->indexes, .count = g->sample_count, .take = take_sample, .arg = g};
}
