#include "ids.h"

#include "array.h"
#include "search.h"

void ids_add(struct ids *a, int64_t id)
{
    *ARRAY_ADD(a->ids, a->count, a->capacity) = id;
}

uint32_t ids_search(const struct ids *a, int64_t id)
{
    const uint32_t low = SEARCH_FIRST(a->count, i, a->ids[i] < id);
    return low < a->count && a->ids[low] == id ? low + 1 : 0;
}
