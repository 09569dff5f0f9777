#include "blocks.h"

#include "../../common/error.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define HUGE_BYTES ((size_t)2 << 20)

static uint64_t first_slot(const struct blocks *b, uint64_t address, uint32_t space)
{
    return (address + space * UINT64_C(0x9e3779b97f4a7c15)) * UINT64_C(0xff51afd7ed558ccd) >> 20 & b->mask;
}

/* Every event touches another page of it: large ones, where the kernel has some. */
static struct block *new_slots(uint64_t count)
{
    const size_t bytes = count * sizeof(struct block), whole = (bytes + HUGE_BYTES - 1) / HUGE_BYTES * HUGE_BYTES;
    if (bytes < HUGE_BYTES)
        return xcalloc(count, sizeof(struct block));
    struct block *slots = aligned_alloc(HUGE_BYTES, whole);
    if (!slots)
        out_of_memory(whole);
    madvise(slots, whole, MADV_HUGEPAGE);
    return memset(slots, 0, bytes);
}

void blocks_foresee(const struct blocks *b, uint64_t address, uint32_t space)
{
    if (b->slots)
        __builtin_prefetch(&b->slots[first_slot(b, address, space)], 1);
}

static uint64_t slot_of(const struct blocks *b, uint64_t address, uint32_t space)
{
    uint64_t i = first_slot(b, address, space);
    while (b->slots[i].address && (b->slots[i].address != address || b->slots[i].space != space))
        i = (i + 1) & b->mask;
    return i;
}

void blocks_put(struct blocks *b, const struct chunk_event *birth, uint32_t space)
{
    if (2 * b->count >= b->mask) {
        struct blocks larger = {.mask = b->slots ? 2 * b->mask + 1 : 4095};
        larger.slots = new_slots(larger.mask + 1);
        for (uint64_t i = 0; b->slots && i <= b->mask; i++)
            if (b->slots[i].address)
                larger.slots[slot_of(&larger, b->slots[i].address, b->slots[i].space)] = b->slots[i];
        larger.count = b->count;
        free(b->slots);
        *b = larger;
    }
    uint64_t i = slot_of(b, birth->address, space);
    b->count += b->slots[i].address == 0;
    b->slots[i] =
        (struct block){birth->address, birth->size_bytes, birth->time_ns, birth->site_id, birth->thread_id, space, 0};
}

int blocks_take(struct blocks *b, uint64_t address, uint32_t space, struct block *block)
{
    uint64_t i = b->slots ? slot_of(b, address, space) : 0;
    if (!b->slots || !b->slots[i].address)
        return 0;
    *block = b->slots[i];
    b->slots[i].address = 0;
    b->count--;
    for (uint64_t k = (i + 1) & b->mask; b->slots[k].address; k = (k + 1) & b->mask) {
        struct block moved = b->slots[k];
        b->slots[k].address = 0;
        b->slots[slot_of(b, moved.address, moved.space)] = moved;
    }
    return 1;
}
