/*
 * finish_recording.h: recordings to finish, made by chance (trees with recursion, inline chains, several devices and
 * kinds), and what their accounts must be: by plain SQL over v_stack, own peaks by a replay of all events.
 */
#ifndef MEMPROF_TEST_FINISH_RECORDING_H
#define MEMPROF_TEST_FINISH_RECORDING_H

#include "../../common/chunk.h"

#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>

#define FINISH_SITES 80

/* A recording with a process, a thread and two devices, and one with everything. */
sqlite3 *finish_empty(const char *name);
sqlite3 *finish_random(const char *name, uint32_t seed, size_t events, size_t chunk_events);

/* The events of the random recording that was made last. */
extern struct chunk_event *finish_events;
extern size_t finish_event_count;

/* finish_database; again as its option. Fails where it does not work. */
void finish_all(sqlite3 *db, int again);

/* Fails, showing the row, where the query has one. */
void finish_none(sqlite3 *db, const char *query);

/* SQL: site_key(scope, key, inclusive, site_id), keys as text, from v_stack, memprof's own module left out; then
 * `naive` and `ours`, the accounts without own peaks. */
extern const char finish_naive_keys[], finish_naive_accounts[];

void finish_check_accounts(sqlite3 *db);
/* Replays all events for every row. How many rows of several sites there were. */
int finish_check_own_peaks(sqlite3 *db);

#endif
