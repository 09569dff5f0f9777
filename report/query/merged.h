/*
 * merged.h: what is known of a file that 'memprof merge' made, and what is not: it has no events, and its peaks are
 * sums of the recordings' own ones.
 */
#ifndef MEMPROF_QUERY_MERGED_H
#define MEMPROF_QUERY_MERGED_H

#include "../../common/buf.h"
#include "../../common/error.h"

#include <sqlite3.h>
#include <stdint.h>

int64_t merged_count(sqlite3 *db);  /* how many recordings it was made of; 0: it was not merged */
int merged_is_profile(sqlite3 *db); /* it was imported from a profile of another tool, which holds sums alone */
/* -EINVAL with err for an option that needs events or instants; 0 where the file was not merged. An imported
 * profile, which has neither too, is refused alike. */
int merged_refuse(sqlite3 *db, const char *option, struct error *err);
/* A sentence on its peaks, and on what all recordings held at one instant. */
void merged_explain(sqlite3 *db, struct buf *text);

#endif
