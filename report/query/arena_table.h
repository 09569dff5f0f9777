/*
 * arena_table.h: the table that Python's allocator keeps of its arenas. Its block grows when one more arena is taken,
 * by whichever line of the program that was, and is freed by nobody. In an interpreter without symbols it is known by
 * the place that asked: the same call that maps the arenas.
 */
#ifndef MEMPROF_QUERY_ARENA_TABLE_H
#define MEMPROF_QUERY_ARENA_TABLE_H

#include "../../common/map.h"
#include "walk.h"

struct arena_table {    /* all zero: nothing was read yet */
    struct map callers; /* nodes that take arenas */
    struct map sized;   /* stacks of blocks of its sizes */
    int is_loaded;
};
void arena_table_close(struct arena_table *t);
/* Whether the blocks of a stack are such tables: 1, 0 or -errno. */
int arena_table_is(struct arena_table *t, struct walk *walk, int64_t stack_id, struct error *err);

#endif
