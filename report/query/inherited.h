/*
 * inherited.h: the blocks that forked children have of their parents: those that were live at the fork, less what the
 * child freed since. No copy is made of them: of each block that lived across a fork it is kept from when to when it
 * did, once for all children, and of each child what it freed. Of the children whose heaps are largest, and up to a
 * number of blocks: of others nothing is known.
 */
#ifndef MEMPROF_QUERY_INHERITED_H
#define MEMPROF_QUERY_INHERITED_H

#include "live_blocks.h"

enum { INHERITED_CHILDREN = 256, INHERITED_ENTRIES = 1 << 24 /* each 16 to 40 bytes */ };

struct inherited;

/* Of the children that an instant has: all, at the end. NULL: none of the recording's processes is one. */
int inherited_open(sqlite3 *db, const struct instant *at, struct inherited **inherited, struct error *err);
void inherited_close(struct inherited *inherited);

/* For the replay of all events up to the instant: a block of the host's heap went. */
void inherited_gone(struct inherited *inherited, const struct block *block, uint64_t time_ns);
/* The same: a child freed what it had at this address. */
void inherited_freed(struct inherited *inherited, const struct chunk_event *e);

/* All blocks of a child's heap, its own among them, sorted by address: slots are the caller's to free. live: of the
 * same replay. 0: it is not known what the child had of its parent. */
int inherited_blocks(const struct inherited *inherited, const struct blocks *live, uint32_t process_id,
                     struct blocks *blocks);

#endif
