#include "live.h"

#include "../../common/error.h"

#include <stdlib.h>

#define PART_FIRST 12u /* entries of a part when its first block comes */

struct live_table *live_open(void)
{
    return xcalloc(1, sizeof(struct live_table));
}

void live_close(struct live_table *t)
{
    if (!t)
        return;
    for (unsigned i = 0; i < LIVE_PARTS; i++)
        free(t->parts[i].blocks);
    free(t);
}

/* Full at 3/4; growing by 7/5 leaves it filled to 0.54 at least: 32 / 0.54 = 60 bytes a block. */
void live_grow(struct live_part *part)
{
    struct live_part old = *part;
    uint64_t capacity = old.capacity ? (uint64_t)old.capacity * 7 / 5 : PART_FIRST;
    if (capacity > UINT32_MAX)
        bug("%u live blocks in one part", old.count);
    part->capacity = (uint32_t)capacity;
    part->blocks = xcalloc(capacity, sizeof *part->blocks);
    for (uint32_t i = 0; i < old.capacity; i++) {
        if (!old.blocks[i].key)
            continue;
        uint32_t to = live_home(part, live_hash(old.blocks[i].key));
        while (part->blocks[to].key)
            if (++to == part->capacity)
                to = 0;
        part->blocks[to] = old.blocks[i];
    }
    free(old.blocks);
}

void live_each(const struct live_table *t, void (*visit)(void *context, const struct live_block *b), void *context)
{
    for (unsigned p = 0; p < LIVE_PARTS; p++)
        for (uint32_t i = 0; i < t->parts[p].capacity; i++)
            if (t->parts[p].blocks[i].key)
                visit(context, &t->parts[p].blocks[i]);
}

size_t live_bytes(const struct live_table *t)
{
    size_t bytes = sizeof *t;
    for (unsigned p = 0; p < LIVE_PARTS; p++)
        bytes += t->parts[p].capacity * sizeof(struct live_block);
    return bytes;
}
