#include "ids.h"

#include "error.h"

void ids_add(struct ids *a, int64_t id)
{
    if (a->count == a->capacity) {
        a->capacity = a->capacity ? a->capacity * 2 : 256;
        a->ids = xrealloc(a->ids, a->capacity * sizeof *a->ids);
    }
    a->ids[a->count++] = id;
}

uint32_t ids_search(const struct ids *a, int64_t id)
{
    uint32_t low = 0, high = a->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (a->ids[middle] < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < a->count && a->ids[low] == id ? low + 1 : 0;
}
