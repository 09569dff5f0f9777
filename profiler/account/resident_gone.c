#include "resident_gone.h"

#include "../../common/array.h"
#include "../../common/kind.h"
#include "account_private.h"
#include "resident.h"

#include <stdlib.h>

#define GONE_MAX (1u << 20) /* 32 MiB */

int resident_may_be_mapped(const struct live_block *b)
{
    uint64_t offset = (b->key & LIVE_ADDRESS_MASK) % RESIDENT_PAGE;
    return b->size >= ACCOUNT_MAPPED_LEAST && !(offset & (offset - 1));
}

static int is_death(const struct event *e)
{
    return e->op == EVENT_FREE || e->op == EVENT_REALLOC_FREE || e->op == EVENT_PART_FREE;
}

static void keep_gone(struct resident_gone *g, const struct account *a, const struct event *e)
{
    const struct process_account *p = a->processes[e->process_id];
    unsigned space = account_space(e->kind);
    const struct live_block *b = p ? live_find(p->live, live_key(e->address, space), 0) : NULL;
    if (!b || g->count >= GONE_MAX || site_at(&a->sites, b->site)->device != 0)
        return;
    if (space == account_space(KIND_map) || (space == account_space(KIND_heap) && resident_may_be_mapped(b)))
        *ARRAY_ADD(g->blocks, g->count, g->capacity) = *b;
}

void resident_gone_events(struct resident_gone *g, struct account *a, uint16_t process_id, const struct event *events,
                          size_t count)
{
    size_t done = 0;
    for (size_t i = 0; i < count; i++) {
        if (events[i].process_id != process_id || !is_death(&events[i]))
            continue;
        account_events(a, events + done, i - done); /* the block may be younger than the batch */
        done = i;
        keep_gone(g, a, &events[i]);
    }
    account_events(a, events + done, count - done);
}

void resident_gone_free(struct resident_gone *g)
{
    free(g->blocks);
    *g = (struct resident_gone){0};
}
