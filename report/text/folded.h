/*
 * folded.h: what libraries, interpreters and allocators keep for themselves, as `memprof leaks` leaves it out: a line
 * of each kind below what is live at the end.
 */
#ifndef MEMPROF_FOLDED_H
#define MEMPROF_FOLDED_H

#include "../query/rows.h"
#include "summary.h"

/* How many rows by line have some of it: as many more are to be loaded. 0: nothing is to be taken out, as of programs'
 * lists, which have all. */
int64_t folded_count(const struct summary *s);
/* How much of a kind of noise.h, where a sentence of what is live at the end was looked for. */
struct finding_kept folded_kept(const struct summary *s, int noise);
/* Takes it out of rows by STAT_end_bytes, of which there shall be limit. */
void folded_take(const struct summary *s, struct rows *rows, int64_t limit);
/* The lines; nothing where there was none. rows: what is left. */
void folded_print(const struct summary *s, const struct rows *rows);
/* Below the totals: what "live at end" is of where Python took itself down before that. */
void folded_print_end(const struct summary *s);

#endif
