/* diff_private.h: what the files of a diff share. */
#ifndef MEMPROF_DIFF_PRIVATE_H
#define MEMPROF_DIFF_PRIVATE_H

#include "../../common/map.h"
#include "diff.h"

#define DIFF_NONE  UINT32_MAX
#define DIFF_TOTAL (UINT32_MAX - 1) /* in the place of an item: a device's totals */

struct diff_function {
    char *name, *raw_name, *module; /* owned; name: without what compilers add to clones */
    const void *key;
    size_t key_length;
    uint32_t file; /* DIFF_NONE: none */
    uint32_t next_of_file;
    uint32_t item;  /* by function: its row's; DIFF_NONE: it has none */
    uint32_t other; /* of the other side; DIFF_NONE: none */
    enum diff_match match;
};

struct diff_file {
    char *path;
    uint32_t first_function;
    uint32_t item; /* by file: its row's; DIFF_NONE: it has none */
    uint32_t other;
    enum diff_match match;
};

struct diff_value {
    uint32_t device, item;
    uint32_t next; /* of the item, on another device; DIFF_NONE: none */
};

struct diff_side {
    sqlite3 *const *dbs;
    int count;    /* recordings */
    char *exe;    /* of the first one */
    char *script; /* what its interpreter ran; NULL: none */
    struct diff_item *items;
    uint32_t item_count, item_capacity;
    struct text_map item_of;
    struct diff_function *functions;
    uint32_t function_count, function_capacity;
    struct text_map function_of;
    struct diff_file *files;
    uint32_t file_count, file_capacity;
    struct text_map file_of;
    struct diff_value *values;
    struct stat_row *stats;
    uint8_t *is_there; /* beside stats: the recording has this row */
    uint32_t value_count, value_capacity, stats_capacity, there_capacity;
    uint32_t first_total; /* the values of DIFF_TOTAL */
};

struct diff_state {
    struct diff_options options;
    struct diff_side side[DIFF_SIDES];
    struct text_map devices;
    const char **device_names;
    uint32_t device_count, device_capacity;
    struct text_map modules; /* by the name without its directory */
    uint64_t *builds;        /* by module and recording of both sides: a sum over its build-ids; 0: not there */
    uint32_t module_count, module_capacity;
};

/* diff_load.c */
int diff_load_modules(struct diff_state *d, struct error *err);
int diff_load_side(struct diff_state *d, int side, struct error *err);
void diff_close_side(struct diff_side *side);
uint32_t diff_device(struct diff_state *d, const char *name);
/* Whether an offset in a module of this name means the same in all recordings. */
int diff_is_one_build(struct diff_state *d, const char *module);
/* Where the statistics of an item on a device are, in one recording; made where there are none. */
struct stat_row *diff_stats_at(struct diff_side *s, uint32_t device, uint32_t item, int recording, int *is_first);
/* Its number; DIFF_NONE: there is none. */
uint32_t diff_find_value(const struct diff_side *s, uint32_t device, uint32_t item);
uint32_t diff_add_item(struct diff_side *s, const struct buf *key, int *is_new);
uint32_t diff_find_file(struct diff_side *s, const char *path);
/* The function of an item, by its bare name and its file; where it has none, its module: what key has. */
uint32_t diff_add_function(struct diff_side *s, const struct diff_item *item, const struct buf *key);
/* Texts that follow each other in a key; NULL is another one than "". */
void diff_key(struct buf *key, const char *text);

/* diff_python.c: all functions of Python, for the files that they are in. */
int diff_load_python(struct diff_state *d, struct error *err);
void diff_match_python(struct diff_state *d);
/* What a file is called on the new side, once files are matched; path where it is no other one. */
const char *diff_new_path(struct diff_state *d, int side, const char *path);

/* diff_stacks.c */
int diff_load_stacks(struct diff_state *d, struct diff_side *side, int recording, struct error *err);

/* diff_names.c */
/* The last components of a path, NULL where it has fewer. */
const char *diff_path_end(const char *path, int components);

/* diff_match.c, diff_lines.c: fill other and match of files, and of items. */
void diff_match_files(struct diff_state *d);
void diff_join_files(struct diff_state *d, uint32_t old, uint32_t new, enum diff_match match);
int diff_share_function(struct diff_state *d, uint32_t old, uint32_t new, int is_any);
void diff_match_items(struct diff_state *d);
void diff_join_items(struct diff_state *d, uint32_t old, uint32_t new, enum diff_match match);
void diff_match_lines(struct diff_state *d);

#endif
