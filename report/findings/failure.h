/*
 * failure.h: words for allocations that failed, of the terminal and the findings.
 */
#ifndef MEMPROF_FAILURE_H
#define MEMPROF_FAILURE_H

#include "../../common/buf.h"

#include <sqlite3.h>

/* The columns that failure_handled takes, of v_oom AS v where is_handled, GROUP BY is_impossible: a row each of what
 * was had afterwards, and of what nothing can give. With max alone, the other columns are those of the largest. */
#define FAILURE_HANDLED                                                                                                \
    "v.is_impossible, count(*), max(v.size_bytes), v.time_ns, v.function, v.file, v.line, "                            \
    "count(DISTINCT v.size_bytes) = 1, v.address_limit_bytes"

/* One sentence of a row. */
void failure_handled(sqlite3 *db, sqlite3_stmt *row, struct buf *text);
/* How many failed after those that the file has rows of; and a sentence of them, nothing where there are none. */
int64_t failure_unlisted_count(sqlite3 *db);
void failure_unlisted(sqlite3 *db, struct buf *text);
/* "more than the machine's 16.00 GiB of memory and swap": why an allocation of that size is impossible
 * under that limit (v_oom.address_limit_bytes). */
void failure_bound(sqlite3 *db, int64_t size_bytes, int64_t limit_bytes, struct buf *text);
/* " under the limit of 64.00 MiB of address space (setrlimit), of which memprof itself has 24.41 MiB mapped": for one
 * that was possible; nothing where none is set, and nothing of memprof where that is little. */
void failure_limit(sqlite3 *db, const char *device, int64_t limit_bytes, int64_t own_bytes, struct buf *text);

#endif
