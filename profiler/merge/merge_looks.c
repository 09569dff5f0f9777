/* Looks at present pages, packed where sites are. */
#include "merge_private.h"

#include "../store/packer.h"

#define COLUMNS (PACKED_COLUMNS - PACKED_KEY_resident_site)

static void pack(struct packer *packer, int64_t scan_id, uint32_t first_row, uint32_t count)
{
    for (enum packed_column c = PACKED_KEY_resident_site; count && c < PACKED_COLUMNS; c++)
        packer_column(packer, (uint32_t)scan_id, c, first_row, count);
}

void merge_looks_end(struct merge *m)
{
    static const char sql[] =
        "SELECT scan_id, site_id, live_count, live_bytes, resident_bytes, shared_bytes, huge_bytes, swapped_bytes, "
        "untouched_bytes FROM resident_site ORDER BY scan_id, site_id";
    if (m->site_count <= PACKED_SITES)
        return;
    struct packer *packer = packer_open(m->store, PACKED_TABLE_resident_site);
    sqlite3_stmt *s = store_statement(m->store, sql);
    int64_t scan_id = 0;
    uint32_t first_row = 1, count = 0;
    while (s && sqlite3_step(s) == SQLITE_ROW) {
        int is_next = scan_id != sqlite3_column_int64(s, 0);
        if (is_next || count == PACKED_ROWS) {
            pack(packer, scan_id, first_row, count);
            first_row = is_next ? 1 : first_row + count;
            count = 0;
            scan_id = sqlite3_column_int64(s, 0);
        }
        for (int i = 0; i < COLUMNS; i++)
            packer_values(packer, PACKED_KEY_resident_site + (unsigned)i)[count] =
                (uint64_t)sqlite3_column_int64(s, i + 1);
        count++;
    }
    pack(packer, scan_id, first_row, count);
    if (s)
        sqlite3_reset(s);
    store_step(m->store, store_statement(m->store, "DELETE FROM resident_site"));
    packer_close(packer);
}
