/*
 * heap_gap.h: how much more each process's heap had reserved at its end than its live blocks: a quick look that replays
 * no events.
 */
#ifndef MEMPROF_HEAP_GAP_H
#define MEMPROF_HEAP_GAP_H

#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>

struct heap_gap {
    int64_t process_id, start_ns;
    int64_t end_ns;         /* INT64_MAX: not seen to end */
    int64_t peak_rss_bytes; /* INT64_MAX: not known */
    int64_t glibc_bytes;    /* by glibc's heaps and mappings, */
    int is_forked;          /* of which it has a part from its parent */
    int64_t segment_bytes;  /* by another allocator's segments */
    int64_t live_bytes, live_count;
};

/* Of all processes with either, by process_id. The caller frees. */
struct heap_gap *heap_gaps_at_end(sqlite3 *db, size_t *count);

#endif
