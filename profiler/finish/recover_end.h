/*
 * recover_end.h: the end that a killed collector did not write: what was live at the last committed instant.
 */
#ifndef MEMPROF_RECOVER_END_H
#define MEMPROF_RECOVER_END_H

#include "../../common/error.h"

#include <sqlite3.h>

/* Processes that were not seen to end hold what they held at the last commit: end_bytes and end_count of sites, threads
 * and totals, and the key frames of the end and of each device's peak. Within the caller's transaction, which it takes
 * back where this fails. Reads the sites, and the events of the chunks around the peaks. is_private: of a copy that
 * nobody else sees; columns of packed sites then change in this connection's memory alone (packed_keep). */
int recover_end(sqlite3 *db, int is_private, struct error *err);

#endif
