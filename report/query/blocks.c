#include "blocks.h"

#include "../../common/array.h"

#include <stdlib.h>

void blocks_put(struct blocks *b, const struct chunk_event *birth, uint64_t space)
{
    uint64_t *at = map_slot(&b->index, birth->address, space);
    if (!*at && b->hole) {
        *at = b->hole;
        b->hole = b->births[*at - 1].address;
    } else if (!*at) {
        ARRAY_ADD(b->births, b->count, b->capacity);
        *at = b->count;
    }
    b->births[*at - 1] = *birth;
}

int blocks_take(struct blocks *b, uint64_t address, uint64_t space, struct chunk_event *birth)
{
    uint64_t at = map_take(&b->index, address, space);
    if (!at)
        return 0;
    *birth = b->births[at - 1];
    b->births[at - 1] = (struct chunk_event){.op = CHUNK_free, .address = b->hole};
    b->hole = at;
    return 1;
}

void blocks_free(struct blocks *b)
{
    map_close(&b->index);
    free(b->births);
}
