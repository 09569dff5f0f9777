/*
 * resident.h: what present pages held at the highest resident memory that was looked at.
 */
#ifndef MEMPROF_TEXT_RESIDENT_H
#define MEMPROF_TEXT_RESIDENT_H

#include "../../common/error.h"
#include "../../common/units.h"
#include "../print/record.h"
#include "../query/resident.h"

#include <sqlite3.h>

/* A column's title: "resident" and below it the instant, which is not that of the columns beside. */
struct resident_title {
    char text[32 + 2 * UNITS_TEXT];
};
const char *resident_title(const struct resident_peak *peak, const char *what, struct resident_title *title);
/* The same of what the last look at each process saw: its instant, or from when to when these looks were. */
const char *resident_last_title(const struct resident_peak *peak, struct resident_title *title);

/* For people a heading and a table (only_if_differs: where the blocks' sizes say something else); in JSON the arrays
 * "resident" and "resident_scans"; nothing in CSV, and nothing without a look. */
int resident_list(sqlite3 *db, int only_if_differs, struct record *document, struct error *err);

#endif
