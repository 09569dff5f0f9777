/* Small blocks that are left out of a replay: as if they had never been. */
#include "replay_private.h"

#include "../../common/array.h"

#include <stdlib.h>

/* What is left of a process that ends, by site: the blocks that a replay has. The event of a site counts the small ones
 * too, but a block of several parts once. */
static struct replay_left *left_of(struct replay_state *s, uint32_t process_id, uint32_t site_id)
{
    uint32_t i = map_number_or(&s->left_of, site_id, process_id, s->left_count);
    return i < s->left_count ? &s->left[i] : ARRAY_ADD(s->left, s->left_count, s->left_capacity);
}

static void sum_blocks(struct replay_state *s, uint32_t process_id)
{
    struct block *blocks = NULL, taken;
    size_t count = 0, capacity = 0;
    for (uint64_t i = 0; s->blocks.slots && i <= s->blocks.mask; i++)
        if (s->blocks.slots[i].address && s->blocks.slots[i].space >> 8 == process_id)
            *ARRAY_ADD(blocks, count, capacity) = s->blocks.slots[i];
    for (size_t i = 0; i < count; i++) {
        struct replay_left *left = left_of(s, process_id, blocks[i].site_id);
        left->bytes += blocks[i].size_bytes;
        left->count++;
        blocks_take(&s->blocks, blocks[i].address, blocks[i].space, &taken);
    }
    free(blocks);
}

static int ends_nothing(struct replay_state *s, struct chunk_event *e)
{
    if (!map_get(&s->summed, e->process_id, 0))
        sum_blocks(s, e->process_id);
    *map_slot(&s->summed, e->process_id, 0) = 1;
    struct replay_left *left = left_of(s, e->process_id, e->site_id);
    e->address = left->count < e->address ? left->count : e->address; /* how many blocks */
    e->size_bytes = left->bytes;
    *left = (struct replay_left){0, 0};
    return !e->address && !e->size_bytes;
}

int replay_leaves_out(struct replay_state *s, struct chunk_event *e)
{
    const int is_small = e->size_bytes < s->min_size_bytes;
    if (e->op == CHUNK_end)
        return ends_nothing(s, e);
    if (chunk_op_is_birth(e->op)) {
        map_take(&s->summed, e->process_id, 0);
        return is_small;
    }
    if (!chunk_op_is_loss(e->op) || !is_small)
        return 0;
    struct block block;
    if (!blocks_take(&s->blocks, e->address, chunk_event_space(e), &block))
        return 1;
    /* what is left of a larger one */
    struct chunk_event again = {.address = block.address,
                                .size_bytes = block.size_bytes,
                                .time_ns = block.time_ns,
                                .site_id = block.site_id,
                                .thread_id = block.thread_id};
    blocks_put(&s->blocks, &again, block.space);
    return 0;
}
