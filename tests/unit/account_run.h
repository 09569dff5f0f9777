/*
 * account_run.h: accounts of events that a test makes, and everything read back from the database.
 */
#ifndef MEMPROF_TEST_ACCOUNT_RUN_H
#define MEMPROF_TEST_ACCOUNT_RUN_H

#include "../../common/chunk.h"
#include "../../profiler/account/account.h"
#include "../../profiler/store/store.h"

#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>

struct account_run {
    struct store *store;
    struct account *account;
};

extern sqlite3 *account_db; /* of the run that was opened last */

void account_run_open(struct account_run *r, const struct account_options *options);
void account_run_close(struct account_run *r);

/* Events of process and thread 1; kinds that are not said are the heap's, or a pool's on a device. */
void account_feed(struct account_run *r, struct event *e, size_t count, unsigned device);

/* One value of the database; -1: no row. */
int64_t account_query(const char *format, ...);

/* All events that the database has, to free, and of how many chunks they are. */
struct chunk_event *account_kept_events(size_t *count, size_t *chunk_count);

struct account_held {
    int64_t bytes, count;
};

/* What every site (held[site_id]) holds after event_count events: key frame, deltas of whole chunks, events of the last
 * one. */
void account_rebuild(uint64_t event_count, struct account_held *held);
/* A BLOB, and its length. */
const void *account_blob(sqlite3_stmt *s, int column, size_t *length);

#endif
