/*
 * names.h: what programs call their blocks (memprof.h, NVTX, PyTorch), and views of parts of them: the rows of
 * block_name. A name belongs to a block from its birth to its death, whenever it was said, and to no block that has its
 * address later. Up to NAMES_MAX rows; of a text that many blocks of a process had, the first NAMES_OF_TEXT have a row
 * each, and the last. Memory grows with these rows alone.
 */
#ifndef MEMPROF_ACCOUNT_NAMES_H
#define MEMPROF_ACCOUNT_NAMES_H

#include "../../common/map.h"
#include "../../include/memprof_view.h"

#include <stdint.h>

#define NAMES_MAX     65536u
#define NAMES_OF_TEXT 16u
#define NAMELESS_MAX  (NAMES_MAX / 2) /* rows of a category alone: the others are kept for names */

struct account;
struct live_block;

struct name_said {
    uint64_t block;                  /* its address */
    const char *text;                /* of a name, or of the block's category */
    const struct memprof_view *view; /* NULL, or no view of a part of that block: all of it */
    int is_category;
};

struct name_row {
    uint64_t process_id, key, address, size_bytes; /* key: of the block (account_block_key) */
    uint64_t birth_ns, said_ns, free_ns;           /* free_ns: 0 while it lives */
    uint32_t site;
    uint32_t text, category;   /* numbers of texts + 1; 0: none */
    uint32_t next;             /* of the same live block + 1; 0: none */
    uint32_t is_changed;       /* since it was written */
    struct memprof_view *view; /* NULL: the whole block */
};

struct name_use { /* of a text in a process */
    uint32_t count, last;
};

struct names { /* all zero: empty */
    struct name_row *rows;
    uint32_t count, capacity, changed, nameless;
    struct map open;        /* number of a live block's newest row, by its key and process */
    struct map live;        /* number of a live block's row, by hashes of the block, and of text and view */
    struct text_map number; /* of texts, + 1 */
    const char **texts;
    uint32_t text_count, text_capacity;
    struct map use; /* numbers of uses, by text and process */
    struct name_use *uses;
    uint32_t use_count, use_capacity;
    uint64_t left_out; /* names that have no row */
};

/* Said now, after all events so far. 0: no live block of the process begins there. */
int account_name(struct account *a, unsigned process_id, uint64_t time_ns, const struct name_said *said);
/* The block of this key, which may have names, dies, or (is_segment) becomes one: its names are the segment's then. */
void account_name_end(struct account *a, unsigned process_id, uint64_t key, int is_segment);
/* It has another key from now on. */
void account_name_move(struct account *a, unsigned process_id, uint64_t key, uint64_t new_key);
/* After the blocks of the process are gone. */
void account_names_process_end(struct account *a, unsigned process_id);
void account_names_write(struct account *a);
void names_close(struct names *n);

#endif
