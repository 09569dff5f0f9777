/* How many blocks of which size: the histogram that the recording has. */
#include "report.h"

#include "../../common/db.h"
#include "../findings/notes.h"
#include "../print/listing.h"
#include "../query/device.h"
#include "../query/estimate.h"
#include "nothing.h"

/* Of a class of a sampled recording: a variance, by its sites o and their samples x. */
#define SPREAD_SQL(sum)                                                                                                \
    " (SELECT total(" sum                                                                                              \
    ") FROM site_sample x JOIN site o USING(site_id) WHERE o.device_id = s.device_id AND (?2 IS "                      \
    "NULL OR ?2 IN ('all', o.kind)) AND x.size_bytes >> log2_size = 1)"

static void list_size(struct listing *l, sqlite3_stmt *q)
{
    enum { ALLOCS = 4, BYTES = 5, LIVE = 10, COUNT = 13 };
    for (int i = 0; i < COUNT; i++) {
        int spread = i == ALLOCS ? COUNT : i == BYTES ? COUNT + 1 : i == LIVE ? COUNT + 2 : 0;
        if (spread)
            listing_estimate(l, sqlite3_column_type(q, i) != SQLITE_NULL, sqlite3_column_int64(q, i),
                             estimate_error(sqlite3_column_double(q, spread)));
        else
            listing_columns(l, q, i, 1);
    }
}

static int list_sizes(sqlite3 *db, const struct report_options *o, struct record *document, struct error *err)
{
    struct column columns[] = {
        COLUMN("device", "device", TEXT, .place = 9),
        COLUMN("kind", NULL, TEXT),
        COLUMN("from_bytes", "size\nfrom", BYTES, .place = 1),
        COLUMN("below_bytes", "below", BYTES, .place = 2),
        COLUMN("alloc_count", "allocs", COUNT, .place = 3),
        COLUMN("alloc_bytes", "allocated", BYTES, .place = 5),
        COLUMN("free_count", NULL, COUNT),
        COLUMN("temporary_count", NULL, COUNT),
        COLUMN("lifetime_ns", NULL, NS),
        COLUMN(NULL, "share", PERCENT, .place = 4),
        COLUMN(NULL, "never\nfreed", COUNT, .place = 6, .flags = COLUMN_OPTIONAL),
        COLUMN(NULL, "temporary", PERCENT, .place = 7, .flags = COLUMN_OPTIONAL, .none = "-"),
        COLUMN(NULL, "mean\nlifetime", NS, .place = 8, .flags = COLUMN_OPTIONAL, .none = "-"),
    };
    sqlite3_stmt *q = NULL;
    if (!report_has_devices(db, o->device))
        columns[0].title = NULL;
    int rc = db_prepare(
        db,
        "WITH estimate AS (SELECT EXISTS (SELECT 1 FROM meta WHERE key = 'sample_bytes') AS "
        "is_sampled), size AS (SELECT device_id, log2_size, CAST(total(alloc_count) AS INTEGER) AS "
        "allocs,"
        " CAST(total(alloc_bytes) AS INTEGER) AS bytes, CAST(total(free_count) AS INTEGER) AS frees,"
        " CAST(total(temporary_count) AS INTEGER) AS temporary, iif(count(lifetime_ns), "
        "CAST(total(lifetime_ns) AS "
        "INTEGER), NULL) AS lifetime"
        " FROM size_class WHERE ?2 IS NULL OR ?2 IN ('all', kind) GROUP BY device_id, log2_size)"
        "SELECT d.name, coalesce(?2, 'all'), CASE WHEN log2_size < 0 THEN 0 ELSE 1 << log2_size END,"
        " 1 << (log2_size + 1), allocs, bytes, frees, temporary, lifetime,"
        " 100.0 * allocs / nullif(sum(allocs) OVER (PARTITION BY device_id), 0), allocs - frees,"
        " iif(is_sampled, NULL, 100.0 * temporary / nullif(allocs, 0)), lifetime / nullif(frees, "
        "0)," SPREAD_SQL("alloc_count * x.count_spread") "," SPREAD_SQL(
            "alloc_bytes * 1.0 * "
            "x.excess_bytes") "," SPREAD_SQL("(o.alloc_count - o.free_count) * x.count_spread") " FROM size s JOIN "
                                                                                                "device d "
                                                                                                "USING(device_id), "
                                                                                                "estimate "
                                                                                                "WHERE " DEVICE_IS(
                                                                                                    "d.name",
                                                                                                    "?1") " ORDER BY "
                                                                                                          "device_id, "
                                                                                                          "log2_size",
        &q, err);
    if (rc)
        return rc;
    sqlite3_bind_text(q, 1, o->device, -1, SQLITE_STATIC);
    sqlite3_bind_text(q, 2, o->kind, -1, SQLITE_STATIC);
    struct listing *l = listing_open_in(document, "rows", columns, COLUMN_COUNT_OF(columns), NULL);
    int64_t all = 0;
    for (; db_next(q, &rc, err); all++)
        list_size(l, q);
    if (document->out->format == REPORT_TEXT && !all && rc == 0)
        nothing_say(o, document->out);
    else
        listing_print(l);
    listing_heading(l);
    listing_close(l);
    sqlite3_finalize(q);
    return rc;
}

/* What run --min-size counted and did not record; nothing where it was not asked for. */
static int list_left_out(sqlite3 *db, const struct report_options *o, struct record *document, struct error *err)
{
    static const struct column columns[] = {
        COLUMN("size_from", "from", BYTES),
        COLUMN("size_to", "below", BYTES),
        COLUMN("alloc_count", "allocs", COUNT),
        COLUMN("alloc_bytes", "allocated", BYTES),
    };
    if (db_meta_int(db, "least_bytes", 0) <= 0 || document->out->format == REPORT_CSV ||
        !device_is("host", o->device) || (o->kind && strcmp(o->kind, "all") != 0 && strcmp(o->kind, "heap") != 0))
        return 0;
    struct listing *l = listing_open_in(document, "left_out", columns, COLUMN_COUNT_OF(columns), NULL);
    int64_t all = 0;
    int rc = listing_query(l, db,
                           "SELECT CASE WHEN log2_size < 0 THEN 0 ELSE 1 << min(log2_size, 62) END, "
                           "min(1 << min(log2_size + 1, 62), (SELECT value FROM meta WHERE key = 'least_bytes')), "
                           "alloc_count, alloc_bytes FROM left_out ORDER BY log2_size",
                           NULL, 0, &all, err);
    listing_print_under(l, "Left out of the host's heap (--min-size)", all);
    listing_close(l);
    return rc;
}

int report_sizes(sqlite3 *db, const struct report_options *o, const struct report_out *out, struct error *err)
{
    struct record document;
    int rc = device_check(db, o->device, o->kind, err);
    record_open(&document, out);
    if (rc == 0 && out->format == REPORT_TEXT) {
        notes_print(db, out);
        table_line(out, TABLE_STRONG, "By size of the blocks requested");
        rc = list_sizes(db, o, &document, err);
        if (rc == 0)
            rc = list_left_out(db, o, &document, err);
    } else if (rc == 0) {
        record_document_begin(&document);
        notes_record(db, o->file, &document);
        record_member_text(&document, "by", "size");
        rc = list_sizes(db, o, &document, err);
        if (rc == 0)
            rc = list_left_out(db, o, &document, err);
        record_document_end(&document);
    }
    record_close(&document);
    return rc;
}
