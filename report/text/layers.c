#include "layers.h"

#include "../../common/db.h"
#include "../print/listing.h"
#include "../query/device.h"

#include <string.h>

int layers_list(sqlite3 *db, const char *device, struct record *document, struct error *err)
{
    static const struct column columns[] = {
        COLUMN("device", "device", TEXT),
        COLUMN("instant", "", TEXT),
        COLUMN("time_ns", "at", NS, .flags = COLUMN_OPTIONAL),
        COLUMN("allocated_bytes", "allocated", BYTES, .flags = COLUMN_OPTIONAL),
        COLUMN("active_bytes", "active", BYTES),
        COLUMN("reserved_bytes", "reserved", BYTES),
        COLUMN("used_bytes", "used", BYTES),
        COLUMN("untracked_bytes", "not tracked", BYTES),
        COLUMN("free_bytes", "free", BYTES),
        COLUMN("total_bytes", "total", BYTES, .flags = COLUMN_OPTIONAL),
    };
    sqlite3_stmt *s = NULL;
    const int with_host = document->out->format == REPORT_JSON; /* for people the host's are in other lines */
    if (document->out->format == REPORT_CSV ||
        (!with_host && !db_int(db, "SELECT EXISTS (SELECT 1 FROM device WHERE device_id > 0)", 1)))
        return 0;
    static const char sql[] =
        "SELECT v.device, v.instant, v.time_ns, v.allocated_bytes, v.active_bytes, v.reserved_bytes, v.used_bytes, "
        "v.untracked_bytes, v.free_bytes, v.total_bytes FROM v_layer v JOIN device d ON d.name = v.device WHERE "
        "(d.device_id > 0 OR ?2) AND " DEVICE_IS("v.device", "?1") " ORDER BY d.device_id, v.instant != 'most used', "
                                                                   "v.instant";
    int rc = db_prepare(db, sql, &s, err);
    if (rc)
        return rc;
    sqlite3_bind_text(s, 1, device, -1, SQLITE_STATIC);
    sqlite3_bind_int(s, 2, with_host);
    struct listing *l = listing_open_in(document, "layers", columns, COLUMN_COUNT_OF(columns), NULL);
    int64_t before_ns = -1;
    while (db_next(s, &rc, err)) {
        int64_t time_ns = sqlite3_column_int64(s, 2);
        int is_same = strcmp(db_text(s, 1), "last") == 0 && time_ns == before_ns;
        before_ns = time_ns;
        if (!is_same || document->out->format != REPORT_TEXT)
            listing_row(l, s);
    }
    listing_print_under(l, "Layers of the devices' memory, with what their driver says is used", 0);
    listing_close(l);
    sqlite3_finalize(s);
    return rc;
}
