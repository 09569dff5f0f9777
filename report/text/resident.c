#include "resident.h"

#include "../../common/db.h"
#include "../print/listing.h"

#include <stdio.h>
#include <string.h>

const char *resident_title(const struct resident_peak *peak, const char *what, struct resident_title *title)
{
    char text[UNITS_TEXT];
    snprintf(title->text, sizeof title->text, "%s\nat %s", what, units_ns(text, peak->time_ns));
    return peak->process_count > 0 ? title->text : what;
}

const char *resident_last_title(const struct resident_peak *peak, struct resident_title *title)
{
    char first[UNITS_TEXT], last[UNITS_TEXT];
    units_ns(first, peak->ends_ns);
    units_ns(last, peak->last_ns);
    int is_one = peak->ends_ns < 0 || strcmp(first, last) == 0;
    snprintf(title->text, sizeof title->text, "last look\nat %s%s%s", is_one ? "" : first, is_one ? "" : " to ", last);
    return peak->process_count > 0 ? title->text : "last look";
}

static int list_whats(sqlite3 *db, const struct resident_peak *peak, const char *title, struct record *document,
                      struct error *err)
{
    static const struct column columns[] = {
        COLUMN("what", NULL, TEXT),
        COLUMN("resident_bytes", "bytes", BYTES, .place = 1),
        COLUMN(NULL, "share", PERCENT, .place = 2),
        COLUMN("shared_bytes", "shared", BYTES, .place = 3, .flags = COLUMN_OPTIONAL),
        COLUMN("huge_bytes", "huge", BYTES, .place = 4, .flags = COLUMN_OPTIONAL, .none = "-"),
        COLUMN("swapped_bytes", "swapped", BYTES, .place = 5, .flags = COLUMN_OPTIONAL),
        COLUMN("untouched_bytes", "on no page", BYTES, .place = 6),
        COLUMN(NULL, "", TEXT, .place = 7),
    };
    sqlite3_stmt *s = NULL;
    int rc = db_prepare(db,
                        "SELECT what, resident_bytes, shared_bytes, huge_bytes, swapped_bytes, untouched_bytes FROM "
                        "v_resident ORDER BY what != 'blocks', resident_bytes DESC, what",
                        &s, err);
    if (rc)
        return rc;
    struct listing *l = listing_open_in(document, "resident", columns, COLUMN_COUNT_OF(columns), NULL);
    while (sqlite3_step(s) == SQLITE_ROW) {
        listing_text(l, db_text(s, 0));
        listing_int(l, sqlite3_column_int64(s, 1));
        listing_share(l, sqlite3_column_int64(s, 1), peak->present_bytes);
        listing_int(l, sqlite3_column_int64(s, 2));
        listing_int_if(l, peak->huge_bytes >= 0, sqlite3_column_int64(s, 3));
        listing_int(l, sqlite3_column_int64(s, 4));
        listing_int(l, sqlite3_column_int64(s, 5));
        listing_text(l, resident_what_text(db_text(s, 0)));
    }
    listing_print_under(l, title, 0);
    listing_close(l);
    sqlite3_finalize(s);
    return 0;
}

/* For programs: each look that was kept. */
static int list_scans(sqlite3 *db, struct record *document, struct error *err)
{
    static const struct column columns[] = {
        COLUMN("process_id", NULL, NUMBER),  COLUMN("pid", NULL, NUMBER),       COLUMN("is_peak", NULL, NUMBER),
        COLUMN("is_last", NULL, NUMBER),     COLUMN("time_ns", NULL, NS),       COLUMN("duration_ns", NULL, NS),
        COLUMN("moved_count", NULL, COUNT),  COLUMN("rss_bytes", NULL, BYTES),  COLUMN("present_bytes", NULL, BYTES),
        COLUMN("shared_bytes", NULL, BYTES), COLUMN("huge_bytes", NULL, BYTES), COLUMN("swapped_bytes", NULL, BYTES),
        COLUMN("zero_bytes", NULL, BYTES),
    };
    int64_t all;
    struct listing *l = listing_open_in(document, "resident_scans", columns, COLUMN_COUNT_OF(columns), NULL);
    int rc =
        listing_query(l, db,
                      "SELECT c.process_id, p.pid, is_peak, is_last, time_ns, duration_ns, moved_count, rss_bytes, "
                      "present_bytes, shared_bytes, huge_bytes, swapped_bytes, zero_bytes FROM resident_scan c "
                      "LEFT JOIN process p USING(process_id) WHERE ?1 IS ?1 AND ?2 = ?2 ORDER BY scan_id",
                      NULL, 0, &all, err);
    listing_close(l);
    return rc;
}

int resident_list(sqlite3 *db, int only_if_differs, struct record *document, struct error *err)
{
    struct resident_peak peak;
    struct buf title = BUF(4096);
    if (document->out->format == REPORT_CSV)
        return 0;
    int rc = resident_peak_load(db, &peak, err), is_people = document->out->format == REPORT_TEXT;
    if (rc || (is_people && !(only_if_differs ? resident_peak_differs(&peak) : peak.process_count > 0)))
        return rc;
    if (!is_people && peak.process_count > 0)
        record_member_int(document, "untracked_bytes", peak.untracked_bytes);
    resident_peak_text(&peak, &title);
    rc = list_whats(db, &peak, buf_text(&title), document, err);
    if (rc == 0 && !is_people)
        rc = list_scans(db, document, err);
    buf_free(&title);
    return rc;
}
