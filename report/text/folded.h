/*
 * folded.h: what Python's interpreter keeps for itself, as one line below what is live at the end.
 */
#ifndef MEMPROF_FOLDED_H
#define MEMPROF_FOLDED_H

#include "../query/rows.h"
#include "summary.h"

/* How many rows by line have some of it: as many more are to be loaded. 0: nothing is to be taken out, as of programs'
 * lists, which have all. */
int64_t folded_count(const struct summary *s);
/* Takes it out of rows by STAT_end_bytes, of which there shall be limit. */
void folded_take(const struct summary *s, struct rows *rows, int64_t limit);
/* The line; nothing where there was none. rows: what is left. */
void folded_print(const struct summary *s, const struct rows *rows);

#endif
