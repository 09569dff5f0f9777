/*
 * resident_gone.h: blocks that go while the pages of their process are read. Their pages may have been read before, and
 * went with them: maps, and blocks that malloc may have mapped by themselves. Pages of other blocks stay.
 */
#ifndef MEMPROF_RESIDENT_GONE_H
#define MEMPROF_RESIDENT_GONE_H

#include "event.h"
#include "live.h"

struct account;

struct resident_gone {
    struct live_block *blocks; /* as they were */
    size_t count, capacity;
};

/* account_events, which keeps what goes of one process. */
void resident_gone_events(struct resident_gone *g, struct account *a, uint16_t process_id, const struct event *events,
                          size_t count);
void resident_gone_free(struct resident_gone *g);
/* Whether malloc may have mapped the block by itself: behind a header of 16 bytes, or aligned. The kernel joins such a
 * mapping with its neighbours, of which it says nothing then. */
int resident_may_be_mapped(const struct live_block *b);

#endif
