/*
 * tree.h: the stacks of a recording as arrays: functions, lines, addresses with their frames, the tree of callers. For
 * what needs many stacks at once; walk.h shows single ones. The database may be hostile: ids may be sparse, parents may
 * form cycles, references may lead nowhere. Index 0 of every array means "none".
 */
#ifndef MEMPROF_TREE_H
#define MEMPROF_TREE_H

#include "../../common/array.h"
#include "../../common/error.h"
#include "../../common/ids.h"
#include "../../common/map.h"

#include <sqlite3.h>
#include <stdint.h>

#define TREE_DEPTH_MAX 4096 /* nodes of one stack */

struct tree_function {
    int64_t id;
    uint8_t is_allocator;
    uint8_t is_for_itself; /* c_library_allocates_for_itself, where it is of that library */
    uint8_t is_skipped;    /* for the user of the tree to set: like an allocator from then on */
};

struct tree_line { /* a row of `line`; one that was added has an id above all others */
    int64_t id;
    uint32_t function;
    int64_t file_id, line, module_key_id, offset;
};

struct tree_frame {
    uint32_t function;
    uint32_t line;      /* lines; 0: says nothing */
    int64_t file_id;    /* 0: none */
    uint8_t has_source; /* a file and a line */
    uint8_t is_python;
};

struct tree_module {
    char *name; /* without its directory */
    int64_t key_id;
    uint8_t is_ours, is_runtime; /* memprof's own; the C and C++ libraries and the loader */
    uint8_t is_c;                /* the C library and the loader */
};

struct tree_address {
    uint32_t module;
    uint32_t first_frame, frame_count;
    int64_t offset;
    uint8_t is_skipped; /* for the user of the tree to set: code without a symbol */
};

struct tree_node {
    uint32_t parent, address;
    uint8_t is_cut; /* of the outermost: its callers were not recorded */
};

struct tree {
    struct tree_function *functions;
    struct tree_line *lines;
    struct tree_frame *frames;
    struct tree_module *modules;
    struct tree_address *addresses;
    struct tree_node *nodes;
    uint32_t function_count, line_count, frame_count, module_count, address_count, node_count;
    uint32_t function_capacity, line_capacity, frame_capacity, module_capacity, address_capacity, node_capacity;
    uint32_t stored_lines; /* lines beyond are added ones */
    struct ids function_ids, line_ids, module_ids, address_ids, node_ids;
    struct map line_of; /* (function, file and line), (module, offset) -> lines */
};

int tree_open(sqlite3 *db, struct tree *tree, struct error *err); /* 0 or -errno with err; close in both cases */
void tree_close(struct tree *tree);

uint32_t tree_node(const struct tree *tree, int64_t stack_id);
uint32_t tree_line(const struct tree *tree, int64_t line_id);
/* The line of code without a symbol at an address; added where there is none. */
uint32_t tree_address_line(struct tree *tree, uint32_t address);
uint32_t tree_known_address_line(const struct tree *tree, uint32_t address); /* 0 where there is none */
/* A line that is no code. */
uint32_t tree_add_line(struct tree *tree, uint32_t function);

/* A frame of a stack: an address and, where it has any, one of its frames. Innermost first:
 * for (struct tree_place p = tree_first(t, node); p.node; tree_next(t, &p)) */
struct tree_place {
    uint32_t node;  /* 0: no more */
    uint32_t frame; /* frames; 0: the address has none */
    uint32_t depth;
};

struct tree_place tree_first(const struct tree *tree, uint32_t node);
void tree_next(const struct tree *tree, struct tree_place *place);

enum tree_language { TREE_BOTH, TREE_NATIVE, TREE_PYTHON };

int tree_is_shown(const struct tree *tree, const struct tree_place *place, enum tree_language language);
/* Where a site with this line allocated: the innermost frame of the line; node 0 when it is not in the stack. */
struct tree_place tree_find(const struct tree *tree, uint32_t node, uint32_t line);
/* The first frame from place on that may be a site's own: as the recorder chooses it, with functions and addresses that
 * are skipped counted to the allocator family, and code of other languages not there. node 0: none. */
struct tree_place tree_self(const struct tree *tree, struct tree_place place, enum tree_language language);
/* The line of a place; 0 where it says nothing. */
uint32_t tree_place_line(struct tree *tree, const struct tree_place *place);

#endif
