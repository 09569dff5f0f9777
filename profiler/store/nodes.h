/*
 * nodes.h: the tree of stacks in memory (table stack): a node is an address under its caller's node. Ids are given in
 * order, from 1. Rows are written a few thousand at a time.
 */
#ifndef MEMPROF_NODES_H
#define MEMPROF_NODES_H

#include "store.h"

#include <stdint.h>

/* The caller of an outermost frame, plus the flags of its stack (0..15). */
#define NODES_ROOT 0xfffffff0u

struct nodes;
struct nodes *nodes_open(struct store *store);
void nodes_close(struct nodes *nodes); /* NULL does nothing; what nodes_write has not written is lost */

/* The node of an address under its caller, a node or NODES_ROOT + flags; made where it is new. */
uint32_t nodes_child(struct nodes *nodes, uint32_t caller, uint32_t address_id);

void nodes_write(struct nodes *nodes); /* all rows that are not written yet */

#endif
