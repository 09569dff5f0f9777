/*
 * heap_slices.h: what keeps an allocator's segments where it gives back whole slices of them alone (mimalloc: 64 KiB),
 * and at once only segments without a live block.
 */
#ifndef MEMPROF_QUERY_HEAP_SLICES_H
#define MEMPROF_QUERY_HEAP_SLICES_H

#include "heap.h"

struct heap_slices {
    uint64_t segment_count, empty_count; /* of the process; of these, without a live block */
    uint64_t empty_bytes;                /* what those are long */
    uint64_t idle_bytes;                 /* pages of the others without a live byte; */
    uint64_t kept_count;                 /* slices with a live byte */
    uint64_t *of_line;                   /* of these, with one of that line's (heap->lines): the sum may be more */
};

/* slice_bytes: a power of two. heap and blocks as of heap_load. heap_slices_free in any case. */
void heap_slices_load(const struct heap *heap, const struct blocks *blocks, uint32_t process_id, uint64_t slice_bytes,
                      struct heap_slices *slices);
void heap_slices_free(struct heap_slices *slices);

#endif
