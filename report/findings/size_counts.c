#include "size_counts.h"

#include "../../common/array.h"

#include <stdlib.h>

#define SIZES_MAX (1 << 22) /* of all stacks */

/* A malloc and its free, as measured with glibc (docs/advise.md): from what a thread keeps by size, from its arena,
 * and with a mapping of its own. */
#define MAPPED_BYTES (32 << 20)
#define CACHED_NS    20
#define ARENA_NS     50
#define MAPPED_NS    20000
#define WORTH_NS     10000000
#define WORTH_SHARE  200 /* a part of the run, which takes longer as it is recorded */

struct size_counts *size_counts_open(const struct rules *r)
{
    struct size_counts *all = xcalloc(1, sizeof *all);
    all->r = r;
    return all;
}

void size_counts_close(struct size_counts *all)
{
    map_close(&all->of);
    free(all->item);
    free(all);
}

struct size_count *size_count_at(struct size_counts *all, uint32_t site_id, uint64_t size_bytes)
{
    if (all->count == SIZES_MAX)
        return NULL;
    uint32_t i = map_number_or(&all->of, site_id, size_bytes, all->count);
    if (i == all->count)
        *ARRAY_ADD(all->item, all->count, all->capacity) =
            (struct size_count){.size_bytes = size_bytes, .site_id = site_id};
    return &all->item[i];
}

static int by_count(const void *a, const void *b)
{
    const struct size_count *x = a, *y = b;
    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    return (x->site_id > y->site_id) - (x->site_id < y->site_id);
}

struct size_count *size_counts_by_line(const struct size_counts *all, int64_t least, uint32_t *count)
{
    struct map of = {0};
    struct size_count *sums = NULL;
    uint32_t sum_count = 0, capacity = 0;
    if (all->count)
        qsort(all->item, all->count, sizeof *all->item, by_count); /* the first one of a line has most */
    for (uint32_t i = 0; i < all->count && all->item[i].count; i++) {
        const struct rule_line *line = rule_line_of(all->r, all->item[i].site_id);
        if (!line || line->device_id != all->r->device->device_id)
            continue;
        uint32_t k = map_number_or(&of, (uint64_t)(line - all->r->lines), all->item[i].size_bytes, sum_count);
        if (k == sum_count)
            *ARRAY_ADD(sums, sum_count, capacity) = all->item[i];
        else
            sums[k].count += all->item[i].count;
    }
    map_close(&of);
    if (sum_count)
        qsort(sums, sum_count, sizeof *sums, by_count);
    *count = 0;
    while (*count < sum_count && sums[*count].count >= least)
        ++*count;
    return sums;
}

static int64_t cost_ns(const struct size_count *c)
{
    const int64_t once = c->size_bytes <= SIZE_CACHED_BYTES ? CACHED_NS
                         : c->size_bytes <= MAPPED_BYTES    ? ARENA_NS
                                                            : MAPPED_NS;
    return rule_sane(c->count) * once;
}

static int is_host(const struct rules *r)
{
    return r->device->device_id == 0;
}

/* Start-up, imports and what libraries do once. */
static int is_noise(struct rules *r, uint32_t site_id)
{
    static const char sql[] = "SELECT stack_id FROM site WHERE site_id = ?1";
    const int64_t id = site_id, stack_id = rule_query_amount(r, sql, &id, 1, 0);
    struct walk *walk = NULL;
    struct noise *noise = NULL;
    int found = 0;
    if (walk_open(r->db, TREE_BOTH, &walk, r->err) == 0) {
        noise = noise_open(walk);
        found = noise_of(noise, stack_id, 0, r->err) > 0;
        noise_close(noise);
    }
    walk_close(walk);
    return found;
}

int size_count_is_worth(struct rules *r, const struct size_count *c)
{
    const int64_t ns = cost_ns(c);
    return !is_host(r) || (ns >= WORTH_NS && ns >= r->duration_ns / WORTH_SHARE && !is_noise(r, c->site_id));
}

void size_count_say_cost(struct rules *r, struct finding *f, const struct size_count *c)
{
    if (is_host(r))
        finding_say(f, " The calls took some %s of the %s that were recorded.", units_ns(r->a, cost_ns(c)),
                    units_ns(r->b, r->duration_ns));
}
