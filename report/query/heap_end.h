/*
 * heap_end.h: whether a process's heap kept memory at its end that nobody used, glibc's or else another allocator's
 * segments, and which lines kept it there: of several processes the one whose heap kept most. The events are replayed
 * only where a quick look says so. The end of a process in Python is where it began to take itself down; of one that
 * kept nothing to its end, or that only by blocks which came after its frees, where it began to free what it had.
 */
#ifndef MEMPROF_HEAP_END_H
#define MEMPROF_HEAP_END_H

#include "../../common/buf.h"
#include "heap.h"
#include "heap_gap.h"
#include "inherited.h"

struct heap_end {
    int is_there;            /* 0: heap and blocks are empty */
    int is_kept;             /* while the program went on, and not as it ended alone */
    int is_segments;         /* of another allocator, not glibc's */
    int is_spread;           /* no page of it is free, but few of their bytes are live */
    int is_forked;           /* of one that began as a fork; blocks of its parent's that it still has are in it */
    char *whose;             /* " of tee, pid 7"; "" where there was one process alone; NULL: not there */
    uint64_t trim_bytes;     /* what malloc_trim(0) would give back: free pages, those at the main arenas' top too. Of
                              * segments free pages that are resident, which only their allocator may know to give back */
    uint64_t gone_bytes;     /* glibc's free pages that took no memory, beside trim_bytes; 0: few */
    uint64_t reserved_bytes; /* by its heaps and mappings of glibc's, or by those segments */
    uint64_t pin_bytes;      /* pages of these with a live byte */
    uint64_t spread_bytes;   /* of these, beside live bytes, where it is spread */
    int64_t since_ns;        /* from when on at least half of that was idle, up to */
    int64_t end_ns;          /* the end of what was sampled of it */
    int64_t rss_bytes;       /* then */
    struct heap_gap of;      /* the process */
    int is_one_of;           /* of several processes: what the samples sum up has others in it */
    /* All that is as its interpreter (Python) began to take itself down; of glibc's heaps, what was left when it had.
     */
    int is_before_teardown;
    uint64_t left_pin_bytes, left_free_bytes;
    /* All that is as it was then, before the process freed what it had as it ended; 0: at the end. */
    int64_t released_ns;
    int64_t before_ns; /* blocks that came later are left out; 0: none are */
    struct heap heap;
    struct blocks blocks;
    struct inherited *inherited; /* NULL: not read */
};

/* Not there as well where events are missing. heap_end_free in any case. */
void heap_end_load(sqlite3 *db, struct heap_end *end);
void heap_end_free(struct heap_end *end);
/* "at the end of tee, pid 7", or where that is in Python, or before its frees; appended. */
void heap_end_when(const struct heap_end *end, struct buf *text);
/* The same in short: "at end", "at 6.49 s". */
void heap_end_when_short(const struct heap_end *end, struct buf *text);

#endif
