/*
 * own_peak.h: why rows have no own peak.
 */
#ifndef MEMPROF_TEXT_OWN_PEAK_H
#define MEMPROF_TEXT_OWN_PEAK_H

#include "../print/table.h"
#include "../query/rows.h"

/* For people, a line in grey: under a table by this key that lacks some. */
void own_peak_say_unknown(sqlite3 *db, enum row_key by, const struct report_out *out);
/* The same where one of these rows has none. */
void own_peak_explain(sqlite3 *db, enum row_key by, const struct rows *rows, const struct report_out *out);

#endif
