/*
 * names.h: which names of blocks hold at an instant, and what is live then without one.
 */
#ifndef MEMPROF_QUERY_NAMES_H
#define MEMPROF_QUERY_NAMES_H

#include "../../common/error.h"
#include "at.h"

#include <sqlite3.h>

enum names_at { NAMES_AT_END, NAMES_AT_PEAK, NAMES_AT_TIME };

/*
 * Makes the temporary tables name_live(name_id), of v_name, and live(site_id, live_bytes, live_count): what was live at
 * the end (of each process; where Python took itself down, before that), at each device's peak, or at time_ns, for
 * which result says how well it is known.
 */
int names_load(sqlite3 *db, enum names_at at, int64_t time_ns, struct at_result *result, struct error *err);

#endif
