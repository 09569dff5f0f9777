/*
 * massif_tree.h: who held a device's peak, as massif prints it: a node is a frame under the frame that it called, the
 * first ones those that allocated. Sites are given twice: first they are counted, so that what is too little for a line
 * is known before it takes memory.
 */
#ifndef MEMPROF_MASSIF_TREE_H
#define MEMPROF_MASSIF_TREE_H

#include "../../common/map.h"
#include "../query/walk.h"

#include <stdint.h>
#include <stdio.h>

struct massif_stack {
    const struct walk_frame *const *frames; /* innermost first; the same frame is the same pointer */
    int count;
    int64_t bytes; /* more than 0 */
};

struct massif_node {
    const struct walk_frame *frame;
    int64_t bytes;
    uint32_t first, next; /* its first child, the next one of its parent; 0: none */
};

struct massif_tree {  /* all zero: empty */
    struct map inner; /* frame -> bytes: of those that allocated */
    struct map children;
    struct massif_node *nodes; /* 0 is the root */
    uint32_t count, room;
    int64_t bytes;
};

/* A struct massif_stack each: of all sites to the first, then of all to the second. */
void massif_tree_count(struct massif_tree *t, const void *stack);
void massif_tree_add(struct massif_tree *t, const void *stack);
int64_t massif_tree_bytes(const struct massif_tree *t);
void massif_tree_write(struct massif_tree *t, FILE *out);
void massif_tree_free(struct massif_tree *t);

#endif
