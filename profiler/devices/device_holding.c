/* What a process has of each device, and what of it no checkpoint of the driver carries. */
#include "devices_private.h"

#include <string.h>

void devices_holdings(const struct devices *d, struct devices_holding holdings[DEVICE_IDS])
{
    memset(holdings, 0, DEVICE_IDS * sizeof *holdings);
    for (const struct block *b = d->first; b; b = b->next) {
        struct devices_holding *h = &holdings[b->device_id];
        if (b->is_silent)
            continue;
        if (b->is_foreign)
            h->foreign_bytes += b->size;
        else if (b->kind == KIND_managed)
            h->managed_bytes += b->size;
        else if (devices_is_segment_too(b))
            h->reserved_bytes += b->size;
    }
    for (unsigned i = 0; i < DEVICE_IDS; i++)
        for (unsigned kind = 0; kind < KIND_COUNT; kind++)
            holdings[i].reserved_bytes += d->reserved_bytes[i][kind];
}
