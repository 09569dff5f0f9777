#include "gap.h"

#include "../../common/db.h"
#include "../../common/kind.h"
#include "rounding.h"

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

/* Older files have in what a fork's child reserved what it has of its parent's heap, whose blocks count once. */
static int counts_heaps_again(sqlite3 *db)
{
    return db_int(db,
                  "SELECT EXISTS (SELECT 1 FROM process JOIN counter USING(process_id) WHERE start_kind = 'fork' AND "
                  "name = 'heap_sample' AND value > 0) AND NOT EXISTS (SELECT 1 FROM meta WHERE key = 'forked_heap')",
                  0) != 0;
}

int gap_of(struct rules *r, struct gap *gap)
{
    const struct rule_device *d = r->device;
    if (strcmp(d->name, "host") == 0 && (counts_heaps_again(r->db) || rule_has_unseen(r)))
        return 0;
    gap->arenas = in_arenas(r);
    gap->reserved = d->peak_reserved - gap->arenas;
    gap->over = rounding_over(r);
    gap->idle = gap->reserved - d->peak_active - gap->over;
    gap->is_mapped = strcmp(d->name, "host") == 0 &&
                     db_int(r->db, "SELECT 1 FROM segment WHERE device_id = 0 AND kind IN ('heap', 'map') LIMIT 1", 0);
    return gap->idle >= LEAST_BYTES && gap->idle >= (d->peak_active + gap->over) / 4;
}
