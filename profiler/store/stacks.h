/*
 * stacks.h: stacks and modules of all processes. Ids of a process's stacks become nodes of one tree (table stack),
 * run-time addresses become offsets in modules (tables address and module), shared by all processes that map the same
 * file: a tree of forks and execs does not multiply its frames.
 */
#ifndef MEMPROF_STACKS_H
#define MEMPROF_STACKS_H

#include "store.h"

#include <stddef.h>
#include <stdint.h>

struct stacks; /* all processes */
struct stacks *stacks_open(struct store *store);
/* The newest rows of table stack: they are written now and then, and here. Before a commit, and before the end. */
void stacks_write(struct stacks *stacks);
void stacks_close(struct stacks *stacks);

/* The address of a frame that names itself (named.h), by its number; in no module. */
uint32_t stacks_named_address(struct stacks *stacks, uint32_t number);
/* The address of code at an offset in a file that another tool named: path NULL: in none. The file is a module of the
 * process; is_new: nobody asked for it before. */
uint32_t stacks_code_address(struct stacks *stacks, uint32_t process_id, const char *path, const char *build_id,
                             uint64_t offset, int *is_new);
/* The node of an address under its caller's node; caller 0: the outermost frame, with the flags of the stack. */
uint32_t stacks_node(struct stacks *stacks, uint32_t caller, unsigned flags, uint32_t address_id);

struct stack_map {  /* one process */
    uint32_t *ids;  /* global id by the process's own id; 0: not defined */
    uint32_t limit; /* entries of ids */
    uint32_t defined;
    struct stack_modules *modules;
};

struct python;
/* python: of addresses that are Python frames (wire.h); NULL: they stay without names. The caller's. */
struct stack_map *stack_map_open(struct stacks *stacks, uint32_t process_id, struct python *python);
void stack_map_close(struct stack_map *map);

/* The global id (stack.stack_id); 0: not defined yet, or unknown. */
static inline uint32_t stack_map_find(const struct stack_map *map, uint32_t id)
{
    return id < map->limit ? map->ids[id] : 0;
}

/* The stack that a thread defined last: the next one mostly shares its beginning. */
struct stack_path;
struct stack_path *stack_path_open(void);
void stack_path_close(struct stack_path *path); /* NULL does nothing */

/* The outermost frames, as many as are shared, are those of the path; the addresses are the others, innermost first.
 * The path is the new stack then. Without a path none are shared. Defining an id again changes the path alone. 0, or
 * -EINVAL for what no honest program sends. */
int stack_map_define(struct stack_map *map, struct stack_path *path, uint32_t id, unsigned flags, uint32_t shared,
                     const uint64_t *addresses, size_t count);

struct stack_module {
    uint32_t number; /* the process's own; the same number again changes nothing while it is loaded */
    uint64_t start, end, bias;
    const char *path;
    const uint8_t *build_id;
    size_t build_id_bytes;
};
void stack_map_load(struct stack_map *map, const struct stack_module *module, int64_t time_ns);
void stack_map_unload(struct stack_map *map, uint32_t number, int64_t time_ns);

#endif
