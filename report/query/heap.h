/*
 * heap.h: what keeps the host's heaps from shrinking, by line: the pages of glibc's arenas, of other allocators'
 * segments and of Python's arenas at an instant.
 *
 * A page is pinned where it holds a byte of a live block: by its line, or shared where blocks of several lines touch
 * it. To a block of glibc's belongs its chunk: the 16 bytes before it and what its size is rounded up to. A page
 * without one is held by the line of the next live block above it in the same range, or lies above the highest (at the
 * top). So the pages of a range are pinned + shared + held + top, and those of all lines are the same sums.
 *
 * The heaps of forked children are sums of their own: what they have of their parents is in both, and lies on the same
 * pages until one of them writes there.
 */
#ifndef MEMPROF_HEAP_H
#define MEMPROF_HEAP_H

#include "../../common/map.h"
#include "live_blocks.h"

enum heap_kind {
    HEAP_MAIN,    /* glibc's main arena, below the break */
    HEAP_THREAD,  /* a heap of another arena of glibc's */
    HEAP_OWN,     /* all blocks of a process that have a mapping of their own */
    HEAP_SEGMENT, /* of an allocator that is not glibc's */
    HEAP_PYTHON,  /* an arena of Python's, with blocks that were seen (--python-allocators) */
};

struct heap_line {
    int64_t line_id; /* below 0: of a site without one */
    uint32_t site_id;
    uint32_t is_inherited; /* of forked: blocks that the children have of their parents, which allocated them */
    uint32_t process_count, last_process; /* that have some of it; the last one of them */
    uint64_t live_bytes, block_count, pinned_bytes, held_bytes;
    uint64_t shared_bytes; /* its part of pages that it shares with other lines, by the bytes that each has there */
    uint64_t trim_bytes;   /* of held_bytes, what malloc_trim(0) gives back: in glibc's arenas */
    char *function;        /* NULL: not known */
    int is_bare;           /* code without a symbol: "libz.so.1+0x123" */
    char *file;
    char *beside; /* without a file: the module, or who called it, as row_source_text has them; NULL: not known */
    int64_t line; /* 0: not known */
};

enum { HEAP_SHARED = UINT32_MAX, HEAP_TOP = UINT32_MAX - 1 }; /* in the place of a line */

struct heap_run { /* pages one after another */
    uint64_t pages;
    uint32_t line; /* lines; HEAP_SHARED, HEAP_TOP */
    int is_free;
};

struct heap_range {
    enum heap_kind kind;
    uint32_t process_id;
    uint64_t address, size_bytes;
    uint64_t arena;      /* of THREAD */
    uint64_t page_bytes; /* all its pages: of the four */
    uint64_t pinned_bytes, shared_bytes, held_bytes, top_bytes;
    uint64_t live_bytes, block_count;
    struct block last; /* the highest live block: it keeps the top where it is; address 0: none */
    size_t first_run, run_count;
    uint64_t inherited_bytes, inherited_count; /* of a forked child, beside live_bytes and block_count, its own */
    int is_forked;
    int is_unknown; /* nothing is known of its pages: it is in no sum */
};

struct heap {
    uint32_t page;
    struct heap_range *ranges; /* by process and address */
    size_t range_count, range_capacity;
    struct heap_run *runs;
    size_t run_count, run_capacity;
    struct heap_line *lines; /* those that hold or pin most first */
    uint32_t line_count, line_capacity;
    uint32_t *place; /* what a run's line is in lines, which are sorted */
    uint64_t page_bytes, pinned_bytes, shared_bytes, held_bytes, trim_bytes, top_bytes, live_bytes;
    uint64_t main_top_bytes; /* of the main arenas: malloc_trim(0) gives that back too */
    struct heap *forked;     /* the heaps of processes that began as a fork; NULL: there are none */
    struct map line_of, site_of;
};

enum { HEAP_ALL = -1 }; /* for process_id */
/* blocks, inherited: of live_blocks_load at the same instant. heap_free is to be called in any case. */
int heap_load(sqlite3 *db, const struct instant *at, const struct blocks *blocks, const struct inherited *inherited,
              int64_t process_id, struct heap *heap, struct error *err);
void heap_free(struct heap *heap);
/* Whether there are ranges that heap_load could find at all. */
int heap_is_known(sqlite3 *db);
const struct heap_line *heap_line_of(const struct heap *heap, const struct heap_run *run);      /* NULL: none */
const struct heap_line *heap_line_of_block(const struct heap *heap, const struct block *block); /* the same */
/* The range that begins there; NULL: none. */
const struct heap_range *heap_range_at(const struct heap *heap, uint32_t process_id, uint64_t address);
enum { HEAP_NAME = 64 };
/* "main arena", "arena 0x7f..., heap 0x7f..."; text: HEAP_NAME bytes */
const char *heap_name(char *text, const struct heap_range *range);

#endif
