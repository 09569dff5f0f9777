/*
 * named_blocks.h: blocks that have names, with what each of their names covers of them.
 */
#ifndef MEMPROF_NAMED_BLOCKS_H
#define MEMPROF_NAMED_BLOCKS_H

#include "../../common/error.h"
#include "../../common/map.h"

#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>

struct block_name { /* a name that was said of a block */
    size_t block;   /* its place in blocks */
    uint32_t text;  /* number of the text in its process: the same one is said of the same thing, they say */
    const char *name;
    int64_t time_ns;             /* when it was said */
    uint64_t from_byte, to_byte; /* of the block: of a view's lowest byte, and behind its highest */
};

struct named_block {
    int64_t device_id, site_id, size_bytes, alloc_ns;
    int64_t end_ns;      /* of the block, or of its process; INT64_MAX: neither is known */
    int is_at_end;       /* live when its process ended, or when Python began to take itself down */
    size_t first, count; /* its names, in the order that they were said in */
};

struct named_blocks { /* all zero: empty */
    struct named_block *blocks;
    size_t count, capacity;
    struct block_name *names; /* by block */
    size_t name_count, name_capacity;
    struct text_map texts;
    uint32_t text_count;
};

/* Close with named_blocks_close in any case. Sizes and times of a damaged file are cut to what can be. */
int named_blocks_load(sqlite3 *db, struct named_blocks *all, struct error *err);
void named_blocks_close(struct named_blocks *all);

/* Bytes that at least one of the names covers. It sorts them by their first bytes. */
int64_t named_cover(struct block_name *names, size_t count);

#endif
