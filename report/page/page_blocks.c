/* The largest blocks, and the segments: single rectangles in time and address. */
#include "page_data.h"

#include "../../common/db.h"
#include "../query/names.h"
#include "../query/short_name.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

/* What a block is called: its first name with its shape, what it is for, and up to five of those that share it. */
static void write_label(struct page_pack *pack, sqlite3_stmt *s, int column)
{
    const char *name = db_text(s, column), *category = db_text(s, column + 1), *shape = db_text(s, column + 2),
               *sharing = db_text(s, column + 3);
    const int64_t others = sqlite3_column_int64(s, column + 4) - 1;
    struct buf text = BUF(1u << 16);
    buf_printf(&text, "%s%s%s%s", name, *shape ? " [" : "", shape, *shape ? "]" : "");
    if (*category)
        buf_printf(&text, "%s%s", text.length ? ", " : "", category);
    if (*sharing)
        buf_printf(&text, "; %s%s", others > 5 ? "among others shared by " : "shared by ", sharing);
    char *label = short_name_cut(buf_text(&text));
    pack_text(pack, NULL, label);
    free(label);
    buf_free(&text);
}

/* One row an array: [device, kind, process, thread, address, size, from, to (-1: never), site (-1: none), label]; no
 * label where nobody named it. */
static int write_rows(struct page *page, struct page_pack *pack, const char *key, const char *sql, int limit)
{
    sqlite3_stmt *s = page_query(page, sql);
    if (!s)
        return -EIO;
    sqlite3_bind_int(s, 1, limit);
    int rc;
    pack_open(pack, key, '[');
    while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
        char address[24];
        snprintf(address, sizeof address, "%" PRIx64, (uint64_t)sqlite3_column_int64(s, 4));
        uint32_t site =
            sqlite3_column_type(s, 8) == SQLITE_NULL ? MAP_NONE : page_site(page, sqlite3_column_int64(s, 8));
        pack_open(pack, NULL, '[');
        pack_int(pack, NULL, page_device_index(page, sqlite3_column_int64(s, 0)));
        pack_int(pack, NULL, page_kind(db_text(s, 1)));
        pack_int(pack, NULL, sqlite3_column_int64(s, 2));
        pack_int(pack, NULL, sqlite3_column_int64(s, 3));
        pack_text(pack, NULL, address);
        pack_int(pack, NULL, sqlite3_column_int64(s, 5));
        pack_int(pack, NULL, sqlite3_column_int64(s, 6));
        pack_int(pack, NULL, sqlite3_column_type(s, 7) == SQLITE_NULL ? -1 : sqlite3_column_int64(s, 7));
        pack_int(pack, NULL, site == MAP_NONE ? -1 : (int64_t)site);
        if (sqlite3_column_type(s, 9) != SQLITE_NULL)
            write_label(pack, s, 9);
        pack_close(pack, ']');
    }
    pack_close(pack, ']');
    return page_query_end(page, s, rc);
}

int page_write_blocks(struct page *page, struct page_pack *pack)
{
    pack_open(pack, NULL, '{');
    pack_int(pack, "block_count", db_int(page->db, "SELECT count(*) FROM block", 0));
    pack_int(pack, "segment_count", db_int(page->db, "SELECT count(*) FROM segment WHERE kind <> 'arena'", 0));
    int rc =
        write_rows(page, pack, "blocks",
                   "WITH named AS MATERIALIZED (SELECT process_id, device_id, block_address, alloc_ns, "
                   "max(CASE WHEN nth = 1 THEN name END) AS name, max(category) AS category, max(CASE WHEN nth = "
                   "1 THEN shape END) AS shape, group_concat(CASE WHEN nth BETWEEN 2 AND 6 THEN name END, ', ') "
                   "AS sharing, count(*) AS name_count FROM (SELECT *, row_number() OVER (PARTITION BY "
                   "process_id, block_address, alloc_ns ORDER BY name = '', name_id) AS nth FROM block_name "
                   /* what was called by a category alone has that row, too */
                   ") WHERE nth = 1 OR name <> '' GROUP BY process_id, device_id, block_address, alloc_ns) "
                   "SELECT b.device_id, b.kind, b.process_id, b.thread_id, b.address, b.size_bytes, b.alloc_ns, "
                   "b.free_ns, s.site_id, n.name, n.category, n.shape, n.sharing, n.name_count "
                   "FROM (SELECT * FROM block ORDER BY size_bytes DESC, block_id LIMIT ?) b LEFT JOIN "
                   /* of a sampled recording, a stack has a site for each size */
                   "(SELECT site_id, stack_id, device_id, kind, z.size_bytes FROM site LEFT JOIN site_sample z "
                   "USING(site_id)) s ON s.stack_id = b.stack_id AND s.device_id = b.device_id AND s.kind = "
                   "b.kind AND coalesce(s.size_bytes, b.size_bytes) = b.size_bytes LEFT JOIN named n ON n.process_id = "
                   "b.process_id AND n.device_id = b.device_id AND n.block_address = b.address AND n.alloc_ns = "
                   "b.alloc_ns ORDER BY b.alloc_ns, b.block_id",
                   PAGE_BLOCKS_MAX);
    if (!rc)
        rc = write_rows(page, pack, "segments",
                        "SELECT g.device_id, g.kind, g.process_id, -1, g.address, g.size_bytes, g.alloc_ns, "
                        /* what a process that ended before others did not give back went with it */
                        "coalesce(g.free_ns, CASE WHEN p.end_ns < (SELECT max(end_ns) FROM process) THEN p.end_ns + 1 "
                        "END), s.site_id, " NAME_OF_SEGMENT ", NULL, NULL, NULL, 1 FROM "
                        "(SELECT * FROM segment WHERE kind <> 'arena' ORDER BY size_bytes DESC, segment_id LIMIT ?) g "
                        "LEFT JOIN site s ON "
                        "s.stack_id = g.stack_id "
                        "AND s.device_id = g.device_id AND s.kind = g.kind LEFT JOIN process p ON p.process_id = "
                        "g.process_id ORDER BY g.address",
                        PAGE_SEGMENTS_MAX);
    pack_close(pack, '}');
    return rc;
}
