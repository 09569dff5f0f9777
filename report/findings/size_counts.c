#include "size_counts.h"

#include "../../common/array.h"

#include <stdlib.h>

#define SIZES_MAX (1 << 22) /* of all stacks */

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
