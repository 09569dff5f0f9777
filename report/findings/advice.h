/*
 * advice.h: what keeps most of a recording from saying much, and what to do about it: cut stacks, code without symbols.
 */
#ifndef MEMPROF_ADVICE_H
#define MEMPROF_ADVICE_H

#include "../print/record.h"

#include <sqlite3.h>

/* The bytes of Python's arenas when they were most; 0: there are none. */
int64_t advice_arenas_peak(sqlite3 *db);
/* Where active bytes are compared or bounded: that they lack what is in Python's arenas, where that is not little. old
 * NULL: there is none. */
void advice_arenas_print(sqlite3 *old, sqlite3 *db, const struct report_out *out);

/* Calls add with one sentence for each; none where most is well. */
void advice_each(sqlite3 *db, void (*add)(void *context, const char *advice), void *context);
void advice_print(sqlite3 *db, const struct report_out *out);
void advice_record(sqlite3 *db, struct record *record); /* "advice": an array of them */

#endif
