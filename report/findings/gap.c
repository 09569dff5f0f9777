#include "gap.h"

#include "../../common/db.h"
#include "../../common/kind.h"

#include <string.h>

#define LEAST_BYTES (4 << 20)

/* What Python's arenas held at the peak of what was reserved: objects are in them that nobody sees. Where some have no
 * row it is the most that they ever held. */
static int64_t in_arenas(struct rules *r)
{
    const struct rule_device *d = r->device;
    static const char sql[] = "SELECT CASE WHEN count(*) < ?3 THEN CAST(total(size_bytes) FILTER (WHERE alloc_ns <= ?2 "
                              "AND coalesce(free_ns > ?2, p.end_ns >= ?2, 1)) AS INTEGER) ELSE (SELECT "
                              "peak_reserved_bytes FROM total WHERE device_id = ?1 AND kind = 'arena') END FROM "
                              "segment LEFT JOIN process p USING(process_id) WHERE kind = 'arena' AND device_id = ?1";
    int64_t bytes = rule_query_amount(r, sql, (int64_t[]){d->device_id, d->peak_reserved_ns, SEGMENT_ROWS_MAX}, 3, 0);
    return bytes < d->peak_reserved ? bytes : d->peak_reserved;
}

/* What processes that were forked had of their parent's heap from their first moment on: it is the parent's, whose
 * blocks count once. Below 0: not known, of a process whose heap was asked for its size and not for where it lies. */
static int64_t inherited(struct rules *r)
{
    static const char sql[] =
        "WITH forked AS (SELECT process_id FROM process WHERE start_kind = 'fork' AND start_ns <= ?1 AND "
        "coalesce(end_ns >= ?1, 1)), had AS (SELECT process_id, min(range_id), size_bytes FROM heap_range JOIN forked "
        "USING(process_id) GROUP BY process_id, address) SELECT CASE WHEN NOT EXISTS (SELECT 1 FROM forked JOIN "
        "counter USING(process_id) WHERE name = 'heap_sample' AND value > 0 AND process_id NOT IN (SELECT process_id "
        "FROM had)) THEN CAST(total(min(max(size_bytes, 0), 1 << 48)) AS INTEGER) END FROM had";
    return rule_query_amount(r, sql, &r->device->peak_reserved_ns, 1, -1);
}

int gap_of(struct rules *r, struct gap *gap)
{
    const struct rule_device *d = r->device;
    gap->arenas = in_arenas(r);
    gap->inherited = strcmp(d->name, "host") == 0 ? inherited(r) : 0;
    if (gap->inherited < 0 || gap->inherited > d->peak_reserved - gap->arenas)
        return 0;
    gap->reserved = d->peak_reserved - gap->arenas - gap->inherited;
    gap->idle = gap->reserved - d->peak_active;
    gap->is_mapped = strcmp(d->name, "host") == 0 &&
                     db_int(r->db, "SELECT 1 FROM segment WHERE device_id = 0 AND kind IN ('heap', 'map') LIMIT 1", 0);
    return gap->idle >= LEAST_BYTES && gap->reserved >= d->peak_active / 4 * 5;
}
