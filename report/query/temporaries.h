/*
 * temporaries.h: which of a chunk's frees are of temporaries: blocks freed before their thread's next allocation, but
 * not those that are only resized. The sums of a chunk say how many there are of each site, not which; and whether a
 * block from before the chunk is one, only the chunks before can tell, of which few are read.
 */
#ifndef MEMPROF_TEMPORARIES_H
#define MEMPROF_TEMPORARIES_H

#include "../../common/chunk.h"

#include <sqlite3.h>
#include <stdint.h>

struct temporaries_chunk {
    int64_t chunk_id, first_event;
    const struct chunk_event *events;
    long count;
    const struct chunk_delta *deltas; /* NULL: not known */
    long delta_count;
};

/* is_temporary: of count zeros; frees of temporaries become 1. What damaged chunks would tell stays 0. */
void temporaries_mark(sqlite3 *db, const struct temporaries_chunk *chunk, uint8_t *is_temporary);

#endif
