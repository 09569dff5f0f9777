/* The timeline: the finest level of the pyramid that fits; the page builds the coarser ones from it. */
#include "page_data.h"

#include "../../common/db.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *const columns[] = {
    "start",        "active_min",    "active_max", "active_max_after", "active_last", "allocated_max", "allocated_last",
    "reserved_max", "reserved_last", "rss_max",    "rss_last",         "alloc_count", "alloc_bytes"};
#define COLUMNS (sizeof columns / sizeof *columns)

struct bucket {
    int64_t values[COLUMNS];
};

static int finest_level(struct page *page, int64_t device_id, int64_t *level)
{
    sqlite3_stmt *s = page_query(page, "SELECT level FROM timeline WHERE device_id = ?1 GROUP BY level "
                                       "HAVING count(*) <= ?2 ORDER BY level LIMIT 1");
    if (!s)
        return -EIO;
    sqlite3_bind_int64(s, 1, device_id);
    sqlite3_bind_int64(s, 2, PAGE_BUCKETS_MAX);
    int rc = sqlite3_step(s);
    *level = rc == SQLITE_ROW ? sqlite3_column_int64(s, 0) : -1;
    return page_query_end(page, s, rc);
}

static int write_device(struct page *page, struct page_pack *pack, const struct page_device *device)
{
    int64_t level;
    int rc = finest_level(page, device->device_id, &level);
    if (rc)
        return rc;
    sqlite3_stmt *s = page_query(
        page, "SELECT time_ns, active_min_bytes, active_max_bytes, active_max_ns - time_ns, active_last_bytes, "
              "allocated_max_bytes, allocated_last_bytes, reserved_max_bytes, reserved_last_bytes, "
              "coalesce(rss_max_bytes, -1), coalesce(rss_last_bytes, -1), alloc_count, alloc_bytes, width_ns "
              "FROM timeline WHERE device_id = ? AND level = ? ORDER BY time_ns");
    if (!s)
        return -EIO;
    sqlite3_bind_int64(s, 1, device->device_id);
    sqlite3_bind_int64(s, 2, level);
    struct bucket *buckets = NULL;
    uint32_t count = 0, capacity = 0;
    int64_t width_ns = 0;
    while ((rc = sqlite3_step(s)) == SQLITE_ROW && count < PAGE_BUCKETS_MAX) {
        struct bucket *b = ARRAY_ADD(buckets, count, capacity);
        for (unsigned i = 0; i < COLUMNS; i++)
            b->values[i] = sqlite3_column_int64(s, (int)i);
        width_ns = sqlite3_column_int64(s, (int)COLUMNS);
    }
    rc = page_query_end(page, s, rc);
    pack_open(pack, NULL, '{');
    pack_text(pack, "device", device->name);
    pack_int(pack, "width", width_ns);
    for (unsigned i = 0; i < COLUMNS; i++)
        pack_column(pack, columns[i], count, buckets ? &buckets->values[i] : NULL, sizeof *buckets,
                    strcmp(columns[i], "active_max_after") != 0);
    pack_close(pack, '}');
    free(buckets);
    return rc;
}

int page_write_timeline(struct page *page, struct page_pack *pack)
{
    int rc = 0;
    pack_open(pack, NULL, '[');
    for (uint32_t i = 0; i < page->device_count && !rc; i++)
        rc = write_device(page, pack, &page->devices[i]);
    pack_close(pack, ']');
    return rc;
}
