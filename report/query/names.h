/*
 * names.h: which names of blocks hold at an instant, and what is live then without one.
 */
#ifndef MEMPROF_QUERY_NAMES_H
#define MEMPROF_QUERY_NAMES_H

#include "../../common/error.h"
#include "at.h"

#include <sqlite3.h>

/* An expression: the name of segment g, the newest one that was said while it was there, of its address or of one
 * behind an allocator's header. */
#define NAME_OF_SEGMENT                                                                                                \
    "(SELECT n.name FROM memory_name n WHERE n.process_id = g.process_id AND n.address >= g.address AND n.address < "  \
    "g.address + 4096 AND n.time_ns >= g.alloc_ns AND n.time_ns < coalesce(g.free_ns, 9223372036854775807) ORDER BY "  \
    "n.address, n.name_id DESC LIMIT 1)"

/* What blocks without a name are called by category, by the phase of the PyTorch operator that allocated them:
 * X(phase, category). */
#define NAMES_OF_PHASES(X) X("forward", "activation") X("backward", "backward")

enum names_at { NAMES_AT_END, NAMES_AT_PEAK, NAMES_AT_TIME };

/*
 * Makes the temporary tables name_live(name_id), of v_name, and live(site_id, live_bytes, live_count): what was live at
 * the end (of each process; where Python took itself down, before that), at each device's peak, or at time_ns, for
 * which result says how well it is known.
 */
int names_load(sqlite3 *db, enum names_at at, int64_t time_ns, struct at_result *result, struct error *err);

#endif
