/*
 * resident_processes.h: what each process had on present pages, in the round of looks at the highest resident memory.
 */
#ifndef MEMPROF_TEXT_RESIDENT_PROCESSES_H
#define MEMPROF_TEXT_RESIDENT_PROCESSES_H

#include "../../common/error.h"
#include "../print/record.h"

#include <sqlite3.h>
#include <stdint.h>

/* A table of them where they are several, the largest first (top: how many, 0: all); in JSON the array
 * "resident_processes"; nothing in CSV. Its rows add up to what the round saw, and each row to its process's. */
int resident_processes_list(sqlite3 *db, int64_t top, struct record *document, struct error *err);

#endif
