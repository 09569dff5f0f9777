#include "heap_later.h"

#include "../../common/db.h"
#include "../../common/sum.h"

#define LEAST_BYTES (256 << 10) /* that stay, or they say nothing of those that went */
#define LEAST_PART  4           /* of these is there, or they were trimmed */

struct parts {
    uint64_t stay_bytes, went_bytes; /* free before its frees */
    uint64_t pin_bytes;              /* pages that stay and had a live byte */
};

/* The smallest that a heap was then or later: what lay above it may have gone before the look or after it. */
static uint64_t least_size(sqlite3 *db, const struct heap_end *e, const struct heap_range *r)
{
    static const char sql[] = "SELECT min(size_bytes) FROM heap_range WHERE process_id = ?1 AND address = ?2 AND "
                              "time_ns >= ?3 AND size_bytes >= 0";
    int64_t least = db_int_of(db, sql, (int64_t[]){e->of.process_id, (int64_t)r->address, e->released_ns}, 3, -1);
    return least >= 0 && (uint64_t)least < r->size_bytes ? (uint64_t)least : r->size_bytes;
}

/* Of its free pages, except those at the top of another arena than the main one, which malloc_trim leaves. */
static void add_range(const struct heap *h, const struct heap_range *r, uint64_t size_bytes, struct parts *p)
{
    uint64_t page = r->address / h->page, edge = (r->address + size_bytes) / h->page;
    for (size_t i = r->first_run; i < r->first_run + r->run_count; i++) {
        const struct heap_run *run = &h->runs[i];
        uint64_t below = page >= edge ? 0 : run->pages < edge - page ? run->pages : edge - page;
        page += run->pages;
        p->pin_bytes += run->is_free ? 0 : below * h->page;
        if (!run->is_free || (run->line == HEAP_TOP && r->kind != HEAP_MAIN))
            continue;
        p->stay_bytes += below * h->page;
        p->went_bytes += (run->pages - below) * h->page;
    }
}

static int has_arena(const struct heap *h)
{
    size_t i = 0;
    while (i < h->range_count && h->ranges[i].kind != HEAP_THREAD)
        i++;
    return i < h->range_count;
}

#define LOOK " FROM resident_scan c WHERE is_last AND process_id = ?1 AND time_ns >= ?2"
#define REST(what)                                                                                                     \
    "(SELECT CAST(total(resident_bytes) AS INTEGER) FROM resident_rest r WHERE r.scan_id = c.scan_id AND what IN "     \
    "(" what "))"

/* Free pages that the look saw, or below 0: there was none. It takes those of another arena that has no block any more
 * for other memory. */
static int64_t free_later(sqlite3 *db, const struct heap_end *e)
{
    int64_t values[] = {e->of.process_id, e->released_ns};
    return has_arena(&e->heap) ? db_int_of(db, "SELECT " REST("'heap', 'inherited', 'anonymous'") LOOK, values, 2, -1)
                               : db_int_of(db, "SELECT " REST("'heap', 'inherited'") LOOK, values, 2, -1);
}

/* Its pages with a live byte then. */
static int64_t used_later(sqlite3 *db, const struct heap_end *e)
{
    static const char sql[] = "SELECT (SELECT CAST(total(resident_bytes) AS INTEGER) FROM resident_site r JOIN site "
                              "USING(site_id) WHERE r.scan_id = c.scan_id AND kind = 'heap') + " REST("'beside'") LOOK;
    return db_int_of(db, sql, (int64_t[]){e->of.process_id, e->released_ns}, 2, 0);
}

/* The most that blocks which came later have of them. */
static int64_t came_later(sqlite3 *db, const struct heap_end *e)
{
    static const char sql[] =
        "SELECT CAST(total(alloc_bytes) + ?2 * total(alloc_count) AS INTEGER) FROM timeline WHERE device_id = 0 AND "
        "level = 0 AND time_ns > ?1 - (SELECT width_ns FROM timeline WHERE device_id = 0 AND level = 0 LIMIT 1)";
    return db_int_of(db, sql, (int64_t[]){e->released_ns, e->heap.page}, 2, 0);
}

/* What can have been free before its frees and was in memory after them, or below 0. So many pages that had a live byte
 * then are there still; and blocks that came later may lie on what was free. */
static int64_t seen_later(sqlite3 *db, const struct heap_end *e, int64_t pin_bytes)
{
    int64_t seen = free_later(db, e), used = used_later(db, e), came = came_later(db, e);
    int64_t most = sum_of(seen, used < came ? used : came), rest = sum_of(sum_of(seen, used), -pin_bytes);
    return seen < 0 ? -1 : most <= rest ? most : rest > 0 ? rest : 0;
}

uint64_t heap_later_gone(sqlite3 *db, const struct heap_end *e, uint64_t missing_bytes, uint64_t untouched_bytes)
{
    struct parts p = {0};
    for (size_t i = 0; i < e->heap.range_count; i++)
        if (e->heap.ranges[i].kind <= HEAP_THREAD)
            add_range(&e->heap, &e->heap.ranges[i], least_size(db, e, &e->heap.ranges[i]), &p);
    int64_t seen = seen_later(db, e, p.pin_bytes > untouched_bytes ? (int64_t)(p.pin_bytes - untouched_bytes) : 0);
    if (seen < 0)
        return 0;
    uint64_t gone = (uint64_t)seen < p.stay_bytes ? p.stay_bytes - (uint64_t)seen : 0;
    int is_trimmed = !e->is_forked && p.stay_bytes >= LEAST_BYTES && (uint64_t)seen < p.stay_bytes / LEAST_PART;
    return gone + (is_trimmed && missing_bytes < gone ? p.went_bytes : 0);
}
