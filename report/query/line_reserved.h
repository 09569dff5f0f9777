/*
 * line_reserved.h: how much the segments grew that each line made the allocators of GPUs take: the bytes that are
 * reserved at the end, less those at the start of a window. A segment is its taker's until it is given back, whoever
 * does that, as a block is. What nobody lists as a segment is in no sum: the host's heap, which is sampled, and of a
 * GPU pools, arrays, and mappings that no allocator hands out.
 */
#ifndef MEMPROF_LINE_RESERVED_H
#define MEMPROF_LINE_RESERVED_H

#include "lens.h"

/* Calls take with each stack whose segments on a GPU grew or shrank, and by how much. 0, or -errno with err. */
int line_reserved_stacks(sqlite3 *db, const struct lens_options *lens,
                         void (*take)(void *arg, int64_t stack_id, int64_t device_id, int64_t bytes), void *arg,
                         struct error *err);

/* The sums by line: temp.line_reserved(device_id, function_id, file_id, line, bytes), file_id and line 0 where there is
 * none. Begun empty, and filled of all stacks or, by who knows the lines of some already, with line_reserved_add. */
int line_reserved_begin(sqlite3 *db, struct error *err);
int line_reserved_fill(sqlite3 *db, const struct lens_options *lens, struct error *err);
int line_reserved_add(sqlite3 *db, int64_t device_id, int64_t function_id, int64_t file_id, int64_t line, int64_t bytes,
                      struct error *err);
int line_reserved_is_begun(sqlite3 *db);

enum line_reserved_state {
    LINE_RESERVED_KNOWN,
    LINE_RESERVED_LEAST,   /* ... but the device has reserved memory that is in no segment, too */
    LINE_RESERVED_UNKNOWN, /* no GPU's, or the file lacks segments */
};
enum line_reserved_state line_reserved_state(sqlite3 *db, int64_t device_id);

#endif
