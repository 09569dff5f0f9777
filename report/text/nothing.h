/*
 * nothing.h: a table without rows says why, and what to ask instead.
 */
#ifndef MEMPROF_NOTHING_H
#define MEMPROF_NOTHING_H

#include "../print/table.h"
#include "report.h"

/* For people: one line. */
void nothing_say(const struct report_options *options, const struct report_out *out);

/* Whether no program of the recording allocated anything. */
int nothing_was_recorded(sqlite3 *db);

#endif
