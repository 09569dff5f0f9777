#include "file_holds.h"

#include "../../common/array.h"
#include "../../common/db.h"
#include "../../common/packed.h"

#include <stdlib.h>

#define ADDRESSES_MAX (1u << 28)

struct holds {
    sqlite3 *db;
    struct packed *packed;
    uint8_t *is_in_file; /* by address_id */
    uint32_t addresses;
    uint8_t *is_below; /* by stack_id: it or a caller is in the file */
};

static int read_addresses(struct holds *h, int64_t file_id)
{
    sqlite3_stmt *s = NULL;
    int64_t last = db_int(h->db, "SELECT max(address_id) FROM address", 0);
    if (last < 0 || last > ADDRESSES_MAX ||
        db_prepare(h->db, "SELECT address_id FROM frame WHERE file_id = ?", &s, NULL))
        return 0;
    h->addresses = (uint32_t)last + 1;
    h->is_in_file = xcalloc(h->addresses, 1);
    sqlite3_bind_int64(s, 1, file_id);
    while (sqlite3_step(s) == SQLITE_ROW) {
        int64_t id = sqlite3_column_int64(s, 0);
        if (id >= 0 && id <= last)
            h->is_in_file[id] = 1;
    }
    sqlite3_finalize(s);
    return 1;
}

/* A caller has a lower id. */
static int mark_stacks(struct holds *h)
{
    const struct packed_values *parents, *addresses;
    long count = packed_count(h->packed, PACKED_TABLE_stack);
    if (count < 0 || packed_read(h->packed, PACKED_stack_parent_id, &parents) ||
        packed_read(h->packed, PACKED_stack_address_id, &addresses))
        return 0;
    h->is_below = xcalloc((size_t)count + 1, 1);
    for (uint32_t i = 1; i <= count; i++) {
        uint64_t address = packed_at(addresses, i);
        h->is_below[i] = h->is_below[packed_at(parents, i)] | (address < h->addresses && h->is_in_file[address]);
    }
    return 1;
}

static int sum_sites(struct holds *h, int64_t parts)
{
    const struct packed_values *stacks, *bytes;
    long count = packed_count(h->packed, PACKED_TABLE_site), last = packed_count(h->packed, PACKED_TABLE_stack);
    double held = 0, all = 0;
    if (count < 0 || packed_read(h->packed, PACKED_site_stack_id, &stacks) ||
        packed_read(h->packed, PACKED_site_at_peak_bytes, &bytes))
        return 0;
    for (uint32_t i = 1; i <= count; i++) {
        double at_peak = (double)packed_at(bytes, i);
        all += at_peak;
        if (packed_at(stacks, i) <= (uint64_t)last && h->is_below[packed_at(stacks, i)])
            held += at_peak;
    }
    return held > all / (double)parts;
}

int file_holds(sqlite3 *db, int64_t file_id, int64_t parts)
{
    struct holds h = {.db = db, .packed = packed_shared(db)};
    if (!h.packed || !packed_has(db, PACKED_TABLE_stack) || !packed_has(db, PACKED_TABLE_site))
        return 0;
    packed_hold(h.packed);
    int holds = read_addresses(&h, file_id) && mark_stacks(&h) && sum_sites(&h, parts);
    packed_let(h.packed);
    free(h.is_in_file);
    free(h.is_below);
    return holds;
}
