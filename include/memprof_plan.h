/*
 * memprof_plan.h: a plan that moves views of memory to another place (a device, a file, another process) and keeps what
 * they share: which ranges to copy once, and where each view lies then. Pure computation, no recorder needed, nothing
 * to link with; C and C++.
 *
 *     struct memprof_range ranges[N];
 *     size_t place[N];
 *     struct memprof_plan plan = memprof_plan(views, N, ranges, place, 512);
 *     char *to = allocate(plan.bytes); // aligned to 512
 *     for (size_t i = 0; i < plan.range_count; i++)
 *         copy(to + ranges[i].to, (const void *)ranges[i].from, ranges[i].bytes);
 *     // item 0, ..., 0 of views[i] is at to + place[i]; shape and strides stay
 *
 * A range is what lies from a view's lowest to its highest byte: gaps of views with strides are copied with them.
 * Views whose ranges overlap or touch share one, whatever their items are.
 */
#ifndef MEMPROF_PLAN_H
#define MEMPROF_PLAN_H

#include "memprof_view.h"

#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

struct memprof_range { /* [from, from + bytes) goes to byte `to` of the new memory */
    uintptr_t from;
    size_t bytes, to;
};

struct memprof_plan {
    size_t range_count;
    size_t bytes;       /* of the new memory */
    size_t naive_bytes; /* what the views have if each is copied for itself; SIZE_MAX: more than that */
};

static inline int memprof_range_order(const void *a, const void *b)
{
    const uintptr_t x = ((const struct memprof_range *)a)->from, y = ((const struct memprof_range *)b)->from;
    return x < y ? -1 : x > y;
}

/* Whether they have bytes in common, as far as their spans say. */
static inline int memprof_same(const struct memprof_view *a, const struct memprof_view *b)
{
    uintptr_t low[2], high[2];
    return memprof_span(a, &low[0], &high[0]) == 0 && memprof_span(b, &low[1], &high[1]) == 0 && low[0] < high[0] &&
           low[1] < high[1] && low[0] < high[1] && low[1] < high[0];
}

static inline size_t memprof_join_ranges(struct memprof_range *ranges, size_t count)
{
    size_t joined = 0;
    if (!count) /* there may be no array, which qsort must not be given */
        return 0;
    qsort(ranges, count, sizeof *ranges, memprof_range_order);
    for (size_t i = 0; i < count; i++) {
        struct memprof_range *last = joined ? &ranges[joined - 1] : NULL;
        const size_t ahead = last ? ranges[i].from - last->from : 0;
        if (!last || ahead > last->bytes)
            ranges[joined++] = ranges[i];
        else if (ahead + ranges[i].bytes > last->bytes)
            last->bytes = ahead + ranges[i].bytes;
    }
    return joined;
}

/*
 * ranges and place have room for count; ranges come by address. align, a power of two, keeps what an address is modulo
 * align: 1 packs, 512 is what CUDA's allocators give. What is no view, or has no item, has place 0 and no range.
 * O(n log n).
 */
static inline struct memprof_plan memprof_plan(const struct memprof_view *views, size_t count,
                                               struct memprof_range *ranges, size_t *place, size_t align)
{
    struct memprof_plan plan = {0, 0, 0};
    uintptr_t low, high;
    size_t bytes, items, found = 0;
    for (size_t i = 0; i < count; i++) {
        if (memprof_span(&views[i], &low, &high) || high == low)
            continue;
        ranges[found].from = low;
        ranges[found].bytes = high - low;
        ranges[found++].to = 0;
        items = memprof_view_items(&views[i]);
        if (!items || __builtin_mul_overflow(items, views[i].item_bytes, &bytes) ||
            __builtin_add_overflow(plan.naive_bytes, bytes, &plan.naive_bytes))
            plan.naive_bytes = SIZE_MAX;
    }
    plan.range_count = memprof_join_ranges(ranges, found);
    for (size_t i = 0; i < plan.range_count; i++) {
        plan.bytes += (ranges[i].from - plan.bytes) & (align - 1);
        ranges[i].to = plan.bytes;
        plan.bytes += ranges[i].bytes;
    }
    for (size_t i = 0; i < count; i++) {
        size_t first = 0, end = plan.range_count; /* the last range that begins at or before it is among these */
        place[i] = 0;
        if (memprof_span(&views[i], &low, &high) || high == low)
            continue;
        while (end - first > 1) {
            const size_t middle = first + (end - first) / 2;
            if (ranges[middle].from <= low)
                first = middle;
            else
                end = middle;
        }
        place[i] = ranges[first].to + ((uintptr_t)views[i].data - ranges[first].from);
    }
    return plan;
}

#ifdef __cplusplus
}
#endif

#endif
