/*
 * memprof_view.h: a view of memory, as array libraries have them: items at regular distances from a first one. What
 * memprof_view (memprof.h) names, and what memprof_plan (memprof_plan.h) moves. C and C++, nothing to link with.
 */
#ifndef MEMPROF_VIEW_H
#define MEMPROF_VIEW_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MEMPROF_RANK 16

struct memprof_view {
    const void *data;                                 /* item 0, ..., 0 */
    size_t item_bytes;                                /* at least 1 */
    uint32_t rank;                                    /* dimensions, up to MEMPROF_RANK; 0: one item */
    int64_t size[MEMPROF_RANK], stride[MEMPROF_RANK]; /* in items; a stride may be negative or 0 */
};

/*
 * The bytes that a view may touch, [*low, *high): both are its data where a size is 0. Gaps between items are among
 * them. 0, or -1 and both are its data: no view can be like that (rank or a size out of range, or it goes round the
 * address space).
 */
static inline int memprof_span(const struct memprof_view *v, uintptr_t *low, uintptr_t *high)
{
    int64_t down = 0, up = 1, reach;
    uint64_t below, above;
    *low = *high = (uintptr_t)v->data;
    if (v->rank > MEMPROF_RANK || !v->item_bytes || v->item_bytes > INT64_MAX)
        return -1;
    for (uint32_t d = 0; d < v->rank; d++)
        if (v->size[d] < 0)
            return -1;
    for (uint32_t d = 0; d < v->rank; d++) {
        if (v->size[d] == 0)
            return 0;
        if (__builtin_mul_overflow(v->size[d] - 1, v->stride[d], &reach) ||
            __builtin_add_overflow(reach < 0 ? down : up, reach, reach < 0 ? &down : &up))
            return -1;
    }
    if (__builtin_mul_overflow(down, (int64_t)v->item_bytes, &down) ||
        __builtin_mul_overflow(up, (int64_t)v->item_bytes, &up))
        return -1;
    below = 0 - (uint64_t)down;
    above = (uint64_t)up;
    if (below > *low || above > UINTPTR_MAX - *high)
        return -1;
    *low -= (uintptr_t)below;
    *high += (uintptr_t)above;
    return 0;
}

/* How many items, 0 where memprof_span says -1 or they are more than SIZE_MAX. */
static inline size_t memprof_view_items(const struct memprof_view *v)
{
    uintptr_t low, high;
    size_t items = 1;
    if (memprof_span(v, &low, &high))
        return 0;
    for (uint32_t d = 0; d < v->rank; d++)
        if (__builtin_mul_overflow(items, (size_t)v->size[d], &items))
            return 0;
    return items;
}

#ifdef __cplusplus
}
#endif

#endif
