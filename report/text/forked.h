/*
 * forked.h: what processes that began as a fork have of their parents' memory, and what they cost.
 */
#ifndef MEMPROF_TEXT_FORKED_H
#define MEMPROF_TEXT_FORKED_H

#include "../../common/error.h"
#include "../print/record.h"

#include <sqlite3.h>
#include <stdint.h>

/* A table of them, those that cost most first (top: how many, 0: all); in JSON the array "forked"; nothing in CSV. */
int forked_list(sqlite3 *db, int64_t top, struct record *document, struct error *err);
/* With --process: a line about the one process, if it began as a fork. */
void forked_print(sqlite3 *db, const struct report_out *out);

#endif
