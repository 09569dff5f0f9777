/*
 * live_sites.h: which sites can have a block that is live at an instant. Their counts say so without a replay, and the
 * events of all others need not be looked at.
 */
#ifndef MEMPROF_LIVE_SITES_H
#define MEMPROF_LIVE_SITES_H

#include "live_blocks.h"

/* By site_id, below *count: 0 where it has none; where this is not known too, 1. NULL: of none it is known, or it is
 * not worth the reading. The caller frees. */
uint8_t *live_sites(sqlite3 *db, const struct instant *at, size_t *count);

#endif
