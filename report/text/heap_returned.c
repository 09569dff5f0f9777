#include "heap_returned.h"

#include "../../common/buf.h"
#include "../../common/db.h"
#include "../../common/units.h"
#include "../print/table.h"
#include "../query/live_blocks.h"
#include "../query/process_label.h"

#include <stdlib.h>

#define LEAST_BYTES (1 << 20)
#define LEAST_PART  8  /* of the free pages */
#define LATE_PART   10 /* of its run, and: */
#define LATE_NS     50000000

/* Free pages that the last look at a process saw: present pages of its heaps without a live block. Where that look was
 * long before the end, or the heaps are as before Python took itself down: nothing. */
static const char look_sql[] =
    "SELECT c.time_ns, (SELECT CAST(total(resident_bytes) AS INTEGER) FROM resident_rest r WHERE r.scan_id = c.scan_id "
    "AND r.what = 'heap') FROM resident_scan c JOIN process p USING(process_id) WHERE c.is_last AND c.process_id = ?1 "
    "AND c.process_id NOT IN (SELECT process_id FROM teardown) AND p.end_ns - c.time_ns <= (p.end_ns - p.start_ns) / "
    "?2 + ?3";

static uint64_t free_bytes(const struct heap *heap, uint32_t process_id)
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
    if (live_blocks_load(db, &at, "--segments", &blocks, NULL, &err) == 0 &&
        heap_load(db, &at, &blocks, NULL, process_id, &heap, &err) == 0)
        bytes = free_bytes(&heap, process_id);
    heap_free(&heap);
    free(blocks.slots);
    return bytes;
}

static int is_much(uint64_t gone, uint64_t bytes)
{
    return gone >= LEAST_BYTES && gone >= bytes / LEAST_PART;
}

static void say(const struct report_out *out, sqlite3_stmt *label, uint32_t process_id, uint64_t gone, int64_t there,
                int64_t time_ns)
{
    char text[3][UNITS_TEXT];
    struct buf line = BUF(1 << 16), name = BUF(1 << 16);
    int64_t pid = process_label(label, process_id, &name);
    buf_puts(&line, "Of the free pages");
    if (pid >= 0)
        buf_printf(&line, " of %s, pid %lld,", buf_text(&name), (long long)pid);
    buf_printf(&line,
               " at least %s took no memory at the last look, at %s: malloc_trim had given it back, or it was "
               "never touched. malloc_trim(0) would have given back %s at most.",
               units_bytes(text[0], (int64_t)gone), units_ns(text[1], time_ns), units_bytes(text[2], there));
    table_prose(out, TABLE_PLAIN, buf_text(&line));
    buf_free(&line);
    buf_free(&name);
}

void heap_returned_say(sqlite3 *db, const struct heap *heap, const struct report_out *out)
{
    sqlite3_stmt *s = NULL, *label = process_label_query(db);
    int rc = db_prepare(db, look_sql, &s, NULL);
    for (size_t i = 0; rc == 0 && i < heap->range_count; i++) { /* ranges are by process */
        uint32_t id = heap->ranges[i].process_id;
        uint64_t bytes = i && heap->ranges[i - 1].process_id == id ? 0 : free_bytes(heap, id);
        if (bytes < LEAST_BYTES)
            continue;
        sqlite3_reset(s);
        sqlite3_bind_int64(s, 1, id);
        sqlite3_bind_int64(s, 2, LATE_PART);
        sqlite3_bind_int64(s, 3, LATE_NS);
        if (sqlite3_step(s) != SQLITE_ROW)
            continue;
        const int64_t time_ns = sqlite3_column_int64(s, 0), there = sqlite3_column_int64(s, 1);
        if (there < 0 || (uint64_t)there >= bytes || !is_much(bytes - (uint64_t)there, bytes))
            continue;
        bytes = free_at(db, id, time_ns);
        if ((uint64_t)there < bytes && is_much(bytes - (uint64_t)there, bytes))
            say(out, label, id, bytes - (uint64_t)there, there, time_ns);
    }
    sqlite3_finalize(s);
    sqlite3_finalize(label);
}
