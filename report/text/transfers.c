/* Copies and fills by line, device and direction. */
#include "report.h"

#include "../../common/db.h"
#include "../print/listing.h"
#include "../query/device.h"

#include <stdlib.h>

enum { DEFAULT_TOP = 20 };

static int print_directions(sqlite3 *db, const struct report_options *o, const struct report_out *out,
                            struct error *err)
{
    static const struct column columns[] = {
        COLUMN(NULL, "device", TEXT),
        COLUMN(NULL, "direction", TEXT),
        COLUMN(NULL, "bytes", BYTES),
        COLUMN(NULL, "calls", COUNT),
        COLUMN(NULL, "bytes\na call", BYTES, .flags = COLUMN_OPTIONAL),
    };
    struct listing *l = listing_open(columns, COLUMN_COUNT_OF(columns), out, NULL);
    int64_t all = 0;
    int rc = listing_query(l, db,
                           "SELECT d.name, direction, sum(transfer_bytes), sum(transfer_count),"
                           " coalesce(sum(transfer_bytes) / max(sum(transfer_count), 0), 0) FROM transfer JOIN device d"
                           " USING(device_id) WHERE " DEVICE_IS("d.name", "?1") " GROUP BY device_id, direction"
                                                                                " ORDER BY device_id, 3 DESC",
                           o->device, 0, &all, err);
    if (all)
        listing_print(l);
    else if (rc == 0)
        table_prose(out, TABLE_PLAIN, "No copies or fills of a device's memory were recorded.");
    listing_close(l);
    return rc;
}

static int list_lines(sqlite3 *db, const struct report_options *o, const struct report_out *out, struct error *err)
{
    static const struct column columns[] = {
        COLUMN("device", "device", TEXT, .place = 4),
        COLUMN("direction", "direction", TEXT, .place = 3),
        COLUMN("transfer_count", "calls", COUNT, .place = 2),
        COLUMN("transfer_bytes", "bytes", BYTES, .place = 1),
        COLUMN("function", "function", TEXT, .place = 5, .cut = TEXT_CUT_NAME),
        COLUMN("file", "source", SOURCE, .place = 6, .cut = TEXT_CUT_LEFT),
        COLUMN("line", NULL, NUMBER),
    };
    int64_t top = o->top >= 0 ? o->top : out->format == REPORT_TEXT ? DEFAULT_TOP : 0, all = 0;
    char *cwd = db_meta_text(db, "cwd");
    struct listing *l = listing_open(columns, COLUMN_COUNT_OF(columns), out, cwd);
    int rc = listing_query(l, db,
                           "SELECT device, direction, sum(transfer_count), sum(transfer_bytes), function,"
                           " file, line, count(*) OVER () FROM v_transfer"
                           " WHERE " DEVICE_IS("device", "?1") " GROUP BY device, direction, function, file, line"
                                                               " ORDER BY 4 DESC, 3 DESC, function, line LIMIT ?2",
                           o->device, top, &all, err);
    listing_print_under(l, "Copies and fills, by line", all);
    listing_close(l);
    free(cwd);
    return rc;
}

int report_transfers(sqlite3 *db, const struct report_options *o, const struct report_out *out, struct error *err)
{
    int rc = device_check(db, o->device, NULL, err);
    if (rc == 0 && out->format == REPORT_TEXT)
        rc = print_directions(db, o, out, err);
    if (rc == 0)
        rc = list_lines(db, o, out, err);
    return rc;
}
