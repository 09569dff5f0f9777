#include "gap.h"

#include "../../common/db.h"
#include "../../common/kind.h"
#include "../query/resident.h"
#include "rounding.h"

#include <string.h>

#define LEAST_BYTES  (4 << 20)
#define ABSENT_LEAST (1 << 20) /* below, no word of it */

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

/* On present pages beside live blocks, by the looks of the round at the highest resident memory (is_peak) or by the
 * last ones: of Python's arenas nothing; of what forks inherited what is theirs alone, as their own heaps may be in it.
 */
static int64_t present_beside(struct rules *r, const struct gap *gap, int is_peak)
{
    static const char sql[] =
        "SELECT CAST(total(resident_bytes) FILTER (WHERE what IN ('beside', 'heap')) + max(0, total(resident_bytes) "
        "FILTER (WHERE what = 'segment') - ?1) + max(0, total(resident_bytes - e.shared_bytes) FILTER (WHERE what = "
        "'inherited')) AS INTEGER) FROM resident_rest e JOIN resident_scan USING(scan_id) WHERE iif(?2, is_peak, "
        "is_last)";
    return rule_query_amount(r, sql, (int64_t[]){gap->arenas, is_peak}, 2, 0);
}

/* By the looks: what of the host's reserved memory was there and not in use. All that they saw of its allocators, and
 * what came later, less the most that was in use; what blocks had on no page is in both. Where they do not speak for
 * the peak: no less than what they saw beside live blocks. */
static int64_t seen_idle(struct rules *r, const struct gap *gap, const struct resident_peak *look)
{
    const int64_t active = r->device->peak_active, beside = present_beside(r, gap, 1);
    int64_t later = rule_sane(look->peak_rss_bytes) - rule_sane(look->present_bytes);
    later = later > 0 ? later : 0;
    int64_t idle = rule_sane(look->block_bytes) + rule_sane(look->untouched_bytes) + rule_sane(look->swapped_bytes) +
                   beside + later - active - gap->over;
    if (resident_peak_is_near(look, active))
        return idle;
    int64_t at_end = present_beside(r, gap, 0);
    int64_t free_then = at_end > beside ? at_end : beside;
    return free_then > idle ? free_then : idle;
}

/* What an allocator has of the kernel and nobody wrote to, such as the padding beside aligned blocks that glibc maps,
 * or gave back with madvise, takes addresses only. */
static void find_absent(struct rules *r, struct gap *gap)
{
    struct resident_peak look;
    struct error err; /* of a file that has no looks */
    int64_t rss = rule_sane(resident_peak_rss(r->db)), idle = gap->idle;
    gap->is_looked = resident_peak_load(r->db, &look, &err) == 0 && look.process_count > 0;
    if (gap->is_looked)
        idle = seen_idle(r, gap, &look);
    else if (rss > 0 && !resident_peak_rss_is_least(r->db))
        idle = rss - r->device->peak_active - gap->over;
    if (gap->idle - idle >= ABSENT_LEAST)
        gap->absent = idle > 0 ? gap->idle - idle : gap->idle;
}

static int is_large(const struct gap *gap, int64_t active)
{
    return gap->idle >= LEAST_BYTES && gap->idle >= active / 4;
}

int gap_of(struct rules *r, struct gap *gap)
{
    const struct rule_device *d = r->device;
    if (strcmp(d->name, "host") == 0 && (counts_heaps_again(r->db) || rule_has_unseen(r)))
        return 0;
    gap->arenas = in_arenas(r);
    gap->reserved = d->peak_reserved - gap->arenas;
    gap->idle = gap->reserved - d->peak_active;
    if (!is_large(gap, d->peak_active)) /* whatever rounding takes of it */
        return 0;
    gap->over = rounding_over(r);
    gap->idle -= gap->over;
    gap->is_mapped = strcmp(d->name, "host") == 0 &&
                     db_int(r->db, "SELECT 1 FROM segment WHERE device_id = 0 AND kind IN ('heap', 'map') LIMIT 1", 0);
    gap->absent = gap->is_looked = 0;
    if (!is_large(gap, d->peak_active + gap->over))
        return 0;
    if (strcmp(d->name, "host") == 0 && !gap->is_mapped)
        find_absent(r, gap);
    return 1;
}
