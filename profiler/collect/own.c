#include "own.h"

#include <stdlib.h>

static int by_start(const void *a, const void *b)
{
    const struct resident_own *x = a, *y = b;
    return (x->start > y->start) - (x->start < y->start);
}

/* 0: none, or one that is coming or going. */
static int read_one(const struct wire_own *told, struct resident_own *range)
{
    uint64_t address = __atomic_load_n(&told->address, __ATOMIC_ACQUIRE);
    uint64_t bytes = __atomic_load_n(&told->size_bytes, __ATOMIC_ACQUIRE);
    uint64_t end = (address + bytes + RESIDENT_PAGE - 1) & ~(uint64_t)(RESIDENT_PAGE - 1);
    *range = (struct resident_own){address, end};
    return address && bytes && end > address && !(address % RESIDENT_PAGE) &&
           __atomic_load_n(&told->address, __ATOMIC_RELAXED) == address;
}

void own_read(const struct wire_proc *slot, struct own *own)
{
    size_t count = 0;
    for (unsigned i = 0; i < WIRE_OWN; i++)
        count += (size_t)read_one(&slot->own[i], &own->ranges[count]);
    qsort(own->ranges, count, sizeof *own->ranges, by_start);
    own->count = 0;
    for (size_t i = 0; i < count; i++) /* pages are somebody's once */
        if (!own->count || own->ranges[i].start >= own->ranges[own->count - 1].end)
            own->ranges[own->count++] = own->ranges[i];
}
