/* What a process has of each device, and what of it no checkpoint of the driver carries. */
#include "devices_private.h"

#include <string.h>

enum { CONTEXTS = 256 }; /* more are not told apart */

struct seen {
    uint64_t contexts[CONTEXTS];
    unsigned count;
};

static int is_new(struct seen *s, uint64_t context)
{
    for (unsigned i = 0; i < s->count; i++)
        if (s->contexts[i] == context)
            return 0;
    if (!context || s->count == CONTEXTS)
        return 0;
    s->contexts[s->count++] = context;
    return 1;
}

static void add(const struct block *b, struct devices_holding *h, struct seen *seen)
{
    if (b->is_foreign)
        h->foreign_bytes += b->size;
    else if (b->kind == KIND_managed)
        h->managed_bytes += b->size;
    else if (devices_is_segment_too(b))
        h->reserved_bytes += b->size;
    h->context_count += b->device_id && is_new(seen, b->context);
}

void devices_holdings(const struct devices *d, struct devices_holding holdings[DEVICE_IDS])
{
    struct seen seen = {.count = 0};
    memset(holdings, 0, DEVICE_IDS * sizeof *holdings);
    for (const struct block *b = d->first; b; b = b->next)
        if (!b->is_silent)
            add(b, &holdings[b->device_id], &seen);
    for (unsigned i = 0; i < DEVICE_IDS; i++)
        for (unsigned kind = 0; kind < KIND_COUNT; kind++)
            holdings[i].reserved_bytes += d->reserved_bytes[i][kind];
}
