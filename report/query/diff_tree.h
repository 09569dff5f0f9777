/*
 * diff_tree.h: the stacks of two recordings as one tree of functions, callers above what they call. Functions are the
 * same where diff by stack has them the same (docs/diff.md): lines, addresses and directories do not count. For what
 * shows both at once; the recordings are hostile, and may have a million stacks.
 */
#ifndef MEMPROF_DIFF_TREE_H
#define MEMPROF_DIFF_TREE_H

#include "diff.h"

enum { DIFF_TREE_STATS = 5 };

/* The statistics that the leaves have: those of diff_stats that can be added. */
extern const int diff_tree_stats[DIFF_TREE_STATS];

struct diff_tree_frame { /* a function; strings are owned by the tree, NULL: unknown */
    char *name;          /* as the new recording has it, where it is there; without a symbol: of the module */
    char *file;          /* where it is declared */
    char *module;        /* without its directory */
    uint8_t is_python, is_allocator, is_unknown;
};

struct diff_tree_node { /* 0 is the root, and its own parent */
    uint32_t parent, frame;
};

struct diff_tree_leaf { /* what was allocated in a node itself, on one device */
    uint32_t node, device;
    int64_t values[DIFF_SIDES][DIFF_TREE_STATS];
};

struct diff_tree {
    struct diff_tree_frame *frames;
    struct diff_tree_node *nodes; /* callers before what they call */
    struct diff_tree_leaf *leaves;
    char **devices; /* of both recordings, each once */
    uint32_t frame_count, frame_capacity, node_count, node_capacity, leaf_count, leaf_capacity;
    uint32_t device_count, device_capacity;
};

/* 0 or -errno with err; diff_tree_close in both cases. */
int diff_tree_load(sqlite3 *const dbs[DIFF_SIDES], struct diff_tree *tree, struct error *err);
void diff_tree_close(struct diff_tree *tree);

#endif
