/*
 * stat_near.h: which statistics somebody may have meant who wrote a name that is none's.
 */
#ifndef MEMPROF_QUERY_STAT_NEAR_H
#define MEMPROF_QUERY_STAT_NEAR_H

#include "../../common/buf.h"

/* "end.bytes, end.count or resident.end" of the first `among` statistics, appended: one that is a slip away, those that
 * begin with all of it, or those that have the last of its words that a few have. How many; 0: none. */
int stat_list_near(const char *name, int among, struct buf *out);

#endif
