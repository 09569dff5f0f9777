#include "live_sites.h"

#include "../../common/db.h"
#include "at.h"
#include "site_rows.h"

#include <errno.h>
#include <stdlib.h>

#define EVENTS_LEAST   4096 /* a replay of fewer takes no time */
#define EVENTS_OF_SITE 8    /* sites are read as well, and dearer than an event */

/* Of processes that end before the instant, too: a replay leaves them what they had. */
static int mark_ends(sqlite3 *db, uint8_t *is_live, size_t count)
{
    sqlite3_stmt *s = NULL;
    int rc = db_prepare(db,
                        "SELECT site_id FROM site WHERE end_count <> 0 OR alloc_count <> free_count "
                        "UNION ALL SELECT site_id FROM site_start",
                        &s, NULL);
    while (rc == 0 && db_next(s, &rc, NULL)) {
        const int64_t id = sqlite3_column_int64(s, 0);
        if (id >= 0 && (uint64_t)id < count)
            is_live[id] = 1;
    }
    sqlite3_finalize(s);
    return rc;
}

/* Of the instants of all devices, which may be as many. */
static int mark_instants(sqlite3 *db, const struct instant *at, uint8_t *is_live, size_t count)
{
    struct at_live *live = NULL;
    struct at_result result;
    struct error err;
    size_t sites = 0;
    int rc = 0;
    for (unsigned i = 0; rc == 0 && i < INSTANT_DEVICES; i++) {
        if (at->end_ns[i] == INT64_MAX ||
            (i && at->end_ns[i] == at->end_ns[i - 1] && at->end_event[i] == at->end_event[i - 1]))
            continue;
        rc = at_values(db, at->end_ns[i], at->end_event[i], &live, &sites, &result, &err);
        if (rc == 0 && (!result.is_exact || result.chunks_damaged))
            rc = -EBADMSG;
        for (size_t k = 0; rc == 0 && k < sites; k++)
            if ((live[k].count || live[k].bytes) && live[k].site_id >= 0 && (uint64_t)live[k].site_id < count)
                is_live[live[k].site_id] = 1;
    }
    free(live);
    return rc;
}

uint8_t *live_sites(sqlite3 *db, const struct instant *at, size_t *count)
{
    const int64_t events = db_meta_int(db, "event_count", 0);
    const int64_t highest = site_rows_last(db);
    if (events < EVENTS_LEAST || highest < 0 || highest > UINT32_MAX || highest > events / EVENTS_OF_SITE)
        return NULL;
    *count = (size_t)highest + 1;
    uint8_t *is_live = calloc(*count, 1);
    if (!is_live) /* numbers of a damaged file; slower, all of them will do */
        return NULL;
    is_live[0] = 1; /* unknown */
    if (mark_ends(db, is_live, *count) == 0 && mark_instants(db, at, is_live, *count) == 0)
        return is_live;
    free(is_live);
    return NULL;
}
