/*
 * rotated_part.h: which part of a rotated recording a file has. Its times are those of the whole run, and so is meta
 * event_count; all else is of the part.
 */
#ifndef MEMPROF_QUERY_ROTATED_PART_H
#define MEMPROF_QUERY_ROTATED_PART_H

#include "../../common/buf.h"
#include "../../common/error.h"

#include <sqlite3.h>
#include <stdint.h>

struct rotated_part {
    int64_t number;                   /* from 1; 0: the recording was not rotated */
    int64_t start_ns, end_ns;         /* since the run's start; the running file's end is the last that is known */
    int64_t event_count;              /* of this part */
    int is_running;                   /* the last one, which goes on or ended with the run */
    int64_t start_bytes, start_count; /* what it inherited, of all devices */
};

/* Of a recording that was not rotated all from its start to its end. */
struct rotated_part rotated_part(sqlite3 *db);
/* A sentence on what the numbers of a second or later part are of; nothing for others. */
void rotated_part_explain(sqlite3 *db, struct buf *text);
/* Whether a time is in the part, or behind it: -EINVAL with err for an option that means one before it. */
int rotated_part_check(sqlite3 *db, int64_t time_ns, const char *option, struct error *err);

#endif
