#include "heap_there.h"

#include "../../common/db.h"
#include "../../common/sum.h"
#include "heap_idle.h"
#include "heap_later.h"

#include <stdlib.h>

#define LEAST_BYTES (1 << 20)
#define LEAST_PART  8  /* of the free pages */
#define LATE_PART   10 /* of its run, and: */
#define LATE_NS     50000000
#define OWN_BYTES   65536 /* a block that may have pages which nobody wrote to */

/* --- the last look before an end ------------------------------------------------------------------------------- */

uint64_t heap_there_free(const struct heap *heap, uint32_t process_id)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < heap->range_count; i++)
        if (heap->ranges[i].process_id == process_id && heap->ranges[i].kind <= HEAP_OWN && !heap->ranges[i].is_unknown)
            bytes += heap->ranges[i].held_bytes + heap->ranges[i].top_bytes;
    return bytes;
}

/* The same as the look found them: what was live then may be free at the end, on pages that were there. */
static uint64_t free_at(sqlite3 *db, uint32_t process_id, int64_t time_ns)
{
    struct error err;
    struct instant at;
    struct blocks blocks = {0};
    struct heap heap = {0};
    uint64_t bytes = 0;
    instant_at(&at, time_ns);
    if (live_blocks_load(db, &at, "", &blocks, NULL, &err) == 0 &&
        heap_load(db, &at, &blocks, NULL, process_id, &heap, &err) == 0)
        bytes = heap_there_free(&heap, process_id);
    heap_free(&heap);
    free(blocks.slots);
    return bytes;
}

static int is_much(uint64_t gone, uint64_t bytes)
{
    return gone >= LEAST_BYTES && gone >= bytes / LEAST_PART;
}

/* Free pages that the look saw: present pages of the heaps without a live block. One long before the end says nothing,
 * nor one of after what it is asked for. */
static int load_look(sqlite3 *db, uint32_t process_id, int64_t end_ns, struct heap_look *look)
{
    static const char sql[] =
        "SELECT c.time_ns, (SELECT CAST(total(resident_bytes) AS INTEGER) FROM resident_rest r WHERE r.scan_id = "
        "c.scan_id AND r.what = 'heap') FROM resident_scan c JOIN main.process p USING(process_id) LEFT JOIN teardown "
        "t USING(process_id) WHERE c.is_last AND c.process_id = ?1 AND (?2 = ?5 OR c.time_ns + c.duration_ns <= ?2) "
        "AND (t.time_ns IS NULL OR c.time_ns + c.duration_ns <= t.time_ns) AND min(coalesce(t.time_ns, p.end_ns), ?2) "
        "- c.time_ns <= (p.end_ns - p.start_ns) / ?3 + ?4";
    int64_t values[] = {process_id, end_ns, LATE_PART, LATE_NS, INT64_MAX};
    sqlite3_stmt *s = NULL;
    int is_there = 0;
    if (db_prepare(db, sql, &s, NULL))
        return 0;
    for (int i = 0; i < 5; i++)
        sqlite3_bind_int64(s, i + 1, values[i]);
    if (sqlite3_step(s) == SQLITE_ROW) {
        look->time_ns = sqlite3_column_int64(s, 0);
        look->there_bytes = sqlite3_column_int64(s, 1);
        is_there = look->there_bytes >= 0;
    }
    sqlite3_finalize(s);
    return is_there;
}

static int sees_gone(struct heap_look *look, uint64_t free_bytes)
{
    uint64_t there = (uint64_t)look->there_bytes;
    look->gone_bytes = there < free_bytes ? free_bytes - there : 0;
    return is_much(look->gone_bytes, free_bytes);
}

int heap_there_look(sqlite3 *db, uint32_t process_id, int64_t end_ns, uint64_t free_bytes, struct heap_look *look)
{
    *look = (struct heap_look){0};
    return load_look(db, process_id, end_ns, look) && sees_gone(look, free_bytes) &&
           sees_gone(look, free_at(db, process_id, look->time_ns));
}

/* --- the RSS ---------------------------------------------------------------------------------------------------- */

/* What the looks saw on other pages than those of heaps: the least of it. */
static int64_t least_other(sqlite3 *db, int64_t process_id)
{
    static const char sql[] =
        "SELECT CAST(min(present_bytes - (SELECT total(resident_bytes) FROM resident_rest r WHERE r.scan_id = "
        "c.scan_id AND what IN ('beside', 'heap', 'segment')) - (SELECT total(resident_bytes) FROM resident_site r "
        "JOIN site USING(site_id) WHERE r.scan_id = c.scan_id AND kind = 'heap')) AS INTEGER) FROM resident_scan c "
        "WHERE process_id = ?1";
    int64_t bytes = db_int_of(db, sql, &process_id, 1, 0);
    return bytes > 0 ? bytes : 0;
}

/* Of live blocks, what the looks saw on no page, the most of it; and large ones that came after them. INT64_MAX: no
 * look came before, or it is a forked process, which has its parent's pages, too. */
static int64_t most_untouched(sqlite3 *db, const struct heap_end *e)
{
    static const char look_sql[] = "SELECT max(time_ns) FROM resident_scan WHERE process_id = ?1 AND time_ns <= ?2";
    static const char sql[] =
        "SELECT max(bytes) FROM (SELECT CAST(total(untouched_bytes + swapped_bytes) AS INTEGER) AS bytes FROM "
        "resident_site r JOIN resident_scan c USING(scan_id) JOIN site USING(site_id) WHERE c.process_id = ?1 AND kind "
        "= 'heap' GROUP BY scan_id)";
    int64_t look_ns = e->is_forked ? -1 : db_int_of(db, look_sql, (int64_t[]){e->of.process_id, e->of.end_ns}, 2, -1);
    int64_t bytes = look_ns < 0 ? INT64_MAX : db_int_of(db, sql, &e->of.process_id, 1, 0);
    for (size_t i = 0; i < e->blocks.count && bytes < INT64_C(1) << 60; i++) {
        const struct block *b = &e->blocks.slots[i];
        if (b->space >> 8 == (uint32_t)e->of.process_id << 8 && b->size_bytes >= OWN_BYTES &&
            b->size_bytes < UINT64_C(1) << 48 && (int64_t)b->time_ns > look_ns)
            bytes += (int64_t)b->size_bytes;
    }
    return bytes;
}

static int64_t pinned(const struct heap *h, enum heap_kind most)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < h->range_count; i++)
        if (h->ranges[i].kind <= most)
            bytes += h->ranges[i].pinned_bytes + h->ranges[i].shared_bytes;
    return (int64_t)bytes;
}

/* What of the RSS can be free pages. Where more would be pinned than is there, mappings of large blocks are those that
 * nobody wrote to. */
static int64_t free_in_rss(sqlite3 *db, const struct heap_end *e, int64_t rss_bytes, int64_t untouched)
{
    if (untouched == INT64_MAX)
        return rss_bytes;
    int64_t rss = sum_of(rss_bytes, -least_other(db, e->of.process_id));
    for (int kind = HEAP_OWN; kind >= HEAP_THREAD; kind--) {
        int64_t used = pinned(&e->heap, (enum heap_kind)kind) - untouched;
        if (used <= rss)
            return used > 0 ? rss - used : rss;
    }
    return rss > 0 ? rss : 0;
}

/* --- all -------------------------------------------------------------------------------------------------------- */

static uint64_t gone_by_look(sqlite3 *db, const struct heap_end *e)
{
    struct heap_look look;
    uint32_t id = (uint32_t)e->of.process_id;
    int64_t end_ns = e->released_ns ? e->released_ns : INT64_MAX;
    return !e->is_forked && heap_there_look(db, id, end_ns, heap_there_free(&e->heap, id), &look) ? look.gone_bytes : 0;
}

static uint64_t more(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Of bytes, what is not there where so many can be. */
static uint64_t missing(uint64_t bytes, int64_t there)
{
    return there < 0 ? bytes : (uint64_t)there < bytes ? bytes - (uint64_t)there : 0;
}

/* By a look after its frees, and by the RSS before a trim that may have come just before these. */
static uint64_t gone_by_later(sqlite3 *db, const struct heap_end *e, uint64_t bytes, int64_t untouched)
{
    if (!e->released_ns)
        return 0;
    return heap_later_gone(db, e, missing(bytes, free_in_rss(db, e, heap_idle_rss_most(db, e), untouched)),
                           (uint64_t)untouched);
}

uint64_t heap_there_gone(sqlite3 *db, const struct heap_end *e)
{
    uint64_t bytes = heap_there_free(&e->heap, (uint32_t)e->of.process_id);
    int64_t untouched = most_untouched(db, e);
    uint64_t gone = more(gone_by_look(db, e), missing(bytes, free_in_rss(db, e, e->rss_bytes, untouched)));
    /* what malloc_trim does not give back, at other arenas' tops, may be what is missing */
    gone = missing(e->trim_bytes, (int64_t)(bytes > gone ? bytes - gone : 0));
    gone = more(gone, gone_by_later(db, e, bytes, untouched));
    return is_much(gone, e->trim_bytes) ? gone : 0;
}
