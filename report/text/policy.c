/* What the bands of a policy had done, by band, device and action, and what it gave back. */
#include "report.h"

#include "../../common/db.h"
#include "../print/listing.h"
#include "../query/device.h"

#include <stdlib.h>

/* What one time of an action gave back: as the process measured it around it, else as the recording has the device
 * before and after it. A mark and a key frame are there for nothing of the kind. */
#define GIVEN_BACK                                                                                                     \
    "CASE WHEN a.action IN ('mark', 'keyframe') OR a.status IN ('not possible', 'not taken', 'process ended') THEN "   \
    "NULL WHEN a.before_bytes IS NOT NULL THEN max(a.before_bytes - a.after_bytes, 0) WHEN a.action LIKE 'callback%' " \
    "THEN max(a.reserved_before_bytes - a.reserved_after_bytes, 0) ELSE max(a.used_before_bytes - "                    \
    "a.used_after_bytes, 0) END"
#define MEAN(column)       "CAST(avg(a." column ") AS INTEGER)"
#define HAS_STATUS(status) "count(*) FILTER(WHERE a.status = '" status "')"

#define DONE "count(*) FILTER(WHERE a.status IN ('done', 'running', 'status 0'))"
/* A command's end, but for the good one. */
#define FAILED                                                                                                         \
    "count(*) FILTER(WHERE a.status LIKE 'signal %' OR (a.status LIKE 'status %' AND a.status <> 'status 0'))"
#define NOT_TAKEN HAS_STATUS("not taken") " + " HAS_STATUS("process ended")
#define OFF_NS                                                                                                         \
    "(SELECT min(o.time_ns) FROM policy_off o WHERE o.band_id = b.band_id AND o.device_id = a.device_id AND "          \
    "o.action = a.action)"
#define FIGURES                                                                                                        \
    MEAN("before_bytes")                                                                                               \
    ", " MEAN("after_bytes") ", " MEAN("reserved_before_bytes") ", " MEAN("reserved_after_bytes") ", " MEAN(           \
        "used_before_bytes") ", " MEAN("used_after_bytes")

static const char sql[] =
    "SELECT coalesce(b.source, 'program'), b.line, d.name, a.action, count(DISTINCT a.mark_id), " DONE ", " FAILED
    ", " HAS_STATUS("not possible") ", " NOT_TAKEN ", sum(" GIVEN_BACK "), " FIGURES
                                    ", CAST(avg(a.end_ns - a.begin_ns) AS INTEGER), max(a.end_ns - a.begin_ns), " OFF_NS
                                    ", b.text, count(*) OVER ()"
                                    " FROM policy_band b LEFT JOIN policy_action a USING(band_id) LEFT JOIN device d "
                                    "USING(device_id)"
                                    " WHERE d.name IS NULL OR " DEVICE_IS(
                                        "d.name", "?1") " GROUP BY b.band_id, a.device_id, a.action"
                                                        " ORDER BY b.band_id, a.device_id, min(a.action_id) LIMIT ?2";

/* Files of versions before policies have none. */
static int has_tables(sqlite3 *db)
{
    return db_int(db, "SELECT count(*) FROM main.sqlite_schema WHERE name LIKE 'policy!_%' ESCAPE '!'", 0) >= 3;
}

int report_policy(sqlite3 *db, const struct report_options *o, const struct report_out *out, struct error *err)
{
    static const struct column columns[] = {
        COLUMN("source", "policy", SOURCE, .place = 1, .cut = TEXT_CUT_LEFT),
        COLUMN("line", NULL, NUMBER),
        COLUMN("device", "device", TEXT, .place = 2),
        COLUMN("action", "action", TEXT, .place = 3, .none = "never due", .cut = TEXT_CUT_NAME),
        COLUMN("times", "times", COUNT, .place = 4),
        COLUMN("done_count", "done", COUNT, .place = 5),
        COLUMN("failed_count", "failed", COUNT, .place = 6, .flags = COLUMN_OPTIONAL),
        COLUMN("not_possible_count", "not\npossible", COUNT, .place = 7, .flags = COLUMN_OPTIONAL),
        COLUMN("not_taken_count", "not\ntaken", COUNT, .place = 8, .flags = COLUMN_OPTIONAL),
        COLUMN("given_back_bytes", "given\nback", BYTES, .place = 9),
        COLUMN("before_bytes", "before", BYTES_SHORT, .place = 10, .flags = COLUMN_OPTIONAL),
        COLUMN("after_bytes", "after", BYTES_SHORT, .place = 11, .flags = COLUMN_OPTIONAL),
        COLUMN("reserved_before_bytes", "reserved\nbefore", BYTES_SHORT, .place = 12),
        COLUMN("reserved_after_bytes", "reserved\nafter", BYTES_SHORT, .place = 13),
        COLUMN("used_before_bytes", "used\nbefore", BYTES_SHORT, .place = 14),
        COLUMN("used_after_bytes", "used\nafter", BYTES_SHORT, .place = 15),
        COLUMN("taken_ns", "took", NS, .place = 16),
        COLUMN("longest_ns", "longest", NS, .place = 17, .flags = COLUMN_OPTIONAL),
        COLUMN("off_ns", "switched\noff at", NS, .place = 18),
        COLUMN("band", "band", TEXT, .place = 19, .cut = TEXT_CUT_RIGHT, .flags = COLUMN_OPTIONAL),
    };
    int64_t all = 0;
    int rc = device_check(db, o->device, NULL, err);
    if (rc)
        return rc;
    char *cwd = db_meta_text(db, "cwd");
    struct listing *l = listing_open(columns, COLUMN_COUNT_OF(columns), out, cwd);
    if (has_tables(db))
        rc = listing_query(l, db, sql, o->device, o->top > 0 ? o->top : 0, &all, err);
    if (rc == 0 && !listing_rows(l) && out->format == REPORT_TEXT)
        table_prose(out, TABLE_PLAIN, "There was no policy: 'memprof run --policy FILE' records by one.");
    listing_print_under(l, "What the policy had done; means of each time, what was given back is the sum", all);
    listing_close(l);
    free(cwd);
    return rc;
}
