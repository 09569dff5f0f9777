#include "ids.h"

#include "array.h"

void ids_add(struct ids *a, int64_t id)
{
    *ARRAY_ADD(a->ids, a->count, a->capacity) = id;
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
