/*
 * ending.h: how the recorded program ended, and whether what was live then was still in use.
 */
#ifndef MEMPROF_QUERY_ENDING_H
#define MEMPROF_QUERY_ENDING_H

#include "../../common/buf.h"

#include <sqlite3.h>
#include <stdint.h>

enum { ENDING_TEXT = 96 };

/* Of the program that was run, in the last image that it executed: "exit status 0", "killed by signal 9 (Killed)", "not
 * seen to end"; empty where the recording has no process. Returns whether it failed: a signal, another status than 0.
 */
int ending_text(sqlite3 *db, char text[ENDING_TEXT]);

/* Whether a signal ended it. */
int ending_is_killed(sqlite3 *db);

/* How long the run took; of a recording that was cut off: as far as it goes. unknown: not even that is known. */
int64_t ending_duration_ns(sqlite3 *db, int64_t unknown);

/* Whether the program still runs, as far as the file says: what is live at its end is live so far. */
int ending_is_running(sqlite3 *db);

/* That, as a sentence without its full stop; yours to free. NULL: the recording has ended. */
char *ending_running_text(sqlite3 *db);

/* Whether "live at the end" is, of some process (pid; 0: any), where Python began to take itself down. */
int ending_is_teardown(sqlite3 *db, int64_t pid);

/* Whether there are processes beside those, and what those were before an exec. */
int ending_has_others(sqlite3 *db);
/* What the end of all processes is: "where Python began to take itself down, which then freed 1.20 MiB in 9,481
 * blocks", appended; nothing where no process did. */
void ending_teardown_text(sqlite3 *db, struct buf *out);

enum ending_of_blocks {
    ENDING_RETURNED, /* with its process, which could have freed them before */
    ENDING_KILLED,   /* by a signal */
    ENDING_CUT,      /* their process went on; the recording did not */
    ENDING_UNKNOWN,  /* it said nothing, and no parent told: killed, or by a bare system call */
};

#define ENDING_ANY_DEVICE (-1)

/* How many processes ended in each of these ways with something live on a device. */
enum { ENDINGS = ENDING_UNKNOWN + 1 };
void ending_count(sqlite3 *db, int64_t device_id, int64_t counts[ENDINGS]);

/* "3 of 5 processes were killed", appended: of the counts that ending_count has. */
void ending_killed_text(const int64_t counts[ENDINGS], struct buf *out);

/* Where most of what a device had live at the end was when its processes ended. */
enum ending_of_blocks ending_of_blocks(sqlite3 *db, int64_t device_id);

#endif
