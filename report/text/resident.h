/*
 * resident.h: what present pages held at the highest resident memory that was looked at.
 */
#ifndef MEMPROF_TEXT_RESIDENT_H
#define MEMPROF_TEXT_RESIDENT_H

#include "../../common/error.h"
#include "../print/record.h"

#include <sqlite3.h>

/* For people a heading and a table (only_if_differs: where the blocks' sizes say something else); in JSON the arrays
 * "resident" and "resident_scans"; nothing in CSV, and nothing without a look. */
int resident_list(sqlite3 *db, int only_if_differs, struct record *document, struct error *err);

#endif
