/*
 * reserved.h: how far the host's reserved bytes are known. glibc's heaps are sampled, all else is exact: the highest
 * sample of one process is the least that there was, of several processes each one's may be of another instant.
 */
#ifndef MEMPROF_QUERY_RESERVED_H
#define MEMPROF_QUERY_RESERVED_H

#include <sqlite3.h>

/* What stands before reserved bytes of a device and kind ("all": the sum): ">= ", "~ ", or "" where they are exact. */
const char *reserved_mark(sqlite3 *db, const char *device, const char *kind);

#endif
