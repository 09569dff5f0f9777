/*
 * process_end.h: what one process still had when it ended, by site: what its ends in the events say, for which few of
 * them are read. Statistics of sites are of all processes together.
 */
#ifndef MEMPROF_PROCESS_END_H
#define MEMPROF_PROCESS_END_H

#include "../../common/error.h"

#include <sqlite3.h>
#include <stdint.h>

/* A site may come several times, once an image of the process; its id may be none. */
typedef void process_end_take(void *arg, uint32_t site_id, uint64_t bytes, uint64_t count);
/* first_id: as in v_image. Where the events of an end were not kept, nothing comes of it. */
int process_end_each(sqlite3 *db, int64_t first_id, process_end_take *take, void *arg, struct error *err);

#endif
