#include "heap_slices.h"

#include "../../common/error.h"

#include <stdlib.h>

struct walk {
    const struct heap *heap;
    struct heap_slices *slices;
    uint64_t slice_bytes;
    uint64_t next;     /* the first slice that no block was seen on yet, */
    uint64_t *next_of; /* the same by line */
};

/* How many slices from first to last were not counted yet; ascending from one call to the next. */
static uint64_t count_new(uint64_t *next, uint64_t first, uint64_t last)
{
    uint64_t from = first > *next ? first : *next;
    if (last < from)
        return 0;
    *next = last + 1;
    return last + 1 - from;
}

static void see_block(struct walk *w, const struct heap_range *r, const struct block *b)
{
    uint64_t most = r->address + r->size_bytes - b->address, size = b->size_bytes < most ? b->size_bytes : most;
    uint64_t first = b->address / w->slice_bytes, last = (b->address + (size ? size - 1 : 0)) / w->slice_bytes;
    uint64_t known = map_get(&w->heap->site_of, b->site_id, 0);
    w->slices->kept_count += count_new(&w->next, first, last);
    if (!known)
        return;
    uint32_t line = w->heap->place[known - 1];
    w->slices->of_line[line] += count_new(&w->next_of[line], first, last);
}

void heap_slices_load(const struct heap *heap, const struct blocks *blocks, uint32_t process_id, uint64_t slice_bytes,
                      struct heap_slices *slices)
{
    struct walk w = {.heap = heap, .slices = slices, .slice_bytes = slice_bytes};
    uint32_t place = process_id << 8;
    *slices = (struct heap_slices){.of_line = xcalloc(heap->line_count + 1ul, sizeof *slices->of_line)};
    w.next_of = xcalloc(heap->line_count + 1ul, sizeof *w.next_of);
    for (size_t i = 0; i < heap->range_count; i++) {
        const struct heap_range *r = &heap->ranges[i];
        if (r->kind != HEAP_SEGMENT || r->process_id != process_id)
            continue;
        slices->segment_count++;
        if (r->page_bytes == r->top_bytes) { /* one may go on in a block of the segment before */
            slices->empty_count++;
            slices->empty_bytes += r->page_bytes;
            continue;
        }
        slices->idle_bytes += r->held_bytes + r->top_bytes;
        for (size_t k = live_blocks_find(blocks, place, r->address);
             k < blocks->count && blocks->slots[k].space >> 8 == place &&
             blocks->slots[k].address - r->address < r->size_bytes;
             k++)
            see_block(&w, r, &blocks->slots[k]);
    }
    free(w.next_of);
}

void heap_slices_free(struct heap_slices *slices)
{
    free(slices->of_line);
    *slices = (struct heap_slices){0};
}
